/**
 * Answers that were given a moment ago, with the queries to which they were given. A query of the same octets gets the same answer without being read, and
 * without any plugin: a hit costs a third of what it costs through the chain. Most queries of a cluster are such repetitions.
 *
 * What may be given again, and for how long, the plugin says that answered (`plugin/query/repetition.ts`): the number on which the answer rests is compared each
 * time, so nothing is given that the plugin would not give. All others look at each answer, or hear of it later, or keep answers from being remembered.
 *
 * Memory is bounded (`repeat-room.ts`). A stranger who asks for many names makes others forgotten, which then take the way through the chain.
 */
import { RunField } from "../../dns/address-runs.ts";
import type { EncodedSections } from "../../dns/encoded-sections.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import { FixedEndpoint, type TransportName } from "../../plugin/message/endpoint.ts";
import { type Arrival, type Listener, Query } from "../../plugin/query/query.ts";
import type { AnswerBasis, AnswerSource, AnswerWitness } from "../../plugin/query/repetition.ts";
import type { Reply } from "../../plugin/query/reply.ts";
import type { QueryStream } from "../../plugin/stream/query-stream.ts";
import { REPEATED_OCTETS } from "../../transports/transport.ts";
import { RepeatRoom, SLOT_OCTETS, SLOTS } from "./repeat-room.ts";
import { shuffleRun, writeReply } from "./reply-writer.ts";
import type { RouteTable } from "./route-table.ts";

/** A question has a place in one of so many sets. */
const WAYS = 4;
const SETS = SLOTS / WAYS;
const SLOT_WORDS = SLOT_OCTETS / 4;

