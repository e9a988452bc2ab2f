/**
 * One query as a plugin sees it: a small view over the received octets. Header and question are read at once,
 * everything else when somebody asks.
 */
import { type Edns, type EdnsOption, OPT_FIXED_OCTETS, readOptions, writeOpt } from "../dns/edns.ts";
import { decodeMessage, type Message, type Question } from "../dns/message.ts";
import { Name } from "../dns/name.ts";
import { Flag, opcodeOf, Rcode, RecordClass } from "../dns/numbers.ts";
import { copyOctets, octetAt, readU16, readU32, writeU16 } from "../dns/octets.ts";
import { RecordType } from "../dns/type-names.ts";
import { WireError, WireReader } from "../dns/wire-reader.ts";
import { WireWriter } from "../dns/wire-writer.ts";
import type { ChainLink } from "./handler.ts";
import { Failure, type Outcome } from "./outcome.ts";
import { Reply, type ReplyContent } from "./reply.ts";
import type { Trace } from "./trace.ts";

/** How a query came in: this decides framing and size limits, and is the `{proto}` of logs. */
export type TransportName = "udp" | "tcp" | "tls" | "https" | "https3" | "quic" | "grpc";

/** One end of the conversation. Transports may reuse the object, so {@link Query.detach} takes a copy. */
export interface Endpoint {
  /** IP address as text, without zone index. */
  readonly address: string;
  readonly port: number;
  readonly family: 4 | 6;
  /** The address as octets, 4 or 16. */
  readonly octets: Uint8Array;
  /** An endpoint that stays as it is. */
  snapshot(): Endpoint;
}

/** What a query knows of the listener that received it. */
export interface Listener {
  /** The `server` label of metrics: `dns://:53`, `tls://127.0.0.1:853`. */
  readonly label: string;
  /** Runs a query through zone choice and chain once more (CoreDNS facts 1.18). */
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

/** What may differ in a query derived from another one. */
export interface QueryChanges {
  readonly name?: Name;
  readonly type?: number;
  readonly class?: number;
  /** The second header word: opcode and flags. */
  readonly flags?: number;
  /** Replaces OPT, or drops it (`undefined` given). */
  readonly edns?: Edns | undefined;
}

export class Query {
  /** The message; only the first `length` octets count. Valid until the handler returns, or as long as it likes after {@link detach}. */
  bytes: Uint8Array;
  readonly length: number;
  readonly id: number;
  /** The second header word: QR, opcode, flags, rcode. */
  readonly flags: number;
  readonly type: number;
  readonly class: number;
  /** End of the question's name, root octet included; it begins at octet 12. */
  readonly nameEnd: number;
  /** Where the type of OPT stands, -1 when the client sent none. */
  readonly optOffset: number;

  readonly listener: Listener;
  readonly transport: TransportName;
  client: Endpoint;
  local: Endpoint;
  readonly receivedAt: number;

  /** The query as the client sent it: this one, unless it was derived. */
  readonly root: Query;
  /** The query whose question this one has: itself, unless it was derived without changing the name. */
  readonly questionOwner: Query;
  /** How many internal lookups led here. */
  readonly depth: number;

  /** Largest reply in octets that may be sent over UDP; plugins may lower it on `root` (bufsize). */
  replyLimit: number = 0xffff;
  /** `Clock.now()` after which nobody waits for an answer any more (cancel). */
  deadline: number = Number.POSITIVE_INFINITY;
  /** Name of the view that accepted the query, else empty. */
  view = "";
  /** Present when somebody wants to know the way of this query. */
  trace: Trace | undefined;
  /** Values of `plugin/label`, present under the `metadata` plugin. A function is called when somebody asks. */
  metadata: Map<string, string | (() => string)> | undefined;
  /** What waits for somebody else so that the client gets its answer. Of use on `root`. */
  waiter: Waiter | undefined;
  /** The client gets no answer any more, as too many waited: see {@link abandon}. True on `root` alone. */
  isAbandoned = false;
  /** The promise of the plugin that waits, which never rejects. The chain's own: see server/chain. */
  pending: Promise<Outcome> | undefined;
  /** The link whose handler runs now. The chain's own as well: it spares a promise for each plugin that looks at late answers. */
  link: ChainLink | undefined;

