/** The pages as VitePress reads them, in a folder that git ignores. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, posix } from "node:path";
import { rewriteLinks } from "./links.ts";
import { capitalized, folderPage, type Page, readPages } from "./pages.ts";
import { linkOf, makeSidebar, type SidebarItem } from "./sidebar.ts";

/**
 * Writes all pages, with links that fit the site, and the files that they link to.
 * @param folder is emptied first
 * @returns the pages, those made for folders included
 */
export function layOutPages(root: string, folder: string): Page[] {
  rmSync(folder, { recursive: true, force: true });
  const pages = readPages(root);
  const targets = new Targets(root, folder, pages);
  for (const page of pages) write(folder, page, targets);
  // A page made for a folder links only to pages, so that no further one is added here.
  for (const page of targets.folderPages) write(folder, page, targets);
  return [...pages, ...targets.folderPages];
}

function write(folder: string, { source, target, text }: Page, targets: Targets): void {
  const file = join(folder, target);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, rewriteLinks(text, source, targets));
}

class Targets {
  readonly folderPages: Page[] = [];
  readonly #root: string;
  readonly #public: string;
  readonly #pages: readonly Page[];
  readonly #found = new Map<string, string | undefined>();

  constructor(root: string, folder: string, pages: readonly Page[]) {
    this.#root = root;
    this.#public = join(folder, "public");
    this.#pages = pages;
    for (const { source, target } of pages) {
      this.#found.set(source, linkOf(target));
      if (posix.basename(source) === "README.md") this.#found.set(posix.dirname(source), linkOf(target));
    }
  }

  find(path: string): string | undefined {
    if (!this.#found.has(path)) this.#found.set(path, this.#add(path));
    return this.#found.get(path);
  }

  /** A picture as it is, another file as text, a folder as a list of its pages. */
  #add(path: string): string | undefined {
    const file = join(this.#root, path);
    if (path.startsWith("..") || !existsSync(file)) return undefined;
    if (statSync(file).isDirectory()) {
      const page = folderPage(path, this.#pages);
      if (page === undefined) return undefined;
      this.folderPages.push(page);
      return linkOf(page.target);
    }
    const name = /\.(png|svg)$/.test(path) ? path : `${path}.txt`;
    const copy = join(this.#public, "files", name);
    mkdirSync(dirname(copy), { recursive: true });
    copyFileSync(file, copy);
    return `/files/${name}`;
  }
}

/** Writes the pages at the side, those of the API reference in `folder/api` included. */
export function writeSidebar(folder: string, pages: readonly Page[]): void {
  const api = [{ text: "API reference", link: "/api/", collapsed: true, items: apiItems(folder, "api") }];
  writeFileSync(join(folder, "sidebar.json"), JSON.stringify(makeSidebar(pages, api)));
}

function apiItems(folder: string, path: string): SidebarItem[] {
  const entries = readdirSync(join(folder, path), { withFileTypes: true });
  return entries
    .filter(({ name }) => name !== "index.md")
    .sort((a, b) => a.name.localeCompare(b.name))
    .map((entry): SidebarItem => {
      const inside = `${path}/${entry.name}`;
      if (!entry.isDirectory()) return { text: entry.name.replace(/\.md$/, ""), link: linkOf(inside) };
      const index = `${inside}/index.md`;
      const items = apiItems(folder, inside);
      if (!existsSync(join(folder, index))) return { text: capitalized(entry.name), collapsed: true, items };
      const [, title = entry.name] = /^# (.*)$/m.exec(readFileSync(join(folder, index), "utf8")) ?? [];
      return { text: title, link: linkOf(index), collapsed: true, items };
    });
}
