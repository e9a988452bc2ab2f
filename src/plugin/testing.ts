/**
 * `portolan/testing`: runs one plugin without a server. The configuration is Corefile text, time stands still until
 * the test advances it, and the rest of the chain is a function of the test.
 * @module portolan/testing
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { DiagnosticSink, formatDiagnostic } from "../corefile/diagnostic.ts";
import { memoryHost } from "../corefile/host.ts";
import { parseCorefile } from "../corefile/parser.ts";
import { resolveServerKeys, type ServerKey } from "../corefile/server-key.ts";
import type { Edns } from "../dns/edns.ts";
import { encodeMessage, makeQuery } from "../dns/message.ts";
import { Name } from "../dns/name.ts";
import { Flag, RecordClass } from "../dns/numbers.ts";
import type { ResourceRecord } from "../dns/record-kind.ts";
import { formatRecord, parseRecord } from "../dns/resource-record.ts";
import { parseRecordType } from "../dns/type-names.ts";
import { MemoryLog } from "../lib/logging/log.ts";
import { MetricsRegistry } from "../lib/metrics/metrics.ts";
import { parseIpAddress } from "../lib/net/ip-address.ts";
import { FakeClock } from "../lib/time/clock.ts";
import type { Next } from "./chain/handler.ts";
import { ChangingNames } from "./contract/changing-names.ts";
import type { PluginDefinition } from "./contract/define-plugin.ts";
import { ExplainError } from "./contract/explanation.ts";
import type { PlacedPlugin, PluginInstance } from "./contract/plugin-instance.ts";
import {
  type BlockSettings,
  defaultBlockSettings,
  feedToNobody,
  type HttpHandler,
  type Machine,
  type ServerControl,
  type Site,
} from "./contract/site.ts";
import { ECHOED_OPTIONS } from "./message/echoed-options.ts";
import { FixedEndpoint, type TransportName } from "./message/endpoint.ts";
import type { Outcome } from "./query/outcome.ts";
import { Query } from "./query/query.ts";
import type { Reply, ReplyContent } from "./query/reply.ts";
import { QueryStream } from "./stream/query-stream.ts";

export { MemoryLog } from "../lib/logging/log.ts";
export { FakeClock } from "../lib/time/clock.ts";

/** The configuration was refused; `text` is the message that the operator would read. */
export class ConfigRefused extends Error {
  override readonly name = "ConfigRefused";
  /** The codes of the diagnostics, such as `PLUGIN_BAD_VALUE`. */
  readonly codes: readonly string[];

  constructor(text: string, codes: readonly string[]) {
    super(text);
    this.codes = codes;
  }
}

/** A query for a plugin under test. */
export interface QuestionOptions {
  /** Presentation form; case is kept. */
  readonly name: string;
  /** Mnemonic, `A` unless given. */
  readonly type?: string;
  /** A number of `RecordClass`; IN unless given. */
  readonly class?: number;
  /** The id of the message; 4711 unless given. */
  readonly id?: number;
  /** Header bits, RD unless given. */
  readonly flags?: number;
  /** A number of `Opcode`; a query unless given. */
  readonly opcode?: number;
  /** OPT, with what is not given by default; no OPT without this. */
  readonly edns?: Partial<Edns>;
  /** The address of the client; 192.0.2.1 unless given. */
  readonly client?: string;
  /** 40000 unless given. */
  readonly clientPort?: number;
  /** `udp` unless given. */
  readonly transport?: TransportName;
  /** Codes of EDNS options that the listener echoes, besides those of every listener. */
  readonly echoedOptions?: readonly number[];
  /** The rest of the chain; SERVFAIL unless given. */
  readonly next?: Next;
}

/** The surroundings of a plugin under test. */
export interface PluginTestOptions {
  /** Keys of the server block around the directives; `.:53` unless given. */
  readonly keys?: string;
  /** The clock; one that stands still unless given. */
  readonly clock?: FakeClock;
  /** Other plugins of the block, for plugins that use their neighbours. */
  readonly neighbours?: readonly PlacedPlugin[];
  /** The store of `site.shared`: two tests with the same map are two blocks of one configuration. */
  readonly shared?: Map<string, unknown>;
  /** Replaces members of `site`. */
  readonly site?: Partial<Site>;
}

/** The instances of a plugin in one server block, ready for queries. */
export class PluginTest<T> {
  /** Move it with `advance`. */
  readonly clock: FakeClock;
  /** What the plugin has logged. */
  readonly log: MemoryLog = new MemoryLog();
  /** What the plugin has counted: `await metrics.expose()`. */
  readonly metrics: MetricsRegistry = new MetricsRegistry();
  /** The settings of the block, which `configure` may have changed. */
  readonly settings: BlockSettings = defaultBlockSettings();
  /** What the grammar made of the text, for each instance. */
  readonly configs: readonly T[];
  /** What `create` returned. */
  readonly instances: readonly PluginInstance[];
  /** The names that change under the cache, of the neighbours and the instances. */
  readonly changingNames: ChangingNames;
  /** The registered HTTP handlers, by address and path. */
  readonly http: Map<string, HttpHandler> = new Map();
  /** Text of warnings about the configuration. */
  readonly warnings: readonly string[];
  /** Messages that would have ended the process. */
  readonly fatal: string[] = [];

