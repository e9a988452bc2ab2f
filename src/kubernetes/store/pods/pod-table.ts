/**
 * Pods as octets: a cluster has 150,000 of them, and each would be an object, a list, a name and two entries of maps. Here one takes some
 * 70 octets in a few buffers, which the garbage collector passes over. Names of pods end in what tells them from their siblings
 * (`web-7d9f8b6c5-x2x4z`): the part before that is kept once for all of them. The block of a pod is
 *
 *     1  number of addresses
 *     n  addresses: octets (1), address
 *     n  ending of the name
 *
 * and that of a family
 *
 *     2  octets of the namespace
 *     n  namespace
 *     n  what the names begin with, up to and with the last hyphen
 */
import { OctetArena } from "../../../lib/collections/octet-arena.ts";
import { type Column, ColumnMemory } from "../../../lib/collections/slab/column-memory.ts";
import { GrowingIndex, NO_ENTRY } from "../../../lib/collections/slab/growing-index.ts";
import { type AddressKey, addressKey, addressOfKey } from "../../objects/addresses.ts";
import type { Identity, Pod } from "../../objects/objects.ts";
import { NO_LABELS } from "../../objects/shared-values.ts";
import { AddressSlots } from "../tables/address-slots.ts";
import { BlockTable, type Slot } from "../tables/block-table.ts";
import { CountedOctets } from "../tables/counted-octets.ts";
import { hashText } from "../tables/hashes.ts";
import { LabelWriter, readLabels } from "../tables/packed-labels.ts";
import { isText, RecentTexts, readText } from "../tables/short-text.ts";
import { slotListing, type TableListing } from "../tables/table-listing.ts";

/** Where a pod stands, as long as it is there. */
export type PodSlot = Slot;

export class PodTable {
  readonly #arena: OctetArena;
  readonly #blocks: BlockTable;
  readonly #byName: GrowingIndex;
  readonly #byAddress: AddressSlots;
  /** Names of namespaces, and what the names of siblings begin with. */
  readonly #families: CountedOctets;
  readonly #labelSets: CountedOctets;
  /** Of each slot. */
  readonly #family: Column<Int32Array>;
  /** Likewise, {@link NO_ENTRY} for no labels. */
  readonly #labels: Column<Int32Array>;
  readonly #hostNetwork: Column<Uint8Array>;
  readonly #labelWriter = new LabelWriter();
  readonly #namespaces = new RecentTexts();
  readonly #scratch: Buffer = Buffer.alloc(MAX_BLOCK);

  /** @param memory where all of it lies. Another thread may read it there, or write to it */
  constructor(memory: ColumnMemory = new ColumnMemory()) {
    this.#arena = new OctetArena(memory);
    this.#blocks = new BlockTable(memory, this.#arena);
    this.#byName = new GrowingIndex(memory);
    this.#byAddress = new AddressSlots(memory);
    this.#families = new CountedOctets(memory, this.#arena);
    this.#labelSets = new CountedOctets(memory, this.#arena);
    this.#family = memory.int32();
    this.#labels = memory.int32();
    this.#hostNetwork = memory.uint8();
  }

  /** How many there are, for the one who writes. */
  get size(): number {
    return this.#blocks.size;
  }

  /** Octets that all of them take. */
  get octets(): number {
    const columns = this.#family.octets + this.#labels.octets + this.#hostNetwork.octets;
    const shared = this.#families.octets + this.#labelSets.octets + this.#arena.reservedOctets;
    return columns + shared + this.#blocks.octets + this.#byName.octets + this.#byAddress.octets;
  }

