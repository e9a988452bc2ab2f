/** Pods by name and by address. Filled only for `pods verified`, and for what wants to know clients. */
import { ColumnMemory } from "../../../lib/collections/slab/column-memory.ts";
import { NO_ENTRY } from "../../../lib/collections/slab/growing-index.ts";
import type { AddressKey } from "../../objects/addresses.ts";
import type { Identity, Pod } from "../../objects/objects.ts";
import type { ChangeRecorder } from "../tables/store-change.ts";
import type { TableListing } from "../tables/table-listing.ts";
import { copyPod, MAX_ADDRESSES, MAX_NAME_LENGTH, type PodSlot, PodTable, StoredPod } from "./pod-table.ts";

export class PodIndex {
  readonly #memory: ColumnMemory;
  readonly #table: PodTable;

  /** @param memory where all of it lies. Another thread may read it there, or write to it */
  constructor(memory: ColumnMemory = new ColumnMemory()) {
    this.#memory = memory;
    this.#table = new PodTable(memory);
  }

  /** The pods that have an address: one, unless they live on their node's network. To be read at once. */
  at(key: AddressKey): readonly StoredPod[] {
    return this.#table.at(key).map((slot) => new StoredPod(this.#table, slot));
  }

  /** To be read at once. */
  named(namespace: string, name: string): StoredPod | undefined {
    const slot = this.#table.find({ namespace, name });
    return slot === NO_ENTRY ? undefined : new StoredPod(this.#table, slot);
  }

  /** Octets that all pods take; those that another thread writes are counted there. */
  get octets(): number {
    return this.#memory.isReader ? 0 : this.#table.octets;
  }

  /** @returns whether it says something new. A pod without address is dropped. */
  put(pod: Pod, change: ChangeRecorder): boolean {
    const { namespace, name, addresses } = pod;
    // No API hands out such names, nor so many addresses.
    const isStorable =
      Math.max(namespace.length, name.length) <= MAX_NAME_LENGTH && addresses.length <= MAX_ADDRESSES;
    if (addresses.length === 0 || !isStorable) return this.delete(pod, change);
    const table = this.#table;
    const old = table.find(pod);
    if (old !== NO_ENTRY && table.says(old, pod)) return false;
    // In one change: no thread finds it missing in between.
    this.#memory.write(() => {
      if (old !== NO_ENTRY) this.#drop(old, change);
      table.add(pod);
    });
    for (const key of addresses) change.podAddress(key);
    return true;
  }

  /** @returns whether it was there */
  delete(identity: Identity, change: ChangeRecorder): boolean {
    const slot = this.#table.find(identity);
    if (slot === NO_ENTRY) return false;
    this.#memory.write(() => this.#drop(slot, change));
    return true;
  }

  /** All pods, as objects of their own. They may come and go meanwhile. */
  *pods(): Generator<Pod> {
    for (const slot of this.#table.slots()) yield copyPod(new StoredPod(this.#table, slot));
  }

  /** Begins a listing: {@link TableListing}. */
  listing(): TableListing {
    return this.#table.listing();
  }

  #drop(slot: PodSlot, change: ChangeRecorder): void {
    for (const key of this.#table.addresses(slot)) change.podAddress(key);
    this.#table.delete(slot);
  }
}
