/** One listen address: takes messages from its transports and returns the answers. */
import { Opcode, opcodeOf, Rcode, RecordClass } from "../../dns/numbers.ts";
import { readU16 } from "../../dns/octets.ts";
import type { CounterSlot } from "../../lib/metrics/metric-slots.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { type LateFaults, LateOutcome } from "../../plugin/chain/late-outcome.ts";
import type { PluginInstance } from "../../plugin/contract/plugin-instance.ts";
import { ECHOED_OPTIONS } from "../../plugin/message/echoed-options.ts";
import { type Endpoint, FixedEndpoint, type TransportName } from "../../plugin/message/endpoint.ts";
import { mendMessage } from "../../plugin/message/message-shape.ts";
import { Failure, type Outcome, type ReplyStream } from "../../plugin/query/outcome.ts";
import { type Arrival, type Listener, Query } from "../../plugin/query/query.ts";
import type { Reply } from "../../plugin/query/reply.ts";
import { Bit } from "../../plugin/stream/query-ring.ts";
import type { QueryStream } from "../../plugin/stream/query-stream.ts";
import type { MessageReceiver, ReplyPort } from "../../transports/transport.ts";
import { Admission, admit, REJECTION_OCTETS, writeRejection } from "./admission.ts";
import type { InFlight } from "./in-flight.ts";
import type { RepeatRoom } from "./repeat-room.ts";
import { RepeatedAnswers } from "./repeated-answers.ts";
import { endStream, sendStream } from "./reply-stream.ts";
import { writeReply } from "./reply-writer.ts";
import type { RouteTable } from "./route-table.ts";
import { StreamTurns } from "./stream-turns.ts";
import {
  type WaitingEnds,
  WaitingOrigin,
  WaitingQueries,
  type WaitingQuery,
  type WaitingRoom,
} from "./waiting-queries.ts";

/** The service of a listener, replaced as a whole at start and reload. */
export interface ListenerService {
  readonly routes: RouteTable;
  /** Whether queries of other classes than IN go to the chains. */
  readonly allClasses: boolean;
  /** Whether a block accepts dynamic updates; elsewhere the opcode is NOTIMP before any plugin. */
  readonly takesUpdates?: boolean;
  /** Whether a block sends compact denials (RFC 9824). */
  readonly deniesCompactly?: boolean;
  /** Counts queries that match no block (`prometheus`). */
  readonly observer: PluginInstance | undefined;
  /** Codes of EDNS options that are echoed to clients; CoreDNS's list unless given. */
  readonly echoedOptions?: ReadonlySet<number>;
  /** Milliseconds that a connection may be silent (`timeouts`). */
  readonly idleTimeout?: number;
  /** Counts pending queries; the generation drains by it. */
  readonly inFlight: InFlight;
}

export interface ListenerCounters {
  /** Queries that were dropped because too many were pending, oldest first. */
  readonly shed: CounterSlot;
  /** Messages answered FORMERR or NOTIMP before any plugin saw them. */
  readonly rejected: CounterSlot;
  /** Queries with octets behind their last record, or fewer records than their header claims. */
  readonly irregular: CounterSlot;
  /** Messages dropped silently: too short, or replies. */
  readonly ignored: CounterSlot;
}

/** Pending queries of one listener. */
const MAX_WAITING = 10_000;

