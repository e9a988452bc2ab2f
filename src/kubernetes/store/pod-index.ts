/** Pods by name and by address. Filled only for `pods verified`, and for what wants to know clients. */

import type { AddressKey } from "../objects/addresses.ts";
import type { Identity, Pod } from "../objects/objects.ts";
import { MAX_ADDRESSES, MAX_NAME_LENGTH, PodTable } from "./pod-table.ts";
import type { ChangeRecorder } from "./store-change.ts";
import type { TableListing } from "./table-listing.ts";

export class PodIndex {
  readonly #table = new PodTable();

  /** The pods that have an address: one, unless they live on their node's network. */
  at(key: AddressKey): readonly Pod[] {
    return this.#table.at(key);
  }

  named(namespace: string, name: string): Pod | undefined {
    const slot = this.#table.find({ namespace, name });
    return slot === undefined ? undefined : this.#table.pod(slot);
  }

  /** Octets that all pods take. */
  get octets(): number {
    return this.#table.octets;
  }

  /** @returns whether it says something new. A pod without address is dropped. */
  put(pod: Pod, change: ChangeRecorder): boolean {
    const { addresses, name } = pod;
    // No API hands out such names, nor so many addresses.
    const isStorable = addresses.length <= MAX_ADDRESSES && name.length <= MAX_NAME_LENGTH;
    if (addresses.length === 0 || !isStorable) return this.delete(pod, change);
    const table = this.#table;
    const old = table.find(pod);
    if (old !== undefined && table.says(old, pod)) return false;
    if (old !== undefined) this.#drop(old, change);
    table.add(pod);
    for (const key of addresses) change.podAddress(key);
    return true;
  }

  /** @returns whether it was there */
  delete(identity: Identity, change: ChangeRecorder): boolean {
    const slot = this.#table.find(identity);
    if (slot === undefined) return false;
    this.#drop(slot, change);
    return true;
  }

  *pods(): Generator<Pod> {
    for (const slot of this.#table.slots()) yield this.#table.pod(slot);
  }

  /** Begins a listing: {@link TableListing}. */
  listing(): TableListing {
    return this.#table.listing();
  }

  #drop(slot: number, change: ChangeRecorder): void {
    for (const key of this.#table.addresses(slot)) change.podAddress(key);
    this.#table.delete(slot);
  }
}
