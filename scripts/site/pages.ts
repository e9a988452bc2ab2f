/** Which Markdown of the repository the documentation site has, and where: a new file needs no entry anywhere. */
import { globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { sections } from "../lib/markdown.ts";

export interface Page {
  /** The file in the repository, with `/`. */
  readonly source: string;
  /** The file in the site, with `/`. */
  readonly target: string;
  readonly title: string;
  /** The Markdown as it is in the repository. */
  readonly text: string;
}

/** Folders and files that are not for readers of the site. */
const LEFT_OUT = [
  /(^|\/)node_modules\//,
  /^(dist|release|man|site)\//,
  /^changes\//,
  /^test\/fixtures\//,
  /(^|\/)\./,
];

/** Every page, sorted by its source. */
export function readPages(root: string): Page[] {
  const files = globSync("**/*.md", { cwd: root, exclude: (name) => /^(node_modules|\.git)$/.test(name) });
  return files
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => !LEFT_OUT.some((pattern) => pattern.test(file)))
    .sort()
    .map((source) => {
      const text = readFileSync(join(root, source), "utf8");
      return { source, target: targetOf(source), title: titleOf(text, source), text };
    });
}

/** `src/plugins/cache/README.md` becomes `plugins/cache.md`; a README stands for its folder. */
export function targetOf(source: string): string {
  const plugin = /^src\/plugins\/([^/]+)\/README\.md$/.exec(source)?.[1];
  if (plugin !== undefined) return `plugins/${plugin}.md`;
  const placed = source.replace(/^src\/plugins\//, "plugins/").replace(/^src\//, "code/");
  return placed.replace(/(^|\/)README\.md$/, "$1index.md");
}

function titleOf(text: string, source: string): string {
  const title = sections(text, 1)[0]?.title ?? posix.basename(source, ".md");
  return title.replaceAll("`", "");
}

/** The first paragraph of a page: what it is about. */
export function summaryOf({ text }: Page): string {
  const paragraphs = text.split(/\n\s*\n/).map((paragraph) => paragraph.trim());
  return paragraphs.find((paragraph) => /^([A-Z*[]|`(?!``))/.test(paragraph)) ?? "";
}

/** A page of links for folders that other pages link to, and that have pages but no README. */
export function folderPage(folder: string, pages: readonly Page[]): Page | undefined {
  const within = pages.filter(({ source }) => source.startsWith(`${folder}/`));
  if (within.length === 0) return undefined;
  const title = folder === "src/plugins" ? "Plugins" : capitalized(posix.basename(folder));
  const rows = within.map(
    (page) =>
      `| [${page.title}](${posix.relative(folder, page.source)}) | ${summaryOf(page)
        .replaceAll(/\s+/g, " ")
        .replaceAll("|", "\\|")
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")} |`,
  );
  return {
    source: `${folder}/README.md`,
    target: targetOf(`${folder}/README.md`),
    title,
    text: `# ${title}\n\n| | |\n|---|---|\n${rows.join("\n")}\n`,
  };
}

export function capitalized(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1).replaceAll("-", " ");
}
