/**
 * A configuration that answers queries inside of this process. No socket is opened to listen, and nothing runs that
 * waits for the server to listen (`started`: commands of `on`, the probe of `loop`, the timer of `reload`). Plugins are
 * started, because manifests have to be read and upstreams to be asked; what they send to other servers is sent.
 */
import { isAbsolute, join } from "node:path";
import type { CorefileHost } from "../corefile/host.ts";
import { decodeMessage, encodeMessage, type Message, makeQuery } from "../dns/message.ts";
import type { Name } from "../dns/name.ts";
import { Flag, RecordClass } from "../dns/numbers.ts";
import { recordTypeName } from "../dns/type-names.ts";
import type { Clock } from "../lib/clock.ts";
import { parseIpAddress } from "../lib/ip-address.ts";
import type { ProcessLog } from "../lib/log.ts";
import type { CounterSlot } from "../lib/metric-slots.ts";
import { MetricsRegistry } from "../lib/metrics.ts";
import { version } from "../lib/version.ts";
import type { Outcome } from "../plugin/outcome.ts";
import { FixedEndpoint, Query } from "../plugin/query.ts";
import { feedToNobody, type HttpService, type Machine, type Random } from "../plugin/site.ts";
import { type Configuration, type CorefileSource, readConfiguration } from "./configuration.ts";
import { DnsListener } from "./dns-listener.ts";
import { Generation } from "./generation.ts";
import type { PluginRegistry } from "./plugin-registry.ts";
import { replyCapacity, writeReply } from "./reply-writer.ts";
import type { TraceRecorder } from "./trace-recorder.ts";

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
}

/** A question as a client puts it. */
export interface OfflineQuestion {
  readonly name: Name;
  readonly type: number;
  /** IP address of the client; the listener is asked from loopback unless given. */
  readonly client?: string;
  readonly overTcp?: boolean;
  /** Sets DO. */
  readonly dnssecOk?: boolean;
}

export interface OfflineAnswer {
  readonly outcome: Outcome;
  /** The message that the client would have received; `undefined` when the query was dropped. */
  readonly message: Message | undefined;
  /** Milliseconds. */
  readonly duration: number;
}

export class OfflineServer {
  readonly configuration: Configuration;
  readonly #generation: Generation;
  readonly #listeners: ReadonlyMap<string, DnsListener>;
  readonly #clock: Clock;

  private constructor(
    configuration: Configuration,
    generation: Generation,
    listeners: readonly DnsListener[],
    clock: Clock,
  ) {
    this.configuration = configuration;
    this.#generation = generation;
    this.#clock = clock;
    this.#listeners = new Map(listeners.map((listener) => [listener.label, listener]));
  }

