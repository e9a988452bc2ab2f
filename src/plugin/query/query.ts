/**
 * One query as a plugin sees it: a small view over the received octets. Header and question are read at once,
 * everything else when somebody asks.
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

/** What a query knows of the listener that received it. */
export interface Listener {
  /** The `server` label of metrics: `dns://:53`, `tls://127.0.0.1:853`. */
  readonly label: string;
  /** Codes of EDNS options that are sent back to a client of this listener as they came, unless the reply has an OPT of its own. */
  readonly echoedOptions: ReadonlySet<number>;
  /** Whether it denies names as RFC 9824 has it. */
  readonly deniesCompactly?: boolean;
  /** Milliseconds for which a connection of DNS over TCP or TLS may be silent. */
  readonly idleTimeout?: number | undefined;
  /** Runs a query through zone choice and chain once more (docs/spec/coredns-behaviour.md#internal-lookups). */
  resolve(query: Query): Outcome | Promise<Outcome>;
}

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
  /** Does what the plugin does after the rest of the chain; what goes wrong in it becomes a `Failure` of the plugin. */
  follow(after: (outcome: Outcome, query: Query) => Outcome, outcome: Outcome, query: Query): Outcome;
  /** The row that begins here. */
  readonly steps: LateSteps;
}

/** What plugins in a row do with a late outcome. It does not change, and is the same for all queries that go the same way. */
export interface LateSteps {
  /** The same, and that behind it. */
  with(link: ChainLink, after: (outcome: Outcome, query: Query) => Outcome): LateSteps;
  take(outcome: Outcome, query: Query): Outcome;
}

/** What few queries have is an object of its own: thousands may wait, and each hit makes one. */
export class Query extends QueryHead implements Asked {
  /** Length, {@link depth} and {@link Mark}s. */
  #marks: number;

  /** The query as the client sent it: this one, unless it was derived. */
  readonly root: Query;
  /** The query whose question this one has: itself, unless it was derived without changing the name's spelling. */
  readonly questionOwner: Query;

  /**
   * What waits for somebody else so that the client gets its answer. Of use on `root`.
   * @internal
   */
  waiter: Waiter | undefined;
  /**
   * The promise of the plugin that waits, which never rejects. The chain's own: see server/chain.
   * @internal
   */
  pending: Promise<Outcome> | undefined;
  /**
   * The link whose handler runs now. The chain's own as well: it spares a promise for each plugin that looks at late answers.
   * @internal
   */
  link: ChainLink | undefined;

  #name: Name | undefined;
  /** Of use on `root`: see {@link client}. */
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
   * A copy with changes, sharing client, deadline, trace and metadata with this one. Hand it to `next`: the chain gives the reply
   * this query's question back, so a plugin puts back only what it knows of the records.
   */
  derive(changes: QueryChanges): Query {
    return Query.#derive(this, changes, 0);
  }

  get length(): number {
    return this.#marks & 0xffff;
  }

