/**
 * Brings a subtree of etcd into the desired state: writes keys that are missing or differ, and deletes all others. A mirror has the
 * current state, so that changes by other programs are detected and repaired.
 */

import type { EtcdClient, Mutation } from "../../etcd/client/etcd-client.ts";
import { EtcdError } from "../../etcd/client/etcd-error.ts";
import type { KeyMirror } from "../../etcd/mirror/key-mirror.ts";
import type { Logger } from "../../lib/logging/log.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import type { Keys } from "./wanted-keys.ts";

export interface KeyWriterOptions {
  readonly client: EtcdClient;
  readonly mirror: KeyMirror;
  /** The desired keys below a key; empty if all of them are to be deleted. */
  readonly wanted: (top: string) => Keys;
  readonly clock: Clock;
  readonly log: Logger;
  /** Milliseconds for which a write is retried; then {@link givenUp} is called. */
  readonly patience: number;
  readonly givenUp: (error: Error) => void;
}

/** Mutations in one transaction; etcd takes 128. */
const BATCH = 100;
/** Limit of the keys compared below one top. */
const MAX_KEYS = 100_000;
const RETRY_PAUSE = 50;
/** Milliseconds in which changes are gathered. */
const GATHER = 20;

export class KeyWriter {
  readonly #options: KeyWriterOptions;
  readonly #due = new Set<string>();
  #timer: Timer | undefined;
  #isWriting = false;
  #isStopped = false;

  constructor(options: KeyWriterOptions) {
    this.#options = options;
  }

  /** Schedules a comparison of the keys below this one. */
  touch(top: string): void {
    this.#due.add(top);
    this.#schedule();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  #schedule(): void {
    if (this.#isWriting || this.#isStopped) return;
    this.#timer ??= this.#options.clock.after(GATHER, () => {
      this.#timer = undefined;
      void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#isWriting = true;
    while (this.#due.size > 0 && !this.#isStopped) {
      const tops = [...this.#due].slice(0, BATCH);
      const mutations = tops.flatMap((top) => this.#mutations(top));
      for (const top of tops) this.#due.delete(top);
      for (let at = 0; at < mutations.length; at += BATCH) await this.#write(mutations.slice(at, at + BATCH));
    }
    this.#isWriting = false;
  }

  #mutations(top: string): Mutation[] {
    const { mirror, wanted } = this.#options;
    const keys = wanted(top);
    const mutations: Mutation[] = [];
    for (const { key, value } of mirror.tree.below(top, MAX_KEYS)) {
      const text = keys.get(key);
      if (text === undefined) mutations.push({ remove: { from: Buffer.from(key, "latin1") } });
      else if (value.toString("utf8") === text) keys.delete(key);
    }
    for (const [key, text] of keys)
      mutations.push({ put: Buffer.from(key, "latin1"), value: Buffer.from(text) });
    return mutations;
  }

  async #write(mutations: readonly Mutation[]): Promise<void> {
    const { client, clock, patience, givenUp, log } = this.#options;
    const deadline = clock.now() + patience;
    while (!this.#isStopped) {
      try {
        await client.change(mutations);
        return;
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error;
        if (clock.now() >= deadline) {
          givenUp(error);
          return;
        }
        log.debug(`etcd did not take ${mutations.length} changes: ${error.message}`);
      }
      await new Promise<void>((resolve) => clock.after(RETRY_PAUSE, resolve));
    }
  }
}
