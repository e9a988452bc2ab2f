/** Runs a command periodically and keeps its last result (docs/spec/kube-dns.md#exechealthz). */
import { spawn } from "node:child_process";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import type { Page } from "../http-pages.ts";

export interface ExecProbeOptions {
  readonly command: string;
  readonly path: string;
  /** Milliseconds between two starts; a slow command runs back to back. */
  readonly period: number;
  /** Milliseconds after which a result is too old to count. */
  readonly latency: number;
  /** Whether the success page shows the output of the command. */
  readonly showsOutput: boolean;
  readonly clock: Clock;
  /** Called after each run. */
  readonly finished: (path: string, error: string) => void;
}

/** Bytes of output that are kept. */
const MAX_OUTPUT = 64 * 1024;

export class ExecProbe {
  readonly #options: ExecProbeOptions;
  #output = "";
  /** Empty after a success. */
  #error = "";
  #at: number;
  #timer: Timer | undefined;
  #kill: (() => void) | undefined;
  #isStopped = false;

  constructor(options: ExecProbeOptions) {
    this.#options = options;
    // Until the first run ends, counts as a success at the start.
    this.#at = options.clock.now();
  }

  get path(): string {
    return this.#options.path;
  }

  start(): void {
    void this.#run();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#kill?.();
  }

  page(): Page {
    const { clock, latency, path, showsOutput } = this.#options;
    const age = clock.now() - this.#at;
    const last = `result of the last run, ${Math.round(age)} ms ago: ${this.#output}`;
    if (this.#error !== "")
      return { status: 503, body: `Healthz probe error on ${path}: ${this.#error}; ${last}\n` };
    if (age > latency)
      return {
        status: 503,
        body: `Healthz probe error on ${path}: no result within ${latency} ms; ${last}\n`,
      };
    return { status: 200, body: showsOutput ? this.#output : "ok" };
  }

  async #run(): Promise<void> {
    const { clock, period, path, finished } = this.#options;
    const begin = clock.now();
    await this.#execute();
    if (this.#isStopped) return;
    finished(path, this.#error);
    this.#timer = clock.after(Math.max(0, period - (clock.now() - begin)), () => void this.#run());
  }

  #execute(): Promise<void> {
    return new Promise((resolve) => {
      const child = spawn("sh", ["-c", this.#options.command], { stdio: ["ignore", "pipe", "pipe"] });
      let output = "";
      const take = (text: string): void => {
        if (output.length < MAX_OUTPUT) output += text.slice(0, MAX_OUTPUT - output.length);
      };
      child.stdout.setEncoding("utf8").on("data", take);
      child.stderr.setEncoding("utf8").on("data", take);
      this.#kill = () => child.kill("SIGKILL");
      const finish = (error: string): void => {
        this.#kill = undefined;
        this.#output = output;
        this.#error = error;
        this.#at = this.#options.clock.now();
        resolve();
      };
      child.once("error", (error) => finish(error.message));
      child.once("close", (code, signal) =>
        finish(code === 0 ? "" : signal === null ? `exit status ${code}` : `signal: ${signal}`),
      );
    });
  }
}