  #name: Name | undefined;
  #edns: Edns | undefined;

  private constructor(
    bytes: Uint8Array,
    length: number,
    shape: QueryShape,
    arrival: Arrival,
    parent: Query | undefined,
    sameName: boolean,
    deeper: number,
  ) {
    this.bytes = bytes;
    this.length = length;
    this.id = readU16(bytes, 0);
    this.flags = readU16(bytes, 2);
    const nameEnd = shape & ((1 << NAME_END_BITS) - 1);
    this.nameEnd = nameEnd;
    this.type = readU16(bytes, nameEnd);
    this.class = readU16(bytes, nameEnd + 2);
    this.optOffset = (shape >>> NAME_END_BITS) - 1;
    this.listener = arrival.listener;
    this.transport = arrival.transport;
    // A derived query outlives the moment in which a transport lends its endpoints.
    this.client = parent === undefined ? arrival.client : arrival.client.snapshot();
    this.local = parent === undefined ? arrival.local : arrival.local.snapshot();
    this.receivedAt = arrival.receivedAt;
    this.root = parent === undefined ? this : parent.root;
    this.questionOwner = parent !== undefined && sameName ? parent.questionOwner : this;
    this.depth = (parent === undefined ? 0 : parent.depth) + deeper;
    if (parent !== undefined) {
      this.deadline = parent.deadline;
      this.view = parent.view;
      this.trace = parent.trace;
      this.metadata = parent.metadata;
      if (sameName) this.#name = parent.#name;
    }
  }

  /**
   * Reads a message that passed admission.
   * @returns `undefined` when the body does not parse (FORMERR, CoreDNS facts 1.12)
   */
  static read(bytes: Uint8Array, length: number, arrival: Arrival): Query | undefined {
    const shape = readShape(bytes, length);
    return shape === undefined ? undefined : new Query(bytes, length, shape, arrival, undefined, false, 0);
  }

  /** A copy with changes, sharing client, deadline, trace and metadata with this one. */
  derive(changes: QueryChanges): Query {
    return this.#derive(changes, 0);
  }

  /** Ends of the question section and of the octets that every reply repeats. */
  get questionEnd(): number {
    return this.nameEnd + 4;
  }

  /** The question's name in the client's spelling. Compare with `equals`, which ignores case. */
  get name(): Name {
    this.#name ??= Name.fromCheckedWire(copyOctets(this.bytes, 12, this.nameEnd));
    return this.#name;
  }

  get question(): Question {
    return { name: this.name, type: this.type, class: this.class };
  }

  get opcode(): number {
    return opcodeOf(this.flags);
  }

  get hasEdns(): boolean {
    return this.optOffset >= 0;
  }

  /** UDP payload size that the client advertises, 512 without OPT (RFC 6891 section 6.2.5). */
  get udpSize(): number {
    return this.optOffset < 0 ? 512 : Math.max(512, readU16(this.bytes, this.optOffset + 2));
  }

  get dnssecOk(): boolean {
    return this.optOffset >= 0 && (octetAt(this.bytes, this.optOffset + 6) & 0x80) !== 0;
  }

  get ednsVersion(): number {
    return this.optOffset < 0 ? 0 : octetAt(this.bytes, this.optOffset + 5);
  }

  get recursionDesired(): boolean {
    return (this.flags & Flag.RD) !== 0;
  }

  get checkingDisabled(): boolean {
    return (this.flags & Flag.CD) !== 0;
  }

  get authenticData(): boolean {
    return (this.flags & Flag.AD) !== 0;
  }

  /** OPT with its options, decoded at the first call. */
  get edns(): Edns | undefined {
    if (this.optOffset < 0) return undefined;
    this.#edns ??= {
      udpSize: readU16(this.bytes, this.optOffset + 2),
      version: this.ednsVersion,
      dnssecOk: this.dnssecOk,
      options: this.#options(),
    };
    return this.#edns;
  }

