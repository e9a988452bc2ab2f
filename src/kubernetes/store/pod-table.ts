/**
 * Pods as octets: a cluster has 150,000 of them, and each would be an object, a list, a name and two entries of maps. Here one takes some
 * 60 octets in a few buffers, which the garbage collector passes over. Names of pods end in what tells them from their siblings
 * (`web-7d9f8b6c5-x2x4z`): the part before that is kept once for all of them.
 */

import { GrowingIndex, NO_ENTRY, withRoom } from "../../lib/slab/growing-index.ts";
import { type AddressKey, addressKey, addressOfKey } from "../objects/addresses.ts";
import type { Identity, Pod } from "../objects/objects.ts";
import { NO_LABELS } from "../objects/shared-values.ts";
import { AddressSlots } from "./address-slots.ts";
import { BlockTable, type Slot } from "./block-table.ts";
import { CountedValues } from "./counted-values.ts";
import { hashText } from "./hashes.ts";
import { readText } from "./short-text.ts";
import { slotListing, type TableListing } from "./table-listing.ts";

/** What the names of siblings begin with, up to and with the last hyphen. */
interface Family {
  readonly namespace: string;
  readonly beginning: string;
}

/** Where a pod stands, as long as it is there. */
export type PodSlot = Slot;

export class PodTable {
  readonly #blocks = new BlockTable();
  readonly #byName = new GrowingIndex();
  readonly #byAddress = new AddressSlots();
  readonly #families = new CountedValues<Family>(({ namespace, beginning }) => `${namespace}/${beginning}`);
  readonly #labelSets = new CountedValues<ReadonlyMap<string, string>>((labels) => labels);
  #family: Int32Array = new Int32Array(0);
  #labels: Int32Array = new Int32Array(0);
  #hostNetwork: Uint8Array = new Uint8Array(0);
  readonly #scratch: Buffer = Buffer.alloc(MAX_BLOCK);

  /** How many there are. */
  get size(): number {
    return this.#blocks.size;
  }

  /** Octets that all of them take, without the few texts and label sets that many have in common. */
  get octets(): number {
    const columns = this.#family.byteLength + this.#labels.byteLength + this.#hostNetwork.byteLength;
    return columns + this.#blocks.octets + this.#byName.octets + this.#byAddress.octets;
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
    for (let entry = index.first(key); entry !== NO_ENTRY; entry = index.after(entry)) {
      const slot = index.slot(entry);
      if (this.#has(slot, key)) found.push(this.pod(slot));
    }
    return found;
  }

  /** All of them. They may come and go meanwhile. */
  slots(): Generator<PodSlot> {
    return this.#blocks.slots();
  }

  addresses(slot: PodSlot): AddressKey[] {
    return readAddresses(this.#blocks.buffer(slot), this.#blocks.start(slot));
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
    const length = this.#write(pod.addresses, ending);
    const slot = this.#blocks.add(this.#scratch.subarray(0, length));
    this.#family = withRoom(this.#family, slot);
    this.#labels = withRoom(this.#labels, slot);
    this.#hostNetwork = withRoom(this.#hostNetwork, slot);
    const family = this.#families.hold({ namespace: pod.namespace, beginning: name.slice(0, cut) });
    this.#family[slot] = family;
    this.#labels[slot] = this.#labelSets.hold(pod.labels);
    this.#hostNetwork[slot] = pod.hostNetwork === true ? 1 : 0;
    this.#byName.add(slot, hashText(family, ending));
    for (const key of pod.addresses) this.#byAddress.add(key, slot);
    return slot;
  }

  delete(slot: PodSlot): void {
    for (const key of this.addresses(slot)) this.#byAddress.delete(key, slot);
    this.#byName.remove(slot);
    this.#families.release(this.#family[slot] ?? 0);
    this.#labelSets.release(this.#labels[slot] ?? 0);
    this.#blocks.delete(slot);
  }

  /** Begins a listing: {@link TableListing}. */
  listing(): TableListing {
    return slotListing(
      this.#blocks,
      (identity) => this.find(identity) ?? NO_ENTRY,
      (slot) => this.pod(slot),
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

  /** The end of the name, which tells it from its siblings. */
  #ending(slot: PodSlot): string {
    const octets = this.#blocks.buffer(slot);
    const start = this.#blocks.start(slot);
    let at = start + 1;
    for (let count = octets[start] ?? 0; count > 0; count--) at += 1 + (octets[at] ?? 0);
    return readText(octets, at, start + this.#blocks.length(slot));
  }

  #labelsOf(slot: PodSlot): ReadonlyMap<string, string> {
    return this.#labelSets.value(this.#labels[slot] ?? 0) ?? NO_LABELS;
  }

  #findInFamily(family: number, ending: string): PodSlot | undefined {
    const index = this.#byName;
    for (let slot = index.first(hashText(family, ending)); slot !== NO_ENTRY; slot = index.after(slot)) {
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
}

/** Of one pod. */
export const MAX_ADDRESSES = 255;
export const MAX_NAME_LENGTH = 253;
/** Octets of the longest block: addresses of IPv6 with their lengths, and three octets a character. */
const MAX_BLOCK = 1 + 17 * MAX_ADDRESSES + 3 * MAX_NAME_LENGTH;

const NO_FAMILY: Family = { namespace: "", beginning: "" };

/** Where the ending of a name begins: behind its last hyphen. */
function cutOf(name: string): number {
  return name.lastIndexOf("-") + 1;
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
