/**
 * Sends queries to listeners inside the process, without a socket, and returns the message that a client would
 * receive.
 */
import { decodeMessage, encodeMessage, type Message, makeQuery } from "../../dns/message.ts";
import type { Name } from "../../dns/name.ts";
import { Flag, RecordClass } from "../../dns/numbers.ts";
import { recordTypeName } from "../../dns/type-names.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { FixedEndpoint } from "../../plugin/message/endpoint.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import { Query } from "../../plugin/query/query.ts";
import type { Configuration } from "../configuration/configuration.ts";
import type { DnsListener } from "../serving/dns-listener.ts";
import { firstReply } from "../serving/reply-stream.ts";
import { writeReply } from "../serving/reply-writer.ts";
import type { TraceRecorder } from "./trace-recorder.ts";

/** A query as a client sends it. */
export interface ClientQuestion {
  readonly name: Name;
  readonly type: number;
  /** IN unless given. */
  readonly class?: number;
  /** IP address of the client; a loopback address unless given. */
  readonly client?: string;
  readonly overTcp?: boolean;
  /** The second header word; RD unless given. */
  readonly flags?: number;
  /** Sets DO. */
  readonly dnssecOk?: boolean;
}

export interface ClientAnswer {
  readonly outcome: Outcome;
  /** The message that the client would have received; `undefined` when the query was dropped. */
  readonly message: Message | undefined;
  /** Octets of that message. */
  readonly size: number;
  /** Milliseconds. */
  readonly duration: number;
}

export class InProcessClient {
  readonly #configuration: Configuration;
  readonly #listeners: ReadonlyMap<string, DnsListener>;
  readonly #clock: Clock;

  /** @param listeners of the configuration, in the order of the Corefile */
  constructor(configuration: Configuration, listeners: readonly DnsListener[], clock: Clock) {
    this.#configuration = configuration;
    this.#clock = clock;
    this.#listeners = new Map(listeners.map((listener) => [listener.label, listener]));
  }

  /** Labels of the listen addresses (`dns://127.0.0.1:53`) in the order of the Corefile. */
  get listeners(): readonly string[] {
    return [...this.#listeners.keys()];
  }

  /**
   * Labels of the listeners with a server block for the question; all listeners if none has one. The one that a client
   * would use is the first: plain DNS before encrypted transports, then the longest zone, then the order of the
   * Corefile.
   */
  listenersFor(question: ClientQuestion): string[] {
    const serving = [...this.#listeners.values()].flatMap((listener) => {
      const route = listener.service.routes.find(this.#query(listener, question, undefined));
      return route === undefined ? [] : [{ label: listener.label, labels: route.zone.labelCount }];
    });
    if (serving.length === 0) return sortedByTransport([...this.listeners]);
    serving.sort((one, other) => other.labels - one.labels);
    return sortedByTransport(serving.map(({ label }) => label));
  }

  /**
   * Queries one listener, as a client would.
   * @param deadline `Clock.now()` after which plugins need not try any longer
   * @throws RangeError for an unknown label
   */
  async ask(
    label: string,
    question: ClientQuestion,
    trace?: TraceRecorder,
    deadline: number = Number.POSITIVE_INFINITY,
  ): Promise<ClientAnswer> {
    const listener = this.#listeners.get(label);
    if (listener === undefined) throw new RangeError(`nothing listens at ${label}`);
    const query = this.#query(listener, question, trace);
    query.deadline = deadline;
    // A reload must not stop the plugins before they have answered this query.
    const { inFlight } = listener.service;
    inFlight.enter();
    let outcome: Outcome;
    try {
      outcome = await listener.ask(query);
    } finally {
      inFlight.leave();
    }
    const duration = this.#clock.now() - query.receivedAt;
    if (outcome.kind === "dropped") return { outcome, message: undefined, size: 0, duration };
    const reply = (await firstReply(outcome)) ?? query.reply({ rcode: outcome.rcode });
    let out = NOTHING;
    const size = writeReply(query, reply, { buffer: (octets) => (out = new Uint8Array(octets)) });
    return { outcome, message: decodeMessage(out.subarray(0, size)), size, duration };
  }

  #query(listener: DnsListener, question: ClientQuestion, trace: TraceRecorder | undefined): Query {
    const { name, type, client = "127.0.0.1", overTcp = false, dnssecOk = false } = question;
    const bytes = encodeMessage(
      makeQuery(
        { name, type, class: question.class ?? RecordClass.IN },
        {
          id: 1,
          flags: question.flags ?? Flag.RD,
          edns: { udpSize: 1232, version: 0, dnssecOk, options: [] },
        },
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
      this.#tellRoute(listener, query, trace);
      query.trace = trace;
    }
    return query;
  }

  /** The listener as plugins see it; it adds their lookups to the trace. */
  #observed(listener: DnsListener, trace: TraceRecorder): Query["listener"] {
    return {
      label: listener.label,
      echoedOptions: listener.echoedOptions,
      idleTimeout: listener.idleTimeout,
      resolve: (query) => {
        this.#tellRoute(listener, query, trace);
        return listener.resolve(query);
      },
    };
  }

  #tellRoute(listener: DnsListener, query: Query, trace: TraceRecorder): void {
    // Filters run again when the query is routed, and add their notes then.
    const { trace: kept } = query;
    query.trace = undefined;
    const zone = listener.service.routes.find(query)?.zone;
    query.trace = kept;
    trace.routed(`${query.name} ${recordTypeName(query.type)}`, this.#blockOf(zone), query.view);
  }

  /** The server block of a route, as it stands in the Corefile. */
  #blockOf(zone: Name | undefined): string | undefined {
    // Compared as objects: several blocks may have an equal zone.
    const block = this.#configuration.blocks.find(({ zones }) => zone !== undefined && zones.includes(zone));
    if (block === undefined) return undefined;
    const [key] = block.keys;
    const keys = block.keys.map((each) => `${each.zone}:${each.port}`).join(" ");
    return key === undefined ? keys : `${keys}, ${key.span.file}:${key.span.line}`;
  }
}

/** Plain DNS first. Otherwise the order stays. */
function sortedByTransport(labels: readonly string[]): string[] {
  const isPlain = (label: string): boolean => label.startsWith("dns://");
  return [...labels.filter(isPlain), ...labels.filter((label) => !isPlain(label))];
}

function endpoint(address: string, port: number): FixedEndpoint {
  const octets = parseIpAddress(address);
  if (octets === undefined) throw new RangeError(`not an IP address: ${address}`);
  return new FixedEndpoint(address, port, octets);
}

const NOTHING = new Uint8Array(0);