  /** The octets of the message, for who sends it on. */
  get packet(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }

  /**
   * The whole message as a value.
   * @throws WireError when a record besides OPT is malformed
   */
  decode(): Message {
    return decodeMessage(this.packet);
  }

  /** True for transports without size limit, which also may carry zone transfers (CoreDNS facts 1.15). */
  get overStream(): boolean {
    return (
      this.transport === "tcp" ||
      this.transport === "tls" ||
      this.transport === "https" ||
      this.transport === "grpc"
    );
  }

  /** An answer to this query: NOERROR without records unless said otherwise. */
  reply(content: ReplyContent = {}): Reply {
    return new Reply(this, content);
  }

  /** No answer of its own: the server says `rcode`, and `error` goes to the log. */
  fail(rcode: number = Rcode.SERVFAIL, error?: Error): Failure {
    return new Failure(rcode, error);
  }

  /**
   * Asks the same server again for another name and type of class IN, with the same client (CoreDNS facts 1.18). More
   * than {@link MAX_LOOKUP_DEPTH} such lookups inside each other are refused with SERVFAIL.
   */
  lookup(name: Name, type: number): Outcome | Promise<Outcome> {
    if (this.depth >= MAX_LOOKUP_DEPTH) return this.fail(Rcode.SERVFAIL, new LookupDepthError(name));
    return this.listener.resolve(this.#derive({ name, type, class: RecordClass.IN }, 1));
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
   * @param client an endpoint that stays as it is, where there is one already
   */
  detach(client?: Endpoint): void {
    this.bytes = copyOctets(this.bytes, 0, this.length);
    this.client = client ?? this.client.snapshot();
    this.local = this.local.snapshot();
  }

  /**
   * Nobody wants the answer any more: what waits for it lets go, and nothing is asked anew. Without that the queries that a listener
   * gave up would go on to take memory for as long as an upstream is silent.
   */
  abandon(): void {
    const { root } = this;
    const { waiter } = root;
    root.isAbandoned = true;
    root.waiter = undefined;
    waiter?.abandon();
  }

  #derive(changes: QueryChanges, deeper: number): Query {
    const name = changes.name;
    const sameName = name === undefined || name.equals(this.name);
    // Patching keeps what building anew does not know of, such as a signature.
    const sameLayout =
      !("edns" in changes) || (changes.edns !== undefined && changes.edns.options === this.edns?.options);
    const bytes = sameName && sameLayout ? this.#patched(changes) : this.#rebuilt(changes);
    const shape = readShape(bytes, bytes.length);
    if (shape === undefined) throw new RangeError("a derived query does not parse");
    return new Query(bytes, bytes.length, shape, this, this, sameName, deeper);
  }

  #options(): EdnsOption[] {
    const at = this.optOffset + 8;
    const reader = new WireReader(this.bytes, at + 2, this.length);
    return readOptions(reader, readU16(this.bytes, at));
  }

  #patched(changes: QueryChanges): Uint8Array {
    const bytes = copyOctets(this.bytes, 0, this.length);
    if (changes.flags !== undefined) writeU16(bytes, 2, changes.flags);
    if (changes.type !== undefined) writeU16(bytes, this.nameEnd, changes.type);
    if (changes.class !== undefined) writeU16(bytes, this.nameEnd + 2, changes.class);
    if (changes.edns !== undefined) {
      writeU16(bytes, this.optOffset + 2, changes.edns.udpSize);
      bytes[this.optOffset + 5] = changes.edns.version;
      bytes[this.optOffset + 6] = changes.edns.dnssecOk ? 0x80 : 0;
    }
    return bytes;
  }

  #rebuilt(changes: QueryChanges): Uint8Array {
    const edns = "edns" in changes ? changes.edns : this.edns;
    const writer = new WireWriter({ capacity: 128 });
    writer.u16(this.id);
    writer.u16(changes.flags ?? this.flags);
    writer.u16(1);
    writer.u32(0);
    writer.u16(edns === undefined ? 0 : 1);
    writer.name(changes.name ?? this.name);
    writer.u16(changes.type ?? this.type);
    writer.u16(changes.class ?? this.class);
    if (edns !== undefined) writeOpt(writer, edns, 0);
    return writer.finish().slice();
  }
}

