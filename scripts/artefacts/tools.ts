import { spawn } from "node:child_process";
import { once } from "node:events";
import { isAbsolute } from "node:path";
import { StepFailure } from "../lib/step.mjs";
import { debianPackageOf, missingTools, TOOL_PATH } from "../lib/system-tools.mjs";

export interface ToolOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
}

/**
 * Runs a program to its end.
 * @returns what it printed
 * @throws {StepFailure} where it fails, or is not installed: then with the name of its Debian package
 */
export async function runTool(
  tool: string,
  args: readonly string[],
  { cwd, env }: ToolOptions = {},
): Promise<string> {
  if (!isAbsolute(tool)) demandTools(tool);
  const child = spawn(tool, args, {
    cwd,
    // What tools print is read here, and what they make does not depend on the language of the user.
    env: { ...process.env, PATH: TOOL_PATH, LC_ALL: "C.UTF-8", TZ: "UTC", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const [code, signal]: unknown[] = await once(child, "close");
  if (code === 0) return output;
  const said = `${output}${errors}`.trim().split("\n").slice(-15);
  throw new StepFailure(
    `${tool} ${args.join(" ")}: it ended with ${signal ?? code}. Its last lines:`,
    ...said,
  );
}

/** @throws {StepFailure} which names the Debian packages of what is missing */
export function demandTools(...tools: readonly string[]): void {
  const missing = missingTools(tools);
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map(debianPackageOf))].join(" ");
  throw new StepFailure(
    `Not installed: ${missing.join(", ")}.`,
    `On Debian or Ubuntu: sudo apt-get install --no-install-recommends ${packages}`,
  );
}
