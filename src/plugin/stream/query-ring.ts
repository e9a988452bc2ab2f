/**
 * Finished queries as octets in a ring of fixed size. One thread writes, any thread reads: the memory is shared. No
 * query is an object, so the garbage collector has no work, and entries that are not read in time are overwritten.
 */
import { octetAt, readU32 } from "../../dns/octets.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { TransportName } from "../message/endpoint.ts";
import type { Query } from "../query/query.ts";
import type { Reply } from "../query/reply.ts";

/** Entries are measured in units of this many octets, and begin at a multiple of it. */
export const UNIT = 8;

/** 32-bit words at the beginning. */
export const Control = {
  /** Units written since the start, modulo 2^32: the place of the next entry. */
  HEAD: 0,
  /** Like {@link Control.HEAD}: the oldest complete entry. */
  TAIL: 1,
  /** One query in this many is written, as the writer has decided. */
  INTERVAL: 2,
  /** The number of words of {@link WORD_TABLE} in use. */
  WORDS: 3,
  /** Queries per second that a reader wants; 0 for all. */
  WANTED: 4,
  /** The number of queries until the next one that is written. */
  LEFT: 5,
} as const;

/** 64-bit floats behind the control words, from octet 32 on. */
export const Total = {
  /** Finished queries, written or not. */
  FINISHED: 0,
  /** Milliseconds of the Unix epoch at which `Clock.now()` of the writer was 0. */
  EPOCH: 1,
} as const;

export const TOTALS_AT = 32;
/**
 * Plugins and listeners by number: 64 slots of 64 octets, each with the length of its text first. The first is empty.
 */
export const WORD_TABLE = 64;
export const WORD_OCTETS = 64;
export const WORD_COUNT = 64;
export const RING_START: number = WORD_TABLE + WORD_OCTETS * WORD_COUNT;

/** Offsets in an entry, in octets. Client and name follow {@link Field.CLIENT}. */
export const Field = {
  /** Size of the entry in units; 0 means that the next entry is at the beginning of the ring. */
  UNITS: 0,
  TYPE: 2,
  CLASS: 4,
  /** {@link NOTHING_SENT} if the client got no reply. */
  RCODE: 6,
  /** Milliseconds of `Clock.now()`, a float of 64 bits. */
  RECEIVED: 8,
  /** Milliseconds, a float of 32 bits; negative until it is known. */
  DURATION: 16,
  QUERY_SIZE: 20,
  REPLY_SIZE: 22,
  PORT: 24,
  ID: 26,
  QUERY_FLAGS: 28,
  REPLY_FLAGS: 30,
  PLUGIN: 32,
  LISTENER: 33,
  TRANSPORT: 34,
  BITS: 35,
  NAME_OCTETS: 36,
  ANSWERS: 37,
  /** The number of queries that this one represents. */
  WEIGHT: 38,
  /** Of the first record, in seconds. */
  TTL: 40,
  CLIENT: 44,
} as const;

export const Bit = { IPV6: 1, EDNS: 2, DNSSEC_OK: 4, SHED: 8 } as const;

export const NOTHING_SENT = 0xffff;
export const NO_TTL = 0xffff_ffff;

export const TRANSPORTS: readonly TransportName[] = ["udp", "tcp", "tls", "https", "https3", "quic", "grpc"];

const RCODE_NXDOMAIN = 3;
/**
 * Milliseconds of a window, whose number of queries sets the sampling of the next one. Each window writes as many
 * queries as the reader wants, whatever the rate: a short burst is complete.
 */
const WINDOW = 500;
/** A difference of the clocks, in milliseconds, above which one of them was set. Less is drift. */
const CLOCK_SET = 1_000;
const MAX_WEIGHT = 0xffff;
const LONGEST_ENTRY = Field.CLIENT + 16 + 255;

