/**
 * Endpoint sets as octets. A large cluster has ten thousand of them with 150,000 endpoints, and each set would be a dozen objects with 800
 * octets. Here one takes some 50 octets in a few buffers, and an endpoint 20 with what finds it by its address; the garbage collector passes
 * over all of them. What is read comes as objects that look into the buffers and hold until the set changes.
 */
import type { OctetArena } from "../../../lib/collections/octet-arena.ts";
import type { Column, ColumnMemory } from "../../../lib/collections/slab/column-memory.ts";
import { GrowingIndex, NO_ENTRY } from "../../../lib/collections/slab/growing-index.ts";
import type { AddressKey } from "../../objects/addresses.ts";
import { equalEndpointSets } from "../../objects/equality.ts";
import type { EndpointGroup, EndpointSet, Identity } from "../../objects/objects.ts";
import type { AddressPrefixes } from "../tables/address-prefixes.ts";
import { AddressSlots } from "../tables/address-slots.ts";
import { BlockTable, type Slot } from "../tables/block-table.ts";
import type { EntryTable } from "../tables/entry-table.ts";
import { hashText } from "../tables/hashes.ts";
import { LargeObjects } from "../tables/large-objects.ts";
import { slotListing, type TableListing } from "../tables/table-listing.ts";
import { EndpointBlockWriter, readBlockGroups, readBlockName, readBlockStamp } from "./endpoint-block.ts";
import { addressesOf, differentAddresses } from "./endpoint-difference.ts";

export class EndpointTable {
  readonly #entries: EntryTable;
  readonly #blocks: BlockTable;
  readonly #byName = new GrowingIndex();
  readonly #byAddress: AddressSlots;
  readonly #writer = new EndpointBlockWriter();
  /** Of each slot: the service that it belongs to, and the next set of that. */
  readonly #owners: Column<Int32Array>;
  readonly #next: Column<Int32Array>;
  /** Sets that no block has room for. */
  readonly large = new LargeObjects<EndpointSet>();

  /**
   * @param entries what sets belong to
   * @param prefixes told of each address that comes and goes
   */
  constructor(memory: ColumnMemory, arena: OctetArena, entries: EntryTable, prefixes?: AddressPrefixes) {
    this.#entries = entries;
    this.#blocks = new BlockTable(memory, arena);
    this.#byAddress = new AddressSlots(memory, prefixes);
    this.#owners = memory.int32();
    this.#next = memory.int32();
  }

  /** Octets that all of them take, without the blocks. */
  get octets(): number {
    const own = this.#next.octets + this.#owners.octets;
    return own + this.#blocks.octets + this.#byName.octets + this.#byAddress.octets;
  }

  /** Pairs of an address and a set. */
  get addressCount(): number {
    return this.#byAddress.size;
  }

  /** How many of these pairs are of IPv4. */
  get ipv4AddressCount(): number {
    return this.#byAddress.ipv4Size;
  }