/** Waits for somebody else on behalf of a client, and can stop. */
export interface Waiter {
  /** The outcome has to be {@link DROPPED}, and may come later. */
  abandon(): void;
}

/** Internal lookups inside each other; the zone engine of CoreDNS stops at the same number (facts 1.18). */
export const MAX_LOOKUP_DEPTH = 8;

export class LookupDepthError extends Error {
  override readonly name = "LookupDepthError";
  readonly target: Name;

  constructor(target: Name) {
    super(`more than ${MAX_LOOKUP_DEPTH} internal lookups inside each other, the last for ${target}`);
    this.target = target;
  }
}

/** An endpoint that does not change. */
export class FixedEndpoint implements Endpoint {
  readonly address: string;
  readonly port: number;
  readonly octets: Uint8Array;

  constructor(address: string, port: number, octets: Uint8Array) {
    this.address = address;
    this.port = port;
    this.octets = octets;
  }

  get family(): 4 | 6 {
    return this.octets.length === 4 ? 4 : 6;
  }

  snapshot(): Endpoint {
    return this;
  }
}

/**
 * Where the question's name ends and where OPT stands: two numbers in one, as an object would be the third that every query
 * costs. The upper part is 0 for a query without OPT.
 */
type QueryShape = number;

function shapeOf(nameEnd: number, optOffset: number): QueryShape {
  return ((optOffset + 1) << NAME_END_BITS) | nameEnd;
}

/** A name ends at octet 267 at the latest. */
const NAME_END_BITS = 9;

/** Finds question and OPT, and checks that the rest of the message parses. */
function readShape(bytes: Uint8Array, length: number): QueryShape | undefined {
  let at = 12;
  for (;;) {
    if (at >= length) return undefined;
    const octet = octetAt(bytes, at);
    if (octet === 0) break;
    if (octet > 63) return undefined;
    at += octet + 1;
  }
  const nameEnd = at + 1;
  const questionEnd = nameEnd + 4;
  if (nameEnd - 12 > 255 || questionEnd > length) return undefined;
  if (length === questionEnd) return countsAfterQuestion(bytes) === 0 ? shapeOf(nameEnd, -1) : undefined;
  // The usual query has nothing behind its question but OPT: told without a reader.
  if (
    readU32(bytes, 6) === 0 &&
    readU16(bytes, 10) === 1 &&
    length >= questionEnd + OPT_FIXED_OCTETS &&
    octetAt(bytes, questionEnd) === 0 &&
    readU16(bytes, questionEnd + 1) === RecordType.OPT &&
    questionEnd + OPT_FIXED_OCTETS + readU16(bytes, questionEnd + 9) === length &&
    optionsFit(bytes, questionEnd + OPT_FIXED_OCTETS, length)
  ) {
    return shapeOf(nameEnd, questionEnd + 1);
  }
  return readUnusualShape(bytes, length, nameEnd);
}

function countsAfterQuestion(bytes: Uint8Array): number {
  return readU16(bytes, 6) + readU16(bytes, 8) + readU16(bytes, 10);
}

function optionsFit(bytes: Uint8Array, start: number, end: number): boolean {
  let at = start;
  while (at + 4 <= end) at += 4 + readU16(bytes, at + 2);
  return at === end;
}

function readUnusualShape(bytes: Uint8Array, length: number, nameEnd: number): QueryShape | undefined {
  try {
    decodeMessage(bytes.subarray(0, length));
    const reader = new WireReader(bytes, nameEnd + 4, length);
    let optOffset = -1;
    for (let count = countsAfterQuestion(bytes); count > 0; count--) {
      reader.skipName();
      if (readU16(bytes, reader.offset) === RecordType.OPT) optOffset = reader.offset;
      reader.skip(8);
      reader.skip(reader.u16());
    }
    return shapeOf(nameEnd, optOffset);
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}