export class QueryRing {
  readonly buffer: SharedArrayBuffer;
  readonly #clock: Clock;
  readonly #control: Int32Array;
  readonly #totals: Float64Array;
  readonly #octets: Uint8Array;
  readonly #halves: Uint16Array;
  readonly #words: Uint32Array;
  readonly #floats: Float32Array;
  readonly #doubles: Float64Array;
  readonly #units: number;
  readonly #numbers = new Map<string, number>();
  /** Offsets of entry and ring, in units. */
  #head: number;
  #tail: number;
  /** Parts of {@link Total.FINISHED}: queries that are always written, and queries that entries represent so far. */
  #failed = 0;
  #toldOf = 0;
  /** One query in this many is written. */
  #interval = 1;
  /**
   * The start of the window, its number of queries, and how many of them may still be written before the rate is
   * computed again.
   */
  #windowStart = Number.NaN;
  #windowCount = 0;
  #windowBudget = 0;
  #lastPlugin: string | undefined;
  #lastPluginNumber = 0;
  #lastListener = "";
  #lastListenerNumber = 0;
  /** The first entry without a duration, and the arrival time of its query. */
  #untimed: number;
  #receivedAt = Number.NaN;
  #closeScheduled = false;

  /** @param buffer from `makeRingBuffer`; a previous writer must have stopped */
  constructor(buffer: SharedArrayBuffer, clock: Clock) {
    this.buffer = buffer;
    this.#clock = clock;
    this.#control = new Int32Array(buffer, 0, 8);
    this.#totals = new Float64Array(buffer, TOTALS_AT, 4);
    this.#octets = new Uint8Array(buffer);
    this.#halves = new Uint16Array(buffer);
    this.#words = new Uint32Array(buffer);
    this.#floats = new Float32Array(buffer);
    this.#doubles = new Float64Array(buffer);
    this.#units = Math.floor((buffer.byteLength - RING_START) / UNIT);
    this.#head = 0;
    this.#tail = 0;
    this.#untimed = 0;
    this.#totals[Total.EPOCH] = clock.wallTime() - clock.now();
    this.#numberOf("");
  }