/** Words of a slot's head. */
const Head = {
  /** Milliseconds of `Clock.now()`, as a float of two words. */
  UNTIL: 0,
  /** Octets of the query; above them those of the reply. */
  SIZES: 2,
  /** See `AnswerBasis`. */
  PLACE: 3,
  VALUE: 4,
  EPOCH: 5,
  /** Number of the {@link Origin}; above it the rcode. */
  ORIGIN: 6,
  /** 4 or 6, of the clients' addresses. */
  FAMILY: 7,
  /** How often it was given again since somebody was told. */
  TIMES: 8,
  /** 1 where it stands in the list of those that are to be told of. */
  LISTED: 9,
  /** Addresses that change places each time, 0 for none: see {@link Run}. */
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
/** Milliseconds for which an answer is given again without asking anybody anew, and within which plugins hear of it. */
const LONGEST = 1_000;
/** Answers of which plugins are told in one turn of the event loop: a microsecond or two each. */
const TOLD_IN_TURN = 256;
/** Plugins that answer, times the witnesses in front of them, in one configuration. */
const MAX_ORIGINS = 64;
const ORIGIN_BITS = 0xff;
const RCODE_SHIFT = 8;
/** An answer is marked as asked for at the first and each eighth time again in a second: often enough to stay, and marks are far in memory. */
const MARKED_TIMES = 0x7;
const HASH_PRIME = 0x9e3779b1;
/** Of an empty slot, and of a query that is not remembered in any case. No other one has it. */
const NO_HASH = 0;
const NOWHERE = -1;
/** The id, in the first word of a message as the machine has it. */
const IS_LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
const ID_BITS = IS_LITTLE_ENDIAN ? 0xffff : 0xffff0000 | 0;

const RCODE_NXDOMAIN = 3;

/** What answers of one plugin on one way to it have in common. */
interface Origin {
  readonly source: AnswerSource;
  readonly numbers: Int32Array;
  readonly witnesses: readonly AnswerWitness[];
  /** Those of them who measure time. */
  readonly timed: readonly TimedWitness[];
  readonly plugin: string;
}

type TimedWitness = Required<AnswerWitness>;

export interface RepeatedAnswersOptions {
  readonly listener: Listener;
  /** The way on which queries come. All of them have the same limits. */
  readonly transport: TransportName;
  readonly clock: Clock;
  /** 32 bits that nobody can guess. */
  readonly seed: number;
  readonly stream: Pick<QueryStream, "ring">;
  /** What it shares with other listeners. */
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
  /** Heads of the slots of which somebody is to be told. */
  readonly #listed = new Int32Array(SLOTS);
  #listedCount = 0;
  /** The hashes of what is in the slots. */
  #tags: Int32Array = NO_WORDS;
  /** Hashes of questions that were answered and not remembered, the last one of each set first. */
  #seen: Int32Array = NO_WORDS;
  #words: Int32Array = NO_WORDS;
  #floats: Float64Array = NO_FLOATS;
  #octets: Uint8Array = NO_OCTETS;
  #isReleased = false;
  /** Of the message that came last: where it is, and its hash. */
  #lastWords: Int32Array = NO_WORDS;
  #lastAt = 0;
  #lastHash = NO_HASH;
  /** Of addresses that change places. Nobody has to guess it: the order says nothing. */
  #shuffling: number;
  #timer: Timer | undefined;
  /** Where a reply is written once more, to be remembered. */
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
   * Answers a query, if the same one was answered a moment ago: see `MessageReceiver.repeat`.
   * @param now when it arrived
   */
  answer(message: Int32Array, at: number, length: number, family: 4 | 6, now: number): number {
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
    this.#count(head, origin, now);
    const run = words[head + Head.RUN] as number;
    if (run !== 0) this.#shuffle(4 * head + HEAD_OCTETS + ((length + 3) & ~3), run);
    const size = (words[head + Head.SIZES] as number) >>> 16;
    this.#write(head + HEAD_WORDS + ((length + 3) >> 2), size, message, at);
    return size;
  }

  /** The message that came last comes to no more than this. */
  forgetLast(): void {
    this.#lastHash = NO_HASH;
  }

  /** Where the answer to such a query is, good or not. */
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

  /** Where it lies: a random order of a random order is one, too. */
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

  /** Over the query, of which the id stays. */
  #write(from: number, size: number, message: Int32Array, at: number): void {
    const words = this.#words;
    message[at] = ((words[from] as number) & ~ID_BITS) | ((message[at] as number) & ID_BITS);
    const count = (size + 3) >> 2;
    for (let word = 1; word < count; word++) message[at + word] = words[from + word] as number;
  }

  /**
   * Remembers the answer to the query that {@link answer} was given last, where it is not the first time that it comes: what is asked for once is not worth it.
   * The message and the reply's records are still there.
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
    // What was cut off would be counted as whole.
    if (size !== reply.size) return;
    const origin = this.#originOf(basis, witnesses, plugin) | (reply.rcode << RCODE_SHIFT);
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

  /** Tells plugins of all that was given again. */
  tell(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    while (this.#listedCount > 0) this.#tellOne();
  }

  /** In portions, each in a turn of its own. */
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

  /** Tells of everything, and gives the memory back: the listener is about to close. Nothing is given again from then on. */
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

  /** Tells of everything, and forgets it: other plugins answer from now on. */
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
    const rcode = (words[head + Head.ORIGIN] as number) >> RCODE_SHIFT;
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

  /** Whether a question of the same hash was there lately; from now on it was. */
  #wasSeen(hash: number): boolean {
    const seen = this.#seen;
    const first = (hash & (SETS - 1)) * WAYS;
    for (let at = first; at < first + WAYS; at++) if (seen[at] === hash) return true;
    seen.copyWithin(first + 1, first, first + WAYS - 1);
    seen[first] = hash;
    return false;
  }

  /** The slot of a set whose answer is over first. What was given again out of it, somebody is told of. */
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
    return this.#origins.push({ source, numbers, witnesses, timed: witnesses.filter(isTimed), plugin }) - 1;
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

/** The one run of addresses that an answer has. It is shorter than {@link ROOM}. */
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

function mayBeRepeated(query: Query, reply: Reply): boolean {
  if (query.seals !== undefined || query.isSigned) return false;
  if (reply.shuffle !== 0 && reply.sections.runCount !== 1) return false;
  return reply.rcode === 0 || reply.rcode === RCODE_NXDOMAIN;
}

/** Of all octets but those of the id. Each step turns the bits, as a product carries them only upwards. */
function hashOf(message: Int32Array, at: number, length: number, seed: number): number {
  const last = at + (length >> 2);
  let hash = Math.imul(seed ^ length ^ ((message[at] as number) & ~ID_BITS), HASH_PRIME);
  for (let word = at + 1; word < last; word++)
    hash = Math.imul(((hash << 5) | (hash >>> 27)) ^ (message[word] as number), HASH_PRIME);
  hash = Math.imul(
    ((hash << 5) | (hash >>> 27)) ^ ((message[last] as number) & restBits(length)),
    HASH_PRIME,
  );
  hash = Math.imul(hash ^ (hash >>> 15), HASH_PRIME);
  hash ^= hash >>> 13;
  return hash === NO_HASH ? 1 : hash;
}

/** Which bits of the word behind the whole ones belong to the message. */
function restBits(length: number): number {
  const rest = 8 * (length & 3);
  const low = (1 << (IS_LITTLE_ENDIAN ? rest : 32 - rest)) - 1;
  return IS_LITTLE_ENDIAN ? low : rest === 0 ? 0 : ~low;
}

const NO_WORDS = new Int32Array(0);
const NO_FLOATS = new Float64Array(0);
const NO_OCTETS = new Uint8Array(0);
