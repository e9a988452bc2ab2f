/**
 * Recent answers, with the queries that they answered. A query of the same octets gets the same answer without being
 * parsed, and without any plugin. This is far cheaper than the chain, and most queries of a cluster are repetitions.
 *
 * The plugin that answered decides which answers may be repeated, and for how long (`plugin/query/repetition.ts`). The
 * version of its data is compared each time, so every repeated answer is one that the plugin would give. The other
 * plugins review each answer, are informed of it later, or prevent it from being remembered.
 *
 * Memory is bounded (`repeat-room.ts`). A client that queries many names evicts other answers, which then take the way
 * through the chain.
 */
import { RunField } from "../../dns/address-runs.ts";
import type { EncodedSections } from "../../dns/encoded-sections.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import { FixedEndpoint, type TransportName } from "../../plugin/message/endpoint.ts";
import { answerKind } from "../../plugin/query/answer-kind.ts";
import { type Arrival, type Listener, Query } from "../../plugin/query/query.ts";
import type { AnswerBasis, AnswerSource, AnswerWitness } from "../../plugin/query/repetition.ts";
import type { Reply } from "../../plugin/query/reply.ts";
import type { QueryStream } from "../../plugin/stream/query-stream.ts";
import { REPEATED_OCTETS } from "../../transports/transport.ts";
import { hashOf, ID_BITS, NO_HASH, restBits } from "./message-words.ts";
import { RepeatRoom, SLOT_OCTETS, SLOTS } from "./repeat-room.ts";
import { shuffleRun, writeReply } from "./reply-writer.ts";
import type { RouteTable } from "./route-table.ts";

/** Each hash has one set with this many slots. */
const WAYS = 4;
const SETS = SLOTS / WAYS;
const SLOT_WORDS = SLOT_OCTETS / 4;

/** Words of a slot's head. */
const Head = {
  /** Milliseconds of `Clock.now()`, as a float of two words. */
  UNTIL: 0,
  /** Octets of the query; in the upper half those of the reply. */
  SIZES: 2,
  /** See `AnswerBasis`. */
  PLACE: 3,
  VALUE: 4,
  EPOCH: 5,
  /** Number of the {@link Origin}; then the rcode, and the `AnswerKind`. */
  ORIGIN: 6,
  /** 4 or 6, of the clients' addresses. */
  FAMILY: 7,
  /** How often the answer was repeated since the plugins were last informed. */
  TIMES: 8,
  /** 1 if the slot is in the list of those to report. */
  LISTED: 9,
  /** Addresses that are shuffled each time, 0 for none: see {@link Run}. */
  RUN: 10,
} as const;

/** Where each number of a run begins in {@link Head.RUN}. */
const Run = { FIRST: 0, STRIDE: 9, SIZE: 18, COUNT: 23 } as const;
const PLACE_BITS = 0x1ff;
const SIZE_BITS = 0x1f;

const HEAD_WORDS = 12;
const HEAD_OCTETS = 4 * HEAD_WORDS;
const ROOM = Math.min(SLOT_OCTETS - HEAD_OCTETS, REPEATED_OCTETS);
const HEADER_OCTETS = 12;
/** Milliseconds for which an answer is repeated without the chain, and within which plugins are informed. */
const LONGEST = 1_000;
/** Answers that are reported to plugins in one event-loop turn. */
const TOLD_IN_TURN = 256;
/** Answering plugins, times the sets of witnesses in front of them, in one configuration. */
const MAX_ORIGINS = 64;
const ORIGIN_BITS = 0xff;
const RCODE_SHIFT = 8;
const RCODE_BITS = 0xff;
const KIND_SHIFT = 16;
/**
 * An answer's entry is marked as used at the first and each eighth repetition in a second: often enough to stay
 * cached, and a mark is a cache miss of the processor.
 */
const MARKED_TIMES = 0x7;
const NOWHERE = -1;
const RCODE_NXDOMAIN = 3;

