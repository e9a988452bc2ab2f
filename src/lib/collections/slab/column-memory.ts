/**
 * Columns of numbers and chunks of octets that grow, for tables that are no objects to the garbage collector. They begin in memory of one
 * thread. {@link ColumnMemory.share} moves them into shared memory, where other threads read what this one writes.
 *
 * Who reads takes the same columns in the same order, with the same classes, and has {@link ColumnMemory.join} put the writer's memory in their
 * place. Reading goes without locks: see {@link ColumnMemory.beginReading}.
 */
import { ReadGuard } from "./read-guard.ts";

type Cells = Int32Array | Uint16Array | Uint8Array;

/** What another thread needs to {@link ColumnMemory.join}. Sending it sends no octets. */
export interface SharedColumns {
  /** How often columns have moved, or chunks were added, in the life of this memory. */
  readonly layout: number;
  readonly control: SharedArrayBuffer;
  readonly columns: readonly SharedArrayBuffer[];
  readonly chunks: readonly (readonly SharedArrayBuffer[])[];
}

/** Words of the part `control`, each in a line of its own: a counter that is odd while something changes, and the layout. */
const SEQUENCE = 0;
const LAYOUT = 16;
const CONTROL_WORDS = 32;

/** Cells of the smallest column that threads share: a page of numbers, and the kernel gives no memory for cells that nobody writes to. */
const LEAST_SHARED = 1 << 14;
const LEAST = 16;
/** So many are copied in less than a tenth of a millisecond. */
const PORTION_OCTETS = 1 << 16;

/** A column. Whoever loops over it takes `cells` anew each time: they move as it grows. */
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

  /** Octets of memory that it takes: the kernel gives none for shared cells that were never in use. */
  get octets(): number {
    const { buffer, BYTES_PER_ELEMENT, byteLength } = this.cells;
    return buffer instanceof SharedArrayBuffer ? this.#used * BYTES_PER_ELEMENT : byteLength;
  }

  /** Makes room for a cell. New ones hold 0. */
  reserve(index: number): void {
    if (index >= this.#used) this.#used = index + 1;
    if (index < this.cells.length) return;
    const isShared = this.#moved();
    this.#move(isShared ? 2 * (index + 1) : Math.max(LEAST, index + 1 + (index >> 3)), isShared);
  }

  /** Moves it to where other threads see it. */
  share(): SharedArrayBuffer {
    const { buffer } = this.cells;
    if (buffer instanceof SharedArrayBuffer) return buffer;
    this.#move(Math.max(LEAST_SHARED, 4 * this.cells.length), true);
    return this.share();
  }

  /** Looks at the column of another thread. */
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

/** Pieces of one size, which stay where they are. */
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

  /** Moves one after the other to where other threads see it. */
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
  /** That which is known here. */
  #layout = 0;
  /** Columns have moved since the layout was told last. */
  #isMoved = false;
  #onLayout: (() => void) | undefined;

  /** Numbers of 32 bits. @param length cells that are there from the beginning */
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
   * Moves what there is to where other threads will see it, in portions: then {@link share} has little to move. Between two of them it may be written to as
   * before, and there is no counter yet.
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
   * @param onLayout called when they have to {@link join} anew
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

  /** Reads what another thread writes, in place of all that was here. */
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

  /** One change. Other threads that read meanwhile begin anew. */
  write<T>(change: () => T): T {
    this.beginWriting();
    try {
      return change();
    } finally {
      this.endWriting();
    }
  }

  /** The writer begins a change, and ends it with {@link endWriting}. Between the two nobody reads what is there. */
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
   * A reader begins. What it reads until {@link isWhole} may be of no state at all: lengths may be any number, and what is chained may be a
   * circle.
   *
   * Why nothing torn is taken for whole: see {@link ReadGuard}, whose one region this is. Cells that have moved are written to no more, so
   * who still looks at the former ones would see one state for ever: the layout is written between the two turns of the counter that enclose the move, so a
   * reader with the former layout either sees the later one here, or that the counter has changed in the end.
   * @returns false while a change is being made, or when columns have moved that are not known here yet
   */
  beginReading(): boolean {
    const control = this.#control;
    if (this.#guard === undefined || control === undefined) return true;
    return this.#guard.begin(0) && Atomics.load(control, LAYOUT) === this.#layout;
  }

  /** Whether what was read since {@link beginReading} is one state. */
  isWhole(): boolean {
    return this.#guard === undefined || this.#guard.isWhole();
  }

  /**
   * A reader sleeps if a change is being made.
   * @returns false where that is of no use, as columns have moved that are not known here yet
   */
  sleep(milliseconds: number): boolean {
    const control = this.#control;
    if (control === undefined || Atomics.load(control, LAYOUT) !== this.#layout) return false;
    const sequence = Atomics.load(control, SEQUENCE);
    // Nobody wakes it.
    if ((sequence & 1) !== 0) Atomics.wait(control, SEQUENCE, sequence, milliseconds);
    return true;
  }

  /** Notes that something is about to move. @returns whether it is to be where other threads see it */
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
