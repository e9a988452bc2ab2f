/**
 * Endpoint sets as octets. A large cluster has ten thousand of them with 150,000 endpoints, and each set would be a dozen objects with 800
 * octets. Here one takes some 50 octets in a few buffers, and an endpoint 20 with what finds it by its address; the garbage collector passes
 * over all of them. What is read comes as objects that look into the buffers and hold until the set changes.
 */
import { GrowingIndex, NO_ENTRY, withRoom } from "../../lib/slab/growing-index.ts";
import { type AddressKey, addressKey } from "../objects/addresses.ts";
import { equalEndpointSets } from "../objects/equality.ts";
import type { EndpointGroup, EndpointSet, Identity } from "../objects/objects.ts";
import { type AddressEntry, AddressSlots } from "./address-slots.ts";
import { BlockTable, type Slot } from "./block-table.ts";
import { EndpointBlockWriter, readBlockGroups, readBlockName } from "./endpoint-block.ts";
import { hashText } from "./hashes.ts";
import { slotListing, type TableListing } from "./table-listing.ts";

/** What sets belong to. */
export interface SetOwner {
  readonly name: string;
  readonly namespace: { readonly name: string };
  /** The first of its sets; {@link NO_ENTRY} where it has none. For the table alone. */
  firstSet: Slot;
}

/** A set that is there: to be read at once, as it holds until the set changes. */
export class StoredSet<Owner extends SetOwner> implements EndpointSet {
  readonly owner: Owner;
  readonly groups: readonly EndpointGroup[];
  readonly #table: EndpointTable<Owner>;
  readonly #slot: Slot;

  constructor(table: EndpointTable<Owner>, slot: Slot, owner: Owner) {
    this.owner = owner;
    this.groups = table.groupsAt(slot);
    this.#table = table;
    this.#slot = slot;
  }

  get namespace(): string {
    return this.owner.namespace.name;
  }

  get service(): string {
    return this.owner.name;
  }

  get name(): string {
    return this.#table.nameOf(this.#slot);
  }
}

export class EndpointTable<Owner extends SetOwner> {
  readonly #blocks = new BlockTable();
  readonly #byName = new GrowingIndex();
  readonly #byAddress = new AddressSlots();
  readonly #writer = new EndpointBlockWriter();
  readonly #owners: (Owner | undefined)[] = [];
  /** Of each slot: the next set of the same owner. */
  #next: Int32Array = new Int32Array(0);
  /** Sets that no block has room for. Their blocks have nothing but their names. */
  readonly #large = new Map<Slot, EndpointSet>();

  /** Octets that all of them take. */
  get octets(): number {
    const own = this.#next.byteLength + this.#owners.length * POINTER_OCTETS;
    return own + this.#blocks.octets + this.#byName.octets + this.#byAddress.octets;
  }

  /** Pairs of an address and a set. */
  get addressCount(): number {
    return this.#byAddress.size;
  }

