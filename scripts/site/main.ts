// npm run docs, with Node 24: lays out the pages, has TypeDoc write the API reference beside them, and VitePress make the site.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runLogged, runScript, step } from "../lib/step.mjs";
import { layOutPages, writeSidebar } from "./layout.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

await runScript(async () => {
  const site = join(root, "site");
  const log = (name: string): string => join(root, ".cache", name);
  const pages = layOutPages(root, join(site, ".pages"));
  await step("Writing the API reference", () =>
    runLogged(
      process.execPath,
      ["node_modules/typedoc/bin/typedoc", "--options", "typedoc.json", "--out", ".pages/api"],
      { cwd: site, log: log("typedoc.log") },
    ),
  );
  writeSidebar(join(site, ".pages"), pages);
  await step(`Making the site of ${pages.length} pages and the API reference`, () =>
    runLogged(
      process.execPath,
      ["node_modules/vitepress/bin/vitepress.js", "build", ".", ...process.argv.slice(2)],
      { cwd: site, log: log("vitepress.log") },
    ),
  );
  process.stdout.write("The site is in site/dist.\n");
});
