/**
 * Columns of numbers and chunks of octets that grow, for tables that are not objects to the garbage collector. They
 * start in memory of one thread. {@link ColumnMemory.share} moves them into shared memory, where other threads read
 * what this one writes.
 *
 * A reader makes the same columns in the same order, with the same classes, and replaces its memory with the writer's
 * by {@link ColumnMemory.join}. Reads take no locks: see {@link ColumnMemory.beginReading}.
 */
import { ReadGuard } from "./read-guard.ts";

type Cells = Int32Array | Uint16Array | Uint8Array;

/** Everything that another thread needs to {@link ColumnMemory.join}. Sending it copies no data. */
export interface SharedColumns {
  /** The number of times that columns were moved or chunks were added. */
  readonly layout: number;
  readonly control: SharedArrayBuffer;
  readonly columns: readonly SharedArrayBuffer[];
  readonly chunks: readonly (readonly SharedArrayBuffer[])[];
}

/**
 * Words of the part `control`, each in a cache line of its own: a counter that is odd during a change, and the
 * layout.
 */
const SEQUENCE = 0;
const LAYOUT = 16;
const CONTROL_WORDS = 32;

/**
 * Cells of the smallest shared column: a page of numbers. The kernel allocates no memory for cells that are never
 * written.
 */
const LEAST_SHARED = 1 << 14;
const LEAST = 16;
/** A portion is small enough not to hold up the thread. */
const PORTION_OCTETS = 1 << 16;

/** A column. A loop must read `cells` again after each growth: they move. */
export class Column<T extends Cells> {
  cells: T;
  readonly #make: (length: number, isShared: boolean) => T;
  readonly #moved: () => boolean;
  #used = 0;

  constructor(make: (length: number, isShared: boolean) => T, moved: () => boolean, length: number) {
    this.#make = make;
    this.#moved = moved;
    this.cells = make(length, false);
  }

  /** Bytes of memory. Shared cells that were never written take none. */
  get octets(): number {
    const { buffer, BYTES_PER_ELEMENT, byteLength } = this.cells;
    return buffer instanceof SharedArrayBuffer ? this.#used * BYTES_PER_ELEMENT : byteLength;
  }

  /** Makes room for a cell. New cells hold 0. */
  reserve(index: number): void {
    if (index >= this.#used) this.#used = index + 1;
    if (index < this.cells.length) return;
    const isShared = this.#moved();
    this.#move(isShared ? 2 * (index + 1) : Math.max(LEAST, index + 1 + (index >> 3)), isShared);
  }

  /** Moves it into shared memory. */
  share(): SharedArrayBuffer {
    const { buffer } = this.cells;
    if (buffer instanceof SharedArrayBuffer) return buffer;
    this.#move(Math.max(LEAST_SHARED, 4 * this.cells.length), true);
    return this.share();
  }

  /** Attaches to the column of another thread. */
  join(buffer: SharedArrayBuffer): void {
    const type = this.cells.constructor as new (buffer: SharedArrayBuffer) => T;
    this.cells = new type(buffer);
    this.#used = 0;
  }

  #move(length: number, isShared: boolean): void {
    const cells = this.#make(length, isShared);
    cells.set(this.cells);
    this.cells = cells;
  }
}

/** Pieces of one size that never move. */
export class Chunks {
  readonly #octets: number;
  readonly #moved: () => boolean;
  #list: Buffer[] = [];

  constructor(octets: number, moved: () => boolean) {
    this.#octets = octets;
    this.#moved = moved;
  }

  get list(): readonly Buffer[] {
    return this.#list;
  }

