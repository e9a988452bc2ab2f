/**
 * A bounded table of answers, stored as bytes in one buffer: entries have no objects of their own, and a hit
 * allocates none.
 */
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
  /** The entry that was read last. */
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
  /** Milliseconds to add to times of this thread's clock to compare them with times in the entries. */
  #shift = 0;

  /**
   * @param denial whether this is the cache for denials @param secret 32 unpredictable bits. Serials begin there:
   * small ones could be mistaken for links between free blocks
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

  /** Opens the slab of another thread. @param clockStart as in {@link SharedSlab}, for this thread's clock */
  static join(shared: SharedSlab, denial: boolean, clockStart: number): EntrySlab {
    const slab = new EntrySlab(shared.bounds, denial, shared.secret, shared.buffer);
    slab.#gate.isShared = true;
    slab.#shift = clockStart - shared.clockStart;
    return slab;
  }

  /** Makes the slab available to other threads, which {@link join} it. */
  share(clockStart: number): SharedSlab {
    this.#gate.isShared = true;
    return { buffer: this.#buffer, bounds: this.#bounds, secret: this.#secret, clockStart };
  }

  /** Releases the memory; memory shared with other threads stays. */
  release(releasePages: (octets: Uint8Array) => void): void {
    if (this.#gate.isShared) return;
    this.#gate.isReleased = true;
    this.#control[COUNT] = 0;
    releasePages(new Uint8Array(this.#buffer));
  }

  /** While `mayGrow` returns false, new entries evict old ones even if there is room. */
  growOnlyWhile(mayGrow: () => boolean): void {
    this.#blocks.mayGrow = mayGrow;
  }

  /** Sets the listener for the reason why the slab was emptied: an unfinished change or damaged memory. */
  onEmptied(listener: (reason: Error) => void): void {
    this.#gate.onEmptied = listener;
  }

  /** Entries. */
  get size(): number {
    return this.#control[COUNT] as number;
  }

  /** Regions that were ever in use; 0 after the slab was released. */
  get regions(): number {
    return this.#gate.isReleased ? 0 : this.#blocks.unitsTouched / REGION_UNITS;
  }

  /** Bytes of the entries, rounded up to units. */
  get octets(): number {
    return this.#blocks.octetsInUse;
  }

  /** Upper bound for the bytes of the entries. */
  get maxOctets(): number {
    return this.#blocks.regions * REGION_OCTETS;
  }

  /** Bytes of memory in use now, rounded up to what was ever in use. */
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

  /** The unit of the answer to the question of `query`, expired or not; -1 if there is no answer. */
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

  /** Called after a lookup that found no end. */
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

  /** Whether an entry depends on further names. */
  mentions(unit: number): boolean {
    return (this.#word(unit, Head.KEY) & Key.MENTIONS) !== 0;
  }

  serialOf(unit: number): number {
    return this.#word(unit, Head.SERIAL);
  }

  /** The serial of the next entry. */
  get nextSerial(): number {
    return this.#control[SERIAL] as number;
  }

  /**
   * Reads the entry that was just found. Returns the same object each time. @returns `undefined` if another thread
   * wrote during the read
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
   * Stores an answer, replacing the one to the same question. @returns how many other entries were evicted; -1 if the
   * answer was not stored because other threads held the lock for too long
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
    // A refreshed answer is mostly as large as before.
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

  /** @returns how many entries were evicted */
  #linkMentions(unit: number): number {
    if (!this.mentions(unit)) return 0;
    let evicted = 0;
    for (let round = 0; !this.#mentions.link(unit); round++) evicted += this.#evictFor(unit, round);
    return evicted;
  }

  /** Frees nodes for the names of an entry. In an otherwise empty slab the entry would fit. */
  #evictFor(unit: number, round: number): number {
    if (round > 2 * this.capacity) throw new SlabFault("no entry makes room for a name");
    const victim = this.#evictor.victim();
    return victim === unit ? 0 : this.#evict(victim);
  }

  /**
   * Removes the answer to a question. Returns false if other threads held the lock for too long and the answer is
   * still there.
   */
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
   * Drops the answers for a name and for names below it, and the answers that mention such names. Visits only these
   * entries. @param most bound for the number of dropped entries @returns how many were dropped; as many as `most`
   * means that there may be more. -1 if other threads held the lock for too long and nothing was dropped
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
    // A changing cluster outdates names whether or not the cache holds answers for them.
    while (dropped < most && this.#control[COUNT] !== 0) {
      const room = this.#found.subarray(0, Math.min(most - dropped, this.#found.length));
      const count = find(room);
      const before = dropped;
      for (let index = 0; index < count; index++) {
        const unit = room[index] as number;
        // An entry may be found under several names.
        if (!this.#blocks.isBlock(unit)) continue;
        this.#remove(unit);
        dropped++;
      }
      if (count < room.length) break;
      if (dropped === before) throw new SlabFault("the name tree returned a unit that is not an entry");
    }
    return dropped;
  }

  /** Lists entries of a name and of the names below it; empty if other threads write for too long. */
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

  /**
   * Drops the entries of a name, or in a region, that `isMeant` selects. @returns how many; -1 if other threads held
   * the lock for too long and nothing was dropped
   */
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
   * Counts a hit. @param windowMs a hit later than this after the previous one starts a new count @returns hits in
   * close succession; 0 if another thread is writing
   */
  countHit(mark: EntryMark, now: number, windowMs: number): number {
    if (!this.#gate.enter()) return 0;
    const at = relative(now, this.expiresAt(mark.unit));
    const hits = this.has(mark) ? writeHit(this.#blocks.words, mark.unit * UNIT_WORDS, at, windowMs) : 0;
    this.#gate.leave();
    return hits;
  }

  /** How often an answer was used; `undefined` if the answer was removed. */
  hitsOf(mark: EntryMark): Hits | undefined {
    if (!this.has(mark)) return undefined;
    const last = this.#word(mark.unit, Head.LAST_HIT);
    if (last === NEVER) return undefined;
    return {
      count: this.#word(mark.unit, Head.HITS_TYPE) & 0xffff,
      lastAt: this.expiresAt(mark.unit) + last,
    };
  }

  /** `Clock.now()` before which no refresh is tried, because one failed; in the past if none failed. */
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

  /** Leaves the slab empty whatever it held before: a thread may have ended in the middle of this. */
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

/** How many times a search that another thread disturbed is repeated. */
const ATTEMPTS = 4;
