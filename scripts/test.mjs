// npm test: installs what is missing, then runs the checks and tests under the pinned Node. This part runs on Node 20,
// in a clone where nothing is installed. Options: npm test -- --help
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { endLike, runAttached } from "../bin/attached-process.mjs";
import { providePackages } from "./lib/packages.mjs";
import { StepFailure } from "./lib/step.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

try {
  const node = await providePackages(root);
  const args = [join(root, "scripts", "run-tests.ts"), ...process.argv.slice(2)];
  endLike(await runAttached(node, args, { cwd: root }).ended);
} catch (error) {
  if (!(error instanceof StepFailure)) throw error;
  console.log(`${error.message}\n\n0 passed, 1 failed, 0 skipped`);
  process.exitCode = 1;
}
