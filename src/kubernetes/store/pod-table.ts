/**
 * Pods as octets: a cluster has 150,000 of them, and each would be an object, a list, a name and two entries of maps. Here one takes some
 * 60 octets in a few buffers, which the garbage collector passes over. Names of pods end in what tells them from their siblings
 * (`web-7d9f8b6c5-x2x4z`): the part before that is kept once for all of them.
 */

import { OctetArena } from "../../lib/octet-arena.ts";
import { GrowingIndex, NO_ENTRY, withRoom } from "../../lib/slab/growing-index.ts";
import { type AddressKey, addressKey, addressOfKey } from "../objects/addresses.ts";
import type { Identity, Pod } from "../objects/objects.ts";
import { NO_LABELS } from "../objects/shared-values.ts";
import { CountedValues } from "./counted-values.ts";

/** What the names of siblings begin with, up to and with the last hyphen. */
interface Family {
  readonly namespace: string;
  readonly beginning: string;
}

/** Where a pod stands, as long as it is there. */
export type PodSlot = number;

export class PodTable {
  readonly #arena = new OctetArena();
  readonly #byName = new GrowingIndex();
  /** Its entries are numbers of their own: a pod has several addresses. */
  readonly #byAddress = new GrowingIndex();
  readonly #families = new CountedValues<Family>(({ namespace, beginning }) => `${namespace}/${beginning}`);
  readonly #labelSets = new CountedValues<ReadonlyMap<string, string>>((labels) => labels);
  /** Of each slot: its block; of a free one the next free one, as a negative number. */
  #blocks: Int32Array = new Int32Array(0);
  #lengths: Uint16Array = new Uint16Array(0);
  #family: Int32Array = new Int32Array(0);
  #labels: Int32Array = new Int32Array(0);
  #hostNetwork: Uint8Array = new Uint8Array(0);
  /** The latest listing that named it. */
  #listings: Int32Array = new Int32Array(0);
  #end = 0;
  #firstFree = NO_ENTRY;
  #size = 0;
  /** Of each entry of {@link #byAddress}: its slot; of a free one the next free one, as a negative number. */
  #slotOfEntry: Int32Array = new Int32Array(0);
  #entryEnd = 0;
  #firstFreeEntry = NO_ENTRY;
  #latestListing = 0;
  readonly #scratch: Buffer = Buffer.alloc(MAX_BLOCK);

  /** How many there are. */
  get size(): number {
    return this.#size;
  }

