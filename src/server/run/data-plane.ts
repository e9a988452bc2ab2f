/**
 * One data plane: the listeners of a thread and the generation that answers there. The server has one on the main thread, and
 * with `multisocket` further ones on threads of their own.
 */

import { isAbsolute, join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CorefileHost } from "../../corefile/host.ts";
import type { ProcessLog } from "../../lib/logging/log.ts";
import type { CounterSlot } from "../../lib/metrics/metric-slots.ts";
import type { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { GuardedClock } from "../../lib/time/guarded-clock.ts";
import { TurnShare } from "../../lib/time/turn-share.ts";
import type { Feed, HttpService, Machine, Random, ServerControl } from "../../plugin/contract/site.ts";
import { QueryStream } from "../../plugin/stream/query-stream.ts";
import { loadMemoryRelease, loadTrimBeside } from "../../runtime/memory-release.ts";
import { residentMemory } from "../../runtime/resident-memory.ts";
import { fastestUdp } from "../../transports/fastest-udp.ts";
import { tcpSockets } from "../../transports/tcp-socket.ts";
import type { UdpListen } from "../../transports/udp.ts";
import {
  type Configuration,
  ConfigurationError,
  type CorefileSource,
  readConfiguration,
} from "../configuration/configuration.ts";
import type { PluginRegistry } from "../configuration/plugin-registry.ts";
import { socketBuffers } from "../memory/memory-budget.ts";
import { MemoryWatch } from "../memory/memory-watch.ts";
import type { DnsListener } from "../serving/dns-listener.ts";
import { HttpEndpoints } from "../serving/http-endpoints.ts";
import { Generation } from "./generation.ts";
import { ListenerPool, type PreparedListeners } from "./listener-pool.ts";
import type { GenerationOptions } from "./plugin-site.ts";
import type { ListenPlace } from "./point-sockets.ts";

export interface DataPlaneOptions {
  /** 0 for the leader. */
  readonly plane: number;
  readonly registry: PluginRegistry;
  readonly host: CorefileHost;
  readonly machine: Machine;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: ProcessLog;
  readonly metrics: MetricsRegistry;
  readonly version: string;
  /** Port of keys without one; 53 unless given. */
  readonly defaultPort?: number | undefined;
  /** How UDP is received; the quickest way that this system has unless given. */
  readonly listenUdp?: (() => Promise<UdpListen>) | undefined;
  /** See `ServerOptions.sharesPorts`. */
  readonly sharesPorts?: boolean | undefined;
  /** See `ServerOptions.onReplaced`. */
  readonly onReplaced?: (() => void) | undefined;
  control(configuration: Configuration): ServerControl;
}

/** Milliseconds that queries under way have to finish at a stop or reload (docs/spec/coredns-behaviour.md#listeners). */
export const GRACE = 5_000;
/** Milliseconds for the queries that were taken last from a socket that others on the port replace. */
const LAST_QUERIES = 1_000;
/** More than this times what was in memory before a reload, and what went with the old configuration is looked for at once. */
const MUCH_GROWTH = 1.15;

/** Milliseconds of a turn of the event loop that go into a new configuration. */
const OF_A_TURN = 1;

export class DataPlane {
  readonly #options: DataPlaneOptions;
  readonly #listeners: ListenerPool;
  readonly #http: HttpEndpoints;
  readonly #panics: CounterSlot;
  readonly #stream: QueryStream;
  readonly #memory: MemoryWatch;
  /** One for all configurations: one that was made with a configuration would hold the one before it, too. */
  readonly #isMemoryTight = (): boolean => this.#memory.isTight;
  #memoryRelease: ReturnType<typeof loadMemoryRelease> | undefined;
  #trim: ReturnType<typeof loadTrimBeside> | undefined;
  /** Octets in memory when the last configuration began to be prepared. */
  #residentBefore = 0;
  #current: Generation | undefined;

  constructor(options: DataPlaneOptions) {
    this.#options = options;
    this.#stream = new QueryStream(options.clock);
    const { log } = options;
    const onError = (error: unknown): void => log.error(configurationMessage(error));
    const clock = new GuardedClock(options.clock, onError);
    this.#listeners = new ListenerPool({
      clock,
      metrics: options.metrics,
      descriptors: options.machine.descriptors,
      random: options.random,
      stream: this.#stream,
      sharesPorts: options.sharesPorts,
      listenUdp: options.listenUdp ?? fastestUdpOf(log, options.plane),
      tcpSockets: () => tcpSockets(socketBuffers(options.machine.memoryLimit)),
      otherListener: (host, port) => this.#http.listenerAt(host, port),
      onError,
      onGarbage: () => {
        void this.#freeYoung().catch(onError);
        // Between two looks a flood of long messages brings more than is left.
        this.#memory.look();
      },
      onCrowded: (text) => log.warning(text),
      onUnshared: (label, transport) =>
        log.warning(
          `${transport} of ${label} is handled by one thread until the next restart: it was opened for one thread`,
        ),
    });
    this.#memory = new MemoryWatch({
      leads: options.plane === 0,
      limit: options.machine.memoryLimit,
      resident: () => options.machine.residentOctets?.() ?? 0,
      listeners: this.#listeners,
      relieve: () => void this.#relieve().catch(onError),
      clock: options.clock,
      metrics: options.metrics,
      log,
    });
    this.#http = new HttpEndpoints({
      clock,
      onError,
      tcpSockets,
      descriptors: options.machine.descriptors,
      sharesPorts: options.sharesPorts,
    });
    this.#panics = options.metrics
      .counter({
        name: "coredns_panics_total",
        help: "Plugins that threw while answering a query.",
        labels: [],
      })
      .slot();
  }

  /** What is in force. */
  get generation(): Generation | undefined {
    return this.#current;
  }

  listener(label: string): DnsListener | undefined {
    return this.#listeners.listener(label);
  }

  address(label: string): { readonly host: string; readonly port: number } | undefined {
    return this.#listeners.address(label);
  }

  /** @throws ConfigurationError */
  read(source: CorefileSource, host: CorefileHost = this.#options.host): Promise<Configuration> {
    const { registry, machine, plane, defaultPort = 53 } = this.#options;
    // The leader has logged what is to be said of it.
    const isAdvised = plane > 0;
    return readConfiguration(source, { host, registry, machine, defaultPort, isAdvised, rest: this.#rest() });
  }

  /**
   * Makes and starts all plugins of a configuration. It comes into force with {@link PreparedGeneration.commit}.
   * @throws what a plugin throws; nothing is left open then
   */
  async prepare(configuration: Configuration, feed: (key: string) => Feed): Promise<PreparedGeneration> {
    const { plane, clock, random, log, metrics, machine, version } = this.#options;
    if (this.#current !== undefined) {
      this.#trim ??= loadTrimBeside();
      this.#residentBefore = residentMemory().own;
    }
    const http = this.#http.prepare();
    const rest = this.#rest();
    const facts: GenerationOptions = {
      plane,
      feed,
      site: {
        clock,
        random,
        processLog: log,
        metrics,
        http: plane === 0 ? http : NO_HTTP,
        control: this.#options.control(configuration),
        queries: this.#stream,
        machine: { ...machine, isMemoryTight: this.#isMemoryTight },
        version,
      },
      panics: this.#panics,
      addressOf: (label) => this.#listeners.address(label),
      joinPath: (directory, path) => (isAbsolute(path) || directory === "" ? path : join(directory, path)),
    };
    const generation = await Generation.make(configuration, facts, rest);
    const levelBefore = log.level;
    log.debugEnabled = generation.debug;
    let listeners: PreparedListeners | undefined;
    const rollBack = async (): Promise<void> => {
      log.level = levelBefore;
      await listeners?.rollBack();
      await generation.stop();
      await this.#http.rollBack();
    };
    try {
      if (this.#current !== undefined) await generation.inherit(this.#current, rest);
      await generation.start(rest);
      // To put it into force takes a turn of its own.
      await nextTurn();
    } catch (error) {
      await rollBack();
      throw error;
    }
    return {
      generation,
      rollBack,
      listen: async (places) => {
        listeners = await this.#listeners.prepare(generation.listenPoints, places);
        return this.#listeners.places(generation.listenPoints);
      },
      commit: async () => {
        this.#replace(generation, listeners?.commit() ?? (async () => undefined));
        await http.commit();
        this.#memory.start(generation.planes);
      },
    };
  }

  #rest(): () => Promise<void> {
    return new TurnShare(this.#options.clock, OF_A_TURN).rest;
  }

  /** Lame ducks: everything is answered still. @returns how many hooks of plugins failed */
  async drain(): Promise<number> {
    const failed = (await this.#current?.shutdown()) ?? 0;
    await this.#current?.drain();
    return failed;
  }

  /** Takes no more queries, lets those under way finish, and closes everything. @returns how many hooks of plugins failed */
  async stop(grace: number = GRACE): Promise<number> {
    const generation = this.#current;
    this.#current = undefined;
    if (grace > 0) await this.#listeners.holdBack();
    this.#listeners.pause();
    if (grace === 0) await this.#listeners.close();
    else if (generation !== undefined) await this.#drained(generation, grace);
    const failed = (await generation?.stop()) ?? 0;
    this.#memory.stop();
    await this.#listeners.close();
    await this.#http.closeExcept(new Set());
    return failed;
  }

  /**
   * As {@link stop}, while others answer on the same addresses. What arrives here would reach nobody else, so it is answered: on connections until their
   * clients have what they came for, and over UDP until the socket is closed to new queries.
   * @param othersStay false: they stop, too, and nobody is given time to ask more
   */
  async retire(othersStay: boolean): Promise<number> {
    const generation = this.#current;
    if (generation !== undefined && !othersStay) await this.#drained(generation);
    else if (generation !== undefined) {
      await this.#within(GRACE, this.#listeners.fadeOut(GRACE));
      await this.#drained(generation);
      this.#listeners.pause();
      // What the socket still had is under way now.
      await this.#drained(generation, LAST_QUERIES);
    }
    return this.stop(0);
  }

  /** The one step in which a generation takes over. */
  #replace(generation: Generation, closeUnwanted: () => Promise<void>): void {
    const old = this.#current;
    this.#current = generation;
    generation.started();
    if (old === undefined) return;
    // The old plugins go once their last query is answered; nobody waits for that.
    void this.#drained(old)
      .then(() => nextTurn())
      .then(() => old.stop(this.#rest()))
      .then(closeUnwanted)
      .then(() => nextTurn())
      .then(() => this.#releaseMemory())
      .then(() => this.#options.onReplaced?.())
      .catch((error: unknown) => this.#options.log.error(configurationMessage(error)));
  }

  /**
   * What went with a generation may be large and made of few objects, which give V8 no reason to look for it before it is too late. What is
   * small waits for its time: to look for it halts the thread.
   */
  async #releaseMemory(): Promise<void> {
    await (await this.#trim)?.();
    if (residentMemory().own < MUCH_GROWTH * this.#residentBefore) return;
    // Loaded for those who need it: that makes a context, which takes two milliseconds.
    const memory = await loadMemoryRelease();
    // What the reload awaited is held until its turn is over.
    await nextTurn();
    await nextTurn();
    await memory.allInTurns();
  }

  /** Garbage of sockets and buffers counts for little with V8, and what it frees stays with the C library. */
  async #relieve(): Promise<void> {
    this.#listeners.relieve();
    await this.#freeYoung();
    this.#trim ??= loadTrimBeside();
    await (await this.#trim)?.();
  }

  async #freeYoung(): Promise<void> {
    this.#memoryRelease ??= loadMemoryRelease();
    (await this.#memoryRelease).young();
  }

  async #drained(generation: Generation, grace: number = GRACE): Promise<void> {
    await this.#within(grace, generation.inFlight.drained());
  }

  async #within(patience: number, task: Promise<void>): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#options.clock.after(patience, resolve);
      void task.then(() => {
        timer.cancel();
        resolve();
      });
    });
  }
}

/** Plugins of a configuration that run, and answer nothing yet on listeners that are open. */
export interface PreparedGeneration {
  readonly generation: Generation;
  /**
   * Opens the listen points that are not open yet.
   * @param places where the leader listens, for another data plane
   * @returns the places for the others
   * @throws ListenError
   */
  listen(places?: ReadonlyMap<string, ListenPlace>): Promise<Map<string, ListenPlace>>;
  /** The old generation, if any, answers what it has begun and is then stopped. */
  commit(): Promise<void>;
  /** Stops the plugins and closes what was opened for them. */
  rollBack(): Promise<void>;
}

/** Says once why UDP is received by the datagram, where it is. */
function fastestUdpOf(log: ProcessLog, plane: number): () => Promise<UdpListen> {
  let told = plane !== 0;
  return () =>
    fastestUdp((reason) => {
      if (told) return;
      told = true;
      log.info(
        `UDP is received one datagram at a time, which costs more CPU and lets routes choose source addresses: ${reason}`,
      );
    });
}

/** One thread has the HTTP endpoints; it shows the numbers of all. */
const NO_HTTP: HttpService = { serve: async () => ({ host: "", port: 0 }) };

export function configurationMessage(error: unknown): string {
  if (error instanceof ConfigurationError) return `\n${error.message}`;
  return messageOf(error);
}
