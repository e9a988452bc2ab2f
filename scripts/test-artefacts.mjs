// npm run test:artefacts: what takes too long for npm test. It installs the Debian package in a system of its own, the package for npm on several versions of
// Node, has containerd import and run the image, packs the extension for VS Code, makes the release twice, and reads the documentation site.
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { endLike, runAttached } from "../bin/attached-process.mjs";
import { providePackages } from "./lib/packages.mjs";
import { runScript } from "./lib/step.mjs";
import { provideTools } from "./lib/system-tools.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

await runScript(async () => {
  const node = await providePackages(root);
  await provideTools(root);
  await provideTools(root, { tools: ["mmdebstrap", "containerd", "unzip"] });
  const folder = join(root, "test", "artefacts", "heavy");
  const files = readdirSync(folder)
    .sort()
    .map((name) => join(folder, name));
  endLike(await runAttached(node, ["--test", "--test-concurrency=1", ...files], { cwd: root }).ended);
});
