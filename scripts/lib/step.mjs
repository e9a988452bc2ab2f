import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { dirname, relative } from "node:path";

/** A step of a script that did not work out. Its message is for the person at the terminal, without a stack. */
export class StepFailure extends Error {
  /** @param {string[]} lines */
  constructor(...lines) {
    super(lines.join("\n"));
    this.name = "StepFailure";
  }
}

/**
 * Says what begins, does it, and says how long it took. On a terminal the seconds are counted meanwhile.
 * @template T
 * @param {string} title
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function step(title, work) {
  const output = process.stdout;
  const start = performance.now();
  const line = () => `${title} ... ${((performance.now() - start) / 1000).toFixed(1)} s`;
  const counting = output.isTTY ? setInterval(() => output.write(`\r${line()}`), 1000) : undefined;
  output.write(`${title} ...`);
  try {
    const result = await work();
    output.write(output.isTTY ? `\r${line()}\n` : `${line().slice(title.length + 4)}\n`);
    return result;
  } catch (error) {
    output.write(" failed\n");
    throw error;
  } finally {
    clearInterval(counting);
  }
}

/**
 * Runs a command with its output in a log file.
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd: string, log: string, env?: NodeJS.ProcessEnv }} options `log` is made anew
 * @throws {StepFailure} with the end of the output and the name of the log
 */
export async function runLogged(command, args, { cwd, log, env = process.env }) {
  mkdirSync(dirname(log), { recursive: true });
  const file = openSync(log, "w");
  /** @type {string | undefined} what went wrong */
  const problem = await new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", file, file] });
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code, signal) =>
      resolve(code === 0 ? undefined : `it ended with ${signal ?? code}`),
    );
  });
  closeSync(file);
  if (problem === undefined) return;
  const lastLines = readFileSync(log, "utf8").trimEnd().split("\n").slice(-15);
  throw new StepFailure(
    `${[command, ...args].join(" ")}: ${problem}. Its last lines:`,
    ...lastLines.map((line) => `  ${line}`),
    `All of its output: ${relative(cwd, log)}`,
  );
}

/**
 * Runs a script's main function, and turns a StepFailure into a message and exit code 1.
 * @param {() => Promise<void>} main
 */
export async function runScript(main) {
  try {
    await main();
  } catch (error) {
    if (!(error instanceof StepFailure)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
