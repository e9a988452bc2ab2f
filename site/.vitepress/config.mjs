// The pages are laid out in .pages by scripts/site, which also writes the sidebar: start npm run docs in the root.
import { readFileSync } from "node:fs";
import { defineConfig } from "vitepress";

const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url), "utf8"));
const { version } = read("../../package.json");
const grammar = read("../../editors/vscode/syntaxes/corefile.tmLanguage.json");

/** Anchors as code hosts make them, so that links between the files of the repository hold in both places. */
const slugOf = (heading) =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{Letter}\p{Mark}\p{Number}_\- ]/gu, "")
    .replaceAll(" ", "-");

export default defineConfig({
  title: "Portolan",
  description: "The DNS server of a Kubernetes cluster: runs CoreDNS configurations unchanged",
  lang: "en",
  srcDir: ".pages",
  outDir: "dist",
  metaChunk: true,
  cleanUrls: false,
  // No page asks another server for anything.
  head: [["link", { rel: "icon", href: "data:," }]],
  markdown: {
    anchor: { slugify: slugOf },
    toc: { slugify: slugOf },
    languages: [{ ...grammar, name: "corefile" }],
    languageAlias: { console: "shellsession" },
    config(md) {
      // Words in angle brackets that are no elements of HTML, such as <reason>, stay as they are written.
      // VitePress would let them begin a block, within a paragraph and even within code.
      md.block.ruler.disable("html_block");
      md.renderer.rules.html_inline = (tokens, index) =>
        tokens[index].content.replace(/<(?!!--|\/?(a|br|img|picture|source)\b)/g, "&lt;");
      // Templates of CoreDNS are written like those of Vue, which would compute them.
      const asText = (rule) => (tokens, index, ...rest) =>
        rule(tokens, index, ...rest).replaceAll("{{", "&#123;&#123;");
      for (const kind of ["text", "code_inline"]) md.renderer.rules[kind] = asText(md.renderer.rules[kind]);
    },
  },
  themeConfig: {
    siteTitle: `Portolan ${version}`,
    nav: [
      { text: "Quickstart", link: "/examples/quickstart/" },
      { text: "Plugins", link: "/plugins/" },
      { text: "API", link: "/api/" },
      { text: "Changes", link: "/CHANGELOG" },
    ],
    sidebar: read("../.pages/sidebar.json"),
    outline: [2, 3],
    search: { provider: "local" },
  },
});
