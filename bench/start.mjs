// npm run bench: installs the npm packages where they are missing, then runs the benchmark under the pinned Node. This part
// runs on Node 20, in a clone where nothing is installed. Options: npm run bench -- --help
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { endLike, runAttached } from "../bin/attached-process.mjs";
import { providePackages } from "../scripts/lib/packages.mjs";
import { runScript } from "../scripts/lib/step.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

await runScript(async () => {
  const node = await providePackages(root);
  const args = [join(root, "bench", "main.ts"), ...process.argv.slice(2)];
  endLike(await runAttached(node, args, { cwd: root }).ended);
});
