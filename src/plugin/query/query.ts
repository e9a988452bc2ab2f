/**
 * One query as a plugin sees it: a small view over the received octets. Header and question are read at once,
 * everything else on demand.
 */
import { type Edns, type EdnsOption, readOptions } from "../../dns/edns.ts";
import { decodeMessage, type Message, type Question } from "../../dns/message.ts";
import { Name } from "../../dns/name.ts";
import { Rcode, RecordClass } from "../../dns/numbers.ts";
import { copyOctets, octetAt, passingCopy, readU16, writeU16 } from "../../dns/octets.ts";
import { WireReader } from "../../dns/wire-reader.ts";
import type { Asked } from "../message/asked.ts";
import {
  isPlain,
  onlyFlags,
  patchedOctets,
  type QueryChanges,
  rebuiltOctets,
  renamedOctets,
} from "../message/derived-octets.ts";
import type { Endpoint, TransportName } from "../message/endpoint.ts";
import type { MessageSeal } from "../message/message-seal.ts";
import {
  hasSoundSubnets,
  lastRecordOffset,
  type MessageShape,
  optOffsetOf,
  readShape,
  shapeOf,
} from "../message/message-shape.ts";
import { QueryHead } from "../message/query-head.ts";
import { LookupDepthError, MAX_LOOKUP_DEPTH } from "./lookup-depth.ts";
import { Failure, type Outcome } from "./outcome.ts";
import { RareFacts } from "./rare-facts.ts";
import { Reply, type ReplyContent } from "./reply.ts";
import type { SpanSink, Trace } from "./trace.ts";

/** The listener of a query. */
export interface Listener {
  /** The `server` label of metrics: `dns://:53`, `tls://127.0.0.1:853`. */
  readonly label: string;
  /** Codes of EDNS options that are echoed to clients of this listener, unless the reply has an OPT of its own. */
  readonly echoedOptions: ReadonlySet<number>;
  /** Whether it sends compact denials (RFC 9824). */
  readonly deniesCompactly?: boolean;
  /** Milliseconds that a connection of DNS over TCP or TLS may be silent. */
  readonly idleTimeout?: number | undefined;
  /** Runs a query through zone choice and chain once more (docs/spec/coredns-behaviour.md#internal-lookups). */
  resolve(query: Query): Outcome | Promise<Outcome>;
}

/** How a query came in. */
export interface Arrival {
  readonly listener: Listener;
  readonly transport: TransportName;
  readonly client: Endpoint;
  readonly local: Endpoint;
  /** `Clock.now()` at arrival, milliseconds. */
  readonly receivedAt: number;
}

/** A plugin's place in a chain, while its handler runs. */
export interface ChainLink {
  /** Runs the plugin's step on an outcome of the rest of the chain; an exception becomes a `Failure` of the plugin. */
  follow(after: (outcome: Outcome, query: Query) => Outcome, outcome: Outcome, query: Query): Outcome;
  /** The row that begins here. */
  readonly steps: LateSteps;
}

/** The steps of consecutive plugins for a late outcome. Immutable, and shared by all queries that take the same way. */
export interface LateSteps {
  /** These steps with one more at the end. */
  with(link: ChainLink, after: (outcome: Outcome, query: Query) => Outcome): LateSteps;
  take(outcome: Outcome, query: Query): Outcome;
}

/** Rare facts are kept in an object of their own: thousands of queries may be pending, and each cache hit makes one. */
export class Query extends QueryHead implements Asked {
  /** Length, {@link depth} and {@link Mark}s. */
  #marks: number;

  /** The query as the client sent it: this one, unless it was derived. */
  readonly root: Query;
  /** The query whose question this one has: this one, unless it was derived without changing the name's spelling. */
  readonly questionOwner: Query;

  /** The operation that the client's answer waits for. Used on `root`. @internal */
  waiter: Waiter | undefined;
  /** The promise of the waiting plugin, which never rejects. Only the chain uses it: see server/chain. @internal */
  pending: Promise<Outcome> | undefined;
  /**
   * The link whose handler is running. Only the chain uses it: it saves a promise for each plugin that reviews late
   * answers.
   * @internal
   */
  link: ChainLink | undefined;

  #name: Name | undefined;
  /** Used on `root`: see {@link client}. */
  #arrival: Arrival;
  #rare: RareFacts | undefined;

