/** A bounded table of answers, as octets in one buffer: no object belongs to an entry, and a hit makes none. */
import type { Name } from "../../dns/name.ts";
import { BlockMemory, REGION_OCTETS, REGION_UNITS, UNIT_WORDS } from "../../lib/slab/block-memory.ts";
import { HashIndex } from "../../lib/slab/hash-index.ts";
import { ReadGuard } from "../../lib/slab/read-guard.ts";
import { SharedLock, Taken } from "../../lib/slab/shared-lock.ts";
import { SharedParts } from "../../lib/slab/shared-parts.ts";
import type { Asked } from "../../plugin/asked.ts";
import { Head, Key, NAME_START, NEVER } from "../../plugin/packed/entry-layout.ts";
import { Frame, FramePool } from "../../plugin/packed/frames.ts";
import { lendSections } from "../../plugin/packed/lend-sections.ts";
import { EntryMarks } from "./entry-marks.ts";
import {
  type EntryContent,
  entryUnits,
  type Hits,
  readWildcard,
  relative,
  writeEntry,
  writeHit,
} from "./entry-writer.ts";
import { Evictor } from "./evictor.ts";
import { type EntryKey, type EntryMark, KeptAnswer } from "./kept-answer.ts";
import { type EntryFacts, entryFacts, isAbout, readHead } from "./kept-entries.ts";
import { NameTree } from "./name-tree.ts";
import {
  CONTROL_WORDS,
  marksFor,
  type SharedSlab,
  type SlabBounds,
  sharedTime,
  slabOctets,
} from "./slab-shape.ts";

/** Words of the part `control`. */
const COUNT = 0;
const SERIAL = 1;
const LOCK = 2;

const NONE = -1;

export class EntrySlab {
  readonly capacity: number;
  /** What was found last. */
  readonly #kept: KeptAnswer;
  readonly #control: Int32Array;
  readonly #blocks: BlockMemory;
  readonly #floats: Float64Array;
  readonly #index: HashIndex;
  readonly #tree: NameTree;
  readonly marks: EntryMarks;
  readonly #evictor: Evictor;
  readonly #frames = new FramePool();
  readonly #found = new Int32Array(1024);
  readonly #guard: ReadGuard;
  readonly #lock: SharedLock;
  readonly #secret: number;
  readonly #bounds: SlabBounds;
  readonly #buffer: SharedArrayBuffer;
  /** Whether other threads have it, too. One alone neither locks nor counts. */
  #isShared = false;
  #isReleased = false;
  /** Milliseconds to add to times of this thread's clock for those in the entries. */
  #shift = 0;

