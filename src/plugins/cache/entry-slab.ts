/** A bounded table of answers, as octets in one buffer: no object belongs to an entry, and a hit makes none. */
import { RUN_NUMBERS } from "../../dns/address-runs.ts";
import type { EncodedSections, LentSections } from "../../dns/encoded-sections.ts";
import type { Name } from "../../dns/name.ts";
import { FOLD } from "../../dns/octets.ts";
import { BlockMemory, REGION_OCTETS, UNIT_OCTETS, UNIT_WORDS } from "../../lib/slab/block-memory.ts";
import { HashIndex } from "../../lib/slab/hash-index.ts";
import { roundUp, SharedParts } from "../../lib/slab/shared-parts.ts";
import type { Asked } from "../../plugin/asked.ts";
import { Head, Key, MESSAGE_OCTETS, MESSAGE_WORDS, NAME_START, NEVER, tableStart } from "./entry-layout.ts";
import {
  type EntryContent,
  entryOrder,
  type Hits,
  readWildcard,
  relative,
  writeEntry,
} from "./entry-writer.ts";
import { Evictor } from "./evictor.ts";
import { Frame, FramePool } from "./frames.ts";
import { type EntryKey, type EntryMark, KeptAnswer } from "./kept-answer.ts";
import { NameTree } from "./name-tree.ts";

/** Words of the part `control`. */
const COUNT = 0;
const SERIAL = 1;
const CONTROL_WORDS = 16;

/** Bits of what is noted of an entry beside its block. */
const REFRESHING = 2;

const NONE = -1;

/** How large a slab may become. */
export interface SlabBounds {
  /** Entries. */
  readonly capacity: number;
  /** Regions of memory for the entries: see `BlockMemory`. */
  readonly regions: number;
}

export class EntrySlab {
  readonly capacity: number;
  /** What was found last. */
  readonly #kept: KeptAnswer;
  readonly #control: Int32Array;
  readonly #blocks: BlockMemory;
  readonly #floats: Float64Array;
  readonly #index: HashIndex;
  readonly #tree: NameTree;
  readonly #marks: Uint8Array;
  readonly #evictor: Evictor;
  readonly #frames = new FramePool();
  readonly #found = new Int32Array(1024);

  /**
   * @param denial whether this is the cache for denials
   * @param secret 32 bits that nobody can guess
   */
  constructor({ capacity, regions }: SlabBounds, denial: boolean, secret: number) {
    this.capacity = capacity;
    const parts = new SharedParts(new SharedArrayBuffer(octetsFor({ capacity, regions })));
    this.#control = parts.int32(CONTROL_WORDS);
    this.#blocks = new BlockMemory(parts, regions);
    this.#index = new HashIndex(parts, capacity);
    this.#tree = new NameTree(parts, this.#blocks, capacity, secret);
    this.#marks = parts.octets(this.#blocks.units);
    const { words } = this.#blocks;
    this.#floats = new Float64Array(words.buffer, words.byteOffset, words.length / 2);
    this.#kept = new KeptAnswer(denial, new Frame(this.#frames, 512, 1).sections);
    this.#evictor = new Evictor(this.#blocks, this.#marks);
    this.#blocks.clear();
    this.#tree.clear();
  }

  /** Entries. */
  get size(): number {
    return this.#control[COUNT] as number;
  }

  /** Octets of the entries, with what is lost to the sizes of blocks. */
  get octets(): number {
    return this.#blocks.octetsInUse;
  }

  /** Octets that the entries may take at the most. */
  get maxOctets(): number {
    return this.#blocks.regions * REGION_OCTETS;
  }

  /** Octets of memory that all of it takes now, rounded up to what was ever in use. */
  get octetsTouched(): number {
    const entries = this.#blocks.octetsTouched;
    const beside = (entries / UNIT_OCTETS) * OCTETS_BESIDE_UNIT;
    return entries + beside + this.#tree.octetsTouched + HashIndex.octetsFor(this.capacity);
  }