  private constructor(
    bytes: Uint8Array,
    length: number,
    shape: MessageShape,
    arrival: Arrival,
    parent: Query | undefined,
    sameName: boolean,
    deeper: number,
  ) {
    super(bytes, shape);
    this.#arrival = arrival;
    this.#marks = length | (((parent === undefined ? 0 : parent.depth) + deeper) << DEPTH_SHIFT);
    this.root = parent === undefined ? this : parent.root;
    this.questionOwner = parent !== undefined && sameName ? parent.questionOwner : this;
    if (parent !== undefined) {
      if (parent.#rare !== undefined) this.#rare = parent.#rare.forDerived();
      if (sameName) this.#name = parent.#name;
    }
  }

  /**
   * Reads a message that passed admission.
   * @returns `undefined` when the body does not parse (FORMERR; docs/spec/coredns-behaviour.md#admission)
   * @internal
   */
  static read(bytes: Uint8Array, length: number, arrival: Arrival): Query | undefined {
    const shape = readShape(bytes, length);
    if (shape === undefined || !hasSoundSubnets(bytes, optOffsetOf(shape))) return undefined;
    return new Query(bytes, length, shape, arrival, undefined, false, 0);
  }

  /**
   * A copy with changes that shares client, deadline, trace and metadata with this query. Pass it to `next`: the
   * chain restores this query's question in the reply, so a plugin only has to restore the records that it knows.
   */
  derive(changes: QueryChanges): Query {
    return Query.#derive(this, changes, 0);
  }

  /** Octets of the message. */
  get length(): number {
    return this.#marks & 0xffff;
  }

  /** The nesting of internal lookups. */
  get depth(): number {
    return (this.#marks >>> DEPTH_SHIFT) & DEPTH_BITS;
  }

  /** The listener that the query came in on. */
  get listener(): Listener {
    return this.root.#arrival.listener;
  }

  /** How the query came: `udp`, `tcp`, `tls`, `https` and so on. */
  get transport(): TransportName {
    return this.root.#arrival.transport;
  }

  /** `Clock.now()` at arrival, milliseconds. */
  get receivedAt(): number {
    return this.root.#arrival.receivedAt;
  }

  /**
   * The client's address and port. The transport lends it until the handler returns; for a handler that waits, the
   * listener keeps a copy.
   */
  get client(): Endpoint {
    return this.root.#arrival.client;
  }

  /** The address that the query was sent to. */
  get local(): Endpoint {
    return this.root.#arrival.local;
  }

  /** The client gets no answer any more, because too many queries were pending. True on `root` only. */
  get isAbandoned(): boolean {
    return (this.#marks & Mark.ABANDONED) !== 0;
  }

  /** A query of the server itself, such as the probe of `loop`. True on `root` only. */
  get isOwn(): boolean {
    return (this.#marks & Mark.OWN) !== 0;
  }

  /** @internal */
  markOwn(): void {
    this.root.#marks |= Mark.OWN;
  }

  /** A query with another question was derived from this one: the chain restores this question in replies. */
  get wasRenamed(): boolean {
    return (this.#marks & Mark.RENAMED) !== 0;
  }

  /** Largest reply in octets that may be sent over UDP; plugins may lower it on `root` (bufsize). */
  get replyLimit(): number {
    return this.#rare === undefined ? 0xffff : this.#rare.replyLimit;
  }

  set replyLimit(octets: number) {
    Query.#factsOf(this).replyLimit = octets;
  }

  /** `Clock.now()` after which the answer is not needed any more (cancel). */
  get deadline(): number {
    return this.#rare === undefined ? Number.POSITIVE_INFINITY : this.#rare.deadline;
  }

  set deadline(time: number) {
    Query.#factsOf(this).deadline = time;
  }

  /** Name of the view that accepted the query, else empty. */
  get view(): string {
    return this.#rare === undefined ? "" : this.#rare.view;
  }

  set view(name: string) {
    if (name !== this.view) Query.#factsOf(this).view = name;
  }

  /** Present if the query's path is traced. */
  get trace(): Trace | undefined {
    return this.#rare?.trace;
  }

  set trace(trace: Trace | undefined) {
    Query.#factsOf(this).trace = trace;
  }

  /** Present if the time in each plugin is measured (`trace`). */
  get spans(): SpanSink | undefined {
    return this.#rare?.spans;
  }

  set spans(spans: SpanSink | undefined) {
    Query.#factsOf(this).spans = spans;
  }

  /** Values of `plugin/label`, present with the `metadata` plugin. A function is called on demand. */
  get metadata(): Map<string, string | (() => string)> | undefined {
    return this.#rare?.metadata;
  }

  set metadata(values: Map<string, string | (() => string)> | undefined) {
    Query.#factsOf(this).metadata = values;
  }

  /** The key of a valid signature (`tsig`). Used on `root`. */
  get signer(): Name | undefined {
    return this.#rare?.signer;
  }

  set signer(key: Name | undefined) {
    Query.#factsOf(this).signer = key;
  }

  /** Steps on the finished octets of the reply, run in reverse order. Used on `root`: see {@link addSeal}. */
  get seals(): readonly MessageSeal[] | undefined {
    return this.#rare?.seals;
  }

  /** The question's name in the client's spelling. Compare with `equals`, which ignores case. */
  get name(): Name {
    const { questionOwner } = this;
    this.#name ??=
      questionOwner === this
        ? Name.fromCheckedWire(copyOctets(this.bytes, 12, this.nameEnd))
        : questionOwner.name;
    return this.#name;
  }

  /** Name, type and class as one value. Reading {@link name}, {@link type} and {@link class} makes no object. */
  get question(): Question {
    return { name: this.name, type: this.type, class: this.class };
  }

  /** Offset of TSIG's owner name, -1 for a message without TSIG. Queries that were built anew have no signature. */
  get tsigOffset(): number {
    return this.isSigned ? lastRecordOffset(this.bytes, this.length, this.nameEnd) : -1;
  }

  /** Codes of EDNS options that are echoed to the client. */
  get echoedOptions(): ReadonlySet<number> {
    return this.listener.echoedOptions;
  }

  /** OPT with its options, decoded at the first call. */
  get edns(): Edns | undefined {
    if (this.optOffset < 0) return undefined;
    const facts = Query.#factsOf(this);
    facts.edns ??= {
      udpSize: readU16(this.bytes, this.optOffset + 2),
      version: this.ednsVersion,
      dnssecOk: this.dnssecOk,
      ...((octetAt(this.bytes, this.optOffset + 6) & 0x40) !== 0 && { compactOk: true }),
      options: optionsOf(this),
    };
    return facts.edns;
  }

  /** The octets of the message, for sending it on. */
  get packet(): Uint8Array {
    const octets = this.bytes.subarray(0, this.length);
    if ((this.#marks & Mark.SHARED) === 0) return octets;
    const own = new Uint8Array(octets);
    writeU16(own, 2, this.flags);
    return own;
  }

  /** The whole message as a value. Throws WireError when a record besides OPT is malformed. */
  decode(): Message {
    return decodeMessage(this.packet);
  }

  /**
   * Whether the transport counts as TCP, which may also carry zone transfers
   * (docs/spec/coredns-behaviour.md#replies).
   */
  get overStream(): boolean {
    return (
      this.transport === "tcp" ||
      this.transport === "tls" ||
      this.transport === "https" ||
      this.transport === "grpc"
    );
  }

  /** Whether a reply may have any length, whatever EDNS says: over streams, and over QUIC (RFC 9250 section 4.2). */
  get takesLongReplies(): boolean {
    return this.overStream || this.transport === "quic" || this.transport === "https3";
  }

  /** An answer to this query: NOERROR without records unless said otherwise. */
  reply(content: ReplyContent = {}): Reply {
    return new Reply(this, content);
  }

  /**
   * Makes `seal` read, or change, the finished octets of everything that is sent to the client: replies, each message
   * of a stream, and the server's reply for a failure. The last seal runs first, so a plugin nearer to the client
   * sees the changes of the others.
   */
  addSeal(seal: MessageSeal): void {
    const facts = Query.#factsOf(this.root);
    if (facts.seals === undefined) facts.seals = [seal];
    else facts.seals.push(seal);
  }

  /** Fails without a reply: the server answers with `rcode`, and logs `error`. */
  fail(rcode: number = Rcode.SERVFAIL, error?: Error): Failure {
    return new Failure(rcode, error);
  }

  /**
   * Looks up another name and type of class IN through the same server, for the same client
   * (docs/spec/coredns-behaviour.md#internal-lookups). Beyond a nesting of `MAX_LOOKUP_DEPTH` it fails with
   * SERVFAIL.
   */
  lookup(name: Name, type: number): Outcome | Promise<Outcome> {
    if (this.depth >= MAX_LOOKUP_DEPTH) return this.fail(Rcode.SERVFAIL, new LookupDepthError(name));
    return this.listener.resolve(Query.#derive(this, { name, type, class: RecordClass.IN }, 1));
  }

  /** Sets the value of a label `plugin/label`, or a function that is called when a plugin asks for it. Does nothing without the plugin `metadata`. */
  setMetadata(label: string, value: string | (() => string)): void {
    this.metadata?.set(label, value);
  }

  /** The value of a metadata label, such as `kubernetes/client-namespace`; `undefined` for one that is not set or empty. */
  metadataValue(label: string): string | undefined {
    const value = this.metadata?.get(label);
    const text = typeof value === "function" ? value() : value;
    return text === "" ? undefined : text;
  }

  /**
   * Gives the query its own octets and endpoints: the listener calls it before anything waits.
   * @param arrival a permanent one, if there is one already
   * @internal
   */
  detach(arrival?: Arrival): void {
    if ((this.#marks & Mark.SHARED) === 0) this.bytes = passingCopy(this.bytes, 0, this.length);
    this.#arrival = arrival ?? keptArrival(this.#arrival);
  }

  /** Drops data that can be read again, before a long wait. @internal */
  shrink(): void {
    const { questionOwner } = this;
    this.#name = undefined;
    questionOwner.#name = undefined;
    if (this.#rare !== undefined) this.#rare.edns = undefined;
  }

  /**
   * The answer is not needed any more: the waiting operation stops, and no new one begins. Otherwise queries that the
   * listener dropped would take memory for as long as an upstream is silent.
   * @internal
   */
  abandon(): void {
    const { root } = this;
    const { waiter } = root;
    root.#marks |= Mark.ABANDONED;
    root.waiter = undefined;
    waiter?.abandon();
  }

  static #derive(parent: Query, changes: QueryChanges, deeper: number): Query {
    const name = changes.name;
    // Another spelling is another question: 0x20 and rewrites to a file's case depend on it.
    const sameName = name === undefined || isNamed(parent, name);
    if (!sameName) parent.#marks |= Mark.RENAMED;
    // Patching keeps parts that rebuilding would lose, such as a signature.
    const sameLayout =
      !("edns" in changes) || (changes.edns !== undefined && changes.edns.options === parent.edns?.options);
    const bytes = !sameLayout
      ? rebuiltOctets(parent, changes)
      : sameName
        ? patchedOctets(parent, changes)
        : renamedOctets(parent, name, changes);
    // If both have to last, they can share one copy.
    if (onlyFlags(changes) && parent.root === parent && !parent.isSigned) {
      parent.bytes = bytes;
      parent.#marks |= Mark.SHARED;
    }
    // Patched or moved octets need not be parsed again.
    const isKnown = sameLayout && (sameName ? changes.unsigned !== true : isPlain(parent));
    const moved = sameName ? 0 : 12 + name.wire.length - parent.nameEnd;
    const shape = isKnown
      ? shapeOf(parent.nameEnd + moved, parent.optOffset < 0 ? -1 : parent.optOffset + moved, parent.isSigned)
      : readShape(bytes, bytes.length);
    if (shape === undefined) throw new RangeError("a derived query does not parse");
    const query = new Query(bytes, bytes.length, shape, parent, parent, sameName, deeper);
    if (!sameName) query.#name = name;
    return query;
  }

  /** Static, like the one above: a class with private methods adds a brand to each object. */
  static #factsOf(query: Query): RareFacts {
    query.#rare ??= new RareFacts();
    return query.#rare;
  }
}

function isNamed({ bytes, nameEnd }: Query, { wire }: Name): boolean {
  if (wire.length !== nameEnd - 12) return false;
  for (let at = 0; at < wire.length; at++) if (octetAt(wire, at) !== octetAt(bytes, 12 + at)) return false;
  return true;
}

function optionsOf({ bytes, length, optOffset }: Query): EdnsOption[] {
  const at = optOffset + 8;
  return readOptions(new WireReader(bytes, at + 2, length), readU16(bytes, at));
}

const DEPTH_SHIFT = 16;
const DEPTH_BITS = 0xf;

/** Bits above length and depth. */
const Mark = {
  ABANDONED: 1 << 20,
  RENAMED: 1 << 21,
  /** Its octets are shared with a derived query, which has other flags. */
  SHARED: 1 << 22,
  OWN: 1 << 23,
} as const;

function keptArrival({ listener, transport, client, local, receivedAt }: Arrival): Arrival {
  return { listener, transport, client: client.snapshot(), local: local.snapshot(), receivedAt };
}

/** An operation that waits on behalf of a client, and can stop. */
export interface Waiter {
  /** Its outcome must be {@link DROPPED}, and may come later. */
  abandon(): void;
}
