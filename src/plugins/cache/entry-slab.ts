/** A bounded table of answers, as octets in one buffer: no object belongs to an entry, and a hit makes none. */
import type { Name } from "../../dns/name.ts";
import {
  BlockMemory,
  REGION_OCTETS,
  REGION_UNITS,
  UNIT_WORDS,
} from "../../lib/collections/slab/block-memory.ts";
import { HashIndex } from "../../lib/collections/slab/hash-index.ts";
import { ReadGuard } from "../../lib/collections/slab/read-guard.ts";
import { SharedLock } from "../../lib/collections/slab/shared-lock.ts";
import { SharedParts } from "../../lib/collections/slab/shared-parts.ts";
import { SlabFault } from "../../lib/collections/slab/slab-fault.ts";
import type { Asked } from "../../plugin/message/asked.ts";
import { Head, Key, NAME_START, NEVER } from "../../plugin/packed/entry-layout.ts";
import { Frame, FramePool } from "../../plugin/packed/frames.ts";
import { lendSections } from "../../plugin/packed/lend-sections.ts";
import { DAMAGED, DISTURBED, EntryFinder, REGION_SHIFT } from "./entry-finder.ts";
import { EntryMarks } from "./entry-marks.ts";
import { EntryMentions, mentionedUnits } from "./entry-mentions.ts";
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
import { type EntryFacts, entryFacts, readHead } from "./kept-entries.ts";
import { NameTree } from "./name-tree.ts";
import { SlabGate } from "./slab-gate.ts";
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
  readonly #finder: EntryFinder;
  readonly #tree: NameTree;
  readonly #mentions: EntryMentions;
  readonly marks: EntryMarks;
  readonly #evictor: Evictor;
  readonly #frames = new FramePool();
  readonly #found = new Int32Array(1024);
  readonly #guard: ReadGuard;
  readonly #gate: SlabGate;
  readonly #secret: number;
  readonly #bounds: SlabBounds;
  readonly #buffer: SharedArrayBuffer;
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
    this.#mentions = new EntryMentions(this.#blocks, this.#tree);
    this.marks = new EntryMarks(parts.octets(marksFor(regions * REGION_OCTETS)));
    this.#guard = new ReadGuard(parts.int32(regions));
    this.#finder = new EntryFinder(this.#index, this.#blocks, this.#guard);
    const lock = new SharedLock(this.#control, LOCK, sharedTime);
    this.#gate = new SlabGate(this.#guard, lock, () => this.#clear(false));
    const { words } = this.#blocks;
    this.#floats = new Float64Array(words.buffer, words.byteOffset, words.length / 2);
    this.#kept = new KeptAnswer(denial, new Frame(this.#frames, 512, 1).sections);
    this.#evictor = new Evictor(this.#blocks, this.marks);
    if (buffer !== undefined) return;
    this.#clear(true);
    this.#control[SERIAL] = secret;
  }

  /**
   * The slab of another thread.
   * @param clockStart as of {@link SharedSlab}, of this thread's clock
   */
  static join(shared: SharedSlab, denial: boolean, clockStart: number): EntrySlab {
    const slab = new EntrySlab(shared.bounds, denial, shared.secret, shared.buffer);
    slab.#gate.isShared = true;
    slab.#shift = clockStart - shared.clockStart;
    return slab;
  }

  /** Makes it one that other threads can {@link join}. */
  share(clockStart: number): SharedSlab {
    this.#gate.isShared = true;
    return { buffer: this.#buffer, bounds: this.#bounds, secret: this.#secret, clockStart };
  }

  /** Gives its memory back; that of one that other threads have stays. */
  release(releasePages: (octets: Uint8Array) => void): void {
    if (this.#gate.isShared) return;
    this.#gate.isReleased = true;
    this.#control[COUNT] = 0;
    releasePages(new Uint8Array(this.#buffer));
  }

  /** Where it may not, entries go for new ones although there is room. */
  growOnlyWhile(mayGrow: () => boolean): void {
    this.#blocks.mayGrow = mayGrow;
  }

  /** Has it say why it was emptied, when a change to it was not finished or its memory is damaged. */
  onEmptied(listener: (reason: Error) => void): void {
    this.#gate.onEmptied = listener;
  }

  /** Entries. */
  get size(): number {
    return this.#control[COUNT] as number;
  }

  /** Regions that were ever in use; none of a slab that was released. */
  get regions(): number {
    return this.#gate.isReleased ? 0 : this.#blocks.unitsTouched / REGION_UNITS;
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
    if (!this.#gate.isShared) {
      const unit = this.#finder.find(hash, traits, query);
      return unit === DAMAGED ? this.#mend() : unit;
    }
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const unit = this.#finder.whileOthersWrite(hash, traits, query);
      if (unit === DAMAGED) return this.#mend();
      if (unit !== DISTURBED) return unit;
    }
    return NONE;
  }

  /** For who looked for an answer, and came to no end. */
  #mend(): number {
    if (!this.#gate.enter()) return NONE;
    this.#gate.mend(new SlabFault("the index has no empty place"));
    this.#gate.leave();
    return NONE;
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

  /** Whether an entry rests on further names. */
  mentions(unit: number): boolean {
    return (this.#word(unit, Head.KEY) & Key.MENTIONS) !== 0;
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
    if (this.#gate.isShared && !this.#guard.isWhole()) {
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
    if (!this.#gate.enter()) return NONE;
    try {
      return this.#put(key, content);
    } catch (error) {
      this.#gate.mend(error);
      return NONE;
    } finally {
      this.#gate.leave();
    }
  }

  #put(key: EntryKey, content: EntryContent): number {
    const units = entryUnits(content) + mentionedUnits(content.mentioned);
    const replaced = this.#finder.inside(key.hash, key.traits, content.asked);
    // An answer that is renewed is mostly as large as it was.
    if (replaced !== NONE && this.#blocks.lengthOf(replaced) === units) {
      if (this.mentions(replaced)) this.#mentions.unlink(replaced);
      this.#write(replaced, key, content);
      this.marks.setRefreshing(replaced, false);
      return this.#linkMentions(replaced);
    }
    if (replaced !== NONE) this.#remove(replaced);
    let evicted = 0;
    const surplus = this.#tree.surplusFor(content.asked.bytes, NAME_START);
    if (surplus !== NONE) evicted += this.#evict(surplus);
    while (this.size >= this.capacity) evicted += this.#evict(this.#evictor.victim());
    let unit = this.#blocks.allocate(units);
    for (let round = 0; unit === NONE; round++) {
      if (round > this.capacity) throw new SlabFault("no entry makes room");
      evicted += this.#evictArea(units);
      unit = this.#blocks.allocate(units);
    }
    this.marks.clear(unit);
    this.#write(unit, key, content);
    for (let round = 0; !this.#tree.link(unit); round++) evicted += this.#evictFor(unit, round);
    this.#index.add(key.hash, unit);
    this.#control[COUNT] = this.size + 1;
    return evicted + this.#linkMentions(unit);
  }

  /** @returns how many entries had to go */
  #linkMentions(unit: number): number {
    if (!this.mentions(unit)) return 0;
    let evicted = 0;
    for (let round = 0; !this.#mentions.link(unit); round++) evicted += this.#evictFor(unit, round);
    return evicted;
  }

  /** Makes nodes free for the names of an entry. With nobody else there it would have found its place. */
  #evictFor(unit: number, round: number): number {
    if (round > 2 * this.capacity) throw new SlabFault("no entry makes room for a name");
    const victim = this.#evictor.victim();
    return victim === unit ? 0 : this.#evict(victim);
  }

  /** Takes the answer to a question out. False where others wrote for so long that it is still there. */
  removeAnswer(hash: number, traits: number, asked: Asked): boolean {
    if (!this.#gate.enter()) return false;
    try {
      const unit = this.#finder.inside(hash, traits, asked);
      if (unit !== NONE) this.#remove(unit);
    } catch (error) {
      this.#gate.mend(error);
    } finally {
      this.#gate.leave();
    }
    return true;
  }

  has({ unit, serial }: EntryMark): boolean {
    return unit >= 0 && this.#blocks.isBlock(unit) && this.#word(unit, Head.SERIAL) === serial;
  }

  /**
   * Drops the answers to questions for a name and for names below it, and those that mention such names. Looks at those alone.
   * @param most how many are dropped at the most
   * @returns how many there were; as many as `most` means that there may be more. -1 where others wrote for so long that nothing was done
   */
  dropAtOrBelow({ folded }: Name, most: number): number {
    if (!this.#gate.enter()) return NONE;
    let dropped = 0;
    try {
      dropped += this.#dropFound(most, (room) => this.#tree.collect(folded, room));
      dropped += this.#dropFound(most - dropped, (room) => this.#tree.collectMentioning(folded, room));
    } catch (error) {
      this.#gate.mend(error);
    } finally {
      this.#gate.leave();
    }
    return dropped;
  }

  #dropFound(most: number, find: (room: Int32Array) => number): number {
    let dropped = 0;
    // A cluster in motion has names forgotten whether or not anybody asked for any.
    while (dropped < most && this.#control[COUNT] !== 0) {
      const room = this.#found.subarray(0, Math.min(most - dropped, this.#found.length));
      const count = find(room);
      const before = dropped;
      for (let index = 0; index < count; index++) {
        const unit = room[index] as number;
        // It may be found by several names.
        if (!this.#blocks.isBlock(unit)) continue;
        this.#remove(unit);
        dropped++;
      }
      if (count < room.length) break;
      if (dropped === before) throw new SlabFault("what is found is no entry");
    }
    return dropped;
  }

  /** Entries of a name and of names below it; none where others write for too long. */
  entriesAt(name: Name, most: number): EntryFacts[] {
    if (!this.#gate.enter()) return [];
    try {
      const found = new Int32Array(most);
      const count = this.#tree.collect(name.folded, found);
      return Array.from(found.subarray(0, count), (unit) => entryFacts(this.#blocks, unit));
    } catch (error) {
      this.#gate.mend(error);
      return [];
    } finally {
      this.#gate.leave();
    }
  }

  /** Drops what is meant of the entries of a name, or in a region. @returns how many; -1 where others wrote for so long that nothing was done */
  dropWhere(where: Name | number, isMeant: (entry: EntryFacts) => boolean): number {
    if (!this.#gate.enter()) return NONE;
    try {
      const ofName = typeof where === "number" ? 0 : this.#tree.collect(where.folded, this.#found);
      const units =
        typeof where === "number" ? this.#blocks.blocksIn(where) : this.#found.subarray(0, ofName);
      const meant = Array.from(units).filter((unit) => isMeant(entryFacts(this.#blocks, unit)));
      for (const unit of meant) this.#remove(unit);
      return meant.length;
    } catch (error) {
      this.#gate.mend(error);
      return 0;
    } finally {
      this.#gate.leave();
    }
  }

  /**
   * Counts a hit.
   * @param windowMs hits further from the one before than that count anew
   * @returns hits in close succession; 0 where another thread writes
   */
  countHit(mark: EntryMark, now: number, windowMs: number): number {
    if (!this.#gate.enter()) return 0;
    const at = relative(now, this.expiresAt(mark.unit));
    const hits = this.has(mark) ? writeHit(this.#blocks.words, mark.unit * UNIT_WORDS, at, windowMs) : 0;
    this.#gate.leave();
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
    if (!this.#gate.enter()) return;
    if (this.has(mark))
      this.#blocks.words[mark.unit * UNIT_WORDS + Head.RETRY] = relative(time, this.expiresAt(mark.unit));
    this.#gate.leave();
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
    this.#gate.turn(unit >> REGION_SHIFT);
    writeEntry(this.#blocks, this.#floats, unit, key, serial, content, this.#shift);
    const { mentioned } = content;
    if (mentioned !== undefined) this.#mentions.write(unit, entryUnits(content), mentioned);
    this.#gate.turn(unit >> REGION_SHIFT);
  }

  #remove(unit: number): void {
    this.#gate.turn(unit >> REGION_SHIFT);
    this.#index.remove(this.#word(unit, Head.HASH), unit);
    if (this.mentions(unit)) this.#mentions.unlink(unit);
    this.#tree.unlink(unit);
    this.#control[COUNT] = this.size - 1;
    this.#blocks.words[unit * UNIT_WORDS + Head.KEY] = 0;
    this.#blocks.words[unit * UNIT_WORDS + Head.SERIAL] = ~this.#word(unit, Head.SERIAL);
    this.#blocks.free(unit);
    this.#gate.turn(unit >> REGION_SHIFT);
  }

  /** In the end there is nothing, whatever was there: a thread may have ended while it did this. */
  #clear(isNew: boolean): void {
    this.#control[COUNT] = 0;
    if (!isNew) this.#index.pairs.fill(0);
    this.#blocks.clear(isNew);
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

/** How often a search is begun anew that another thread disturbed. */
const ATTEMPTS = 4;
