/**
 * The leader's side of all followers: starts their threads, takes them through a reload in two phases, adds up their
 * counters, replaces threads that end, and stops them.
 */

import { programModule } from "../../lib/files/program-files.ts";
import type { ProcessLog } from "../../lib/logging/log.ts";
import { type MetricSnapshot, mergeSnapshots, withoutGauges } from "../../lib/metrics/metric-snapshot.ts";
import type { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import type { CorefileSource } from "../configuration/configuration.ts";
import type { ListenPlace } from "../run/point-sockets.ts";
import { FeedError, type FeedHub } from "./feed.ts";
import { FollowerThread } from "./follower-thread.ts";
import type { FollowerSettings } from "./protocol.ts";

export interface FleetOptions {
  /** The module that a thread runs; `thread-main` unless given. */
  readonly entry?: URL | undefined;
  readonly settings: Omit<FollowerSettings, "plane">;
  readonly clock: Clock;
  readonly log: ProcessLog;
  readonly metrics: MetricsRegistry;
  onFatal(message: string): void;
  /** Runs a task when no reload is under way. */
  inTurn(task: () => Promise<void>): Promise<void>;
}

/** A generation of the leader that the followers have to take over. */
export interface FleetTask {
  readonly generation: number;
  /** The number of data planes: one more than followers. */
  readonly planes: number;
  readonly source: CorefileSource;
  readonly sha512: string;
  readonly hub: FeedHub;
  readonly places: ReadonlyMap<string, ListenPlace>;
  /** The time, by the clock, at which preparing is abandoned. Without one, each request has a minute. */
  readonly deadline: number | undefined;
}

export interface PreparedFleet {
  commit(): Promise<void>;
  rollBack(): Promise<void>;
}

/** Milliseconds that a follower has to report its counters; after that, its last report is used. */
const SCRAPE_PATIENCE = 1_000;
/** Milliseconds that a follower has to stop: the grace for connections, the grace for pending queries, and a margin. */
const STOP_PATIENCE = 15_000;
/** Milliseconds until a thread that ended is replaced, doubled each time it ends early again. */
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 60_000;
/** A thread that lived for this long did not end because of its start. */
const STEADY = 60_000;

export class Fleet {
  readonly #options: FleetOptions;
  readonly #threads = new Map<number, FollowerThread>();
  /** Followers that no configuration needs any more, until their last answers are out. */
  readonly #ending = new Map<FollowerThread, Promise<number>>();
  readonly #restarts = new Map<number, Timer>();
  /** Consecutive early ends of the thread of each plane. */
  readonly #failures = new Map<number, number>();
  #task: FleetTask | undefined;
  /** Hubs of the configuration in force, of the previous one while its queries are pending, and of the next one. */
  readonly #hubs = new Map<number, FeedHub>();
  #forgetting: Timer | undefined;
  /** Final counters of threads that ended: totals must not fall. */
  #left: readonly MetricSnapshot[] = [];
  #endSource: (() => void) | undefined;

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  /** The number of followers in force. */
  get size(): number {
    return this.#inForce().length;
  }

  /**
   * Starts the configuration in all followers and opens their sockets. Starts missing threads.
   * @throws FollowerError if one fails; everything is rolled back then
   */
  async prepare(task: FleetTask): Promise<PreparedFleet> {
    this.#hubs.set(task.generation, task.hub);
    const fresh: FollowerThread[] = [];
    const threads: FollowerThread[] = [];
    for (let plane = 1; plane < task.planes; plane++) {
      const known = this.#threads.get(plane);
      if (known === undefined) fresh.push(this.#spawn(plane));
      threads.push(this.#threads.get(plane) as FollowerThread);
    }
    const rollBack = async (): Promise<void> => {
      task.hub.close();
      this.#hubs.delete(task.generation);
      const old = threads.filter((thread) => !fresh.includes(thread));
      await Promise.allSettled(old.map((thread) => thread.request({ kind: "rollBack" })));
      await Promise.all(fresh.map((thread) => this.#discard(thread)));
    };
    try {
      await allDone(threads.map((thread) => this.#bringUp(thread, task, task.deadline)));
      await allDone(
        threads.map((thread) =>
          thread.request({ kind: "listen", places: task.places }, this.#patience(task.deadline)),
        ),
      );
    } catch (error) {
      await rollBack();
      throw error;
    }
    return { rollBack, commit: () => this.#commit(task, threads) };
  }

  /** Lets all finish their pending queries. @returns the number of plugin hooks that failed */
  async stop(): Promise<number> {
    this.#task = undefined;
    this.#forgetting?.cancel();
    for (const timer of this.#restarts.values()) timer.cancel();
    this.#restarts.clear();
    const threads = [...this.#threads.values()];
    for (const thread of threads) thread.inForce = false;
    const failed = await Promise.all(threads.map((thread) => thread.stop(STOP_PATIENCE, false)));
    await Promise.all(this.#ending.values());
    for (const hub of this.#hubs.values()) hub.close();
    this.#hubs.clear();
    this.#endSource?.();
    return failed.reduce((sum, count) => sum + count, 0);
  }

  #spawn(plane: number): FollowerThread {
    const { settings, clock, log } = this.#options;
    const thread = new FollowerThread({
      entry: this.#options.entry ?? programModule("server/threads/thread-main"),
      settings: { ...settings, plane },
      clock,
      onAsk: async (generation, key, question) => {
        const hub = this.#hubs.get(generation);
        if (hub === undefined) throw new FeedError("the configuration is no longer in force");
        return await hub.ask(key, question);
      },
      onLog: (text) => {
        for (const line of text.split("\n")) if (line !== "") log.writeLine(line);
      },
      onFatal: (message) => this.#options.onFatal(message),
      onError: (error) => log.error(`data plane ${plane}: ${messageOf(error)}`),
      onEnd: (ended, reason) => this.#onEnd(ended, reason),
    });
    this.#threads.set(plane, thread);
    this.#observe();
    return thread;
  }

  #patience(deadline: number | undefined): number | undefined {
    return deadline === undefined ? undefined : Math.max(0, deadline - this.#options.clock.now());
  }

  async #bringUp(thread: FollowerThread, task: FleetTask, deadline: number | undefined): Promise<void> {
    const { generation, source, sha512, hub } = task;
    await thread.request({ kind: "prepare", generation, source, sha512 }, this.#patience(deadline));
    // Messages of the configuration in force go first.
    this.#task?.hub.flush();
    await hub.attach(thread, thread.sink(generation));
  }

  async #commit(task: FleetTask, threads: readonly FollowerThread[]): Promise<void> {
    this.#task?.hub.close();
    this.#task = task;
    this.#forgetting?.cancel();
    const forgetFormer = (): void => {
      for (const generation of this.#hubs.keys())
        if (generation < task.generation) this.#hubs.delete(generation);
    };
    if (threads.length === 0) forgetFormer();
    else this.#forgetting = this.#options.clock.after(STOP_PATIENCE, forgetFormer);
    for (const thread of threads) thread.inForce = true;
    // A thread that ends here is replaced.
    await Promise.allSettled(threads.map((thread) => thread.request({ kind: "commit" })));
    for (const [plane, thread] of this.#threads) {
      if (plane < task.planes) continue;
      thread.inForce = false;
      this.#threads.delete(plane);
      this.#ending.set(thread, thread.stop(STOP_PATIENCE, true));
    }
    // Stopping followers answer by the old configuration until their pending queries are done.
    await Promise.all(this.#ending.values());
  }

  /** Ends a thread that never came into force. */
  async #discard(thread: FollowerThread): Promise<void> {
    if (this.#threads.get(thread.plane) === thread) this.#threads.delete(thread.plane);
    await thread.terminate();
  }

  #onEnd(thread: FollowerThread, reason: string): void {
    this.#left = mergeSnapshots([this.#left, withoutGauges(thread.metrics)]);
    if (this.#threads.get(thread.plane) === thread) this.#threads.delete(thread.plane);
    this.#ending.delete(thread);
    this.#task?.hub.detach(thread);
    if (!thread.inForce) return;
    this.#options.log.error(`The thread of data plane ${thread.plane} ended; starting another: ${reason}`);
    this.#restartCounter().increment();
    const lived = this.#options.clock.now() - thread.startedAt;
    if (lived >= STEADY) this.#failures.delete(thread.plane);
    this.#restartLater(thread.plane);
  }

  #restartLater(plane: number): void {
    const failures = this.#failures.get(plane) ?? 0;
    this.#failures.set(plane, failures + 1);
    this.#restarts.get(plane)?.cancel();
    const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** failures);
    const timer = this.#options.clock.after(pause, () => {
      this.#restarts.delete(plane);
      void this.#options.inTurn(() => this.#restart(plane));
    });
    this.#restarts.set(plane, timer);
  }

  async #restart(plane: number): Promise<void> {
    const task = this.#task;
    if (task === undefined || plane >= task.planes || this.#threads.has(plane)) return;
    const thread = this.#spawn(plane);
    try {
      await this.#bringUp(thread, task, undefined);
      await thread.request({ kind: "listen", places: task.places });
      await thread.request({ kind: "commit" });
      thread.inForce = true;
    } catch (error) {
      this.#options.log.error(`The thread of data plane ${plane} failed to start: ${messageOf(error)}`);
      await this.#discard(thread);
      this.#restartLater(plane);
    }
  }

  #inForce(): FollowerThread[] {
    return [...this.#threads.values()].filter((thread) => thread.inForce);
  }

  /** Called with the first follower: a server without followers has none of these metrics. */
  #observe(): void {
    if (this.#endSource !== undefined) return;
    const { metrics } = this.#options;
    const planes = metrics.gauge({
      name: "portolan_data_planes",
      help: "Threads that answer queries (multisocket).",
    });
    const endCollecting = metrics.onCollect(() => planes.slot().set(1 + this.size));
    const endSource = metrics.addSource(() => this.#measure());
    this.#restartCounter();
    this.#endSource = () => {
      endCollecting();
      endSource();
    };
  }

  async #measure(): Promise<(readonly MetricSnapshot[])[]> {
    const threads = [...this.#threads.values()];
    await Promise.all(
      threads.map(async (thread) => {
        try {
          const answer = await thread.request({ kind: "measure" }, SCRAPE_PATIENCE);
          thread.metrics = answer as readonly MetricSnapshot[];
        } catch {
          this.#missed().increment();
        }
      }),
    );
    // A thread that ended during the scrape has left its final counters.
    const alive = threads.filter((thread) => this.#threads.get(thread.plane) === thread);
    return [this.#left, ...[...alive, ...this.#ending.keys()].map((thread) => thread.metrics)];
  }

  #restartCounter() {
    return this.#options.metrics
      .counter({
        name: "portolan_data_plane_restarts_total",
        help: "Threads that exited unexpectedly and were replaced (multisocket).",
      })
      .slot();
  }

  #missed() {
    return this.#options.metrics
      .counter({
        name: "portolan_data_plane_missed_scrapes_total",
        help: "Threads that missed a scrape; their last reported values were used (multisocket).",
      })
      .slot();
  }
}

/** Waits for all, then throws the first error: nothing may be running when everything is rolled back. */
async function allDone(tasks: readonly Promise<unknown>[]): Promise<void> {
  for (const result of await Promise.allSettled(tasks)) if (result.status === "rejected") throw result.reason;
}
