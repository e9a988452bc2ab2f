import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

export interface CapturedProcess {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly timedOut: boolean;
  /** Standard output and standard error as they came, the last 64 KiB of them. */
  readonly output: string;
}

export interface CaptureOptions {
  readonly cwd: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Milliseconds until the process is killed. */
  readonly timeout: number;
}

const OUTPUT_LIMIT = 64 * 1024;
const running = new Set<ChildProcess>();

/**
 * Runs a command without stdin and keeps what it prints. It leads a process group of its own; what is left of the
 * group when the command ends, is killed.
 * @throws the error of spawn where the command cannot be started
 */
export async function capture(
  command: string,
  args: readonly string[],
  options: CaptureOptions,
): Promise<CapturedProcess> {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: options.env ?? process.env,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let output = "";
  const keep = (text: string) => {
    output = (output + text).slice(-OUTPUT_LIMIT);
  };
  child.stdout.setEncoding("utf8").on("data", keep);
  child.stderr.setEncoding("utf8").on("data", keep);
  running.add(child);
  let timedOut = false;
  const deadline = setTimeout(() => {
    timedOut = true;
    killGroup(child);
  }, options.timeout);
  // Its output does not end before the last process that inherited it.
  child.once("exit", () => killGroup(child));
  try {
    await once(child, "close");
    return { code: child.exitCode, signal: child.signalCode, timedOut, output };
  } finally {
    clearTimeout(deadline);
    running.delete(child);
  }
}

/** Kills every command that runs, with its process group. */
export function killAll(): void {
  for (const child of running) killGroup(child);
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The whole group has ended.
  }
}
