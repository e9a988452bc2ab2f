/** The server: one configuration in force, sockets that outlive it, and the ways to start, reload and stop. */
import type { Diagnostic } from "../corefile/diagnostic.ts";
import type { CorefileHost } from "../corefile/host.ts";
import type { ProcessLog } from "../lib/logging/log.ts";
import type { MetricsRegistry } from "../lib/metrics/metrics.ts";
import type { Clock, Timer } from "../lib/time/clock.ts";
import { ExplainError, type ExplainQuestion, type Explanation } from "../plugin/contract/explanation.ts";
import { staysInForce } from "../plugin/contract/server-view.ts";
import type { Machine, Random, ServerControl } from "../plugin/contract/site.ts";
import type { UdpListen } from "../transports/udp.ts";
import {
  type Configuration,
  ConfigurationError,
  type CorefileSource,
  describeDiagnostic,
} from "./configuration/configuration.ts";
import type { PluginRegistry } from "./configuration/plugin-registry.ts";
import { RecordedHost } from "./configuration/recorded-host.ts";
import { explainWith } from "./explaining/explain.ts";
import { InProcessClient } from "./explaining/in-process-client.ts";
import { configurationMessage, DataPlane, type PreparedGeneration } from "./run/data-plane.ts";
import { ServerFacts } from "./run/server-facts.ts";
import type { DnsListener } from "./serving/dns-listener.ts";
import { FeedHub } from "./threads/feed.ts";
import { Fleet, type PreparedFleet } from "./threads/fleet.ts";

export interface ServerOptions {
  /** Reads the Corefile; called at start, by each reload, and by the `reload` plugin to see whether it changed. */
  readonly source: () => CorefileSource | Promise<CorefileSource>;
  readonly registry: PluginRegistry;
  readonly host: CorefileHost;
  readonly machine: Machine;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: ProcessLog;
  readonly metrics: MetricsRegistry;
  readonly version: string;
  /** Port of keys without one; 53 unless given. */
  readonly defaultPort?: number;
  /** Opens UDP sockets; by default the fastest way that the system has. */
  readonly listenUdp?: () => Promise<UdpListen>;
  /**
   * The module that the threads of further data planes run (`multisocket`); it calls `runFollower`. The default is
   * the program's own: it loads the plugins of the registry by their modules, reads files, and receives UDP as the
   * environment variable says.
   */
  readonly threadEntry?: URL;
  /** Shares the ports with other processes, as CoreDNS does: the next instance serves before this one stops. */
  readonly sharesPorts?: boolean;
  /**
   * Called once, when all plugins have started and before the first answer: the time for work that would delay
   * queries.
   */
  readonly beforeListening?: () => Promise<void>;
  /** Called when a reload is over and the old configuration is gone. */
  readonly onReplaced?: () => void;
  /** Called when a plugin requires the process to end (`loop`). */
  readonly onFatal?: (message: string) => void;
}

/** Milliseconds until a reload must be in force. */
const RELOAD_PATIENCE = 60_000;

/** A reload that was abandoned. */
export class ReloadError extends Error {
  override readonly name = "ReloadError";
}

export class Server {
  readonly #options: ServerOptions;
  readonly #plane: DataPlane;
  readonly #fleet: Fleet;
  readonly #facts: ServerFacts;
  /** The content that was refused last, with its error. */
  #lastRefusal: (ReadText & { readonly error: unknown }) | undefined;
  #refusedContents = 0;
  #lastRead: (ReadText & { readonly sha512: string }) | undefined;
  /** The number of the latest generation. */
  #generations = 0;
  /** Reloads run one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  #stopping = false;
  readonly #ends = new Set<() => void>();
  /** Cancels the reload in progress, if there is one. */
  #giveUp: (() => void) | undefined;