  /** @returns {@link NO_ENTRY} where there is none */
  find({ namespace, name }: Identity): PodSlot {
    const cut = cutOf(name);
    const family = this.#families.find(this.#writeFamily(namespace, name.slice(0, cut)));
    if (family === NO_ENTRY) return NO_ENTRY;
    const ending = name.slice(cut);
    const index = this.#byName;
    for (let slot = index.first(hashText(family, ending)); slot !== NO_ENTRY; slot = index.after(slot))
      if (this.#family.cells[slot] === family && this.#hasEnding(slot, ending)) return slot;
    return NO_ENTRY;
  }

  /** The pods that have an address, in the order in which they got it. */
  at(key: AddressKey): PodSlot[] {
    const index = this.#byAddress;
    const found: PodSlot[] = [];
    // A reader may be led round a circle while another thread writes: the bound ends it.
    let left = index.places;
    for (let entry = index.first(key); entry !== NO_ENTRY && left-- > 0; entry = index.after(entry)) {
      const slot = index.slot(entry);
      if (this.#has(slot, key)) found.push(slot);
    }
    return found;
  }

  /** All of them. They may come and go meanwhile. */
  slots(): Generator<PodSlot> {
    return this.#blocks.slots();
  }

  namespaceOf(slot: PodSlot): string {
    const family = this.#family.cells[slot] ?? 0;
    const octets = this.#families.buffer(family);
    const start = this.#families.start(family);
    return this.#namespaces.read(family, octets, start + HEAD, start + HEAD + octets.readUInt16LE(start));
  }

  nameOf(slot: PodSlot): string {
    const family = this.#family.cells[slot] ?? 0;
    const octets = this.#families.buffer(family);
    const start = this.#families.start(family);
    const beginning = start + HEAD + octets.readUInt16LE(start);
    return (
      readText(octets, beginning, this.#families.end(family)) +
      readText(this.#blocks.buffer(slot), this.#endingAt(slot), this.#end(slot))
    );
  }

  addresses(slot: PodSlot): AddressKey[] {
    const octets = this.#blocks.buffer(slot);
    const start = this.#blocks.start(slot);
    const keys: AddressKey[] = [];
    let at = start + 1;
    for (let count = octets[start] ?? 0; count > 0; count--) {
      const length = octets[at] ?? 0;
      keys.push(addressKey(octets, at + 1, length));
      at += 1 + length;
    }
    return keys;
  }

  labelsOf(slot: PodSlot): ReadonlyMap<string, string> {
    const labels = this.#labels.cells[slot] ?? NO_ENTRY;
    if (labels === NO_ENTRY) return NO_LABELS;
    const sets = this.#labelSets;
    return readLabels(sets.buffer(labels), sets.start(labels), sets.end(labels));
  }

  isOnHostNetwork(slot: PodSlot): boolean {
    return this.#hostNetwork.cells[slot] === 1;
  }

  /** Whether a pod of the same name says the same. */
  says(slot: PodSlot, pod: Pod): boolean {
    if (this.isOnHostNetwork(slot) !== (pod.hostNetwork === true)) return false;
    const addresses = this.addresses(slot);
    if (addresses.length !== pod.addresses.length || addresses.some((key, at) => key !== pod.addresses[at]))
      return false;
    const labels = this.#labels.cells[slot];
    if (pod.labels.size === 0 || labels === NO_ENTRY) return pod.labels.size === 0 && labels === NO_ENTRY;
    return labels === this.#labelSets.find(this.#labelWriter.write(pod.labels));
  }

  /** There must be none of that name. */
  add(pod: Pod): PodSlot {
    const { namespace, name, labels, addresses } = pod;
    const cut = cutOf(name);
    const ending = name.slice(cut);
    const family = this.#families.hold(this.#writeFamily(namespace, name.slice(0, cut)));
    const slot = this.#blocks.add(this.#write(addresses, ending));
    this.#family.reserve(slot);
    this.#labels.reserve(slot);
    this.#hostNetwork.reserve(slot);
    this.#family.cells[slot] = family;
    this.#labels.cells[slot] =
      labels.size === 0 ? NO_ENTRY : this.#labelSets.hold(this.#labelWriter.write(labels));
    this.#hostNetwork.cells[slot] = pod.hostNetwork === true ? 1 : 0;
    this.#byName.add(slot, hashText(family, ending));
    for (const key of addresses) this.#byAddress.add(key, slot);
    return slot;
  }

  delete(slot: PodSlot): void {
    for (const key of this.addresses(slot)) this.#byAddress.delete(key, slot);
    this.#byName.remove(slot);
    this.#families.release(this.#family.cells[slot] ?? 0);
    const labels = this.#labels.cells[slot] ?? NO_ENTRY;
    if (labels !== NO_ENTRY) this.#labelSets.release(labels);
    this.#blocks.delete(slot);
  }

  /** Begins a listing: {@link TableListing}. */
  listing(): TableListing {
    return slotListing(
      this.#blocks,
      (identity) => this.find(identity),
      (slot) => ({ namespace: this.namespaceOf(slot), name: this.nameOf(slot) }),
    );
  }

  #has(slot: PodSlot, key: AddressKey): boolean {
    const octets = this.#blocks.buffer(slot);
    let at = this.#blocks.start(slot);
    for (let count = octets[at++] ?? 0; count > 0; count--) {
      const length = octets[at] ?? 0;
      if (addressKey(octets, at + 1, length) === key) return true;
      at += 1 + length;
    }
    return false;
  }

  #hasEnding(slot: PodSlot, ending: string): boolean {
    return isText(this.#blocks.buffer(slot), this.#endingAt(slot), this.#end(slot), ending);
  }

  /** Where the end of the name begins, which tells it from its siblings. */
  #endingAt(slot: PodSlot): number {
    const octets = this.#blocks.buffer(slot);
    const start = this.#blocks.start(slot);
    let at = start + 1;
    for (let count = octets[start] ?? 0; count > 0; count--) at += 1 + (octets[at] ?? 0);
    return at;
  }

  #end(slot: PodSlot): number {
    return this.#blocks.start(slot) + this.#blocks.length(slot);
  }

  /** Octets that hold until the next call. What is longer than it may be is cut off, and still longer than any that is kept. */
  #writeFamily(namespace: string, beginning: string): Uint8Array {
    const scratch = this.#scratch;
    const length = scratch.write(namespace, HEAD, "utf8");
    scratch.writeUInt16LE(length, 0);
    const end = HEAD + length + scratch.write(beginning, HEAD + length, "utf8");
    return scratch.subarray(0, end);
  }

