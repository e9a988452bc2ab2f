/** A real dnsmasq process, restarted when its arguments change (docs/spec/kube-dns.md#dnsmasq-nanny). */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Logger } from "../../lib/logging/log.ts";

export class DnsmasqProcess {
  readonly #program: string;
  readonly #log: Logger;
  readonly #exited: (reason: string) => void;
  #child: ChildProcess | undefined;

  /** @param exited called when the process ends without having been stopped */
  constructor(program: string, log: Logger, exited: (reason: string) => void) {
    this.#program = program;
    this.#log = log;
    this.#exited = exited;
  }

  /** @throws if it cannot be started */
  async start(words: readonly string[]): Promise<void> {
    this.#log.info(`Starting dnsmasq ${words.join(" ")}`);
    const child = spawn(this.#program, words, { stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr])
      createInterface({ input: stream }).on("line", (line) => this.#log.info(line));
    await once(child, "spawn");
    this.#child = child;
    child.once("exit", (code, signal) => {
      if (this.#child !== child) return;
      this.#child = undefined;
      this.#exited(`dnsmasq exited: ${signal ?? code}`);
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Resolves when the process has exited. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }
}