/** Shared by the answers of one plugin that have the same witnesses. */
interface Origin {
  readonly source: AnswerSource;
  readonly numbers: Int32Array;
  readonly witnesses: readonly AnswerWitness[];
  /** The witnesses that measure time. */
  readonly timed: readonly TimedWitness[];
  /** The witnesses that may refuse an answer to a client. */
  readonly gates: readonly GateWitness[];
  readonly plugin: string;
}

type TimedWitness = AnswerWitness & Required<Pick<AnswerWitness, "answeredAt">>;
type GateWitness = AnswerWitness & Required<Pick<AnswerWitness, "admits">>;

export interface RepeatedAnswersOptions {
  readonly listener: Listener;
  /** The transport of the queries. All of them have the same limits. */
  readonly transport: TransportName;
  readonly clock: Clock;
  /** 32 bits that an attacker cannot guess. */
  readonly seed: number;
  readonly stream: Pick<QueryStream, "ring">;
  /** Shared with the other listeners. */
  readonly room?: RepeatRoom | undefined;
}

export class RepeatedAnswers {
  readonly #listener: Listener;
  readonly #transport: TransportName;
  readonly #clock: Clock;
  readonly #seed: number;
  readonly #stream: Pick<QueryStream, "ring">;
  readonly #room: RepeatRoom;
  readonly #origins: Origin[] = [];
  /** Slots with repetitions to report. */
  readonly #listed = new Int32Array(SLOTS);
  #listedCount = 0;
  /** The hash of each slot. */
  #tags: Int32Array = NO_WORDS;
  /** Hashes of queries that were answered and not remembered, the latest of each set first. */
  #seen: Int32Array = NO_WORDS;
  #words: Int32Array = NO_WORDS;
  #floats: Float64Array = NO_FLOATS;
  #octets: Uint8Array = NO_OCTETS;
  #isReleased = false;
  /** The latest message: its place and its hash. */
  #lastWords: Int32Array = NO_WORDS;
  #lastAt = 0;
  #lastHash = NO_HASH;
  /** The state of the shuffle. It need not be secret: the order reveals nothing. */
  #shuffling: number;
  #timer: Timer | undefined;
  /** A second copy of a reply, to be remembered. */
  readonly #page = { octets: NO_OCTETS, buffer: (size: number): Uint8Array => this.#pageOf(size) };

  constructor({ listener, transport, clock, seed, stream, room }: RepeatedAnswersOptions) {
    this.#listener = listener;
    this.#transport = transport;
    this.#clock = clock;
    this.#seed = seed;
    this.#shuffling = seed | 1;
    this.#stream = stream;
    this.#room = room ?? new RepeatRoom();
  }

