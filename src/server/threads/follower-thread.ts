/** A follower as the leader sees it: a thread that serves requests, and may end at any time. */

import { Worker } from "node:worker_threads";
import type { MetricSnapshot } from "../../lib/metrics/metric-snapshot.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { FeedSink } from "./feed.ts";
import type { FollowerRequest, FollowerSettings, FromFollower, LastWords, ToFollower } from "./protocol.ts";

/** A follower that ended, did not answer in time, or refused a request. */
export class FollowerError extends Error {
  override readonly name = "FollowerError";
  readonly plane: number;

  constructor(plane: number, reason: string) {
    super(reason);
    this.plane = plane;
  }
}

export interface FollowerThreadOptions {
  readonly entry: URL;
  readonly settings: FollowerSettings;
  readonly clock: Clock;
  /** A plugin of the follower asks the same plugin in the leader. */
  onAsk(generation: number, key: string, question: unknown): Promise<unknown>;
  onLog(text: string): void;
  onFatal(message: string): void;
  onError(error: unknown): void;
  /** The thread has ended. `reason` is set if its end was not requested. */
  onEnd(thread: FollowerThread, reason: string): void;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: FollowerError): void;
}

/**
 * The young generation of a follower's heap: two halves of 2 MiB, like the leader's, and as much again for large
 * objects. `boundHeap` bounds the leader's only. Without a bound, the heap of a follower that collects before the
 * leader does could grow large.
 */
const YOUNG_MEBIBYTES = 6;
/** Milliseconds for starting the plugins of a configuration, and for every other request. */
const PATIENCE = 60_000;
/** Milliseconds for confirming that all messages have arrived. */
const ECHO_PATIENCE = 1_000;
/** Milliseconds from the last message of a thread to its end. */
const LAST_MOMENT = 2_000;

export class FollowerThread {
  readonly plane: number;
  readonly startedAt: number;
  /** Its configuration was put into force: from then on the thread is replaced when it ends. */
  inForce = false;
  /** The counters of its latest report. */
  metrics: readonly MetricSnapshot[] = [];
  readonly #options: FollowerThreadOptions;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #ended = Promise.withResolvers<void>();
  #lastId = 0;
  #failure: string | undefined;
  #hasEnded = false;

  constructor(options: FollowerThreadOptions) {
    this.#options = options;
    this.plane = options.settings.plane;
    this.startedAt = options.clock.now();
    this.#worker = new Worker(options.entry, {
      workerData: options.settings,
      name: `portolan-${this.plane}`,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MEBIBYTES },
    });
    this.#worker.on("message", (message: FromFollower) => this.#take(message));
    this.#worker.on("error", (error: unknown) => {
      this.#failure = error instanceof Error ? (error.stack ?? error.message) : String(error);
    });
    this.#worker.on("exit", (code) => this.#onExit(code));
  }

  /**
   * Sends a request and waits until it is done.
   * @throws FollowerError
   */
  request(request: FollowerRequest, patience: number = PATIENCE): Promise<unknown> {
    if (this.#hasEnded) return Promise.reject(new FollowerError(this.plane, "its thread has ended"));
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const timer = this.#options.clock.after(patience, () =>
        settle(() => reject(new FollowerError(this.plane, `no answer within ${patience / 1000} s`))),
      );
      const settle = (how: () => void): void => {
        timer.cancel();
        this.#waiting.delete(id);
        how();
      };
      this.#waiting.set(id, {
        resolve: (value) => settle(() => resolve(value)),
        reject: (error) => settle(() => reject(error)),
      });
      this.#send({ kind: "request", id, request });
    });
  }

  /**
   * Requests that the follower finishes its pending queries and ends, and terminates it if it does not.
   * @param othersStay whether other threads go on to answer on the same addresses
   * @returns the number of plugin hooks that failed
   */
  async stop(patience: number, othersStay: boolean): Promise<number> {
    let failedHooks = 0;
    try {
      const words = (await this.request({ kind: "stop", othersStay }, patience)) as LastWords;
      this.metrics = words.metrics;
      failedHooks = words.failedHooks;
    } catch (error) {
      // A hanging thread is terminated below.
      this.#options.onError(error);
      await this.terminate();
      return failedHooks;
    }
    this.#send({ kind: "end" });
    const timer = this.#options.clock.after(LAST_MOMENT, () => void this.#worker.terminate());
    await this.#ended.promise;
    timer.cancel();
    return failedHooks;
  }

  /** Terminates the thread in its current state. */
  async terminate(): Promise<void> {
    await this.#worker.terminate();
    await this.#ended.promise;
  }

  /** Receives the messages of a generation's feeds. */
  sink(generation: number): FeedSink {
    return {
      send: (messages) => {
        try {
          this.#send({ kind: "feed", generation, messages });
        } catch (error) {
          // A plugin published a value that cannot be cloned.
          this.#options.onError(error);
        }
      },
      taken: async () => {
        try {
          await this.request({ kind: "echo" }, ECHO_PATIENCE);
        } catch (error) {
          if (!(error instanceof FollowerError)) throw error;
        }
      },
    };
  }

  #take(message: FromFollower): void {
    switch (message.kind) {
      case "answer": {
        const waiting = this.#waiting.get(message.id);
        if (message.problem === undefined) waiting?.resolve(message.value);
        else waiting?.reject(new FollowerError(this.plane, message.problem));
        return;
      }
      case "ask":
        void this.#reply(message);
        return;
      case "log":
        this.#options.onLog(message.text);
        this.#send({ kind: "logged" });
        return;
      case "fatal":
        this.#options.onFatal(message.message);
    }
  }

  /** Never rejects. */
  async #reply({ id, generation, key, question }: Extract<FromFollower, { kind: "ask" }>): Promise<void> {
    let value: unknown;
    let problem: string | undefined;
    try {
      value = await this.#options.onAsk(generation, key, question);
    } catch (error) {
      problem = messageOf(error);
    }
    if (!this.#hasEnded) this.#send({ kind: "reply", id, value, problem });
  }

  #onExit(code: number): void {
    this.#hasEnded = true;
    const reason = this.#failure ?? `exit code ${code}`;
    for (const waiting of [...this.#waiting.values()]) {
      waiting.reject(new FollowerError(this.plane, `its thread has ended: ${reason}`));
    }
    this.#options.onEnd(this, reason);
    this.#ended.resolve();
  }

  #send(message: ToFollower): void {
    this.#worker.postMessage(message);
  }
}
