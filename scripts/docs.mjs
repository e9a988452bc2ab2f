// npm run docs: makes the documentation site in site/dist, from the Markdown of the repository. This part runs on Node 20, in a clone where nothing is installed.
// Options go to VitePress, such as npm run docs -- --base /portolan/.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { endLike, runAttached } from "../bin/attached-process.mjs";
import { providePackages, provideSitePackages } from "./lib/packages.mjs";
import { runScript } from "./lib/step.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

await runScript(async () => {
  const node = await providePackages(root);
  await provideSitePackages(root);
  const args = [join(root, "scripts", "site", "main.ts"), ...process.argv.slice(2)];
  endLike(await runAttached(node, args, { cwd: root }).ended);
});
