/**
 * A configuration that answers queries inside this process. It opens no listening socket, and runs nothing that waits
 * for the server to listen (`started`: commands of `on`, the probe of `loop`, the timer of `reload`). It does start
 * the plugins, because manifests must be read and upstreams queried.
 */
import { isAbsolute, join } from "node:path";
import type { Diagnostic } from "../corefile/diagnostic.ts";
import type { CorefileHost } from "../corefile/host.ts";
import { MemoryLog, type ProcessLog } from "../lib/logging/log.ts";
import type { CounterSlot } from "../lib/metrics/metric-slots.ts";
import { MetricsRegistry } from "../lib/metrics/metrics.ts";
import { version } from "../lib/text/version.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { ClusterClients } from "../plugin/contract/cluster-clients.ts";
import { ExplainError, type ExplainQuestion, type Explanation } from "../plugin/contract/explanation.ts";
import { feedToNobody, type HttpService, type Machine, type Random } from "../plugin/contract/site.ts";
import { QueryStream } from "../plugin/stream/query-stream.ts";
import {
  type Configuration,
  ConfigurationError,
  type CorefileSource,
  readConfiguration,
} from "./configuration/configuration.ts";
import type { PluginRegistry } from "./configuration/plugin-registry.ts";
import { explainWith } from "./explaining/explain.ts";
import { type ClientAnswer, type ClientQuestion, InProcessClient } from "./explaining/in-process-client.ts";
import type { TraceRecorder } from "./explaining/trace-recorder.ts";
import { Generation } from "./run/generation.ts";
import { DnsListener } from "./serving/dns-listener.ts";

export interface OfflineServerOptions {
  readonly source: CorefileSource;
  readonly registry: PluginRegistry;
  readonly host: CorefileHost;
  readonly machine: Machine;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: ProcessLog;
  /** Port of keys without one; 53 unless given. */
  readonly defaultPort?: number;
  /** Milliseconds to wait for plugins to receive their data; the plugins' own patience unless given. */
  readonly patience?: number;
}

export class OfflineServer {
  readonly configuration: Configuration;
  readonly #generation: Generation;
  readonly #client: InProcessClient;
  readonly #clock: Clock;

  private constructor(generation: Generation, client: InProcessClient, clock: Clock) {
    this.#clock = clock;
    this.configuration = generation.configuration;
    this.#generation = generation;
    this.#client = client;
  }

  /**
   * Reads the Corefile, makes all plugins and starts them.
   * @throws ConfigurationError, SetupError, or the error of a plugin's start; nothing is left open then
   */
  static async start(options: OfflineServerOptions): Promise<OfflineServer> {
    const { clock, machine, log, source, registry, host, defaultPort = 53 } = options;
    const configuration = await readConfiguration(source, { host, registry, machine, defaultPort });
    const { generation, metrics } = await offlineGeneration(configuration, options);
    await generation.start();
    await inTime(generation.warmUp(), options.patience, clock);
    const counter = counterIn(metrics);
    const counters = {
      shed: counter("portolan_dns_shed_total"),
      rejected: counter("portolan_dns_rejected_total"),
      irregular: counter("portolan_dns_irregular_queries_total"),
      ignored: counter("portolan_dns_ignored_total"),
    };
    const listeners = generation.listenPoints.map(
      ({ label, service }) =>
        new DnsListener({ label, service, clock, counters, onError: (error) => log.error(String(error)) }),
    );
    return new OfflineServer(generation, new InProcessClient(configuration, listeners, clock), clock);
  }

  /** Labels of the listen addresses (`dns://127.0.0.1:53`) in the order of the Corefile. */
  get listeners(): readonly string[] {
    return this.#client.listeners;
  }

  /** Labels of the listeners with a server block for the question; all listeners if none has one. */
  listenersFor(question: ClientQuestion): string[] {
    return this.#client.listenersFor(question);
  }

  /**
   * Queries one listener, as a client would.
   * @throws RangeError for an unknown label
   */
  ask(label: string, question: ClientQuestion, trace?: TraceRecorder): Promise<ClientAnswer> {
    return this.#client.ask(label, question, trace);
  }

  /**
   * Queries the listener that the question names, or the one that a client would use, and reports the path.
   * @throws ExplainError
   */
  explain(question: ExplainQuestion): Promise<Explanation> {
    return explainWith(this.#client, question, { clock: this.#clock });
  }

  /** The clusters that the plugins serve, in the order of the Corefile. */
  get clusters(): readonly ClusterClients[] {
    return this.#generation.clusters;
  }

  /** Closes everything that the plugins opened. */
  async stop(): Promise<void> {
    await this.#generation.stop();
  }
}

async function inTime(awaited: Promise<void>, patience: number | undefined, clock: Clock): Promise<void> {
  if (patience === undefined) return awaited;
  const late = Promise.withResolvers<void>();
  const timer = clock.after(patience, late.resolve);
  await Promise.race([awaited, late.promise]);
  timer.cancel();
}

/** There is no HTTP listener. */
const noHttp: HttpService = { serve: async () => ({ host: "127.0.0.1", port: 0 }) };

/** The plugins of a configuration, without any listener. */
async function offlineGeneration(
  configuration: Configuration,
  { clock, random, machine, log }: Pick<OfflineServerOptions, "clock" | "random" | "machine" | "log">,
): Promise<{ readonly generation: Generation; readonly metrics: MetricsRegistry }> {
  const metrics = new MetricsRegistry();
  const counter = counterIn(metrics);
  const generation = await Generation.make(configuration, {
    site: {
      clock,
      random,
      processLog: log,
      metrics,
      http: noHttp,
      control: {
        sha512: configuration.sha512,
        readConfiguration: async () => configuration,
        reload: async () => undefined,
        fatal: (message: string) => log.write("fatal", message),
        explain: () => Promise.reject(new ExplainError("this server has no HTTP endpoint")),
        clusters: () => [],
      },
      queries: new QueryStream(clock),
      machine,
      version,
    },
    plane: 0,
    feed: () => feedToNobody,
    panics: counter("coredns_panics_total"),
    addressOf: () => undefined,
    joinPath: (directory: string, path: string) =>
      isAbsolute(path) || directory === "" ? path : join(directory, path),
  });
  return { generation, metrics };
}

function counterIn(metrics: MetricsRegistry): (name: string) => CounterSlot {
  return (name) => metrics.counter({ name, help: name, labels: [] }).slot();
}

/** The message of a plugin's warning, without the prefix. */
function warningIn(line: string): string[] {
  const [, message] = /^\[WARNING\] (?:plugin\/[^:]+: )?(.*)$/s.exec(line) ?? [];
  return message === undefined ? [] : [message];
}

/**
 * Makes all plugins of a valid Corefile, and lets them check their files. Starts nothing.
 * @returns the errors that would refuse the start, and the warnings that would be logged
 */
export async function examineFiles(
  options: Omit<OfflineServerOptions, "log">,
): Promise<readonly Diagnostic[]> {
  const { machine, source, registry, host, defaultPort = 53 } = options;
  const configuration = await readConfiguration(source, { host, registry, machine, defaultPort });
  try {
    const log = new MemoryLog({ debugEnabled: false });
    const { generation } = await offlineGeneration(configuration, { ...options, log });
    return await generation.examine(() => log.lines.splice(0).flatMap(warningIn));
  } catch (error) {
    if (error instanceof ConfigurationError) return error.diagnostics;
    throw error;
  }
}
