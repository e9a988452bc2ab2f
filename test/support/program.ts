/** A command that runs beside the test: what it prints, how it ends, and never left behind. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

export interface ProgramOptions {
  readonly cwd?: string;
  /** Added to the environment of the test. */
  readonly env?: NodeJS.ProcessEnv;
  /** The standard input of the command; empty by default. */
  readonly input?: string;
  /** Milliseconds after which it is waited for in vain. Half a minute unless given. */
  readonly patience?: number;
}

export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const running = new Set<ChildProcess>();

function killAll(): void {
  for (const child of running) child.kill("SIGKILL");
}

/** Long enough for a busy machine. */
const PATIENCE = 30_000;

export class Program implements AsyncDisposable {
  /** Resolves when the command has ended and everything it printed was read. */
  readonly ended: Promise<Ending>;
  readonly #child: ChildProcess;
  readonly #title: string;
  readonly #patience: number;
  #output = "";
  #errors = "";
  #hasEnded = false;

  constructor(command: string, args: readonly string[], options: ProgramOptions = {}) {
    this.#title = [command, ...args].join(" ");
    this.#patience = options.patience ?? PATIENCE;
    const child = spawn(command, args, {
      ...(options.cwd !== undefined && { cwd: options.cwd }),
      env: { ...process.env, ...options.env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#child = child;
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      this.#output += text;
      child.emit("printed");
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#errors += text;
      child.emit("printed");
    });
    // A command that ends without having read its input is not an error of the test.
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.input);
    running.add(child);
    if (running.size === 1) process.once("exit", killAll);
    const closed = once(child, "close");
    this.ended = closed.then(() => this.#onEnded());
    // A caller that awaits the end gets the error of a command that cannot be started.
    this.ended.catch(() => this.#onEnded());
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error(`did not start: ${this.#title}`);
    return this.#child.pid;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Standard output so far. */
  get output(): string {
    return this.#output;
  }

  /** Standard error so far. */
  get errors(): string {
    return this.#errors;
  }

  /** Everything there is to say in the message of a test that fails. */
  describe(): string {
    return [this.#title, lastOf(this.#output), lastOf(this.#errors)].filter((text) => text !== "").join("\n");
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /**
   * Waits until the output from `start` on matches.
   * @throws where the command ends before, or says nothing of the kind in time
   */
  waitForOutput(pattern: RegExp, start = 0): Promise<RegExpExecArray> {
    return this.#waitFor(pattern, () => this.#output.slice(start));
  }

  /** As {@link waitForOutput}, for standard error. */
  waitForErrors(pattern: RegExp, start = 0): Promise<RegExpExecArray> {
    return this.#waitFor(pattern, () => this.#errors.slice(start));
  }

  async #waitFor(pattern: RegExp, text: () => string): Promise<RegExpExecArray> {
    const deadline = AbortSignal.timeout(this.#patience);
    for (;;) {
      const match = pattern.exec(text());
      if (match !== null) return match;
      if (this.#hasEnded) throw new Error(`ended without printing ${pattern}:\n${this.describe()}`);
      try {
        await Promise.race([once(this.#child, "printed", { signal: deadline }), this.ended]);
      } catch (error) {
        if (!deadline.aborted) throw error;
        throw new Error(`did not print ${pattern}:\n${this.describe()}`);
      }
    }
  }

  /** Sends the signal and waits for the end. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<Ending> {
    this.kill(signal);
    return this.end();
  }

  /**
   * Waits for the end of a command that ends by itself.
   * @throws where it runs on for too long; it is killed then
   */
  async end(): Promise<Ending> {
    const { promise, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      this.kill("SIGKILL");
      reject(new Error(`did not end:\n${this.describe()}`));
    }, this.#patience);
    try {
      return await Promise.race([this.ended, promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill("SIGKILL");
    await this.ended.catch(() => undefined);
  }

  #onEnded(): Ending {
    this.#hasEnded = true;
    running.delete(this.#child);
    if (running.size === 0) process.removeListener("exit", killAll);
    return { code: this.#child.exitCode, signal: this.#child.signalCode };
  }
}

/** Runs a command to its end. */
export async function run(
  command: string,
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<Ending & { readonly output: string; readonly errors: string }> {
  await using program = new Program(command, args, options);
  const ending = await program.end();
  return { ...ending, output: program.output, errors: program.errors };
}

/** The last lines of a program mostly explain a failure. */
const MOST_LINES = 60;

function lastOf(text: string): string {
  const lines = text.trimEnd().split("\n");
  const rest = lines.length - MOST_LINES;
  return rest <= 0 ? text : [`(${rest} lines before)`, ...lines.slice(-MOST_LINES)].join("\n");
}