  find({ namespace, name }: Identity): Slot | undefined {
    const index = this.#byName;
    const first = index.first(hashName(namespace, name));
    for (let slot = first; slot !== NO_ENTRY; slot = index.after(slot)) {
      if (this.#owners[slot]?.namespace.name === namespace && this.nameOf(slot) === name) return slot;
    }
    return undefined;
  }

  ownerOf(slot: Slot): Owner | undefined {
    return this.#owners[slot];
  }

  /** To be read at once. */
  groupsAt(slot: Slot): readonly EndpointGroup[] {
    const large = this.#large.size === 0 ? undefined : this.#large.get(slot);
    return large?.groups ?? readBlockGroups(this.#blocks.buffer(slot), this.#blocks.start(slot));
  }

  nameOf(slot: Slot): string {
    return readBlockName(this.#blocks.buffer(slot), this.#blocks.start(slot));
  }

  /** Whether a set of the same owner and name says the same. */
  says(slot: Slot, set: EndpointSet): boolean {
    const large = this.#large.get(slot);
    if (large !== undefined) return equalEndpointSets(large, set);
    const octets = this.#writer.write(set);
    return octets !== undefined && this.#blocks.equals(slot, octets);
  }

  /** There must be none of that name. It becomes the last one of its owner's. */
  add(owner: Owner, set: EndpointSet): void {
    const octets = this.#writer.write(set);
    const slot = this.#blocks.add(octets ?? this.#writer.writeName(set.name));
    if (octets === undefined) this.#large.set(slot, set);
    this.#owners[slot] = owner;
    this.#next = withRoom(this.#next, slot);
    this.#append(owner, slot);
    this.#byName.add(slot, hashName(owner.namespace.name, set.name));
    for (const key of addressesOf(set)) this.#byAddress.add(key, slot);
  }

  /** Puts a set in the place of one with its name and owner. */
  replace(slot: Slot, set: EndpointSet): void {
    const before = addressesOf(this.#setAt(slot));
    const octets = this.#writer.write(set);
    this.#blocks.replace(slot, octets ?? this.#writer.writeName(set.name));
    if (octets === undefined) this.#large.set(slot, set);
    else this.#large.delete(slot);
    for (const key of addressesOf(set)) if (!before.delete(key)) this.#byAddress.add(key, slot);
    for (const key of before) this.#byAddress.delete(key, slot);
  }

  delete(slot: Slot): void {
    const owner = this.#owners[slot];
    for (const key of addressesOf(this.#setAt(slot))) this.#byAddress.delete(key, slot);
    this.#byName.remove(slot);
    if (owner !== undefined) this.#unchain(owner, slot);
    this.#owners[slot] = undefined;
    this.#large.delete(slot);
    this.#blocks.delete(slot);
  }

  /** The sets with an address, in the order in which they came. */
  at(key: AddressKey): StoredSet<Owner>[] {
    const index = this.#byAddress;
    const sets: StoredSet<Owner>[] = [];
    let last: AddressEntry = NO_ENTRY;
    for (let entry = index.first(key); entry !== NO_ENTRY; entry = index.after(entry)) {
      const slot = index.slot(entry);
      if (slot === last) continue;
      last = slot;
      const set = this.get(slot);
      // A hash is as good as an address of IPv4.
      if (set !== undefined && (typeof key === "number" || addressesOf(set).has(key))) sets.push(set);
    }
    return sets;
  }

  get(slot: Slot): StoredSet<Owner> | undefined {
    const owner = this.#owners[slot];
    return owner && new StoredSet(this, slot, owner);
  }

  /** The sets of an owner, in the order in which they came. */
  of(owner: Owner): StoredSet<Owner>[] {
    const sets: StoredSet<Owner>[] = [];
    for (let slot = owner.firstSet; slot !== NO_ENTRY; slot = this.#next[slot] ?? NO_ENTRY) {
      const set = this.get(slot);
      if (set !== undefined) sets.push(set);
    }
    return sets;
  }

  /** Their groups. */
  groupsOf({ firstSet }: Owner): readonly EndpointGroup[] {
    if (firstSet === NO_ENTRY) return NO_GROUPS;
    const groups = this.groupsAt(firstSet);
    let slot = this.#next[firstSet] ?? NO_ENTRY;
    if (slot === NO_ENTRY) return groups;
    const all = [...groups];
    for (; slot !== NO_ENTRY; slot = this.#next[slot] ?? NO_ENTRY) all.push(...this.groupsAt(slot));
    return all;
  }

  /** Copies the groups of an owner, as octets. @returns reads the copy */
  copyGroupsOf({ firstSet }: Owner): () => readonly EndpointGroup[] {
    const copies: (Buffer | EndpointSet)[] = [];
    for (let slot = firstSet; slot !== NO_ENTRY; slot = this.#next[slot] ?? NO_ENTRY) {
      const blocks = this.#blocks;
      const start = blocks.start(slot);
      const block = blocks.buffer(slot).subarray(start, start + blocks.length(slot));
      copies.push(this.#large.get(slot) ?? Buffer.from(block));
    }
    return () =>
      copies.flatMap((copy) => (Buffer.isBuffer(copy) ? readBlockGroups(copy, 0) : [...copy.groups]));
  }

  /** All of them, as objects of their own. They may come and go meanwhile. */
  *copies(): Generator<EndpointSet> {
    for (const slot of this.#blocks.slots()) {
      const set = this.get(slot);
      if (set !== undefined) yield copyOf(set);
    }
  }

  /** Begins a listing: {@link TableListing}. */
  listing(): TableListing {
    return slotListing(
      this.#blocks,
      (identity) => this.find(identity) ?? NO_ENTRY,
      (slot) => ({ namespace: this.#owners[slot]?.namespace.name ?? "", name: this.nameOf(slot) }),
    );
  }

  #setAt(slot: Slot): Pick<EndpointSet, "groups"> {
    return { groups: this.groupsAt(slot) };
  }

  #append(owner: Owner, slot: Slot): void {
    const next = this.#next;
    next[slot] = NO_ENTRY;
    if (owner.firstSet === NO_ENTRY) {
      owner.firstSet = slot;
      return;
    }
    let at = owner.firstSet;
    for (let behind = next[at] ?? NO_ENTRY; behind !== NO_ENTRY; behind = next[at] ?? NO_ENTRY) at = behind;
    next[at] = slot;
  }

  #unchain(owner: Owner, slot: Slot): void {
    const next = this.#next;
    const following = next[slot] ?? NO_ENTRY;
    if (owner.firstSet === slot) {
      owner.firstSet = following;
      return;
    }
    let at = owner.firstSet;
    while (at !== NO_ENTRY && next[at] !== slot) at = next[at] ?? NO_ENTRY;
    if (at !== NO_ENTRY) next[at] = following;
  }
}

const POINTER_OCTETS = 8;
const NO_GROUPS: readonly EndpointGroup[] = [];

/** Each address of a set once. */
function addressesOf({ groups }: Pick<EndpointSet, "groups">): Set<AddressKey> {
  const keys = new Set<AddressKey>();
  for (const { addresses, addressLength } of groups) {
    for (let at = 0; at < addresses.length; at += addressLength)
      keys.add(addressKey(addresses, at, addressLength));
  }
  return keys;
}

function copyOf({ namespace, name, service, groups }: EndpointSet): EndpointSet {
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

function hashName(namespace: string, name: string): number {
  return hashText(hashText(0, namespace), name);
}
