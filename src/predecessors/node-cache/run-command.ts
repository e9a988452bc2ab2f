/** Runs programs of the system to their end. */
import { spawn } from "node:child_process";

/** A program failed or does not exist. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly command: string;
  /** `undefined` if it could not be started, or was killed. */
  readonly code: number | undefined;

  constructor(command: string, code: number | undefined, reason: string) {
    super(`${command}: ${reason}`);
    this.command = command;
    this.code = code;
  }
}

/** @returns its output @throws CommandError */
export type CommandRunner = (command: string, words: readonly string[], input?: string) => Promise<string>;

/** Further output of a program is dropped. */
const MAX_OUTPUT = 1024 * 1024;
const DEADLINE_MS = 20_000;

export const runCommand: CommandRunner = (command, words, input = "") =>
  new Promise((resolve, reject) => {
    const environment = { ...process.env, PATH: `${process.env.PATH ?? ""}:/usr/sbin:/sbin` };
    const child = spawn(command, words, { env: environment, timeout: DEADLINE_MS, killSignal: "SIGKILL" });
    let output = "";
    let errors = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (output.length < MAX_OUTPUT) output += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (errors.length < MAX_OUTPUT) errors += text;
    });
    child.once("error", (error) => reject(new CommandError(command, undefined, error.message)));
    child.once("close", (code) => {
      if (code === 0) resolve(output);
      else {
        const reason = errors.trim().replaceAll(/\s*\n\s*/g, " ") || `it ended with ${code ?? "a signal"}`;
        reject(new CommandError(`${command} ${words[0] ?? ""}`.trim(), code ?? undefined, reason));
      }
    });
    child.stdin.on("error", () => undefined);
    child.stdin.end(input);
  });
