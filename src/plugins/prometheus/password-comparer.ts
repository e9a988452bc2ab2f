/** Compares passwords with bcrypt hashes, one after the other, in a thread that runs while there are comparisons. */

import { Worker } from "node:worker_threads";
import { programModule } from "../../lib/files/program-files.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock, Timer } from "../../plugin/index.ts";

/** A request to the thread. */
export interface Guess {
  readonly password: string;
  readonly hash: string;
}

/** A waiting comparison. */
export interface Guesser extends Guess {
  /** Address of the client: one client must not take all places. */
  readonly client: string;
  /** @param isMatch `undefined` if the thread failed */
  settle(isMatch: boolean | undefined): void;
}

/** Which bound a rejected comparison exceeded. */
export type Refusal = "client" | "all";

export interface PasswordComparerOptions {
  readonly clock: Clock;
  /** Called when the thread cannot start, or ends. */
  onFailure(reason: string): void;
}

/** Bounds for comparisons that wait or are in progress: of one client, and in all. */
const MAX_WAITING_OF_CLIENT = 4;
const MAX_WAITING = 16;
/** Milliseconds that an idle thread stays. */
const LINGER = 10_000;

export class PasswordComparer {
  readonly #options: PasswordComparerOptions;
  /** The first comparison is in progress. */
  readonly #waiting: Guesser[] = [];
  #worker: Worker | undefined;
  #idle: Timer | undefined;
  #isStopped = false;

  constructor(options: PasswordComparerOptions) {
    this.#options = options;
  }

  /**
   * @returns the bound that rejects the comparison; otherwise `settle` is called exactly once, unless the comparison
   * is cancelled
   */
  add(guesser: Guesser): Refusal | undefined {
    if (this.#waiting.length >= MAX_WAITING) return "all";
    const others = this.#waiting.filter(({ client }) => client === guesser.client);
    if (others.length >= MAX_WAITING_OF_CLIENT) return "client";
    this.#waiting.push(guesser);
    if (this.#waiting.length === 1) this.#next();
    return undefined;
  }

  /**
   * Called when the client has closed its connection. A comparison in progress continues, because the thread reads no
   * message during one.
   */
  forget(guesser: Guesser): void {
    const place = this.#waiting.indexOf(guesser);
    if (place > 0) this.#waiting.splice(place, 1);
  }

  /** The thread ends with the last comparison. */
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

  /** All comparisons fail without a thread; the next request tries again. */
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
