// npm run build: makes dist/ from src/. With --for-publishing also makes man/, and makes sure that nothing is missing
// from the package.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, missingFiles } from "./lib/build.mjs";
import { providePackages } from "./lib/packages.mjs";
import { runLogged, runScript, StepFailure, step } from "./lib/step.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

await runScript(async () => {
  const node = await providePackages(root);
  await step("Building dist/ from src/", () => build(root, node, { types: true }));
  if (!process.argv.includes("--for-publishing")) return;
  await step("Writing man/ from the READMEs", () =>
    runLogged(node, [join("scripts", "write-man-pages.ts")], {
      cwd: root,
      log: join(root, ".cache", "man.log"),
    }),
  );
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const missing = missingFiles(root, [manifest.exports, manifest.bin, "dist/cli/main.js", "man/portolan.1"]);
  if (missing.length > 0)
    throw new StepFailure(`package.json promises files that are not there: ${missing.join(", ")}`);
});