  /**
   * Answers a query, if the same one was answered recently: see `MessageReceiver.repeat`.
   * @param now when it arrived
   * @param names the client's address begins at the word `addressAt`
   */
  answer(
    message: Int32Array,
    at: number,
    length: number,
    family: 4 | 6,
    now: number,
    names: Int32Array,
    addressAt: number,
  ): number {
    if (length < HEADER_OCTETS || length > ROOM) {
      this.#lastHash = NO_HASH;
      return 0;
    }
    const hash = hashOf(message, at, length, family === 4 ? this.#seed : ~this.#seed);
    this.#lastWords = message;
    this.#lastAt = at;
    this.#lastHash = hash;
    const words = this.#words;
    if (words.length === 0) return 0;
    const head = this.#find(hash, message, at, length);
    if (head === NOWHERE) return 0;
    if (!(now < (this.#floats[head >> 1] as number))) return 0;
    const origin = this.#origins[(words[head + Head.ORIGIN] as number) & ORIGIN_BITS] as Origin;
    if (origin.numbers[words[head + Head.PLACE] as number] !== words[head + Head.VALUE]) return 0;
    if (origin.source.epoch !== words[head + Head.EPOCH]) return 0;
    if (family !== words[head + Head.FAMILY]) return 0;
    const { ring } = this.#stream;
    if (ring !== undefined && !ring.passesOver()) return 0;
    if (origin.gates.length > 0 && !this.#isAdmitted(head, origin, names, addressAt, now)) return 0;
    this.#count(head, origin, now);
    const run = words[head + Head.RUN] as number;
    if (run !== 0) this.#shuffle(4 * head + HEAD_OCTETS + ((length + 3) & ~3), run);
    const size = (words[head + Head.SIZES] as number) >>> 16;
    this.#write(head + HEAD_WORDS + ((length + 3) >> 2), size, message, at);
    return size;
  }

  /** Drops the latest message, so that its answer is not remembered. */
  forgetLast(): void {
    this.#lastHash = NO_HASH;
  }

  /** The slot of a query, whether its answer is still valid or not. */
  #find(hash: number, message: Int32Array, at: number, length: number): number {
    const tags = this.#tags;
    const first = (hash & (SETS - 1)) * WAYS;
    for (let slot = first; slot < first + WAYS; slot++)
      if (tags[slot] === hash && this.#isAbout(slot * SLOT_WORDS, message, at, length))
        return slot * SLOT_WORDS;
    return NOWHERE;
  }

  #isAbout(head: number, message: Int32Array, at: number, length: number): boolean {
    const words = this.#words;
    if (((words[head + Head.SIZES] as number) & 0xffff) !== length) return false;
    const start = head + HEAD_WORDS;
    if (((words[start] as number) ^ (message[at] as number)) & ~ID_BITS) return false;
    const last = length >> 2;
    for (let word = 1; word < last; word++) if (words[start + word] !== message[at + word]) return false;
    return (((words[start + last] as number) ^ (message[at + last] as number)) & restBits(length)) === 0;
  }

  /** Whether no plugin in front of the answering one objects. */
  #isAdmitted(head: number, { gates }: Origin, names: Int32Array, addressAt: number, now: number): boolean {
    const words = this.#words;
    const family = words[head + Head.FAMILY] === 4 ? 4 : 6;
    const kind = (words[head + Head.ORIGIN] as number) >>> KIND_SHIFT;
    const size = (words[head + Head.SIZES] as number) >>> 16;
    for (let index = 0; index < gates.length; index++)
      if ((gates[index] as GateWitness).admits(names, addressAt, family, kind, size, now) === false)
        return false;
    return true;
  }

  #count(head: number, { source, timed }: Origin, now: number): void {
    const words = this.#words;
    const times = words[head + Head.TIMES] as number;
    if ((times & MARKED_TIMES) === 0) source.given?.(words[head + Head.PLACE] as number);
    words[head + Head.TIMES] = times + 1;
    if (words[head + Head.LISTED] === 0) {
      words[head + Head.LISTED] = 1;
      this.#listed[this.#listedCount++] = head;
      this.#timer ??= this.#clock.after(LONGEST, this.#tellLater);
    }
    for (let index = 0; index < timed.length; index++) timed[index]?.answeredAt(now, this.#listener);
  }

  /** Shuffles in place: shuffling a random order again gives a random order. */
  #shuffle(start: number, run: number): void {
    this.#shuffling = shuffleRun(
      this.#octets,
      start + ((run >>> Run.FIRST) & PLACE_BITS),
      (run >>> Run.STRIDE) & PLACE_BITS,
      (run >>> Run.SIZE) & SIZE_BITS,
      run >>> Run.COUNT,
      this.#shuffling,
    );
  }

  /** Writes over the query, and keeps its id. */
  #write(from: number, size: number, message: Int32Array, at: number): void {
    const words = this.#words;
    message[at] = ((words[from] as number) & ~ID_BITS) | ((message[at] as number) & ID_BITS);
    const count = (size + 3) >> 2;
    for (let word = 1; word < count; word++) message[at + word] = words[from + word] as number;
  }