  add(): void {
    this.#list.push(
      this.#moved() ? Buffer.from(new SharedArrayBuffer(this.#octets)) : Buffer.alloc(this.#octets),
    );
  }

  share(): SharedArrayBuffer[] {
    for (const _ of this.shareInPortions());
    return this.#list.flatMap(({ buffer }) => (buffer instanceof SharedArrayBuffer ? buffer : []));
  }

  /** Moves them into shared memory one after the other. */
  *shareInPortions(): Generator<undefined> {
    for (const [index, chunk] of this.#list.entries()) {
      if (chunk.buffer instanceof SharedArrayBuffer) continue;
      const shared = Buffer.from(new SharedArrayBuffer(this.#octets));
      shared.set(chunk);
      this.#list[index] = shared;
      yield;
    }
  }

  join(buffers: readonly SharedArrayBuffer[]): void {
    this.#list = buffers.map((buffer) => Buffer.from(buffer));
  }
}

export class ColumnMemory {
  readonly #columns: Column<Cells>[] = [];
  readonly #chunks: Chunks[] = [];
  #control: Int32Array | undefined;
  #guard: ReadGuard | undefined;
  #isReader = false;
  /** The layout that this side has attached to. */
  #layout = 0;
  /** Columns have moved since the layout was last published. */
  #isMoved = false;
  #onLayout: (() => void) | undefined;

  /** 32-bit numbers. @param length cells that exist from the beginning */
  int32(length = 0): Column<Int32Array> {
    return this.#add(length, (cells, isShared) =>
      isShared ? new Int32Array(new SharedArrayBuffer(4 * cells)) : new Int32Array(cells),
    );
  }

  uint16(): Column<Uint16Array> {
    return this.#add(0, (cells, isShared) =>
      isShared ? new Uint16Array(new SharedArrayBuffer(2 * cells)) : new Uint16Array(cells),
    );
  }

  uint8(): Column<Uint8Array> {
    return this.#add(0, (cells, isShared) =>
      isShared ? new Uint8Array(new SharedArrayBuffer(cells)) : new Uint8Array(cells),
    );
  }

  chunks(octets: number): Chunks {
    const chunks = new Chunks(octets, () => this.#moved());
    this.#chunks.push(chunks);
    return chunks;
  }

  /** Whether other threads read it, or this one reads what another one writes. */
  get isShared(): boolean {
    return this.#guard !== undefined;
  }

  /** Whether it is written by another thread. */
  get isReader(): boolean {
    return this.#isReader;
  }

  /**
   * Moves the present data into shared memory, in portions, so that {@link share} has little left to move. Between
   * two portions the memory may be written as before; there is no counter yet.
   */
  *prepareToShare(): Generator<undefined> {
    for (const column of this.#columns) {
      const { byteLength } = column.cells;
      column.share();
      if (byteLength > PORTION_OCTETS) yield;
    }
    for (const chunks of this.#chunks) yield* chunks.shareInPortions();
  }

  /**
   * Lets other threads read.
   * @param onLayout called when they have to {@link join} again
   */
  share(onLayout?: () => void): SharedColumns {
    if (onLayout !== undefined) this.#onLayout = onLayout;
    this.#control ??= new Int32Array(new SharedArrayBuffer(4 * CONTROL_WORDS));
    this.#guard ??= new ReadGuard(this.#control.subarray(SEQUENCE, SEQUENCE + 1));
    const control = this.#control.buffer;
    if (!(control instanceof SharedArrayBuffer)) throw new TypeError("the memory is not shared");
    return {
      layout: this.#layout,
      control,
      columns: this.#columns.map((column) => column.share()),
      chunks: this.#chunks.map((chunks) => chunks.share()),
    };
  }

  /** Attaches to the memory of another thread; the own contents are dropped. */
  join({ layout, control, columns, chunks }: SharedColumns): void {
    this.#isReader = true;
    this.#layout = layout;
    this.#control = new Int32Array(control);
    this.#guard = new ReadGuard(this.#control.subarray(SEQUENCE, SEQUENCE + 1));
    for (const [index, column] of this.#columns.entries()) {
      const buffer = columns[index];
      if (buffer !== undefined) column.join(buffer);
    }
    for (const [index, each] of this.#chunks.entries()) each.join(chunks[index] ?? []);
  }

  /** Makes one change. Other threads that are reading start again. */
  write<T>(change: () => T): T {
    this.beginWriting();
    try {
      return change();
    } finally {
      this.endWriting();
    }
  }

  /** Begins a change, which {@link endWriting} ends. Readers wait or fail in between. */
  beginWriting(): void {
    if (this.#isReader) throw new TypeError("another thread writes here");
    this.#guard?.turn(0);
  }

  endWriting(): void {
    const guard = this.#guard;
    if (guard === undefined) return;
    const isMoved = this.#isMoved;
    this.#isMoved = false;
    if (isMoved && this.#control !== undefined) Atomics.store(this.#control, LAYOUT, ++this.#layout);
    guard.turn(0);
    if (isMoved) this.#onLayout?.();
  }

  /**
   * Begins a read. Until {@link isWhole} confirms it, the data may be inconsistent: lengths may be any number, and
   * chains may be circular.
   *
   * Why no torn read passes: see {@link ReadGuard}, whose single region this is. Cells that have moved are not
   * written any more, so a reader with the old cells would see one state for ever. Therefore the layout is written
   * between the two turns of the counter that enclose the move: a reader with the old layout either sees the new one
   * here, or sees in the end that the counter has changed.
   * @returns false during a change, or if columns have moved since the last {@link join}
   */
  beginReading(): boolean {
    const control = this.#control;
    if (this.#guard === undefined || control === undefined) return true;
    return this.#guard.begin(0) && Atomics.load(control, LAYOUT) === this.#layout;
  }

  /** Whether everything read since {@link beginReading} is one state. */
  isWhole(): boolean {
    return this.#guard === undefined || this.#guard.isWhole();
  }

  /**
   * Sleeps during a change.
   * @returns false if that is of no use, because columns have moved since the last {@link join}
   */
  sleep(milliseconds: number): boolean {
    const control = this.#control;
    if (control === undefined || Atomics.load(control, LAYOUT) !== this.#layout) return false;
    const sequence = Atomics.load(control, SEQUENCE);
    // There is no wake-up; the time-out ends the sleep.
    if ((sequence & 1) !== 0) Atomics.wait(control, SEQUENCE, sequence, milliseconds);
    return true;
  }

  /** Records that a column is about to move. @returns whether it has to be in shared memory */
  #moved(): boolean {
    if (this.#guard === undefined) return false;
    this.#isMoved = true;
    return true;
  }

  #add<T extends Cells>(length: number, make: (length: number, isShared: boolean) => T): Column<T> {
    const column = new Column(make, () => this.#moved(), length);
    this.#columns.push(column);
    return column;
  }
}