  /** Octets that all of them take, without the few texts and label sets that many have in common. */
  get octets(): number {
    const columns = [
      this.#blocks,
      this.#lengths,
      this.#family,
      this.#labels,
      this.#hostNetwork,
      this.#listings,
    ];
    const own = columns.reduce((sum, { byteLength }) => sum + byteLength, this.#slotOfEntry.byteLength);
    return own + this.#arena.reservedOctets + this.#byName.octets + this.#byAddress.octets;
  }

  find({ namespace, name }: Identity): PodSlot | undefined {
    const cut = cutOf(name);
    const family = this.#families.find({ namespace, beginning: name.slice(0, cut) });
    return family === undefined ? undefined : this.#findInFamily(family, name.slice(cut));
  }

  /** The pods that have an address, in the order in which they got it. */
  at(key: AddressKey): Pod[] {
    const index = this.#byAddress;
    const found: Pod[] = [];
    for (let entry = index.first(hashKey(key)); entry !== NO_ENTRY; entry = index.after(entry)) {
      const slot = this.#slotOfEntry[entry] ?? 0;
      if (this.#has(slot, key)) found.push(this.pod(slot));
    }
    return found;
  }

  /** All of them. They may come and go meanwhile. */
  *slots(): Generator<PodSlot> {
    for (let slot = 0; slot < this.#end; slot++) if (this.#isTaken(slot)) yield slot;
  }

  addresses(slot: PodSlot): AddressKey[] {
    const block = this.#blocks[slot] ?? 0;
    return readAddresses(this.#arena.bufferOf(block), this.#arena.offsetOf(block));
  }

  isOnHostNetwork(slot: PodSlot): boolean {
    return this.#hostNetwork[slot] === 1;
  }

  /** The pod as an object, as it is now. */
  pod(slot: PodSlot): Pod {
    const { namespace, beginning } = this.#families.value(this.#family[slot] ?? 0) ?? NO_FAMILY;
    const name = beginning + this.#ending(slot);
    const labels = this.#labelsOf(slot);
    const addresses = this.addresses(slot);
    if (this.isOnHostNetwork(slot)) return { namespace, name, addresses, labels, hostNetwork: true };
    return { namespace, name, addresses, labels };
  }

  /** Whether a pod of the same name says the same. */
  says(slot: PodSlot, pod: Pod): boolean {
    if (this.isOnHostNetwork(slot) !== (pod.hostNetwork === true)) return false;
    const addresses = this.addresses(slot);
    if (addresses.length !== pod.addresses.length || addresses.some((key, at) => key !== pod.addresses[at]))
      return false;
    const labels = this.#labelsOf(slot);
    if (labels === pod.labels) return true;
    if (labels.size !== pod.labels.size) return false;
    for (const [key, value] of pod.labels) if (labels.get(key) !== value) return false;
    return true;
  }

  /** There must be none of that name. */
  add(pod: Pod): PodSlot {
    const { name } = pod;
    const cut = cutOf(name);
    const ending = name.slice(cut);
    const slot = this.#takeSlot();
    const length = this.#write(pod.addresses, ending);
    const family = this.#families.hold({ namespace: pod.namespace, beginning: name.slice(0, cut) });
    this.#blocks[slot] = this.#arena.store(this.#scratch.subarray(0, length));
    this.#lengths[slot] = length;
    this.#family[slot] = family;
    this.#labels[slot] = this.#labelSets.hold(pod.labels);
    this.#hostNetwork[slot] = pod.hostNetwork === true ? 1 : 0;
    this.#byName.add(slot, hashEnding(family, ending));
    for (const key of pod.addresses) this.#addAddress(key, slot);
    this.#listings[slot] = 0;
    this.#size++;
    return slot;
  }

  delete(slot: PodSlot): void {
    for (const key of this.addresses(slot)) this.#deleteAddress(key, slot);
    this.#byName.remove(slot);
    this.#arena.release(this.#blocks[slot] ?? 0, this.#lengths[slot] ?? 0);
    this.#families.release(this.#family[slot] ?? 0);
    this.#labelSets.release(this.#labels[slot] ?? 0);
    this.#blocks[slot] = freeMark(this.#firstFree);
    this.#firstFree = slot;
    this.#size--;
  }

  /** Begins a listing. @returns its number */
  beginListing(): number {
    return ++this.#latestListing;
  }

  /** Notes that a listing names the pod. */
  name(slot: PodSlot, listing: number): void {
    if ((this.#listings[slot] ?? 0) < listing) this.#listings[slot] = listing;
  }

  /** The pods that neither a listing nor a later one has named, and undefined for each place that has none. Pods may come and go meanwhile. */
  *unnamed(listing: number): Generator<PodSlot | undefined> {
    for (let slot = 0; slot < this.#end; slot++)
      yield this.#isTaken(slot) && (this.#listings[slot] ?? 0) < listing ? slot : undefined;
  }

  #isTaken(slot: PodSlot): boolean {
    return (this.#blocks[slot] ?? -1) >= 0;
  }

  #has(slot: PodSlot, key: AddressKey): boolean {
    const block = this.#blocks[slot] ?? 0;
    const octets = this.#arena.bufferOf(block);
    let at = this.#arena.offsetOf(block);
    for (let count = octets[at++] ?? 0; count > 0; count--) {
      const length = octets[at] ?? 0;
      if (addressKey(octets, at + 1, length) === key) return true;
      at += 1 + length;
    }
    return false;
  }

  /** The end of the name, which tells it from its siblings. */
  #ending(slot: PodSlot): string {
    const block = this.#blocks[slot] ?? 0;
    const octets = this.#arena.bufferOf(block);
    const start = this.#arena.offsetOf(block);
    let at = start + 1;
    for (let count = octets[start] ?? 0; count > 0; count--) at += 1 + (octets[at] ?? 0);
    const end = start + (this.#lengths[slot] ?? 0);
    // A few octets are read sooner than a call into the machine's own code returns.
    if (end - at > SHORT) return octets.toString("utf8", at, end);
    let text = "";
    for (; at < end; at++) {
      const octet = octets[at] ?? 0;
      if (octet >= 0x80) return octets.toString("utf8", at - text.length, end);
      text += String.fromCharCode(octet);
    }
    return text;
  }

  #labelsOf(slot: PodSlot): ReadonlyMap<string, string> {
    return this.#labelSets.value(this.#labels[slot] ?? 0) ?? NO_LABELS;
  }

  #findInFamily(family: number, ending: string): PodSlot | undefined {
    const index = this.#byName;
    for (let slot = index.first(hashEnding(family, ending)); slot !== NO_ENTRY; slot = index.after(slot)) {
      if (this.#family[slot] !== family) continue;
      if (this.#ending(slot) === ending) return slot;
    }
    return undefined;
  }

  #write(addresses: readonly AddressKey[], ending: string): number {
    const scratch = this.#scratch;
    let at = scratch.writeUInt8(addresses.length, 0);
    for (const key of addresses) {
      const octets = addressOfKey(key);
      at = scratch.writeUInt8(octets.length, at);
      scratch.set(octets, at);
      at += octets.length;
    }
    return at + scratch.write(ending, at, "utf8");
  }

  #takeSlot(): PodSlot {
    const free = this.#firstFree;
    if (free !== NO_ENTRY) {
      this.#firstFree = markedFree(this.#blocks[free] ?? 0);
      return free;
    }
    const slot = this.#end++;
    this.#blocks = withRoom(this.#blocks, slot);
    this.#lengths = withRoom(this.#lengths, slot);
    this.#family = withRoom(this.#family, slot);
    this.#labels = withRoom(this.#labels, slot);
    this.#hostNetwork = withRoom(this.#hostNetwork, slot);
    this.#listings = withRoom(this.#listings, slot);
    return slot;
  }

  #addAddress(key: AddressKey, slot: PodSlot): void {
    let entry = this.#firstFreeEntry;
    if (entry === NO_ENTRY) {
      entry = this.#entryEnd++;
      this.#slotOfEntry = withRoom(this.#slotOfEntry, entry);
    } else this.#firstFreeEntry = markedFree(this.#slotOfEntry[entry] ?? 0);
    this.#slotOfEntry[entry] = slot;
    this.#byAddress.add(entry, hashKey(key));
  }

  #deleteAddress(key: AddressKey, slot: PodSlot): void {
    const index = this.#byAddress;
    let entry = index.first(hashKey(key));
    // Of two addresses with one hash either entry will do: both lead to this slot.
    while (entry !== NO_ENTRY && this.#slotOfEntry[entry] !== slot) entry = index.after(entry);
    if (entry === NO_ENTRY) return;
    index.remove(entry);
    this.#slotOfEntry[entry] = freeMark(this.#firstFreeEntry);
    this.#firstFreeEntry = entry;
  }
}

/** Of one pod. */
export const MAX_ADDRESSES = 255;
export const MAX_NAME_LENGTH = 253;
/** Octets of the longest block: addresses of IPv6 with their lengths, and three octets a character. */
const MAX_BLOCK = 1 + 17 * MAX_ADDRESSES + 3 * MAX_NAME_LENGTH;

/** Endings of that many octets are read one by one. */
const SHORT = 16;
const NO_FAMILY: Family = { namespace: "", beginning: "" };

/** Where the ending of a name begins: behind its last hyphen. */
function cutOf(name: string): number {
  return name.lastIndexOf("-") + 1;
}

/** Free places are chained by negative numbers. */
function freeMark(next: number): number {
  return -2 - next;
}

function markedFree(mark: number): number {
  return -2 - mark;
}

/** @param start where the block begins */
function readAddresses(octets: Buffer, start: number): AddressKey[] {
  const keys: AddressKey[] = [];
  let at = start + 1;
  for (let count = octets[start] ?? 0; count > 0; count--) {
    const length = octets[at] ?? 0;
    keys.push(addressKey(octets, at + 1, length));
    at += 1 + length;
  }
  return keys;
}

function hashKey(key: AddressKey): number {
  return typeof key === "number" ? spread(key) : hashText(0, key);
}

function hashEnding(family: number, ending: string): number {
  return hashText(family, ending);
}

/** FNV-1a, with the high bits in the low ones. */
function hashText(start: number, text: string): number {
  let hash = spread(start) ^ 0x811c_9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x0100_0193);
  return (hash ^ (hash >>> 15)) | 0;
}

/** Neighbouring numbers come to stand far from each other (the last step of MurmurHash3). */
function spread(value: number): number {
  let hash = Math.imul(value ^ (value >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return hash ^ (hash >>> 16);
}