  private constructor(definition: PluginDefinition<T>, text: string, options: PluginTestOptions) {
    this.clock = options.clock ?? new FakeClock();
    const { configs, keys, warnings } = readConfiguration(definition, text, options, this.settings);
    this.configs = configs;
    this.warnings = warnings;
    const instances: PluginInstance[] = [];
    this.changingNames = new ChangingNames(() => [
      ...(options.neighbours ?? []).map(({ instance }) => instance),
      ...instances,
    ]);
    const site = this.#site(definition.name, keys, instances, options);
    for (const config of configs) {
      const instance = definition.create?.(config, site);
      if (instance !== undefined) instances.push(instance);
    }
    this.instances = instances;
  }

  /**
   * Reads `text`, the directive as in a Corefile (repeated if needed), and makes the instances.
   * @throws ConfigRefused
   */
  static of<T>(
    definition: PluginDefinition<T>,
    text: string,
    options: PluginTestOptions = {},
  ): PluginTest<T> {
    return new PluginTest(definition, text, options);
  }

  /** Starts the plugin as in a reload: it waits for its data, or until its patience has run out. */
  async start(): Promise<void> {
    for (const instance of this.instances) await instance.start?.();
    await Promise.all(this.instances.map(async (instance) => instance.warmUp?.()));
    for (const instance of this.instances) instance.started?.();
  }

  /** Stops the instances. */
  async stop(): Promise<void> {
    for (const instance of this.instances) await instance.stop?.();
  }

  /** Sends a query through the instances, one behind the other, and then to `next`. */
  outcome(question: QuestionOptions): Outcome | Promise<Outcome> {
    const query = this.query(question);
    return this.chain(question.next ?? ((asked) => asked.fail()))(query);
  }

  /** Like {@link outcome}, for a query that must be answered. */
  async ask(question: QuestionOptions): Promise<Answer> {
    const outcome = await this.outcome(question);
    if (outcome.kind === "reply") return new Answer(outcome);
    throw new Error(
      outcome.kind === "failed"
        ? `failed with rcode ${outcome.rcode}: ${outcome.error?.message}`
        : outcome.kind,
    );
  }

  /** The instances as a function of a query, with `last` behind them. */
  chain(last: Next): Next {
    let next = last;
    for (const { handle, recordsOnly = false } of [...this.instances].reverse()) {
      if (handle === undefined) continue;
      const behind = next;
      next = (query) =>
        recordsOnly && query.trace?.leavesNoMark === true ? behind(query) : handle(query, behind);
    }
    return next;
  }

  /** A query as the listener would make it. */
  query(question: QuestionOptions): Query {
    return makeTestQuery(question, this.clock.now(), (inner) => this.chain((asked) => asked.fail())(inner));
  }

  #site(
    plugin: string,
    keys: readonly ServerKey[],
    instances: readonly PluginInstance[],
    options: PluginTestOptions,
  ): Site {
    const shared = options.shared ?? new Map<string, unknown>();
    return {
      plugin,
      block: {
        keys,
        zones: keys.map((key) => Name.parse(key.zone)),
        settings: this.settings,
        plugins: () => [
          ...(options.neighbours ?? []),
          ...instances.map((instance) => ({ name: plugin, instance })),
        ],
        listeners: () => [{ label: "dns://:53", zone: Name.root, address: () => undefined }],
      },
      clock: this.clock,
      random: { fraction: () => 0.5, unpredictable: () => 0x1234_5678 },
      log: this.log.child(`plugin/${plugin}`),
      processLog: this.log,
      metrics: this.metrics,
      http: {
        serve: async (address, path, handler) => {
          this.http.set(`${address}${path}`, handler);
          return { host: "127.0.0.1", port: 0 };
        },
      },
      feed: feedToNobody,
      control: this.#control(),
      queries: new QueryStream(this.clock),
      machine: TEST_MACHINE,
      changingNames: this.changingNames,
      version: "0.0.0-test",
      resolvePath: (path) => path,
      shared<T>(key: string, make: () => T): T {
        if (!shared.has(key)) shared.set(key, make());
        return shared.get(key) as T;
      },
      ...options.site,
    };
  }

  #control(): ServerControl {
    return {
      sha512: "",
      readConfiguration: async () => ({ sha512: "" }),
      reload: async () => undefined,
      fatal: (message) => void this.fatal.push(message),
      explain: () => Promise.reject(new ExplainError("there is no server around a plugin under test")),
      clusters: () => [],
    };
  }
}