  /**
   * Records a client's query that is finished.
   * @param reply the reply that was sent; `undefined` without one
   * @param size octets sent
   * @param waited whether it was answered in a later event-loop turn than it arrived
   */
  record(query: Query, reply: Reply | undefined, size: number, waited: boolean, bits = 0): void {
    if (query.isOwn) return;
    const totals = this.#totals;
    const finished = (totals[Total.FINISHED] ?? 0) + 1;
    totals[Total.FINISHED] = finished;
    const rcode = reply === undefined ? NOTHING_SENT : reply.rcode;
    let weight = 1;
    // Errors are always kept: they are rare, or the very thing to look for.
    if (rcode === 0 || rcode === RCODE_NXDOMAIN) {
      const left = (this.#control[Control.LEFT] ?? 0) - 1;
      this.#control[Control.LEFT] = left;
      if (left > 0) return;
      weight = finished - this.#failed - this.#toldOf;
      this.#toldOf += weight;
      this.#windowCount += weight;
      if (--this.#windowBudget <= 0 || query.receivedAt - this.#windowStart >= WINDOW)
        this.#settle(query.receivedAt);
      this.#control[Control.LEFT] = this.#interval;
      if (weight > MAX_WEIGHT) weight = MAX_WEIGHT;
    } else this.#failed++;
    if (!waited && query.receivedAt !== this.#receivedAt) this.#startGroup(query.receivedAt);
    this.#write(query, reply, rcode, size, waited, bits, weight);
  }

  /**
   * Counts an answered query if sampling skips it.
   * @returns false if it has to be passed to {@link record}
   */
  passesOver(): boolean {
    const left = (this.#control[Control.LEFT] ?? 0) - 1;
    if (left <= 0) return false;
    this.#control[Control.LEFT] = left;
    const totals = this.#totals;
    totals[Total.FINISHED] = (totals[Total.FINISHED] ?? 0) + 1;
    return true;
  }

  /** Computes the sampling. @param now when the current query arrived: reading the clock would cost more */
  #settle(now: number): void {
    const wanted = this.#control[Control.WANTED] ?? 0;
    const elapsed = now - this.#windowStart;
    let interval = 1;
    if (wanted > 0 && !Number.isNaN(elapsed)) {
      // Queries that waited arrived before others that are already counted.
      const rate = (1_000 * this.#windowCount) / Math.max(1, elapsed);
      interval = Math.max(1, Math.min(MAX_WEIGHT, Math.ceil(rate / wanted)));
    }
    this.#interval = interval;
    this.#windowStart = elapsed < 0 ? this.#windowStart : now;
    this.#windowCount = 0;
    this.#windowBudget = wanted > 0 ? Math.ceil((wanted * WINDOW) / 1_000) : Number.POSITIVE_INFINITY;
    if (this.#control[Control.INTERVAL] !== interval)
      Atomics.store(this.#control, Control.INTERVAL, interval);
    this.#setEpoch();
  }

  /** Records the offset of the wall clock, which may have been set. */
  #setEpoch(): void {
    const epoch = this.#clock.wallTime() - this.#clock.now();
    if (Math.abs(epoch - (this.#totals[Total.EPOCH] ?? 0)) >= CLOCK_SET) this.#totals[Total.EPOCH] = epoch;
  }

  /** Sets the missing durations: the replies to queries that arrived together are sent together. */
  close(): void {
    if (this.#untimed !== this.#head) this.#time(this.#clock.now());
  }

  #write(
    query: Query,
    reply: Reply | undefined,
    rcode: number,
    size: number,
    waited: boolean,
    bits: number,
    weight: number,
  ): void {
    const { bytes, nameEnd, client } = query;
    const { octets: address } = client;
    const nameOctets = nameEnd - 12;
    const length = (Field.CLIENT + address.length + nameOctets + UNIT - 1) >> 3;
    const unit = this.#room(length);
    const at = RING_START + unit * UNIT;
    const half = at >> 1;
    const halves = this.#halves;
    const octets = this.#octets;
    halves[half] = length;
    halves[half + (Field.TYPE >> 1)] = query.type;
    halves[half + (Field.CLASS >> 1)] = query.class;
    halves[half + (Field.RCODE >> 1)] = rcode;
    this.#doubles[(at + Field.RECEIVED) >> 3] = query.receivedAt;
    this.#floats[(at + Field.DURATION) >> 2] = waited ? this.#clock.turnTime() - query.receivedAt : -1;
    halves[half + (Field.QUERY_SIZE >> 1)] = query.length;
    halves[half + (Field.REPLY_SIZE >> 1)] = size;
    halves[half + (Field.PORT >> 1)] = client.port;
    halves[half + (Field.ID >> 1)] = query.id;
    halves[half + (Field.QUERY_FLAGS >> 1)] = query.flags;
    halves[half + (Field.REPLY_FLAGS >> 1)] = reply === undefined ? 0 : reply.flags;
    const plugin = reply?.plugin;
    if (plugin !== this.#lastPlugin) this.#turnToPlugin(plugin);
    const { label } = query.listener;
    if (label !== this.#lastListener) this.#turnToListener(label);
    octets[at + Field.PLUGIN] = this.#lastPluginNumber;
    octets[at + Field.LISTENER] = this.#lastListenerNumber;
    octets[at + Field.TRANSPORT] = query.transport === "udp" ? 0 : TRANSPORTS.indexOf(query.transport);
    octets[at + Field.BITS] =
      bits |
      (address.length === 16 ? Bit.IPV6 : 0) |
      (query.optOffset < 0 ? 0 : query.dnssecOk ? Bit.EDNS | Bit.DNSSEC_OK : Bit.EDNS);
    octets[at + Field.NAME_OCTETS] = nameOctets;
    halves[half + (Field.WEIGHT >> 1)] = weight;
    this.#writeAnswer(at, reply);
    let to = at + Field.CLIENT;
    for (let index = 0; index < address.length; index++) octets[to++] = octetAt(address, index);
    for (let index = 12; index < nameEnd; index++) octets[to++] = octetAt(bytes, index);
    if (waited && this.#untimed === this.#head) this.#untimed = (this.#head + length) | 0;
    this.#head = (this.#head + length) | 0;
    Atomics.store(this.#control, Control.HEAD, this.#head);
  }

  #writeAnswer(at: number, reply: Reply | undefined): void {
    let ttl = NO_TTL;
    let answers = 0;
    if (reply !== undefined) {
      const { sections } = reply;
      answers = sections.answerCount;
      if (sections.count > 0)
        ttl =
          reply.uniformTtl >= 0 ? reply.uniformTtl : readU32(sections.bytes, sections.firstTypeOffset + 4);
    }
    this.#octets[at + Field.ANSWERS] = answers > 255 ? 255 : answers;
    this.#words[(at + Field.TTL) >> 2] = ttl;
  }

  /** Makes room for an entry and returns its offset, in units from the beginning of the ring. */
  #room(length: number): number {
    let unit = (this.#head >>> 0) % this.#units;
    if (unit + length > this.#units) {
      const rest = this.#units - unit;
      this.#overwrite(rest);
      this.#halves[(RING_START + unit * UNIT) >> 1] = 0;
      if (this.#untimed === this.#head) this.#untimed = (this.#head + rest) | 0;
      this.#head = (this.#head + rest) | 0;
      unit = 0;
    }
    this.#overwrite(length);
    return unit;
  }

  /** Drops the oldest entries, so that `length` units from the head on are free. */
  #overwrite(length: number): void {
    const before = this.#tail;
    while (((this.#head + length - this.#tail) | 0) > this.#units) {
      const unit = (this.#tail >>> 0) % this.#units;
      const units = this.#halves[(RING_START + unit * UNIT) >> 1] ?? 0;
      this.#tail = (this.#tail + (units === 0 ? this.#units - unit : units)) | 0;
    }
    if (before === this.#tail) return;
    if (((this.#untimed - this.#tail) | 0) < 0) this.#untimed = this.#tail;
    Atomics.store(this.#control, Control.TAIL, this.#tail);
  }

  #startGroup(receivedAt: number): void {
    if (this.#untimed !== this.#head)
      this.#time(receivedAt > this.#receivedAt ? receivedAt : this.#clock.now());
    this.#receivedAt = receivedAt;
    if (this.#closeScheduled) return;
    this.#closeScheduled = true;
    process.nextTick(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    this.#closeScheduled = false;
    this.close();
    this.#receivedAt = Number.NaN;
  };

  #time(now: number): void {
    let place = this.#untimed;
    while (place !== this.#head) {
      const unit = (place >>> 0) % this.#units;
      const at = RING_START + unit * UNIT;
      const units = this.#halves[at >> 1] ?? 0;
      if (units === 0) {
        place = (place + this.#units - unit) | 0;
        continue;
      }
      const float = (at + Field.DURATION) >> 2;
      if ((this.#floats[float] ?? 0) < 0)
        this.#floats[float] = now - (this.#doubles[(at + Field.RECEIVED) >> 3] ?? now);
      place = (place + units) | 0;
    }
    this.#untimed = this.#head;
  }

  #turnToPlugin(plugin: string | undefined): void {
    this.#lastPlugin = plugin;
    this.#lastPluginNumber = this.#numberOf(plugin ?? "");
  }

  #turnToListener(label: string): void {
    this.#lastListener = label;
    this.#lastListenerNumber = this.#numberOf(label);
  }

  #numberOf(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    const number = this.#numbers.size;
    // Plugins and listeners come from Corefiles; after many reloads the last ones have no name.
    if (number >= WORD_COUNT) return 0;
    const octets = new TextEncoder().encode(text).subarray(0, WORD_OCTETS - 1);
    const at = WORD_TABLE + number * WORD_OCTETS;
    this.#octets[at] = octets.length;
    this.#octets.set(octets, at + 1);
    this.#numbers.set(text, number);
    Atomics.store(this.#control, Control.WORDS, this.#numbers.size);
    return number;
  }
}

/** Memory for a ring. @param octets at least the size of some hundred entries */
export function makeRingBuffer(octets: number): SharedArrayBuffer {
  if (octets < RING_START + 64 * LONGEST_ENTRY)
    throw new RangeError(`a ring of ${octets} octets is too small`);
  // Offsets count up to 2^32 and wrap to 0, which must be the same place in the ring.
  const units = 2 ** Math.floor(Math.log2((octets - RING_START) / UNIT));
  return new SharedArrayBuffer(RING_START + units * UNIT);
}
