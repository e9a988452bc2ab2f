/**
 * The leader's side of all followers: starts their threads, takes them through a reload in two phases, adds up what they count,
 * replaces those that end, and stops them.
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
  /** What a thread runs; `thread-main` unless given. */
  readonly entry?: URL | undefined;
  readonly settings: Omit<FollowerSettings, "plane">;
  readonly clock: Clock;
  readonly log: ProcessLog;
  readonly metrics: MetricsRegistry;
  onFatal(message: string): void;
  /** Runs a task when no reload is under way. */
  inTurn(task: () => Promise<void>): Promise<void>;
}

/** A generation of the leader that the followers are to have too. */
export interface FleetTask {
  readonly generation: number;
  /** Data planes in all: one less followers. */
  readonly planes: number;
  readonly source: CorefileSource;
  readonly sha512: string;
  readonly hub: FeedHub;
  readonly places: ReadonlyMap<string, ListenPlace>;
  /** By the clock: by then threads have prepared it, or it is given up. Without one, each request has a minute. */
  readonly deadline: number | undefined;
}

export interface PreparedFleet {
  commit(): Promise<void>;
  rollBack(): Promise<void>;
}

/** Milliseconds that a follower has to say what it counted; then what it said last stands in its place. */
const SCRAPE_PATIENCE = 1_000;
/** Milliseconds that a follower has to stop: the grace for connections, the one for queries under way, and some more. */
const STOP_PATIENCE = 15_000;
/** Milliseconds until a thread that ended is replaced, doubled with each that ends early again. */
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 60_000;
/** A thread that lived for so long did not end because of how it started. */
const STEADY = 60_000;

export class Fleet {
  readonly #options: FleetOptions;
  readonly #threads = new Map<number, FollowerThread>();
  /** Followers that no configuration needs any more, until their last answers are out. */
  readonly #ending = new Map<FollowerThread, Promise<number>>();
  readonly #restarts = new Map<number, Timer>();
  /** How often the thread of a plane ended early, one time after the other. */
  readonly #failures = new Map<number, number>();
  #task: FleetTask | undefined;
  /** Of the configuration in force, for a while of the one before, in which queries may still wait, and of the one to come. */
  readonly #hubs = new Map<number, FeedHub>();
  #forgetting: Timer | undefined;
  /** What threads that ended had counted: totals must not fall. */
  #left: readonly MetricSnapshot[] = [];
  #endSource: (() => void) | undefined;

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  /** How many followers are in force. */
  get size(): number {
    return this.#inForce().length;
  }

  /**
   * Starts the configuration in all followers and opens their sockets. Threads that it needs are started.
   * @throws FollowerError where one cannot; everything is as before then
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

  /** Lets all finish what they have begun. @returns how many hooks of plugins failed */
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
    // What the configuration in force has told goes first.
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
    // One that ended in between is replaced.
    await Promise.allSettled(threads.map((thread) => thread.request({ kind: "commit" })));
    for (const [plane, thread] of this.#threads) {
      if (plane < task.planes) continue;
      thread.inForce = false;
      this.#threads.delete(plane);
      this.#ending.set(thread, thread.stop(STOP_PATIENCE, true));
    }
    // They answer by the old configuration until the queries that wait there are done.
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

  /** With the first follower: a server without any has none of these metrics. */
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
    // One that ended meanwhile has left what it had counted.
    const alive = threads.filter((thread) => this.#threads.get(thread.plane) === thread);
    return [this.#left, ...[...alive, ...this.#ending.keys()].map((thread) => thread.metrics)];
  }

  #restartCounter() {
    return this.#options.metrics
      .counter({
        name: "portolan_data_plane_restarts_total",
        help: "Threads that ended unasked, and were replaced (multisocket).",
      })
      .slot();
  }

  #missed() {
    return this.#options.metrics
      .counter({
        name: "portolan_data_plane_missed_scrapes_total",
        help: "Threads that did not say in time what they had counted: their last numbers stand in (multisocket).",
      })
      .slot();
  }
}

/** Waits for all, and throws the first error then: nothing may be under way when everything is rolled back. */
async function allDone(tasks: readonly Promise<unknown>[]): Promise<void> {
  for (const result of await Promise.allSettled(tasks)) if (result.status === "rejected") throw result.reason;
}