/** A reply with its records as text: one space between fields, which reads well in assertions. */
export class Answer {
  /** The reply itself. */
  readonly reply: Reply;

  constructor(reply: Reply) {
    this.reply = reply;
  }

  /** A number of `Rcode`. */
  get rcode(): number {
    return this.reply.rcode;
  }

  /** The answer section, a record a line. */
  get answer(): string[] {
    return this.reply.answer.map(recordText);
  }

  /** The authority section, a record a line. */
  get authority(): string[] {
    return this.reply.authority.map(recordText);
  }

  /** The additional section without OPT, a record a line. */
  get additional(): string[] {
    return this.reply.additional.map(recordText);
  }
}

/** A record as in a zone file, with one space between its fields. */
export function recordText(record: ResourceRecord): string {
  return formatRecord(record).replaceAll("\t", " ");
}

/** Records from zone text, one a line: for fixtures. */
export function records(...lines: readonly string[]): ResourceRecord[] {
  return lines.map((line) => parseRecord(line));
}

/** A `next` with the same answer to every query. */
export function answering(content: ReplyContent): Next {
  return (query) => query.reply(content);
}

/** Lets sockets, files and promises make progress until `done`; fails after five seconds of real time. */
export async function until(done: () => boolean): Promise<void> {
  const deadline = performance.now() + 5_000;
  while (!done()) {
    if (performance.now() > deadline) throw new Error("the condition did not hold within five seconds");
    await nextTurn();
  }
}

/** A query as from a listener. `resolve` serves internal lookups. */
export function makeTestQuery(question: QuestionOptions, receivedAt = 0, resolve?: Next): Query {
  const type = parseRecordType(question.type ?? "A");
  if (type === undefined) throw new RangeError(`unknown type ${question.type}`);
  const edns =
    question.edns === undefined
      ? undefined
      : { udpSize: 1232, version: 0, dnssecOk: false, options: [], ...question.edns };
  const message = makeQuery(
    { name: Name.parse(question.name), type, class: question.class ?? RecordClass.IN },
    { id: question.id ?? 4711, flags: question.flags ?? Flag.RD, ...(edns !== undefined && { edns }) },
  );
  const bytes = encodeMessage({ ...message, opcode: question.opcode ?? 0 });
  const transport = question.transport ?? "udp";
  const query = Query.read(bytes, bytes.length, {
    listener: {
      label: "dns://:53",
      echoedOptions: new Set([...ECHOED_OPTIONS, ...(question.echoedOptions ?? [])]),
      resolve: resolve ?? ((inner) => inner.fail()),
    },
    transport,
    client: endpoint(question.client ?? "192.0.2.1", question.clientPort ?? 40000),
    local: endpoint("192.0.2.53", 53),
    receivedAt,
  });
  if (query === undefined) throw new Error("the test's query does not parse");
  return query;
}

const TEST_MACHINE: Machine = {
  hostname: "test-host",
  interfaceAddresses: (name) => (name === "lo" ? ["127.0.0.1", "::1"] : undefined),
  addresses: () => ["192.0.2.10"],
  environment: {},
  parallelism: 4,
  descriptors: 1024,
};

function endpoint(address: string, port: number): FixedEndpoint {
  const octets = parseIpAddress(address);
  if (octets === undefined) throw new RangeError(`not an IP address: ${address}`);
  return new FixedEndpoint(address, port, octets);
}

function readConfiguration<T>(
  definition: PluginDefinition<T>,
  text: string,
  options: PluginTestOptions,
  settings: BlockSettings,
): { configs: readonly T[]; keys: ServerKey[]; warnings: readonly string[] } {
  const source = `${options.keys ?? ".:53"} {\n${text}\n}\n`;
  const report = new DiagnosticSink();
  const { corefile, diagnostics } = parseCorefile(source, {
    file: "Corefile",
    host: memoryHost(),
    directives: [definition.name],
  });
  const [block] = corefile.blocks;
  const [keys = []] = resolveServerKeys(corefile, report);
  const occurrences = block?.directives ?? [];
  const zones = keys.map((key) => Name.parse(key.zone));
  const configs = definition.config.parse(occurrences, { zones, keys, report }) ?? [];
  const [first] = occurrences;
  if (!report.hasErrors && first !== undefined && definition.configure !== undefined) {
    for (const config of configs) {
      definition.configure(config, settings, {
        machine: TEST_MACHINE,
        report,
        span: first.name.span,
      });
    }
  }
  const all = [...diagnostics, ...report.diagnostics];
  const texts = all.map((diagnostic) => formatDiagnostic(diagnostic, source));
  const codes = all.filter(({ severity }) => severity === "error").map(({ code }) => code);
  if (codes.length > 0) throw new ConfigRefused(texts.join("\n"), codes);
  return { configs, keys, warnings: texts };
}
