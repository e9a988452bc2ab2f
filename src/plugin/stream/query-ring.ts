/**
 * Finished queries as octets in a ring of fixed size. One thread writes, any thread reads: memory is shared. Nothing per query is an object,
 * so the garbage collector has nothing to walk, and what nobody reads in time is overwritten.
 */
import { octetAt, readU32 } from "../../dns/octets.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { TransportName } from "../message/endpoint.ts";
import type { Query } from "../query/query.ts";
import type { Reply } from "../query/reply.ts";

/** Octets that entries are counted in, and begin at a multiple of. */
export const UNIT = 8;

/** 32-bit words at the beginning. */
export const Control = {
  /** Units written since the start, modulo 2^32: the place of the next entry. */
  HEAD: 0,
  /** As {@link Control.HEAD}: the oldest entry that is whole. */
  TAIL: 1,
  /** One of so many queries is written: what the writer has settled on. */
  INTERVAL: 2,
  /** How many words of {@link WORD_TABLE} are in use. */
  WORDS: 3,
  /** Queries a second that a reader wants written; 0 for all. */
  WANTED: 4,
  /** How many are to come until the next that is written. */
  LEFT: 5,
} as const;

/** 64-bit floats behind the control words, from octet 32 on. */
export const Total = {
  /** Queries that finished, written or not. */
  FINISHED: 0,
  /** Milliseconds of the Unix epoch at which `Clock.now()` of the writer was 0. */
  EPOCH: 1,
} as const;

export const TOTALS_AT = 32;
/** Plugins and listeners by number: 64 places of 64 octets, the length of the text first. The first is empty. */
export const WORD_TABLE = 64;
export const WORD_OCTETS = 64;
export const WORD_COUNT = 64;
export const RING_START: number = WORD_TABLE + WORD_OCTETS * WORD_COUNT;

/** Places in an entry, in octets. Client and name stand behind {@link Field.CLIENT}. */
export const Field = {
  /** Of the entry, in units; 0 says that the next entry is at the beginning of the ring. */
  UNITS: 0,
  TYPE: 2,
  CLASS: 4,
  /** {@link NOTHING_SENT} where the client got no reply. */
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
  /** How many queries this one stands for. */
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
 * Milliseconds for which what came in them says how many to leave out in the next. As many as are wanted in them are written whatever the
 * rate: a short burst is there in full.
 */
const WINDOW = 500;
/** Milliseconds by which the clocks part when one of them was set. Less is drift. */
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
  /** Places in units, of entry and ring. */
  #head: number;
  #tail: number;
  /** Of {@link Total.FINISHED}: those that are written in any case, and those that entries stand for so far. */
  #failed = 0;
  #toldOf = 0;
  /** One of so many is written. */
  #interval = 1;
  /** Since when queries are counted, how many came, and how many of them may still be written before the rate is worked out anew. */
  #windowStart = Number.NaN;
  #windowCount = 0;
  #windowBudget = 0;
  #lastPlugin: string | undefined;
  #lastPluginNumber = 0;
  #lastListener = "";
  #lastListenerNumber = 0;
  /** The first entry whose duration is not known, and when its query arrived. */
  #untimed: number;
  #receivedAt = Number.NaN;
  #closeScheduled = false;

  /** @param buffer from {@link makeRingBuffer}; who has written to it before must have stopped */
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
   * Notes a client's query that has found its end.
   * @param reply what was sent; `undefined` where nothing was
   * @param size octets of what was sent
   * @param waited whether it was answered in a later turn of the event loop than it came
   */
  record(query: Query, reply: Reply | undefined, size: number, waited: boolean, bits = 0): void {
    if (query.isOwn) return;
    const totals = this.#totals;
    const finished = (totals[Total.FINISHED] ?? 0) + 1;
    totals[Total.FINISHED] = finished;
    const rcode = reply === undefined ? NOTHING_SENT : reply.rcode;
    let weight = 1;
    // What went wrong is always kept: it is rare, or it is what everybody wants to see.
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
   * Counts a query that was answered, where it is one of those that are not written.
   * @returns false where it is to be given to {@link record}
   */
  passesOver(): boolean {
    const left = (this.#control[Control.LEFT] ?? 0) - 1;
    if (left <= 0) return false;
    this.#control[Control.LEFT] = left;
    const totals = this.#totals;
    totals[Total.FINISHED] = (totals[Total.FINISHED] ?? 0) + 1;
    return true;
  }

  /** Works out how many to leave out. @param now when the query at hand arrived: reading the clock would cost more */
  #settle(now: number): void {
    const wanted = this.#control[Control.WANTED] ?? 0;
    const elapsed = now - this.#windowStart;
    let interval = 1;
    if (wanted > 0 && !Number.isNaN(elapsed)) {
      // Queries that waited arrived before others that are counted already.
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

  /** The wall clock may have been set. */
  #setEpoch(): void {
    const epoch = this.#clock.wallTime() - this.#clock.now();
    if (Math.abs(epoch - (this.#totals[Total.EPOCH] ?? 0)) >= CLOCK_SET) this.#totals[Total.EPOCH] = epoch;
  }

  /** Works out durations that are still open: the replies to queries that came together leave together. */
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

  /** Makes room for an entry and returns its place, in units from the beginning of the ring. */
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

  /** Gives up the oldest entries, so that `length` units from the head on are free. */
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
    // Plugins and listeners come from Corefiles; after many reloads the last ones go without a name.
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

/** Memory for a ring. @param octets at the least what some hundred entries take */
export function makeRingBuffer(octets: number): SharedArrayBuffer {
  if (octets < RING_START + 64 * LONGEST_ENTRY)
    throw new RangeError(`a ring of ${octets} octets is too small`);
  // Places count up to 2^32 and go on at 0, which has to be the same place in the ring.
  const units = 2 ** Math.floor(Math.log2((octets - RING_START) / UNIT));
  return new SharedArrayBuffer(RING_START + units * UNIT);
}
