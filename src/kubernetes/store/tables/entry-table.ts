/**
 * Services as octets, found by namespace and name: a large cluster has ten thousand of them, and each would be some fifteen objects with a
 * kilobyte. Here one takes some 150 octets in a few buffers, which the garbage collector passes over. A place also stands for a service
 * that only its slices name so far; its block is then
 *
 *     2  octets of the name
 *     n  name
 *
 * and that of a service that has been seen goes on with what {@link ServiceBlockWriter} writes.
 */
import { readU16 } from "../../../dns/octets.ts";
import type { OctetArena } from "../../../lib/collections/octet-arena.ts";
import type { Column, ColumnMemory } from "../../../lib/collections/slab/column-memory.ts";
import { GrowingIndex, NO_ENTRY } from "../../../lib/collections/slab/growing-index.ts";
import type { Identity, Service, ServiceType } from "../../objects/objects.ts";
import { BlockTable, type Slot } from "./block-table.ts";
import { hashLabel, hashText } from "./hashes.ts";
import { LargeObjects } from "./large-objects.ts";
import type { NamespaceTable } from "./namespace-table.ts";
import {
  copyService,
  NAME_HEAD,
  publishesOf,
  ServiceBlockWriter,
  type ServiceNames,
  StoredService,
  typeOf,
} from "./service-block.ts";
import { isLabel, isText, RecentTexts, writeLabel } from "./short-text.ts";
import { slotListing, type TableListing } from "./table-listing.ts";

/**
 * What of a service is looked at most, in one octet: 0 for none, else {@link SEEN} and the first octet of its block, {@link LARGE} for one that no
 * block has room for.
 */
const SEEN = 0x40;
const LARGE = 0x20;

export class EntryTable {
  readonly #namespaces: NamespaceTable;
  readonly #blocks: BlockTable;
  readonly #byName: GrowingIndex;
  readonly #namespaceOf: Column<Int32Array>;
  /** The neighbours in the namespace. */
  readonly #next: Column<Int32Array>;
  readonly #previous: Column<Int32Array>;
  /** The first of its endpoint sets. */
  readonly #firstSet: Column<Int32Array>;
  /** Grows with each change of a service or its endpoints. Never set back, so that none who remembers one is deceived by another service. */
  readonly #versions: Column<Int32Array>;
  readonly #states: Column<Uint8Array>;
  readonly #texts = new RecentTexts();
  readonly #writer = new ServiceBlockWriter();
  /** Services that no block has room for. */
  readonly large = new LargeObjects<Service>();
  #services = 0;

  constructor(memory: ColumnMemory, arena: OctetArena, namespaces: NamespaceTable) {
    this.#namespaces = namespaces;
    this.#blocks = new BlockTable(memory, arena);
    this.#byName = new GrowingIndex(memory);
    this.#namespaceOf = memory.int32();
    this.#next = memory.int32();
    this.#previous = memory.int32();
    this.#firstSet = memory.int32();
    this.#versions = memory.int32();
    this.#states = memory.uint8();
  }