  /** For the one who writes. @param namespace where that stands. @returns {@link NO_ENTRY} where there is none of that name */
  find(namespace: Slot, name: string): Slot {
    const index = this.#byName;
    for (let slot = index.first(hashText(namespace, name)); slot !== NO_ENTRY; slot = index.after(slot))
      if (this.#entries.namespaceOf(this.ownerOf(slot)) === namespace && this.nameOf(slot) === name)
        return slot;
    return NO_ENTRY;
  }

  ownerOf(slot: Slot): Slot {
    return this.#owners.cells[slot] ?? NO_ENTRY;
  }

  /** To be read at once. */
  groupsAt(slot: Slot): readonly EndpointGroup[] {
    const octets = this.#blocks.buffer(slot);
    const start = this.#blocks.start(slot);
    const stamp = readBlockStamp(octets, start);
    return stamp === 0 ? readBlockGroups(octets, start) : this.large.get(slot, stamp).groups;
  }

  nameOf(slot: Slot): string {
    return readBlockName(this.#blocks.buffer(slot), this.#blocks.start(slot));
  }

  /** Whether a set of the same owner and name says the same. */
  says(slot: Slot, set: EndpointSet): boolean {
    const large = this.#largeAt(slot);
    if (large !== undefined) return equalEndpointSets(large, set);
    const octets = this.#writer.write(set);
    return octets !== undefined && this.#blocks.equals(slot, octets);
  }

  /** There must be none of that name. It becomes the last one of its owner's. */
  add(owner: Slot, set: EndpointSet): void {
    const octets = this.#writer.write(set);
    const slot = this.#blocks.add(octets ?? NO_OCTETS);
    if (octets === undefined) this.#blocks.replace(slot, this.#writeLarge(slot, set));
    this.#owners.reserve(slot);
    this.#next.reserve(slot);
    this.#owners.cells[slot] = owner;
    this.#append(owner, slot);
    this.#byName.add(slot, hashText(this.#entries.namespaceOf(owner), set.name));
    for (const key of addressesOf(set)) this.#byAddress.add(key, slot);
    this.#entries.touch(owner);
  }

  /** Puts a set in the place of one with its name and owner. */
  replace(slot: Slot, set: EndpointSet): void {
    const { gone, come } = differentAddresses(this.#setAt(slot), set);
    const octets = this.#writer.write(set);
    this.#blocks.replace(slot, octets ?? this.#writeLarge(slot, set));
    if (octets !== undefined) this.large.delete(slot);
    for (const key of come) this.#byAddress.add(key, slot);
    for (const key of gone) this.#byAddress.delete(key, slot);
    this.#entries.touch(this.ownerOf(slot));
  }

  delete(slot: Slot): void {
    const owner = this.ownerOf(slot);
    for (const key of addressesOf(this.#setAt(slot))) this.#byAddress.delete(key, slot);
    this.#byName.remove(slot);
    this.#unchain(owner, slot);
    this.large.delete(slot);
    this.#blocks.delete(slot);
    this.#entries.touch(owner);
  }

  /** The sets with an address, in the order in which they came. */
  at(key: AddressKey): Slot[] {
    const index = this.#byAddress;
    const slots: Slot[] = [];
    // A reader may be led round a circle while another thread writes: the bound ends it.
    let left = index.places;
    for (let entry = index.first(key); entry !== NO_ENTRY && left-- > 0; entry = index.after(entry)) {
      const slot = index.slot(entry);
      // The hash of an address of IPv4 is as good as the address.
      if (typeof key === "number" || addressesOf(this.#setAt(slot)).has(key)) slots.push(slot);
    }
    // Two addresses of IPv6 in one set may have the same hash.
    return typeof key === "number" ? slots : [...new Set(slots)];
  }

  /** All of them. They may come and go meanwhile. */
  slots(): Generator<Slot> {
    return this.#blocks.slots();
  }

  /** The set and those that come behind it. */
  chain(first: Slot): Slot[] {
    const slots: Slot[] = [];
    let left = this.#next.cells.length;
    for (let slot = first; slot !== NO_ENTRY && left-- > 0; slot = this.#following(slot)) slots.push(slot);
    return slots;
  }

  /** Their groups. */
  groupsOf(first: Slot): readonly EndpointGroup[] {
    if (first === NO_ENTRY) return NO_GROUPS;
    const groups = this.groupsAt(first);
    if (this.#following(first) === NO_ENTRY) return groups;
    return this.chain(first).flatMap((slot) => this.groupsAt(slot));
  }

  /** Copies them, as octets. @returns reads the copy */
  copyGroupsOf(first: Slot): () => readonly EndpointGroup[] {
    const blocks = this.#blocks;
    const copies = this.chain(first).map((slot) => {
      const start = blocks.start(slot);
      const block = blocks.buffer(slot).subarray(start, start + blocks.length(slot));
      return this.#largeAt(slot) ?? Buffer.from(block);
    });
    return () =>
      copies.flatMap((copy) => (Buffer.isBuffer(copy) ? readBlockGroups(copy, 0) : [...copy.groups]));
  }

  /** Begins a listing: {@link TableListing}. */
  listing(find: (identity: Identity) => Slot): TableListing {
    return slotListing(this.#blocks, find, (slot) => ({
      namespace: this.#entries.namespaceNameOf(this.ownerOf(slot)),
      name: this.nameOf(slot),
    }));
  }

  #setAt(slot: Slot): Pick<EndpointSet, "groups"> {
    return { groups: this.groupsAt(slot) };
  }

  #largeAt(slot: Slot): EndpointSet | undefined {
    const stamp = readBlockStamp(this.#blocks.buffer(slot), this.#blocks.start(slot));
    return stamp === 0 ? undefined : this.large.get(slot, stamp);
  }

  #writeLarge(slot: Slot, set: EndpointSet): Uint8Array {
    return this.#writer.writeLarge(set.name, this.large.put(slot, set));
  }

  #following(slot: Slot): Slot {
    return this.#next.cells[slot] ?? NO_ENTRY;
  }

  #append(owner: Slot, slot: Slot): void {
    const next = this.#next.cells;
    next[slot] = NO_ENTRY;
    let at = this.#entries.firstSet(owner);
    if (at === NO_ENTRY) {
      this.#entries.setFirstSet(owner, slot);
      return;
    }
    for (let behind = next[at] ?? NO_ENTRY; behind !== NO_ENTRY; behind = next[at] ?? NO_ENTRY) at = behind;
    next[at] = slot;
  }

  #unchain(owner: Slot, slot: Slot): void {
    const next = this.#next.cells;
    const following = next[slot] ?? NO_ENTRY;
    let at = this.#entries.firstSet(owner);
    if (at === slot) {
      this.#entries.setFirstSet(owner, following);
      return;
    }
    while (at !== NO_ENTRY && next[at] !== slot) at = next[at] ?? NO_ENTRY;
    if (at !== NO_ENTRY) next[at] = following;
  }
}

const NO_OCTETS: Uint8Array = new Uint8Array(0);
const NO_GROUPS: readonly EndpointGroup[] = [];

/** The same set as an object of its own. */
export function copySet({ namespace, name, service, groups }: EndpointSet): EndpointSet {
  return {
    namespace,
    name,
    service,
    groups: groups.map(({ addressLength, addresses, count, readyCount, labels, zones, ports }) => ({
      addressLength,
      // A view would be sent to another thread with all that stands beside it.
      addresses: addresses.slice(),
      count,
      readyCount,
      labels,
      zones,
      ports,
    })),
  };
}