  /** Octets that hold until the next call. */
  #write(addresses: readonly AddressKey[], ending: string): Uint8Array {
    const scratch = this.#scratch;
    let at = scratch.writeUInt8(addresses.length, 0);
    for (const key of addresses) {
      const octets = addressOfKey(key);
      at = scratch.writeUInt8(octets.length, at);
      scratch.set(octets, at);
      at += octets.length;
    }
    return scratch.subarray(0, at + scratch.write(ending, at, "utf8"));
  }
}

/** Of one pod. */
export const MAX_ADDRESSES = 255;
/** Of pods and namespaces. */
export const MAX_NAME_LENGTH = 253;
/** Octets of the longest block: addresses of IPv6 with their lengths, and three octets a character. */
const MAX_BLOCK = 1 + 17 * MAX_ADDRESSES + 3 * MAX_NAME_LENGTH;

/** Octets before a namespace. */
const HEAD = 2;

/** Where the ending of a name begins: behind its last hyphen. */
function cutOf(name: string): number {
  return name.lastIndexOf("-") + 1;
}

/** A pod that is there: to be read at once, as it holds until the pod changes. */
export class StoredPod implements Pod {
  readonly hostNetwork?: true;
  readonly #table: PodTable;
  readonly #slot: PodSlot;

  constructor(table: PodTable, slot: PodSlot) {
    this.#table = table;
    this.#slot = slot;
    if (table.isOnHostNetwork(slot)) this.hostNetwork = true;
  }

  get namespace(): string {
    return this.#table.namespaceOf(this.#slot);
  }

  get name(): string {
    return this.#table.nameOf(this.#slot);
  }

  get addresses(): readonly AddressKey[] {
    return this.#table.addresses(this.#slot);
  }

  get labels(): ReadonlyMap<string, string> {
    return this.#table.labelsOf(this.#slot);
  }
}

/** The same pod as an object of its own. */
export function copyPod({ namespace, name, addresses, labels, hostNetwork }: Pod): Pod {
  const pod = { namespace, name, addresses, labels };
  return hostNetwork ? { ...pod, hostNetwork } : pod;
}