  /** How many internal lookups led here. */
  get depth(): number {
    return (this.#marks >>> DEPTH_SHIFT) & DEPTH_BITS;
  }

  get listener(): Listener {
    return this.root.#arrival.listener;
  }

  get transport(): TransportName {
    return this.root.#arrival.transport;
  }

  /** `Clock.now()` at arrival, milliseconds. */
  get receivedAt(): number {
    return this.root.#arrival.receivedAt;
  }

  /** Who asks. The transport lends it until the handler returns; from {@link detach} on it stays, for derived queries too. */
  get client(): Endpoint {
    return this.root.#arrival.client;
  }

  /** The address asked. */
  get local(): Endpoint {
    return this.root.#arrival.local;
  }

  /** The client gets no answer any more, as too many waited: see {@link abandon}. True on `root` alone. */
  get isAbandoned(): boolean {
    return (this.#marks & Mark.ABANDONED) !== 0;
  }

  /** A question of this server to itself, such as the probe of `loop`: no client of it. True on `root` alone. */
  get isOwn(): boolean {
    return (this.#marks & Mark.OWN) !== 0;
  }

  /** @internal */
  markOwn(): void {
    this.root.#marks |= Mark.OWN;
  }

  /** A query with another question was derived from this one: the chain gives replies to that one this one's question. */
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

  /** `Clock.now()` after which nobody waits for an answer any more (cancel). */
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

  /** Present when somebody wants to know the way of this query. */
  get trace(): Trace | undefined {
    return this.#rare?.trace;
  }

  set trace(trace: Trace | undefined) {
    Query.#factsOf(this).trace = trace;
  }

  /** Present when somebody measures how long it stays in which plugin (`trace`). */
  get spans(): SpanSink | undefined {
    return this.#rare?.spans;
  }

  set spans(spans: SpanSink | undefined) {
    Query.#factsOf(this).spans = spans;
  }

  /** Values of `plugin/label`, present under the `metadata` plugin. A function is called when somebody asks. */
  get metadata(): Map<string, string | (() => string)> | undefined {
    return this.#rare?.metadata;
  }

  set metadata(values: Map<string, string | (() => string)> | undefined) {
    Query.#factsOf(this).metadata = values;
  }

  /** The key that signed it, once its signature has been found good (`tsig`). Of use on `root`. */
  get signer(): Name | undefined {
    return this.#rare?.signer;
  }

  set signer(key: Name | undefined) {
    Query.#factsOf(this).signer = key;
  }

  /** What looks at the finished octets of the reply, the first to be asked last. Of use on `root`: see {@link addSeal}. */
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

  get question(): Question {
    return { name: this.name, type: this.type, class: this.class };
  }

  /** Where the owner name of TSIG begins, -1 for a message without. Signatures of queries that were built anew are gone. */
  get tsigOffset(): number {
    return this.isSigned ? lastRecordOffset(this.bytes, this.length, this.nameEnd) : -1;
  }

  /** Codes of EDNS options that the client gets back as they came. */
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

  /** The octets of the message, for who sends it on. */
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

  /** True for what counts as TCP, which also may carry zone transfers (docs/spec/coredns-behaviour.md#replies). */
  get overStream(): boolean {
    return (
      this.transport === "tcp" ||
      this.transport === "tls" ||
      this.transport === "https" ||
      this.transport === "grpc"
    );
  }

  /** Whether a reply may be as long as a message can be, whatever EDNS says: over streams, and over QUIC (RFC 9250 section 4.2). */
  get takesLongReplies(): boolean {
    return this.overStream || this.transport === "quic" || this.transport === "https3";
  }

  /** An answer to this query: NOERROR without records unless said otherwise. */
  reply(content: ReplyContent = {}): Reply {
    return new Reply(this, content);
  }

  /**
   * Has `seal` see, or change, the finished octets of whatever the client is sent: replies, each message of a stream, and what the
   * server says for a failure. What was added last comes first, so that a plugin nearer to the client sees what others made.
   */
  addSeal(seal: MessageSeal): void {
    const facts = Query.#factsOf(this.root);
    if (facts.seals === undefined) facts.seals = [seal];
    else facts.seals.push(seal);
  }

  /** No answer of its own: the server says `rcode`, and `error` goes to the log. */
  fail(rcode: number = Rcode.SERVFAIL, error?: Error): Failure {
    return new Failure(rcode, error);
  }

  /**
   * Asks the same server again for another name and type of class IN, with the same client (docs/spec/coredns-behaviour.md#internal-lookups). More
   * than {@link MAX_LOOKUP_DEPTH} such lookups inside each other are refused with SERVFAIL.
   */
  lookup(name: Name, type: number): Outcome | Promise<Outcome> {
    if (this.depth >= MAX_LOOKUP_DEPTH) return this.fail(Rcode.SERVFAIL, new LookupDepthError(name));
    return this.listener.resolve(Query.#derive(this, { name, type, class: RecordClass.IN }, 1));
  }

  setMetadata(label: string, value: string | (() => string)): void {
    this.metadata?.set(label, value);
  }

  /** `undefined` for a label that nobody set or whose value is empty. */
  metadataValue(label: string): string | undefined {
    const value = this.metadata?.get(label);
    const text = typeof value === "function" ? value() : value;
    return text === "" ? undefined : text;
  }

  /**
   * Gives the query octets and endpoints of its own: the listener calls it before anything waits.
   * @param arrival one that stays as it is, where there is one already
   * @internal
   */
  detach(arrival?: Arrival): void {
    if ((this.#marks & Mark.SHARED) === 0) this.bytes = passingCopy(this.bytes, 0, this.length);
    this.#arrival = arrival ?? keptArrival(this.#arrival);
  }

  /**
   * Lets go of what can be read anew, for who waits for long.
   * @internal
   */
  shrink(): void {
    const { questionOwner } = this;
    this.#name = undefined;
    questionOwner.#name = undefined;
    if (this.#rare !== undefined) this.#rare.edns = undefined;
  }

  /**
   * Nobody wants the answer any more: what waits for it lets go, and nothing is asked anew. Without that the queries that a listener
   * gave up would go on to take memory for as long as an upstream is silent.
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
    // Another spelling is another question: 0x20 and rewrites to the case of a file rest on it.
    const sameName = name === undefined || isNamed(parent, name);
    if (!sameName) parent.#marks |= Mark.RENAMED;
    // Patching keeps what building anew does not know of, such as a signature.
    const sameLayout =
      !("edns" in changes) || (changes.edns !== undefined && changes.edns.options === parent.edns?.options);
    const bytes = !sameLayout
      ? rebuiltOctets(parent, changes)
      : sameName
        ? patchedOctets(parent, changes)
        : renamedOctets(parent, name, changes);
    // Where both have to last, one copy does.
    if (onlyFlags(changes) && parent.root === parent && !parent.isSigned) {
      parent.bytes = bytes;
      parent.#marks |= Mark.SHARED;
    }
    // What was patched or moved need not be read again.
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

  /** As the other one, not of the object: a class with private methods leaves a mark in each. */
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

/** Above length and depth. */
const Mark = {
  ABANDONED: 1 << 20,
  RENAMED: 1 << 21,
  /** Its octets are those of a query that was derived from it, which has other flags. */
  SHARED: 1 << 22,
  OWN: 1 << 23,
} as const;

function keptArrival({ listener, transport, client, local, receivedAt }: Arrival): Arrival {
  return { listener, transport, client: client.snapshot(), local: local.snapshot(), receivedAt };
}

/** Waits for somebody else on behalf of a client, and can stop. */
export interface Waiter {
  /** The outcome has to be {@link DROPPED}, and may come later. */
  abandon(): void;
}