  /**
   * Reads the Corefile, makes all plugins and starts them.
   * @throws ConfigurationError, SetupError or what a plugin's start throws; nothing is left open then
   */
  static async start(options: OfflineServerOptions): Promise<OfflineServer> {
    const { clock, random, machine, log, source, registry, host, defaultPort = 53 } = options;
    const configuration = await readConfiguration(source, { host, registry, machine, defaultPort });
    const metrics = new MetricsRegistry();
    const counter = (name: string): CounterSlot => metrics.counter({ name, help: name, labels: [] }).slot();
    const generation = new Generation(configuration, {
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
        },
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
    await generation.start();
    const counters = {
      shed: counter("portolan_dns_shed_total"),
      rejected: counter("portolan_dns_rejected_total"),
      ignored: counter("portolan_dns_ignored_total"),
    };
    const listeners = generation.listenPoints.map(
      ({ label, service }) =>
        new DnsListener({ label, service, clock, counters, onError: (error) => log.error(String(error)) }),
    );
    return new OfflineServer(configuration, generation, listeners, clock);
  }

  /** Labels of the listen addresses (`dns://127.0.0.1:53`) in the order of the Corefile. */
  get listeners(): readonly string[] {
    return [...this.#listeners.keys()];
  }

  /** Labels of the listeners that have a server block for a question; all of them where none has. */
  listenersFor(question: OfflineQuestion): string[] {
    const serving = [...this.#listeners.values()].filter(
      (listener) => listener.service.routes.find(this.#query(listener, question, undefined)) !== undefined,
    );
    return serving.length > 0 ? serving.map(({ label }) => label) : [...this.listeners];
  }

  /**
   * Asks one listener, as a client would.
   * @throws RangeError when no listener has this label
   */
  async ask(label: string, question: OfflineQuestion, trace?: TraceRecorder): Promise<OfflineAnswer> {
    const listener = this.#listeners.get(label);
    if (listener === undefined) throw new RangeError(`nothing listens at ${label}`);
    const query = this.#query(listener, question, trace);
    const outcome = await listener.ask(query);
    const duration = this.#clock.now() - query.receivedAt;
    if (outcome.kind === "dropped") return { outcome, message: undefined, duration };
    const reply = outcome.kind === "reply" ? outcome : query.reply({ rcode: outcome.rcode });
    const out = new Uint8Array(replyCapacity(query, reply));
    const length = writeReply(query, reply, out);
    return { outcome, message: decodeMessage(out.subarray(0, length)), duration };
  }

  /** Closes all that the plugins opened. */
  async stop(): Promise<void> {
    await this.#generation.stop();
  }

  #query(listener: DnsListener, question: OfflineQuestion, trace: TraceRecorder | undefined): Query {
    const { name, type, client = "127.0.0.1", overTcp = false, dnssecOk = false } = question;
    const bytes = encodeMessage(
      makeQuery(
        { name, type, class: RecordClass.IN },
        { id: 1, flags: Flag.RD, edns: { udpSize: 1232, version: 0, dnssecOk, options: [] } },
      ),
    );
    const query = Query.read(bytes, bytes.length, {
      listener: trace === undefined ? listener : this.#observed(listener, trace),
      transport: overTcp ? "tcp" : "udp",
      client: endpoint(client, 40_000),
      local: endpoint(client.includes(":") ? "::1" : "127.0.0.1", 53),
      receivedAt: this.#clock.now(),
    });
    if (query === undefined) throw new RangeError("the query does not parse");
    if (trace !== undefined) {
      trace.routed(describeQuestion(query), this.#blockOf(listener, query));
      query.trace = trace;
    }
    return query;
  }

  /** The listener as plugins see it: what they look up through it is told to the trace. */
  #observed(listener: DnsListener, trace: TraceRecorder): Query["listener"] {
    return {
      label: listener.label,
      resolve: (query) => {
        trace.routed(describeQuestion(query), this.#blockOf(listener, query));
        return listener.resolve(query);
      },
    };
  }

  /** The server block that takes a query, as it stands in the Corefile. */
  #blockOf(listener: DnsListener, query: Query): string | undefined {
    const zone = listener.service.routes.find(query)?.zone;
    // The very object: several blocks may have an equal zone.
    const block = this.configuration.blocks.find(({ zones }) => zone !== undefined && zones.includes(zone));
    if (block === undefined) return undefined;
    const [key] = block.keys;
    const keys = block.keys.map(({ zone, port }) => `${zone}:${port}`).join(" ");
    const place = key === undefined ? "" : `, ${key.span.file}:${key.span.line}`;
    return `${keys}${query.view === "" ? "" : ` (view ${query.view})`}${place}`;
  }
}

function describeQuestion({ name, type }: Query): string {
  return `${name} ${recordTypeName(type)}`;
}

function endpoint(address: string, port: number): FixedEndpoint {
  const octets = parseIpAddress(address);
  if (octets === undefined) throw new RangeError(`not an IP address: ${address}`);
  return new FixedEndpoint(address, port, octets);
}

/** Nobody can ask over HTTP. */
const noHttp: HttpService = { serve: async () => ({ host: "127.0.0.1", port: 0 }) };