  /**
   * @param denial whether this is the cache for denials
   * @param secret 32 bits that nobody can guess. Serials begin there: small ones could be found again as links between free blocks
   */
  constructor(bounds: SlabBounds, denial: boolean, secret: number, buffer?: SharedArrayBuffer) {
    const { capacity, regions } = bounds;
    this.#bounds = bounds;
    this.#secret = secret;
    this.capacity = capacity;
    this.#buffer = buffer ?? new SharedArrayBuffer(slabOctets(bounds));
    const parts = new SharedParts(this.#buffer);
    this.#control = parts.int32(CONTROL_WORDS);
    this.#blocks = new BlockMemory(parts, regions);
    this.#index = new HashIndex(parts, capacity);
    this.#tree = new NameTree(parts, this.#blocks, capacity, secret);
    this.marks = new EntryMarks(parts.octets(marksFor(regions * REGION_OCTETS)));
    this.#guard = new ReadGuard(parts.int32(regions));
    this.#lock = new SharedLock(this.#control, LOCK, sharedTime);
    const { words } = this.#blocks;
    this.#floats = new Float64Array(words.buffer, words.byteOffset, words.length / 2);
    this.#kept = new KeptAnswer(denial, new Frame(this.#frames, 512, 1).sections);
    this.#evictor = new Evictor(this.#blocks, this.marks);
    if (buffer !== undefined) return;
    this.#clear();
    this.#control[SERIAL] = secret;
  }

  /**
   * The slab of another thread.
   * @param clockStart as of {@link SharedSlab}, of this thread's clock
   */
  static join(shared: SharedSlab, denial: boolean, clockStart: number): EntrySlab {
    const slab = new EntrySlab(shared.bounds, denial, shared.secret, shared.buffer);
    slab.#isShared = true;
    slab.#shift = clockStart - shared.clockStart;
    return slab;
  }

  /** Makes it one that other threads can {@link join}. */
  share(clockStart: number): SharedSlab {
    this.#isShared = true;
    return { buffer: this.#buffer, bounds: this.#bounds, secret: this.#secret, clockStart };
  }

  /** Gives its memory back; that of one that other threads have stays. */
  release(releasePages: (octets: Uint8Array) => void): void {
    if (this.#isShared) return;
    this.#isReleased = true;
    this.#control[COUNT] = 0;
    releasePages(new Uint8Array(this.#buffer));
  }

  /** Where it may not, entries go for new ones although there is room. */
  growOnlyWhile(mayGrow: () => boolean): void {
    this.#blocks.mayGrow = mayGrow;
  }

  /** Entries. */
  get size(): number {
    return this.#control[COUNT] as number;
  }

  /** Regions that were ever in use; none of a slab that was released. */
  get regions(): number {
    return this.#isReleased ? 0 : this.#blocks.unitsTouched / REGION_UNITS;
  }

  /** Octets of the entries, rounded up to units. */
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
    return (
      entries +
      this.#blocks.unitsTouched +
      marksFor(entries) +
      this.#tree.octetsTouched +
      HashIndex.octetsFor(this.capacity)
    );
  }

  /** Where the answer to the question of `query` is, expired or not; -1 where there is none. */
  find(hash: number, traits: number, query: Asked): number {
    if (!this.#isShared) return this.#find(hash, traits, query);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const unit = this.#findWhileOthersWrite(hash, traits, query);
      if (unit !== DISTURBED) return unit;
    }
    return NONE;
  }

  #find(hash: number, traits: number, query: Asked): number {
    const index = this.#index;
    const { pairs } = index;
    for (let at = index.first(hash); pairs[at + 1] !== 0; at = index.next(at)) {
      if (pairs[at] !== hash) continue;
      const unit = (pairs[at + 1] as number) - 1;
      if (isAbout(this.#blocks, unit, traits, query)) return unit;
    }
    return NONE;
  }

  /** What is found is to be {@link read}, which tells whether it was whole. */
  #findWhileOthersWrite(hash: number, traits: number, query: Asked): number {
    const index = this.#index;
    const { pairs } = index;
    for (let at = index.first(hash); ; at = index.next(at)) {
      const value = pairs[at + 1] as number;
      if (value === 0) return NONE;
      if (pairs[at] !== hash) continue;
      const unit = value - 1;
      // Who is still in the index once reading has begun has not been freed before.
      if (!this.#guard.begin(unit >> REGION_SHIFT) || pairs[at + 1] !== value) return DISTURBED;
      if (isAbout(this.#blocks, unit, traits, query)) return unit;
    }
  }

  expiresAt(unit: number): number {
    return (this.#floats[(unit * UNIT_WORDS + Head.EXPIRES) >> 1] as number) - this.#shift;
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

  /**
   * Reads what was found just now. What it returns is the same object each time.
   * @returns `undefined` where another thread wrote meanwhile
   */
  read(unit: number): KeptAnswer | undefined {
    const kept = this.#kept;
    const head = unit * UNIT_WORDS;
    const { words } = this.#blocks;
    const key = readHead(kept, unit, words, head);
    kept.words = words;
    kept.expiresAt = this.expiresAt(unit);
    kept.wildcard = (key & Key.WILDCARD) === 0 ? undefined : readWildcard(this.#blocks, unit);
    const sections = lendSections(this.#frames, words, head, (key & Key.NAME_END) + 4);
    if (this.#isShared && !this.#guard.isWhole()) {
      sections?.lender?.takeBack();
      return undefined;
    }
    if (sections === undefined) return undefined;
    kept.sections = sections;
    this.marks.use(unit);
    return kept;
  }

  /**
   * Keeps an answer, in place of the one that answers the same question.
   * @returns how many other entries had to go; -1 where others wrote for so long that it is not kept
   */
  put(key: EntryKey, content: EntryContent): number {
    if (!this.#enter()) return NONE;
    try {
      return this.#put(key, content);
    } finally {
      this.#leave();
    }
  }

  #put(key: EntryKey, content: EntryContent): number {
    const units = entryUnits(content);
    const replaced = this.#find(key.hash, key.traits, content.asked);
    // An answer that is renewed is mostly as large as it was.
    if (replaced !== NONE && this.#blocks.lengthOf(replaced) === units) {
      this.#write(replaced, key, content);
      this.marks.setRefreshing(replaced, false);
      return 0;
    }
    if (replaced !== NONE) this.#remove(replaced);
    let evicted = 0;
    const surplus = this.#tree.surplusFor(content.asked.bytes, NAME_START);
    if (surplus !== NONE) evicted += this.#evict(surplus);
    while (this.size >= this.capacity) evicted += this.#evict(this.#evictor.victim());
    let unit = this.#blocks.allocate(units);
    while (unit === NONE) {
      evicted += this.#evictArea(units);
      unit = this.#blocks.allocate(units);
    }
    this.marks.clear(unit);
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

  /** Takes the answer to a question out. False where others wrote for so long that it is still there. */
  removeAnswer(hash: number, traits: number, asked: Asked): boolean {
    if (!this.#enter()) return false;
    const unit = this.#find(hash, traits, asked);
    if (unit !== NONE) this.#remove(unit);
    this.#leave();
    return true;
  }

  has({ unit, serial }: EntryMark): boolean {
    return unit >= 0 && this.#blocks.isBlock(unit) && this.#word(unit, Head.SERIAL) === serial;
  }

  /**
   * Drops the answers to questions for a name and for names below it. Looks at those alone.
   * @param most how many are dropped at the most
   * @returns how many there were; as many as `most` means that there may be more. -1 where others wrote for so long that nothing was done
   */
  dropAtOrBelow(name: Name, most: number): number {
    if (!this.#enter()) return NONE;
    let dropped = 0;
    // A cluster in motion has names forgotten whether or not anybody asked for any.
    while (dropped < most && this.#control[COUNT] !== 0) {
      const room = this.#found.subarray(0, Math.min(most - dropped, this.#found.length));
      const count = this.#tree.collect(name.folded, room);
      for (let index = 0; index < count; index++) this.#remove(room[index] as number);
      dropped += count;
      if (count < room.length) break;
    }
    this.#leave();
    return dropped;
  }

  /** Entries of a name and of names below it; none where others write for too long. */
  entriesAt(name: Name, most: number): EntryFacts[] {
    if (!this.#enter()) return [];
    const found = new Int32Array(most);
    const count = this.#tree.collect(name.folded, found);
    const facts = Array.from(found.subarray(0, count), (unit) => entryFacts(this.#blocks, unit));
    this.#leave();
    return facts;
  }

  /** Drops what is meant of the entries of a name, or in a region. @returns how many; -1 where others wrote for so long that nothing was done */
  dropWhere(where: Name | number, isMeant: (entry: EntryFacts) => boolean): number {
    if (!this.#enter()) return NONE;
    const ofName = typeof where === "number" ? 0 : this.#tree.collect(where.folded, this.#found);
    const units = typeof where === "number" ? this.#blocks.blocksIn(where) : this.#found.subarray(0, ofName);
    const meant = Array.from(units).filter((unit) => isMeant(entryFacts(this.#blocks, unit)));
    for (const unit of meant) this.#remove(unit);
    this.#leave();
    return meant.length;
  }

  /**
   * Counts a hit.
   * @param windowMs hits further from the one before than that count anew
   * @returns hits in close succession; 0 where another thread writes
   */
  countHit(mark: EntryMark, now: number, windowMs: number): number {
    if (!this.#enter()) return 0;
    const at = relative(now, this.expiresAt(mark.unit));
    const hits = this.has(mark) ? writeHit(this.#blocks.words, mark.unit * UNIT_WORDS, at, windowMs) : 0;
    this.#leave();
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
    if (!this.#enter()) return;
    if (this.has(mark))
      this.#blocks.words[mark.unit * UNIT_WORDS + Head.RETRY] = relative(time, this.expiresAt(mark.unit));
    this.#leave();
  }

  /** Whether a background refresh is under way. */
  isRefreshing(mark: EntryMark): boolean {
    return this.has(mark) && this.marks.isRefreshing(mark.unit);
  }

  setRefreshing(mark: EntryMark, refreshing: boolean): void {
    if (this.has(mark)) this.marks.setRefreshing(mark.unit, refreshing);
  }

  #write(unit: number, key: EntryKey, content: EntryContent): void {
    const serial = this.#control[SERIAL] as number;
    this.#control[SERIAL] = serial + 1;
    this.#turn(unit);
    writeEntry(this.#blocks, this.#floats, unit, key, serial, content, this.#shift);
    this.#turn(unit);
  }

  #remove(unit: number): void {
    this.#turn(unit);
    this.#index.remove(this.#word(unit, Head.HASH), unit);
    this.#tree.unlink(unit);
    this.#control[COUNT] = this.size - 1;
    this.#blocks.words[unit * UNIT_WORDS + Head.KEY] = 0;
    this.#blocks.words[unit * UNIT_WORDS + Head.SERIAL] = ~this.#word(unit, Head.SERIAL);
    this.#blocks.free(unit);
    this.#turn(unit);
  }

  /** Before and after a change to what others may be reading. */
  #turn(unit: number): void {
    if (this.#isShared) this.#guard.turn(unit >> REGION_SHIFT);
  }

  /** False where another thread writes and does not come to an end. */
  #enter(): boolean {
    if (!this.#isShared) return !this.#isReleased;
    const taken = this.#lock.take();
    if (taken !== Taken.ABANDONED) return taken === Taken.WHOLE;
    this.#guard.reset();
    this.#clear();
    this.#guard.reset();
    return true;
  }

  #leave(): void {
    if (this.#isShared) this.#lock.release();
  }

  #clear(): void {
    const isNew = this.#blocks.octetsTouched === 0;
    this.#control[COUNT] = 0;
    if (!isNew) this.#index.pairs.fill(0);
    this.#blocks.clear();
    this.#tree.clear(isNew);
  }

  #evict(unit: number): number {
    this.#remove(unit);
    return 1;
  }

  #evictArea(units: number): number {
    const area = this.#evictor.area(units);
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

const REGION_SHIFT = Math.log2(REGION_UNITS);
/** How often a search is begun anew that another thread disturbed. */
const ATTEMPTS = 4;
const DISTURBED = -2;
