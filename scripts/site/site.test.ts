import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { rewriteLinks } from "./links.ts";
import { folderPage, type Page, readPages, summaryOf, targetOf } from "./pages.ts";
import { linkOf, makeSidebar, type SidebarItem } from "./sidebar.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

for (const [source, target, link] of [
  ["README.md", "index.md", "/"],
  ["docs/check.md", "docs/check.md", "/docs/check"],
  ["src/plugins/cache/README.md", "plugins/cache.md", "/plugins/cache"],
  ["src/plugins/cache/CODE.md", "plugins/cache/CODE.md", "/plugins/cache/CODE"],
  ["src/plugins/README.md", "plugins/index.md", "/plugins/"],
  ["src/server/README.md", "code/server/index.md", "/code/server/"],
] as const) {
  test(`${source} is at ${link}`, () => {
    assert.equal(targetOf(source), target);
    assert.equal(linkOf(target), link);
  });
}

const targets = { find: (path: string) => (path.startsWith("no") ? undefined : `/page/${path}`) };

for (const [title, text, expected] of [
  [
    "a link from one folder to another",
    "see [*b*](../b/README.md#x-y).",
    "see [*b*](/page/b/README.md#x-y).",
  ],
  ["a link to what the site does not have", "see [`it`](../nowhere/x.c).", "see `it`."],
  ["a link to another server, and within the page", "[a](https://x.example/) [b](#c)", undefined],
  ["a picture in a link", "[![alt](p.png)](q.md)", "[![alt](/page/a/p.png)](/page/a/q.md)"],
  ["a picture of HTML", '<img src="p.png" width="3">', '<img src="/page/a/p.png" width="3">'],
  ["code", "`[a](b.md)`", undefined],
  ["a block of code", "```md\n[a](b.md)\n```\n[a](b.md)", "```md\n[a](b.md)\n```\n[a](/page/a/b.md)"],
] as const) {
  test(`rewrites ${title}`, () => {
    assert.equal(rewriteLinks(text, "a/README.md", targets), expected ?? text);
  });
}

const page = (source: string, text = `# \`${source}\`\n\nAll about it.\n`): Page => ({
  source,
  target: targetOf(source),
  title: source,
  text,
});

test("a folder without a README gets a page with what its pages are about", () => {
  const made = folderPage("docs/providers", [page("docs/providers/eks.md"), page("README.md")]);
  assert.equal(made?.title, "Providers");
  assert.match(made?.text ?? "", /^\| \[docs\/providers\/eks\.md\]\(eks\.md\) \| All about it\. \|$/m);
  assert.equal(folderPage("docs/none", [page("README.md")]), undefined);
});

test("the summary of a page is its first paragraph", () => {
  assert.equal(
    summaryOf(page("a.md", "# A\n\n```sh\nls\n```\n\nDoes this\nand that.\n\nMore.\n")),
    "Does this\nand that.",
  );
});

test("every page is in the sidebar once, new files of docs/ too", () => {
  const pages = [...readPages(root), page("docs/brand-new.md"), page("docs/brand-folder/new.md")];
  const links = (items: readonly SidebarItem[]): string[] =>
    items.flatMap(({ link, items = [] }) => [...(link === undefined ? [] : [link]), ...links(items)]);
  const sidebar = makeSidebar(pages, []);
  assert.deepEqual(links(sidebar).sort(), pages.map(({ target }) => linkOf(target)).sort());
  assert.deepEqual(
    sidebar.find(({ text }) => text === "Brand folder")?.items?.map(({ link }) => link),
    ["/docs/brand-folder/new"],
  );
});