export class DnsListener implements Listener, LateFaults {
  readonly label: string;
  #service: ListenerService;
  readonly #repeated: RepeatedAnswers;
  readonly #clock: Clock;
  readonly #streamTurns: StreamTurns;
  readonly #counters: ListenerCounters;
  readonly #onError: (error: unknown) => void;
  readonly #waiting: WaitingQueries;
  readonly #ends: WaitingEnds = {
    givenUp: (waiting) => this.#giveUp(waiting),
    settled: (waiting, outcome) => this.#answerLate(waiting, outcome),
  };
  /** Of the latest queries. */
  #origin: WaitingOrigin | undefined;
  readonly #finished: Pick<QueryStream, "ring">;

  constructor(options: {
    label: string;
    service: ListenerService;
    clock: Clock;
    counters: ListenerCounters;
    onError: (error: unknown) => void;
    maxWaiting?: number;
    /** Shared with the other listeners. */
    room?: WaitingRoom | undefined;
    /** The ring that finished queries are written to while it has a reader. */
    stream?: Pick<QueryStream, "ring"> | undefined;
    /** 32 bits that an attacker cannot guess. */
    seed?: number;
    /** Shared with the other listeners. */
    repeatRoom?: RepeatRoom;
  }) {
    this.label = options.label;
    this.#service = options.service;
    this.#clock = options.clock;
    this.#streamTurns = new StreamTurns(options.clock);
    this.#counters = options.counters;
    this.#onError = options.onError;
    this.#finished = options.stream ?? NOT_WRITTEN;
    this.#waiting = new WaitingQueries(options.maxWaiting ?? MAX_WAITING, options.room, options.seed);
    this.#repeated = new RepeatedAnswers({
      listener: this,
      transport: "udp",
      clock: options.clock,
      seed: options.seed ?? 0,
      stream: this.#finished,
      room: options.repeatRoom,
    });
  }

  get service(): ListenerService {
    return this.#service;
  }

  set service(service: ListenerService) {
    this.#service = service;
    this.#repeated.clear();
  }

  /** Called before the listener closes: the last answers come from the chain. */
  retire(): void {
    this.#repeated.release();
  }

  /** Makes plugins count the repeated answers. */
  countRepeated(): void {
    this.#repeated.tell();
  }

  /** Pending queries. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Drops the query that has been pending for the longest. */
  giveUpOldest(): void {
    this.#waiting.giveUpOldest();
  }

  set maxWaiting(limit: number) {
    this.#waiting.limit = limit;
  }

  get deniesCompactly(): boolean {
    return this.service.deniesCompactly === true;
  }

  get echoedOptions(): ReadonlySet<number> {
    return this.service.echoedOptions ?? ECHOED_OPTIONS;
  }

  get idleTimeout(): number | undefined {
    return this.service.idleTimeout;
  }

  /** The receiver for one transport of this listener. */
  receiver(transport: TransportName): MessageReceiver {
    // One object for all messages: a query copies the fields it needs.
    const arrival = new MessageArrival(this, transport);
    // Over streams clients seldom repeat a query, and the size limits differ.
    const repeated = transport === "udp" ? this.#repeated : undefined;
    return {
      receive: (bytes, length, port, together) => {
        try {
          if (together !== true) arrival.receivedAt = this.#clock.now();
          arrival.client = port.client;
          arrival.local = port.local;
          this.#receive(bytes, length, port, arrival);
        } catch (error) {
          this.#onError(error);
          port.drop();
        }
        repeated?.forgetLast();
      },
      repeat:
        repeated &&
        ((words, at, length, family, together, names, addressAt) => {
          if (!together) arrival.receivedAt = this.#clock.now();
          try {
            return repeated.answer(words, at, length, family, arrival.receivedAt, names, addressAt);
          } catch (error) {
            this.#onError(error);
            return 0;
          }
        }),
    };
  }

  /** Answers a query that came without a socket: in-process, for tests and tools. */
  ask(query: Query): Outcome | Promise<Outcome> {
    return this.#process(query);
  }

  resolve(query: Query): Outcome | Promise<Outcome> {
    const { service } = this;
    const route = service.routes.find(query);
    if (route?.chain !== undefined) return route.chain(query);
    const refused = new Failure(Rcode.REFUSED);
    service.observer?.unrouted?.(query, refused);
    return refused;
  }

  #receive(bytes: Uint8Array, length: number, port: ReplyPort, arrival: Arrival): void {
    const verdict = admit(bytes, length, this.service.takesUpdates);
    if (verdict !== Admission.ACCEPT) {
      this.#reject(verdict, bytes, port);
      return;
    }
    const query = Query.read(bytes, length, arrival);
    if (query === undefined) this.#receiveIrregular(bytes, length, port, arrival);
    else this.#answer(query, port);
  }

  /** Repairs a message that does not parse, and tries again. */
  #receiveIrregular(bytes: Uint8Array, length: number, port: ReplyPort, arrival: Arrival): void {
    const mended = opcodeOf(readU16(bytes, 2)) === Opcode.UPDATE ? undefined : mendMessage(bytes, length);
    const query = mended && Query.read(bytes, mended.length, arrival);
    if (query === undefined) {
      this.#reject(Admission.FORMAT_ERROR, bytes, port);
    } else if (mended?.hadSecondOpt === true) {
      this.#counters.rejected.increment();
      this.#send(query, new Failure(Rcode.FORMERR), port, false);
    } else {
      this.#counters.irregular.increment();
      this.#answer(query, port);
    }
  }

  #process(query: Query): Outcome | Promise<Outcome> {
    if (query.class !== RecordClass.IN && !this.service.allClasses) {
      const refused = new Failure(Rcode.REFUSED);
      this.service.observer?.unrouted?.(query, refused);
      return refused;
    }
    if (query.ednsVersion !== 0) return query.reply({ rcode: Rcode.BADVERS });
    return query.opcode === Opcode.UPDATE ? this.#update(query) : this.resolve(query);
  }

  /**
   * Most plugins would take an update for a query for the zone's SOA record, so only plugins that handle updates see
   * it.
   */
  #update(query: Query): Outcome | Promise<Outcome> {
    const chain = this.service.routes.find(query)?.updateChain;
    return chain === undefined ? new Failure(Rcode.NOTIMP) : chain(query);
  }

  #answer(query: Query, port: ReplyPort): void {
    let outcome: Outcome | Promise<Outcome>;
    try {
      outcome = this.#process(query);
    } catch (error) {
      this.#onError(error);
      outcome = new Failure(Rcode.SERVFAIL);
    }
    if (!(outcome instanceof Promise)) {
      if (outcome.kind !== "stream") this.#send(query, outcome, port, false);
      else {
        // From here on the transport may reuse its buffer.
        const kept = port.keep();
        query.detach();
        this.#stream(query, outcome, kept);
      }
      return;
    }
    const { inFlight } = this.service;
    inFlight.enter();
    const waiting = this.#waiting.add(query, port.keep(), this.#originOf(query, inFlight));
    query.detach(waiting);
    LateOutcome.of(query, outcome, this).follow(waiting);
  }

  #originOf({ transport, receivedAt }: Query, inFlight: InFlight): WaitingOrigin {
    if (
      this.#origin?.transport !== transport ||
      this.#origin.inFlight !== inFlight ||
      !this.#origin.isNear(receivedAt)
    )
      this.#origin = new WaitingOrigin({ listener: this, transport, receivedAt }, inFlight, this.#ends);
    return this.#origin;
  }

  /** The chain never rejects. */
  panicked(error: unknown): Outcome {
    this.#onError(error);
    return new Failure(Rcode.SERVFAIL);
  }

  #giveUp({ query, port }: WaitingQuery): void {
    this.#counters.shed.increment();
    this.#finished.ring?.record(query, undefined, 0, true, Bit.SHED);
    port.drop();
    query.abandon();
  }

  #answerLate(waiting: WaitingQuery, outcome: Outcome): void {
    try {
      const waits = this.#waiting.remove(waiting);
      if (outcome.kind === "stream") {
        if (waits) this.#stream(waiting.query, outcome, waiting.port);
        else void endStream(outcome);
      } else if (waits) this.#send(waiting.query, outcome, waiting.port, true);
      else if (outcome.kind === "reply") outcome.release();
    } catch (error) {
      // An error here must not reach the caller, which has other outcomes to deliver.
      this.#onError(error);
    }
    waiting.origin.inFlight.leave();
  }

  #stream(query: Query, stream: ReplyStream, port: ReplyPort): void {
    const { inFlight } = this.service;
    inFlight.enter();
    const answered = query.reply({ rcode: stream.rcode });
    answered.plugin = stream.plugin;
    void sendStream(query, stream, port, this.#streamTurns).then((error) => {
      this.#finished.ring?.record(query, answered, Math.min(stream.sentOctets, 0xffff), true);
      if (error !== undefined) this.#onError(error);
      inFlight.leave();
    });
  }

  /** @param waited whether the query is answered in a later event-loop turn than it arrived */
  #send(query: Query, outcome: Exclude<Outcome, ReplyStream>, port: ReplyPort, waited: boolean): void {
    if (outcome.kind === "dropped") {
      this.#finished.ring?.record(query, undefined, 0, waited);
      port.drop();
      return;
    }
    let reply: Reply;
    if (outcome.kind === "reply") reply = outcome;
    else {
      reply = query.reply({ rcode: outcome.rcode });
      reply.plugin = outcome.plugin;
    }
    try {
      this.#write(query, reply, port, waited);
      return;
    } catch (error) {
      // Records that cannot be written (malformed RDATA that was decoded, or a plugin's mistake) cost this answer
      // only.
      this.#onError(error);
    }
    try {
      this.#write(query, query.reply({ rcode: Rcode.SERVFAIL }), port, waited);
    } catch (error) {
      // The error reply cannot be sent either, for example to port 0. Nothing above would catch this error, as it may
      // come from a promise.
      this.#onError(error);
      port.drop();
    }
  }

  #write(query: Query, reply: Reply, port: ReplyPort, waited: boolean): void {
    const length = writeReply(query, reply, port);
    port.describe?.(reply);
    this.#finished.ring?.record(query, reply, length, waited);
    port.send(length);
    if (!waited && reply.basis !== undefined && query.transport === "udp")
      this.#repeated.note(query, reply, this.#service.routes);
    reply.release();
  }

  #reject(verdict: (typeof Admission)[keyof typeof Admission], bytes: Uint8Array, port: ReplyPort): void {
    if (verdict === Admission.IGNORE) {
      this.#counters.ignored.increment();
      port.drop();
      return;
    }
    this.#counters.rejected.increment();
    if (port.reject === undefined) port.send(writeRejection(bytes, verdict, port.buffer(REJECTION_OCTETS)));
    else port.reject(verdict === Admission.NOT_IMPLEMENTED ? "not-implemented" : "malformed");
  }
}

class MessageArrival implements Arrival {
  readonly listener: Listener;
  readonly transport: TransportName;
  client: Endpoint = NOWHERE;
  local: Endpoint = NOWHERE;
  receivedAt = 0;

  constructor(listener: Listener, transport: TransportName) {
    this.listener = listener;
    this.transport = transport;
  }
}

const NOT_WRITTEN: Pick<QueryStream, "ring"> = Object.freeze({ ring: undefined });

const NOWHERE: Endpoint = new FixedEndpoint("::", 0, new Uint8Array(16));
