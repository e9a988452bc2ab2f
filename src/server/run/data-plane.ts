/**
 * One data plane: the listeners of a thread and the generation that answers there. The server has one on the main
 * thread, and with `multisocket` more on their own threads.
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
  /** Opens UDP sockets; by default the fastest way that the system has. */
  readonly listenUdp?: (() => Promise<UdpListen>) | undefined;
  /** See `ServerOptions.sharesPorts`. */
  readonly sharesPorts?: boolean | undefined;
  /** See `ServerOptions.onReplaced`. */
  readonly onReplaced?: (() => void) | undefined;
  control(configuration: Configuration): ServerControl;
}

/** Milliseconds that pending queries have to finish at a stop or reload (docs/spec/coredns-behaviour.md#listeners). */
export const GRACE = 5_000;
/** Milliseconds for the last queries of a socket whose port other sockets take over. */
const LAST_QUERIES = 1_000;
/** A reload that grows memory by more than this factor collects the garbage of the old configuration at once. */
const MUCH_GROWTH = 1.15;

/** Milliseconds of each event-loop turn that a new configuration may take. */
const OF_A_TURN = 1;

export class DataPlane {
  readonly #options: DataPlaneOptions;
  readonly #listeners: ListenerPool;
  readonly #http: HttpEndpoints;
  readonly #panics: CounterSlot;
  readonly #stream: QueryStream;
  readonly #memory: MemoryWatch;
  /** One closure for all configurations: one made with a configuration would keep the previous one alive. */
  readonly #isMemoryTight = (): boolean => this.#memory.isTight;
  #memoryRelease: ReturnType<typeof loadMemoryRelease> | undefined;
  #trim: ReturnType<typeof loadTrimBeside> | undefined;
  /** Resident memory in bytes when the latest configuration began to be prepared. */
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
        // Between two measurements a flood of long messages can exceed the memory that is left.
        this.#memory.look();
      },
      onCrowded: (text) => log.warning(text),
      onUnshared: (label, transport) =>
        log.warning(
          `${label} (${transport}) was opened for one thread and stays on one until the server is restarted`,
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

  /** The generation in force. */
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
    // The leader has logged the warnings.
    const isAdvised = plane > 0;
    return readConfiguration(source, { host, registry, machine, defaultPort, isAdvised, rest: this.#rest() });
  }

  /**
   * Makes and starts all plugins of a configuration. {@link PreparedGeneration.commit} puts it into force.
   * @throws the error of a plugin; nothing is left open then
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
      // Putting it into force takes a turn of its own.
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

  /** Lame duck: keeps answering everything. @returns the number of plugin hooks that failed */
  async drain(): Promise<number> {
    const failed = (await this.#current?.shutdown()) ?? 0;
    await this.#current?.drain();
    return failed;
  }

  /**
   * Takes no new queries, lets pending ones finish, and closes everything. @returns the number of plugin hooks that
   * failed
   */
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
   * Like {@link stop}, while other data planes answer on the same addresses. Queries that arrive here would reach no
   * other socket, so they are answered: on connections until their clients are done, and over UDP until the socket is
   * closed to new queries.
   * @param othersStay false if the others stop, too: clients get no extra time then
   */
  async retire(othersStay: boolean): Promise<number> {
    const generation = this.#current;
    if (generation !== undefined && !othersStay) await this.#drained(generation);
    else if (generation !== undefined) {
      await this.#within(GRACE, this.#listeners.fadeOut(GRACE));
      await this.#drained(generation);
      this.#listeners.pause();
      // Queries that the socket still held are pending now.
      await this.#drained(generation, LAST_QUERIES);
    }
    return this.stop(0);
  }

  /** Swaps the generations, in one step. */
  #replace(generation: Generation, closeUnwanted: () => Promise<void>): void {
    const old = this.#current;
    this.#current = generation;
    generation.started();
    if (old === undefined) return;
    // The old plugins stop after their last query; nothing waits for that.
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
   * The data of an old generation may be large and consist of few objects, which give V8 no reason to collect it in
   * time. Small garbage can wait: a collection halts the thread.
   */
  async #releaseMemory(): Promise<void> {
    await (await this.#trim)?.();
    if (residentMemory().own < MUCH_GROWTH * this.#residentBefore) return;
    // Loaded on demand, because it creates a context.
    const memory = await loadMemoryRelease();
    // The stack of the reload holds references until its turn ends.
    await nextTurn();
    await nextTurn();
    await memory.allInTurns();
  }

  /** V8 counts little of the garbage of sockets and buffers, and the C library keeps what is freed. */
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

/** Running plugins of a configuration whose listeners are open and do not answer yet. */
export interface PreparedGeneration {
  readonly generation: Generation;
  /**
   * Opens the listen points that are not open yet.
   * @param places where the leader listens, for another data plane
   * @returns the places for the other data planes
   * @throws ListenError
   */
  listen(places?: ReadonlyMap<string, ListenPlace>): Promise<Map<string, ListenPlace>>;
  /** Takes over. The old generation, if any, answers its pending queries and is then stopped. */
  commit(): Promise<void>;
  /** Stops the plugins and closes what was opened for them. */
  rollBack(): Promise<void>;
}

/** Logs once why UDP is received one datagram at a time, if it is. */
function fastestUdpOf(log: ProcessLog, plane: number): () => Promise<UdpListen> {
  let told = plane !== 0;
  return () =>
    fastestUdp((reason) => {
      if (told) return;
      told = true;
      log.info(
        `UDP batching is unavailable (${reason}): receiving one datagram at a time. This uses more CPU, and replies leave from the address that the routing table picks`,
      );
    });
}

/** One thread serves the HTTP endpoints, with the numbers of all. */
const NO_HTTP: HttpService = { serve: async () => ({ host: "", port: 0 }) };

export function configurationMessage(error: unknown): string {
  if (error instanceof ConfigurationError) return `\n${error.message}`;
  return messageOf(error);
}
