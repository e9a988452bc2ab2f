/** The order of the pages at the side of the site. */
import { capitalized, type Page } from "./pages.ts";

export interface SidebarItem {
  readonly text: string;
  readonly link?: string;
  readonly collapsed?: boolean;
  readonly items?: readonly SidebarItem[];
}

/** Groups with pages by name; each page that none of them takes falls to the rules below. */
const GROUPS: readonly {
  readonly title: string;
  readonly sources: readonly string[];
  readonly folded?: true;
}[] = [
  {
    title: "Start here",
    sources: ["README.md", "examples/quickstart/README.md", "docs/corefile.md", "docs/compatibility.md"],
  },
  {
    title: "In a cluster",
    sources: [
      "docs/migrate-from-coredns.md",
      "deploy/README.md",
      "deploy/helm/portolan/README.md",
      "docs/operations.md",
    ],
  },
  {
    title: "Commands",
    sources: [
      "docs/check.md",
      "docs/explain.md",
      "docs/doctor.md",
      "docs/test.md",
      "docs/compare.md",
      "docs/kubectl.md",
      "docs/predecessors/migrate.md",
      "docs/fmt.md",
      "docs/language-server.md",
      "editors/vscode/README.md",
    ],
  },
];

/**
 * @param pages all pages, those of the repository and those made for folders
 * @param api the pages of the API reference, below `api/`
 */
export function makeSidebar(pages: readonly Page[], api: readonly SidebarItem[]): SidebarItem[] {
  const left = new Map(pages.map((page) => [page.source, page]));
  const take = (choose: (source: string) => boolean): SidebarItem[] => {
    const taken = [...left.values()].filter(({ source }) => choose(source));
    for (const { source } of taken) left.delete(source);
    return taken.map(itemOf);
  };
  const group = (text: string, items: readonly SidebarItem[], collapsed: boolean): SidebarItem[] =>
    items.length === 0 ? [] : [{ text, collapsed, items }];
  const named = GROUPS.flatMap(({ title, sources }) =>
    group(
      title,
      sources.flatMap((source) => take((other) => other === source)),
      false,
    ),
  );
  const authors = [...take((source) => source === "docs/plugins.md"), ...api];
  const plugins = take((source) => /^src\/plugins\/([^/]+\/)?README\.md$/.test(source));
  const contributing = take((source) => source.startsWith("docs/contributing/"));
  const guides = take((source) => /^docs\/[^/]+$/.test(source));
  const folders = [
    ...new Set([...left.keys()].flatMap((source) => /^docs\/([^/]+)\//.exec(source)?.[1] ?? [])),
  ];
  const folderGroups = folders.sort().flatMap((folder) =>
    group(
      capitalized(folder),
      take((source) => source.startsWith(`docs/${folder}/`)),
      true,
    ),
  );
  const code = [
    ...take((source) => source === "ARCHITECTURE.md"),
    ...take((source) => /^(src|test)\//.test(source)),
    ...take((source) => source.startsWith("bench/")),
  ];
  const project = [...take((source) => /^[A-Z_]+\.md$/.test(source)), ...contributing];
  return [
    ...named,
    ...group("Guides", guides, false),
    ...group("Plugins", plugins, true),
    ...group("Write plugins", authors, true),
    ...folderGroups,
    ...group("Project", project, true),
    ...group("The code", code, true),
    ...group(
      "More",
      take(() => true),
      true,
    ),
  ];
}

function itemOf({ title, target }: Page): SidebarItem {
  return { text: title, link: linkOf(target) };
}

/** A page is at its path without `.md`, an index at its folder: `/docs/check`, `/bench/`. */
export function linkOf(target: string): string {
  return `/${target.replace(/\.md$/, "").replace(/(^|\/)index$/, "$1")}`;
}