  /**
   * Remembers the answer to the latest query of {@link answer}, unless it is the first of its kind: a query that
   * comes once is not worth a slot. The message and the reply's records are still there.
   */
  note(query: Query, reply: Reply, routes: RouteTable): void {
    const { basis, plugin } = reply;
    const { length, receivedAt } = query;
    const hash = this.#lastHash;
    if (basis === undefined || plugin === undefined || hash === NO_HASH) return;
    const answerStart = HEAD_OCTETS + ((length + 3) & ~3);
    if (!routes.mayRepeat || !mayBeRepeated(query, reply) || answerStart + reply.size > SLOT_OCTETS) return;
    if (this.#words.length === 0 && !this.#claim()) return;
    const known = this.#find(hash, this.#lastWords, this.#lastAt, length);
    if (known === NOWHERE && !this.#wasSeen(hash)) return;
    const witnesses = routes.find(query)?.witnesses;
    if (witnesses === undefined) return;
    const size = writeReply(query, reply, this.#page);
    // A truncated reply would be counted with its full size.
    if (size !== reply.size) return;
    const facts = (reply.rcode << RCODE_SHIFT) | (answerKind(reply) << KIND_SHIFT);
    const origin = this.#originOf(basis, witnesses, plugin) | facts;
    const head = known === NOWHERE ? this.#claimSlot(hash) : known;
    const words = this.#words;
    const sizes = length | (size << 16);
    words[head + Head.RUN] = reply.shuffle === 0 ? 0 : runOf(reply.sections);
    if (
      words[head + Head.TIMES] !== 0 &&
      (words[head + Head.SIZES] !== sizes || words[head + Head.ORIGIN] !== origin)
    )
      this.#tell(head);
    this.#floats[head >> 1] = Math.min(basis.until, receivedAt + LONGEST);
    words[head + Head.SIZES] = sizes;
    words[head + Head.PLACE] = basis.place;
    words[head + Head.VALUE] = basis.value;
    words[head + Head.EPOCH] = basis.source.epoch;
    words[head + Head.ORIGIN] = origin;
    words[head + Head.FAMILY] = query.client.family;
    this.#octets.set(query.bytes.subarray(0, length), 4 * head + HEAD_OCTETS);
    this.#octets.set(this.#page.octets.subarray(0, size), 4 * head + answerStart);
  }

  /** Reports all repetitions to the plugins. */
  tell(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    while (this.#listedCount > 0) this.#tellOne();
  }

  /** Reports in portions, each in a turn of its own. */
  readonly #tellLater = (): void => {
    this.#timer = undefined;
    for (let told = 0; told < TOLD_IN_TURN && this.#listedCount > 0; told++) this.#tellOne();
    if (this.#listedCount > 0) this.#timer = this.#clock.after(0, this.#tellLater);
  };

  #tellOne(): void {
    const head = this.#listed[--this.#listedCount] as number;
    this.#words[head + Head.LISTED] = 0;
    this.#tell(head);
  }

  /** Reports everything and frees the memory, because the listener is about to close. Repeats nothing from then on. */
  release(): void {
    this.clear();
    if (this.#words.length > 0) this.#room.giveBack();
    this.#isReleased = true;
    this.#words = NO_WORDS;
    this.#floats = NO_FLOATS;
    this.#octets = NO_OCTETS;
    this.#tags = NO_WORDS;
    this.#seen = NO_WORDS;
  }

  /** Reports everything and drops the answers: other plugins answer from now on. */
  clear(): void {
    this.tell();
    this.#tags.fill(NO_HASH);
    this.#origins.length = 0;
  }

  #tell(head: number): void {
    const words = this.#words;
    const times = words[head + Head.TIMES] as number;
    const origin = this.#origins[(words[head + Head.ORIGIN] as number) & ORIGIN_BITS];
    if (times === 0 || origin === undefined) return;
    words[head + Head.TIMES] = 0;
    const sizes = words[head + Head.SIZES] as number;
    const length = sizes & 0xffff;
    const start = 4 * head + HEAD_OCTETS;
    const addressOctets = words[head + Head.FAMILY] === 4 ? 4 : 16;
    const octets = this.#octets.subarray(start, start + length);
    const query = Query.read(octets, length, this.#arrivalOf(addressOctets));
    if (query === undefined) return;
    const rcode = ((words[head + Head.ORIGIN] as number) >> RCODE_SHIFT) & RCODE_BITS;
    const repetition = { query, rcode, plugin: origin.plugin, size: sizes >>> 16, times };
    origin.source.repeated(repetition);
    for (const witness of origin.witnesses) witness.repeated(repetition);
  }

  #arrivalOf(addressOctets: number): Arrival {
    const nobody = new FixedEndpoint("", 0, new Uint8Array(addressOctets));
    return {
      listener: this.#listener,
      transport: this.#transport,
      client: nobody,
      local: nobody,
      receivedAt: this.#clock.turnTime(),
    };
  }

  /** Whether a query of the same hash came recently. Records the hash. */
  #wasSeen(hash: number): boolean {
    const seen = this.#seen;
    const first = (hash & (SETS - 1)) * WAYS;
    for (let at = first; at < first + WAYS; at++) if (seen[at] === hash) return true;
    seen.copyWithin(first + 1, first, first + WAYS - 1);
    seen[first] = hash;
    return false;
  }

  /** The slot of a set whose answer expires first. Its repetitions are reported. */
  #claimSlot(hash: number): number {
    const tags = this.#tags;
    const first = (hash & (SETS - 1)) * WAYS;
    let oldest = first;
    for (let slot = first; slot < first + WAYS; slot++) {
      if (tags[slot] === NO_HASH) {
        oldest = slot;
        break;
      }
      if (this.#untilOf(slot) < this.#untilOf(oldest)) oldest = slot;
    }
    const head = oldest * SLOT_WORDS;
    if (this.#words[head + Head.TIMES] !== 0) this.#tell(head);
    tags[oldest] = hash;
    return head;
  }

  #untilOf(slot: number): number {
    return this.#floats[(slot * SLOT_WORDS) >> 1] as number;
  }

  #originOf({ source, numbers }: AnswerBasis, witnesses: readonly AnswerWitness[], plugin: string): number {
    const found = this.#origins.findIndex(
      (known) =>
        known.source === source &&
        known.numbers === numbers &&
        known.witnesses === witnesses &&
        known.plugin === plugin,
    );
    if (found >= 0) return found;
    if (this.#origins.length === MAX_ORIGINS) this.clear();
    const [timed, gates] = [witnesses.filter(isTimed), witnesses.filter(isGate)];
    return this.#origins.push({ source, numbers, witnesses, timed, gates, plugin }) - 1;
  }

  #claim(): boolean {
    const buffer = this.#isReleased ? undefined : this.#room.take();
    if (buffer === undefined) return false;
    const end = SLOTS * SLOT_OCTETS;
    this.#words = new Int32Array(buffer, 0, end / 4);
    this.#floats = new Float64Array(buffer, 0, end / 8);
    this.#octets = new Uint8Array(buffer, 0, end);
    this.#tags = new Int32Array(buffer, end, SLOTS);
    this.#seen = new Int32Array(buffer, end + 4 * SLOTS, SLOTS);
    return true;
  }

  #pageOf(size: number): Uint8Array {
    if (this.#page.octets.length < size) this.#page.octets = new Uint8Array(Math.max(size, 1_232));
    return this.#page.octets;
  }
}

/** The only run of addresses of an answer, if it is shorter than {@link ROOM}. */
function runOf({ runTable }: EncodedSections): number {
  const number = (field: number) => runTable[field] ?? 0;
  return (
    (number(RunField.FIRST) << Run.FIRST) |
    (number(RunField.STRIDE) << Run.STRIDE) |
    (number(RunField.SIZE) << Run.SIZE) |
    (number(RunField.COUNT) << Run.COUNT)
  );
}

function isTimed(witness: AnswerWitness): witness is TimedWitness {
  return witness.answeredAt !== undefined;
}

function isGate(witness: AnswerWitness): witness is GateWitness {
  return witness.admits !== undefined;
}

function mayBeRepeated(query: Query, reply: Reply): boolean {
  if (query.seals !== undefined || query.isSigned) return false;
  if (reply.shuffle !== 0 && reply.sections.runCount !== 1) return false;
  return reply.rcode === 0 || reply.rcode === RCODE_NXDOMAIN;
}

const NO_WORDS = new Int32Array(0);
const NO_FLOATS = new Float64Array(0);
const NO_OCTETS = new Uint8Array(0);
