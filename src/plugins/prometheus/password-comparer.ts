/** Compares passwords with bcrypt hashes, one after the other, in a thread that is there while somebody waits for it. */

import { Worker } from "node:worker_threads";
import { programModule } from "../../lib/files/program-files.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock, Timer } from "../../plugin/index.ts";

/** What the thread is asked. */
export interface Guess {
  readonly password: string;
  readonly hash: string;
}

/** Who waits for a comparison. */
export interface Guesser extends Guess {
  /** Address of the client: none takes the places of all others. */
  readonly client: string;
  /** @param isMatch `undefined` where the thread failed */
  settle(isMatch: boolean | undefined): void;
}

/** Why a comparison is not even begun. */
export type Refusal = "client" | "all";

export interface PasswordComparerOptions {
  readonly clock: Clock;
  /** The thread cannot be had, or ended. */
  onFailure(reason: string): void;
}

/** Comparisons that wait or are under way: of one client, and of all together. */
const MAX_WAITING_OF_CLIENT = 4;
const MAX_WAITING = 16;
/** Milliseconds that the thread stays for another comparison. */
const LINGER = 10_000;

export class PasswordComparer {
  readonly #options: PasswordComparerOptions;
  /** The first of them is under way. */
  readonly #waiting: Guesser[] = [];
  #worker: Worker | undefined;
  #idle: Timer | undefined;
  #isStopped = false;

  constructor(options: PasswordComparerOptions) {
    this.#options = options;
  }

  /** @returns why not, where too many wait already; `settle` is called exactly once otherwise, unless it is forgotten */
  add(guesser: Guesser): Refusal | undefined {
    if (this.#waiting.length >= MAX_WAITING) return "all";
    const others = this.#waiting.filter(({ client }) => client === guesser.client);
    if (others.length >= MAX_WAITING_OF_CLIENT) return "client";
    this.#waiting.push(guesser);
    if (this.#waiting.length === 1) this.#next();
    return undefined;
  }

  /** The client went away. What is under way goes on: the thread hears nothing meanwhile. */
  forget(guesser: Guesser): void {
    const place = this.#waiting.indexOf(guesser);
    if (place > 0) this.#waiting.splice(place, 1);
  }

  /** The thread ends when nobody waits any more. */
  stop(): void {
    this.#isStopped = true;
    if (this.#waiting.length === 0) this.#end();
  }

  #next(): void {
    this.#idle?.cancel();
    const [first] = this.#waiting;
    if (first === undefined) {
      if (this.#isStopped) this.#end();
      else this.#idle = this.#options.clock.after(LINGER, () => this.#end());
      return;
    }
    try {
      this.#worker ??= this.#begin();
      this.#worker.postMessage({ password: first.password, hash: first.hash } satisfies Guess);
    } catch (error) {
      // No memory or descriptors for a thread.
      this.#worker = undefined;
      this.#fail(error);
    }
  }

  #begin(): Worker {
    const worker = new Worker(programModule("plugins/prometheus/password-thread"), {
      name: "portolan-passwords",
    });
    worker.unref();
    let fault: unknown = "the thread for passwords ended";
    worker.on("message", (isMatch: boolean) => this.#settle(isMatch));
    worker.on("error", (error: unknown) => {
      fault = error;
    });
    worker.once("exit", () => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#fail(fault);
    });
    return worker;
  }

  #settle(isMatch: boolean | undefined): void {
    const first = this.#waiting.shift();
    try {
      first?.settle(isMatch);
    } finally {
      this.#next();
    }
  }

  /** Nobody waits for a thread that cannot be had; the next request tries again. */
  #fail(error: unknown): void {
    if (this.#waiting.length === 0) return;
    this.#options.onFailure(messageOf(error));
    for (const guesser of this.#waiting.splice(0)) guesser.settle(undefined);
  }

  #end(): void {
    this.#idle?.cancel();
    const worker = this.#worker;
    this.#worker = undefined;
    void worker?.terminate();
  }
}