  /** Without the blocks. */
  get octets(): number {
    const columns = [this.#namespaceOf, this.#next, this.#previous, this.#firstSet, this.#versions];
    const own = columns.reduce((sum, { octets }) => sum + octets, this.#states.octets);
    return own + this.#blocks.octets + this.#byName.octets;
  }

  /** How many services there are. For the one who writes. */
  get serviceCount(): number {
    return this.#services;
  }

  /** @returns {@link NO_ENTRY} for one that is neither there nor named by slices */
  find(namespace: Slot, name: string): Slot {
    if (namespace === NO_ENTRY) return NO_ENTRY;
    const index = this.#byName;
    const first = index.first(hashText(namespace, name));
    for (let slot = first; slot !== NO_ENTRY; slot = index.after(slot))
      if (this.#namespaceOf.cells[slot] === namespace && this.#isNamed(slot, name)) return slot;
    return NO_ENTRY;
  }

  /** The same for a label: see {@link ServiceLabels}. */
  findLabel(namespace: Slot, octets: Uint8Array, at: number): Slot {
    if (namespace === NO_ENTRY) return NO_ENTRY;
    const index = this.#byName;
    let slot = index.first(hashLabel(namespace, octets, at));
    for (; slot !== NO_ENTRY; slot = index.after(slot)) {
      if (this.#namespaceOf.cells[slot] !== namespace) continue;
      const block = this.#blocks.buffer(slot);
      const start = this.#blocks.start(slot);
      const name = start + NAME_HEAD;
      if (isLabel(block, name, name + nameLength(block, start), octets, at)) break;
    }
    return slot;
  }

  /** Writes the names of a service and its namespace as two labels. @returns where they end, -1 where they are not labels */
  writeLabels(slot: Slot, to: Uint8Array, from: number): number {
    const block = this.#blocks.buffer(slot);
    const start = this.#blocks.start(slot);
    const at = writeLabel(block, start + NAME_HEAD, nameLength(block, start), to, from);
    return at < 0 ? at : this.#namespaces.writeLabel(this.namespaceOf(slot), to, at);
  }

  /** There must be none of that name. */
  add(namespace: Slot, name: string): Slot {
    const namespaces = this.#namespaces;
    const slot = this.#blocks.add(this.#writer.writeName(name));
    this.#byName.add(slot, hashText(namespace, name));
    for (const column of [this.#namespaceOf, this.#next, this.#previous, this.#firstSet, this.#versions])
      column.reserve(slot);
    this.#states.reserve(slot);
    this.#namespaceOf.cells[slot] = namespace;
    this.#firstSet.cells[slot] = NO_ENTRY;
    this.#states.cells[slot] = 0;
    const following = namespaces.firstService(namespace);
    this.#next.cells[slot] = following;
    this.#previous.cells[slot] = NO_ENTRY;
    if (following !== NO_ENTRY) this.#previous.cells[following] = slot;
    namespaces.setFirstService(namespace, slot);
    namespaces.addCount(namespace, 1);
    this.touch(slot);
    return slot;
  }

  /** It must have neither a service nor endpoints. */
  delete(slot: Slot): void {
    const namespaces = this.#namespaces;
    const namespace = this.namespaceOf(slot);
    const following = this.next(slot);
    const previous = this.#previous.cells[slot] ?? NO_ENTRY;
    if (previous === NO_ENTRY) namespaces.setFirstService(namespace, following);
    else this.#next.cells[previous] = following;
    if (following !== NO_ENTRY) this.#previous.cells[following] = previous;
    namespaces.addCount(namespace, -1);
    this.#byName.remove(slot);
    this.#blocks.delete(slot);
    this.touch(slot);
  }

  nameOf(slot: Slot): string {
    const octets = this.#blocks.buffer(slot);
    const start = this.#blocks.start(slot);
    const name = start + NAME_HEAD;
    return this.#texts.read(slot, octets, name, name + nameLength(octets, start));
  }

  namespaceOf(slot: Slot): Slot {
    return this.#namespaceOf.cells[slot] ?? NO_ENTRY;
  }

  namespaceNameOf(slot: Slot): string {
    return this.#namespaces.nameOf(this.namespaceOf(slot));
  }

  /** The next one of its namespace. */
  next(slot: Slot): Slot {
    return this.#next.cells[slot] ?? NO_ENTRY;
  }

  firstSet(slot: Slot): Slot {
    return this.#firstSet.cells[slot] ?? NO_ENTRY;
  }

  setFirstSet(slot: Slot, set: Slot): void {
    this.#firstSet.cells[slot] = set;
  }

  version(slot: Slot): number {
    return this.#versions.cells[slot] ?? 0;
  }

  /** Something about it has changed. */
  touch(slot: Slot): void {
    this.#versions.cells[slot] = (this.version(slot) + 1) | 0;
  }

  /** Whether the service itself has been seen. */
  hasService(slot: Slot): boolean {
    return (this.#states.cells[slot] ?? 0) !== 0;
  }

  typeOf(slot: Slot): ServiceType | undefined {
    const state = this.#states.cells[slot] ?? 0;
    return state === 0 ? undefined : typeOf(state & ~(SEEN | LARGE));
  }

  publishes(slot: Slot): boolean {
    return publishesOf(this.#states.cells[slot] ?? 0);
  }

  /** To be read at once. @param names whose service it is */
  service(slot: Slot, names: ServiceNames): Service | undefined {
    const state = this.#states.cells[slot] ?? 0;
    if (state === 0) return undefined;
    const blocks = this.#blocks;
    const octets = blocks.buffer(slot);
    const start = blocks.start(slot);
    const begin = start + NAME_HEAD + nameLength(octets, start);
    if ((state & LARGE) !== 0) return this.large.get(slot, octets.readInt32LE(begin));
    return new StoredService(names, octets, begin, start + blocks.length(slot));
  }

  /** Gives it a service in the place of its former one, which holds no longer; `undefined` for none. */
  put(slot: Slot, service: Service | undefined): void {
    const octets = service && this.#writer.write(service);
    this.#services += Number(service !== undefined) - Number(this.hasService(slot));
    if (service === undefined) {
      this.#blocks.replace(slot, this.#writer.writeName(this.nameOf(slot)));
      this.#states.cells[slot] = 0;
    } else {
      this.#blocks.replace(slot, octets ?? this.#writeLarge(slot, service));
      this.#states.cells[slot] = SEEN | (octets === undefined ? LARGE : 0) | this.#writer.flagsOf(service);
    }
    if (octets !== undefined || service === undefined) this.large.delete(slot);
    this.touch(slot);
  }

  /** All places. They may come and go meanwhile. */
  slots(): Generator<Slot> {
    return this.#blocks.slots();
  }

  /** Of services. */
  listing(find: (identity: Identity) => Slot): TableListing {
    return slotListing(this.#blocks, find, (slot) =>
      this.hasService(slot) ? { namespace: this.namespaceNameOf(slot), name: this.nameOf(slot) } : undefined,
    );
  }

  #writeLarge(slot: Slot, service: Service): Uint8Array {
    return this.#writer.writeLarge(service.name, this.large.put(slot, copyService(service)));
  }

  #isNamed(slot: Slot, name: string): boolean {
    const octets = this.#blocks.buffer(slot);
    const start = this.#blocks.start(slot);
    return isText(octets, start + NAME_HEAD, start + NAME_HEAD + nameLength(octets, start), name);
  }
}

function nameLength(octets: Uint8Array, start: number): number {
  return readU16(octets, start);
}
