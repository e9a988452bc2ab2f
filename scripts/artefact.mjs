// npm run image, executable, packages, chart, sbom, release: makes what people can take away. This part runs on Node 20, in a clone where nothing is
// installed. Options: npm run image -- --help
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { endLike, runAttached } from "../bin/attached-process.mjs";
import { providePackages } from "./lib/packages.mjs";
import { runScript } from "./lib/step.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

await runScript(async () => {
  const node = await providePackages(root);
  const args = [join(root, "scripts", "artefacts", "main.ts"), ...process.argv.slice(2)];
  endLike(await runAttached(node, args, { cwd: root }).ended);
});