  constructor(options: ServerOptions) {
    const { registry, clock, log, metrics, version, defaultPort } = options;
    this.#options = options;
    this.#facts = new ServerFacts(
      clock,
      () => this.#plane.generation,
      () => this.dataPlanes,
    );
    this.#plane = new DataPlane({
      ...options,
      plane: 0,
      control: (configuration) => this.#control(configuration),
    });
    this.#fleet = new Fleet({
      entry: options.threadEntry,
      settings: {
        plugins: registry.entries,
        pluginBudget: registry.budget,
        version,
        defaultPort,
        logFormat: log.format.name,
      },
      clock,
      log,
      metrics,
      onFatal: (message) => options.onFatal?.(message),
      inTurn: (task) => this.#inTurn(async () => (this.#stopping ? undefined : task())),
    });
  }

  /**
   * Reads the Corefile, makes and starts all plugins, and listens.
   * @throws ConfigurationError, ListenError, SetupError, or the error of a plugin's start; nothing is left open then
   */
  async start(): Promise<void> {
    await this.#inTurn(() => this.#putIntoForce());
  }

  /**
   * Puts the current Corefile into force. Open sockets stay open; pending queries are answered by the plugins that
   * they began with.
   * @throws as {@link start}, and ReloadError if it takes more than a minute; the old configuration stays in force
   * then
   */
  async reload(): Promise<void> {
    await this.#inTurn(async () => {
      if (this.#stopping) return;
      const { log } = this.#options;
      log.info("Reloading");
      let isInForce: boolean;
      try {
        isInForce = await this.#putIntoForce();
      } catch (error) {
        const [first = "", ...others] = configurationMessage(error).trim().split("\n");
        log.error(`Restart failed: ${first}`);
        // The remaining lines show the place, with the line of the Corefile.
        for (const line of others) log.error(line);
        log.warning(staysInForce(this.#facts.configuration()));
        this.#facts.refused(error);
        throw error;
      }
      log.info(isInForce ? "Reloading complete" : "Reload abandoned: the server is stopping");
    });
  }

  /**
   * Answers until the lame-duck time is over, then takes no new queries, lets pending ones finish, and closes
   * everything.
   * @returns the number of plugin hooks that failed
   */
  async stop(): Promise<number> {
    this.#stopping = true;
    for (const end of this.#ends) end();
    this.#ends.clear();
    this.#giveUp?.();
    await this.#turn.catch(() => undefined);
    if (this.#plane.generation === undefined) return 0;
    const failedInDrain = await this.#plane.drain();
    const [failed, failedInFollowers] = await Promise.all([this.#plane.stop(), this.#fleet.stop()]);
    return failedInDrain + failed + failedInFollowers;
  }

  get configuration(): Configuration | undefined {
    return this.#plane.generation?.configuration;
  }

  listener(label: string): DnsListener | undefined {
    return this.#plane.listener(label);
  }

  /** The number of data planes that answer: one, and the followers of `multisocket`. */
  get dataPlanes(): number {
    return this.#plane.generation === undefined ? 0 : 1 + this.#fleet.size;
  }

  /** The addresses in use, in the order of the Corefile. */
  get addresses(): readonly { readonly label: string; readonly host: string; readonly port: number }[] {
    return (this.#plane.generation?.listenPoints ?? []).flatMap(({ label }) => {
      const address = this.#plane.address(label);
      return address === undefined ? [] : [{ label, ...address }];
    });
  }

  /**
   * Prepares the configuration in all data planes, then commits it in all of them.
   * @returns false if it was abandoned because the server is stopping
   */
  async #putIntoForce(): Promise<boolean> {
    const { log, host } = this.#options;
    const source = await this.#options.source();
    const configuration = await this.#read(source);
    this.#refuseEmpty(configuration, source);
    for (const warning of configuration.warnings) {
      log.warning(describeDiagnostic(warning, source, host).split("\n", 1)[0] ?? warning.message);
    }
    const hub = new FeedHub();
    const deadline = this.#options.clock.now() + RELOAD_PATIENCE;
    const preparing = this.#plane.prepare(configuration, (key) => hub.feed(key));
    let prepared: PreparedGeneration | undefined;
    try {
      prepared = await this.#unlessStopped(preparing, deadline);
    } finally {
      // A back end that does not answer can hold up a plugin's start for too long.
      if (prepared === undefined)
        void preparing.then((late) => this.#inTurn(() => late.rollBack())).catch(() => undefined);
    }
    if (prepared === undefined) return false;
    let fleet: PreparedFleet;
    try {
      const warm = prepared.generation.warmUp();
      // At the start nothing else answers: plugins with local data must not wait for others, so only a reload waits
      // for the warm-up.
      if (this.#plane.generation !== undefined) await this.#unlessStopped(warm, deadline);
      else await this.#options.beforeListening?.();
      if (this.#stopping) {
        await prepared.rollBack();
        return false;
      }
      fleet = await this.#prepareOthers(source, prepared, hub, deadline);
    } catch (error) {
      await prepared.rollBack();
      throw error;
    }
    await Promise.all([prepared.commit(), fleet.commit()]);
    this.#facts.inForce(source);
    return true;
  }

  /**
   * Waits for a task, or until the server is stopping: `undefined` then. A race against one promise for the server's
   * life would retain the result of every reload.
   * @param deadline of a reload, by the clock: a start has no configuration to fall back to
   * @throws ReloadError at the deadline
   */
  #unlessStopped<T>(task: Promise<T>, deadline: number): Promise<T | undefined> {
    if (this.#stopping) return Promise.resolve(undefined);
    const { clock } = this.#options;
    let timer: Timer | undefined;
    return new Promise<T | undefined>((resolve, reject) => {
      this.#giveUp = () => resolve(undefined);
      if (this.#plane.generation !== undefined)
        timer = clock.after(Math.max(0, deadline - clock.now()), () =>
          reject(new ReloadError("the plugins did not start within a minute")),
        );
      task.then(resolve, reject);
    }).finally(() => {
      timer?.cancel();
      this.#giveUp = undefined;
    });
  }

  async #prepareOthers(
    source: CorefileSource,
    prepared: PreparedGeneration,
    hub: FeedHub,
    deadline: number,
  ): Promise<PreparedFleet> {
    // Opens the sockets of this data plane first: if a port is in use, no thread is started.
    const places = await prepared.listen();
    const { planes, configuration } = prepared.generation;
    this.#generations++;
    return this.#fleet.prepare({
      generation: this.#generations,
      planes,
      source,
      sha512: configuration.sha512,
      hub,
      places,
      deadline: this.#plane.generation === undefined ? undefined : deadline,
    });
  }

  async #read(source: CorefileSource, host = new RecordedHost(this.#options.host)): Promise<Configuration> {
    const configuration = await this.#plane.read(source, host);
    this.#lastRead = { source, host, sha512: configuration.sha512 };
    return configuration;
  }

  /** Reads for the `reload` plugin's check; the result also goes to the server's facts. */
  async #lookAgain(): Promise<{ readonly sha512: string }> {
    try {
      const read = await this.#readAgain();
      this.#facts.readAgain(read.sha512);
      return read;
    } catch (error) {
      this.#facts.refused(error);
      throw error;
    }
  }

  /** Reads again only if something has changed. External plugins may change in any case. */
  async #readAgain(): Promise<{ readonly sha512: string }> {
    const source = await this.#options.source();
    const hasLoaded = this.#options.registry.loadedFiles.length > 0;
    const last = this.#lastRead;
    if (last !== undefined && !hasLoaded && isStill(last, source)) return last;
    const refused = this.#lastRefusal;
    const isKnown = refused !== undefined && isStill(refused, source);
    if (isKnown && !hasLoaded) throw refused.error;
    const host = new RecordedHost(this.#options.host);
    try {
      const configuration = await this.#read(source, host);
      try {
        this.#refuseEmpty(configuration, source);
      } catch (error) {
        // All empty Corefiles stand for the same configuration.
        this.#lastRead = undefined;
        throw error;
      }
      this.#lastRefusal = undefined;
      return configuration;
    } catch (error) {
      this.#lastRefusal = { source, host, error };
      if (!isKnown) this.#refusedContents++;
      throw error;
    }
  }

  /**
   * Keeps the built-in configuration from replacing the running one when an editor empties the file before it writes,
   * or a ConfigMap lacks the key. If the built-in configuration is in force already, it may be loaded again.
   */
  #refuseEmpty({ isEmpty, sha512 }: Configuration, source: CorefileSource): void {
    const inForce = this.configuration;
    if (isEmpty === undefined || inForce === undefined || inForce.sha512 === sha512) return;
    const fault: Diagnostic = { ...isEmpty, severity: "error", message: "there is no server block" };
    throw new ConfigurationError([fault], describeDiagnostic(fault, source, this.#options.host));
  }

  #control(configuration: Configuration): ServerControl {
    return {
      inForce: () => (this.#stopping ? undefined : inForceOf(this.configuration)),
      untilServerStops: (end) => {
        this.#ends.add(end);
        return () => this.#ends.delete(end);
      },
      sha512: configuration.sha512,
      readConfiguration: () => this.#lookAgain(),
      refusedContents: () => this.#refusedContents,
      reload: () => this.reload(),
      fatal: (message) => this.#options.onFatal?.(message),
      explain: (question, timeout) => this.#explain(question, timeout),
      clusters: () => this.#plane.generation?.clusters ?? [],
      view: this.#facts,
      log: this.#options.log,
    };
  }

  /** Uses the first data plane: it exists in every configuration. */
  async #explain(question: ExplainQuestion, timeout: number): Promise<Explanation> {
    const { clock, version } = this.#options;
    const generation = this.#plane.generation;
    if (generation === undefined) throw new ExplainError("the server does not listen yet");
    const listeners = generation.listenPoints.flatMap(({ label }) => this.#plane.listener(label) ?? []);
    const client = new InProcessClient(generation.configuration, listeners, clock);
    const server = {
      version: `Portolan-${version}`,
      threads: this.dataPlanes,
      configuration: generation.configuration.sha512,
    };
    return explainWith(client, question, { clock, timeout, server });
  }

  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(task, task);
    this.#turn = result.catch(() => undefined);
    return result;
  }
}

/** A Corefile and its result. */
interface ReadText {
  readonly source: CorefileSource;
  readonly host: RecordedHost;
}

/** Whether this Corefile and all its imports are unchanged. */
function isStill({ source, host }: ReadText, { text, file }: CorefileSource): boolean {
  return source.text === text && source.file === file && host.isCurrent;
}

function inForceOf(
  configuration: Configuration | undefined,
): ReturnType<NonNullable<ServerControl["inForce"]>> {
  if (configuration === undefined) return undefined;
  const { sha512, blocks } = configuration;
  return {
    sha512,
    hasPlugin: (name) =>
      blocks.some(({ plugins }) => plugins.some(({ definition }) => definition.name === name)),
  };
}