  /** Where the answer to the question of `query` is, expired or not; -1 where there is none. */
  find(hash: number, traits: number, query: Asked): number {
    const index = this.#index;
    const { pairs } = index;
    for (let at = index.first(hash); pairs[at + 1] !== 0; at = index.next(at)) {
      if (pairs[at] !== hash) continue;
      const unit = (pairs[at + 1] as number) - 1;
      if (this.#matches(unit, traits, query)) return unit;
    }
    return NONE;
  }

  expiresAt(unit: number): number {
    return this.#floats[(unit * UNIT_WORDS + Head.EXPIRES) >> 1] as number;
  }

  isError(unit: number): boolean {
    return (this.#word(unit, Head.KEY) & Key.ERROR) !== 0;
  }

  isAnswer(unit: number): boolean {
    return (this.#word(unit, Head.KEY) & Key.ANSWERS) !== 0;
  }

  serialOf(unit: number): number {
    return this.#word(unit, Head.SERIAL);
  }

  /** The serial that the next entry gets. */
  get nextSerial(): number {
    return this.#control[SERIAL] as number;
  }

  /** Reads an entry. What it returns is the same object each time. */
  read(unit: number): KeptAnswer {
    const kept = this.#kept;
    const head = unit * UNIT_WORDS;
    const { words } = this.#blocks;
    const key = words[head + Head.KEY] as number;
    kept.unit = unit;
    kept.serial = words[head + Head.SERIAL] as number;
    kept.hash = words[head + Head.HASH] as number;
    kept.traits = (key & Key.MATCH) >> Key.TRAITS_SHIFT;
    kept.rcode = (key >> Key.RCODE_SHIFT) & Key.RCODE;
    kept.error = (key & Key.ERROR) !== 0;
    kept.answers = (key & Key.ANSWERS) !== 0;
    kept.flags = (words[head + Head.FLAGS_RUNS] as number) & 0xffff;
    kept.ttl = words[head + Head.TTL] as number;
    kept.expiresAt = this.expiresAt(unit);
    kept.wildcard = (key & Key.WILDCARD) === 0 ? undefined : readWildcard(this.#blocks, unit);
    kept.sections = this.#lend(head, (key & Key.NAME_END) + 4);
    this.#evictor.use(unit);
    return kept;
  }

  /**
   * Keeps an answer.
   * @param replaced the entry that has its place now, as {@link find} gave it; -1 for none
   * @returns how many other entries had to go
   */
  put(key: EntryKey, content: EntryContent, replaced: number): number {
    const order = entryOrder(content);
    // An answer that is renewed is mostly as large as it was.
    if (replaced !== NONE && this.#blocks.orderOf(replaced) === order) {
      this.#write(replaced, key, content);
      this.#marks[replaced] = (this.#marks[replaced] as number) & ~REFRESHING;
      return 0;
    }
    if (replaced !== NONE) this.#remove(replaced);
    let evicted = 0;
    const surplus = this.#tree.surplusFor(content.asked.bytes, NAME_START);
    if (surplus !== NONE) evicted += this.#evict(surplus);
    while (this.size >= this.capacity) evicted += this.#evict(this.#evictor.victim());
    let unit = this.#blocks.allocate(order);
    while (unit === NONE) {
      evicted += this.#evictArea(order);
      unit = this.#blocks.allocate(order);
    }
    this.#marks[unit] = 0;
    this.#write(unit, key, content);
    while (!this.#tree.link(unit)) {
      const victim = this.#evictor.victim();
      // The new one is not linked yet. With nobody else there it would have found its place.
      if (victim !== unit) evicted += this.#evict(victim);
    }
    this.#index.add(key.hash, unit);
    this.#control[COUNT] = this.size + 1;
    return evicted;
  }

  /** Takes an entry out. One that is not there any more is left alone. */
  remove(mark: EntryMark): void {
    if (this.has(mark)) this.#remove(mark.unit);
  }

  /** Takes out what {@link find} found just now. */
  removeAt(unit: number): void {
    this.#remove(unit);
  }

  has({ unit, serial }: EntryMark): boolean {
    return unit >= 0 && this.#blocks.isBlock(unit) && this.#word(unit, Head.SERIAL) === serial;
  }

  /**
   * Drops the answers to questions for a name and for names below it. Looks at those alone.
   * @param most how many are dropped at the most
   * @returns how many there were; as many as `most` means that there may be more
   */
  dropAtOrBelow(name: Name, most: number): number {
    let dropped = 0;
    while (dropped < most) {
      const room = this.#found.subarray(0, Math.min(most - dropped, this.#found.length));
      const count = this.#tree.collect(name.folded, room);
      for (let index = 0; index < count; index++) this.#remove(room[index] as number);
      dropped += count;
      if (count < room.length) break;
    }
    return dropped;
  }

  /**
   * Counts a hit.
   * @param windowMs hits further from the one before than that count anew
   * @returns hits in close succession
   */
  countHit(unit: number, now: number, windowMs: number): number {
    const { words } = this.#blocks;
    const head = unit * UNIT_WORDS;
    const at = relative(now, this.expiresAt(unit));
    const last = words[head + Head.LAST_HIT] as number;
    const before = (words[head + Head.HITS_TYPE] as number) & 0xffff;
    const hits = last === NEVER || at - last > windowMs ? 1 : Math.min(before + 1, 0xffff);
    words[head + Head.HITS_TYPE] = ((words[head + Head.HITS_TYPE] as number) & ~0xffff) | hits;
    words[head + Head.LAST_HIT] = at;
    return hits;
  }

  /** What is known of how often an answer was asked for; `undefined` where it is gone. */
  hitsOf(mark: EntryMark): Hits | undefined {
    if (!this.has(mark)) return undefined;
    const last = this.#word(mark.unit, Head.LAST_HIT);
    if (last === NEVER) return undefined;
    return {
      count: this.#word(mark.unit, Head.HITS_TYPE) & 0xffff,
      lastAt: this.expiresAt(mark.unit) + last,
    };
  }

  /** `Clock.now()` before which no refresh is tried, after one that failed; in the past when none failed. */
  retryAt(mark: EntryMark): number {
    const retry = this.has(mark) ? this.#word(mark.unit, Head.RETRY) : NEVER;
    return retry === NEVER ? Number.NEGATIVE_INFINITY : this.expiresAt(mark.unit) + retry;
  }

  setRetryAt(mark: EntryMark, time: number): void {
    if (!this.has(mark)) return;
    this.#blocks.words[mark.unit * UNIT_WORDS + Head.RETRY] = relative(time, this.expiresAt(mark.unit));
  }

  /** Whether a background refresh is under way. */
  isRefreshing(mark: EntryMark): boolean {
    return this.has(mark) && ((this.#marks[mark.unit] as number) & REFRESHING) !== 0;
  }

  setRefreshing(mark: EntryMark, refreshing: boolean): void {
    if (!this.has(mark)) return;
    const others = (this.#marks[mark.unit] as number) & ~REFRESHING;
    this.#marks[mark.unit] = refreshing ? others | REFRESHING : others;
  }

  #matches(unit: number, traits: number, query: Asked): boolean {
    const { words, octets } = this.#blocks;
    const { bytes, nameEnd } = query;
    if (
      ((words[unit * UNIT_WORDS + Head.KEY] as number) & Key.MATCH) !==
      (nameEnd | (traits << Key.TRAITS_SHIFT))
    )
      return false;
    const fold = FOLD;
    const message = unit * UNIT_OCTETS + MESSAGE_OCTETS;
    for (let at = NAME_START; at < nameEnd; at++)
      if (fold[bytes[at] as number] !== octets[message + at]) return false;
    for (let at = nameEnd; at < nameEnd + 4; at++) if (bytes[at] !== octets[message + at]) return false;
    return true;
  }

  /** Copies the records to a frame. */
  #lend(head: number, start: number): EncodedSections {
    const { words } = this.#blocks;
    const endAdditionals = words[head + Head.END_ADDITIONALS] as number;
    const end = endAdditionals & 0xffff;
    const additionals = endAdditionals >>> 16;
    const both = words[head + Head.ANSWERS_AUTHORITIES] as number;
    const answers = both & 0xffff;
    const authorities = both >>> 16;
    const count = answers + authorities + additionals;
    const firstType = (words[head + Head.HITS_TYPE] as number) >>> 16;
    const frame = this.#frames.take(end + 3, count);
    const { sections, words: target } = frame;
    const from = head + MESSAGE_WORDS;
    // The question goes with them: records point to its name.
    for (let at = NAME_START / 4; at < (end + 3) >> 2; at++) target[at] = words[from + at] as number;
    const { recordStarts, typeOffsets } = sections;
    recordStarts[0] = start;
    typeOffsets[0] = firstType;
    let runs = 0;
    if (count > 1) {
      let at = head + tableStart(end);
      for (let record = 0; record < count; record++) {
        const places = words[at++] as number;
        recordStarts[record] = places;
        typeOffsets[record] = places >>> 16;
      }
      runs = (words[head + Head.FLAGS_RUNS] as number) >>> 16;
      for (let number = 0; number < runs * RUN_NUMBERS; number += 2) {
        const pair = words[at++] as number;
        frame.runs[number] = pair;
        frame.runs[number + 1] = pair >>> 16;
      }
    }
    recordStarts[count] = end;
    const lent = sections as LentSections;
    lent.start = start;
    lent.end = end;
    lent.answerCount = answers;
    lent.authorityCount = authorities;
    lent.additionalCount = additionals;
    lent.firstTypeOffset = firstType;
    sections.lendRuns(frame.runs, runs);
    return sections;
  }

  #write(unit: number, key: EntryKey, content: EntryContent): void {
    const serial = this.#control[SERIAL] as number;
    this.#control[SERIAL] = serial + 1;
    writeEntry(this.#blocks, this.#floats, unit, key, serial, content);
  }

  #remove(unit: number): void {
    this.#index.remove(this.#word(unit, Head.HASH), unit);
    this.#tree.unlink(unit);
    this.#control[COUNT] = this.size - 1;
    this.#blocks.words[unit * UNIT_WORDS + Head.KEY] = 0;
    this.#blocks.free(unit);
  }

  #evict(unit: number): number {
    this.#remove(unit);
    return 1;
  }

  #evictArea(order: number): number {
    const area = this.#evictor.area(order);
    let evicted = 0;
    let unit = this.#blocks.firstBlock(area.start, area.end);
    while (unit !== NONE) {
      evicted += this.#evict(unit);
      unit = this.#blocks.firstBlock(area.start, area.end);
    }
    return evicted;
  }

  #word(unit: number, field: number): number {
    return this.#blocks.words[unit * UNIT_WORDS + field] as number;
  }
}

/** Marks and map. */
const OCTETS_BESIDE_UNIT = 2;

function octetsFor({ capacity, regions }: SlabBounds): number {
  return (
    roundUp(4 * CONTROL_WORDS) +
    BlockMemory.octetsFor(regions) +
    HashIndex.octetsFor(capacity) +
    NameTree.octetsFor(capacity) +
    roundUp((regions * REGION_OCTETS) / UNIT_OCTETS)
  );
}

/** Octets that a slab takes at the most, all that belongs to it included. */
export function slabOctets(bounds: SlabBounds): number {
  return octetsFor(bounds);
}
