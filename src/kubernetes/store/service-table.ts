/**
 * Services as octets: a large cluster has ten thousand of them, and each would be a dozen objects with 700 octets. Here one takes some 50 in
 * a few buffers, which the garbage collector passes over. They are found by their entries.
 */
import { NO_ENTRY } from "../../lib/slab/growing-index.ts";
import type { Identity, Service } from "../objects/objects.ts";
import { BlockTable, type Slot } from "./block-table.ts";
import { copyService, ServiceBlockWriter, StoredService } from "./service-block.ts";
import { slotListing, type TableListing } from "./table-listing.ts";

/** What bears the names of a service. */
export interface ServiceOwner {
  readonly name: string;
  readonly namespace: { readonly name: string };
  /** Where its service stands; {@link NO_ENTRY} where it has none. For the table alone. */
  serviceSlot: Slot;
}

export class ServiceTable<Owner extends ServiceOwner> {
  readonly #blocks = new BlockTable();
  readonly #writer = new ServiceBlockWriter();
  readonly #owners: (Owner | undefined)[] = [];
  /** Services that no block has room for. Their blocks are empty. */
  readonly #large = new Map<Slot, Service>();

  /** Octets that all of them take. */
  get octets(): number {
    return this.#owners.length * POINTER_OCTETS + this.#blocks.octets;
  }

  /** To be read at once. */
  get({ serviceSlot: slot, namespace, name }: Owner): Service | undefined {
    if (slot === NO_ENTRY) return undefined;
    const large = this.#large.size === 0 ? undefined : this.#large.get(slot);
    if (large !== undefined) return large;
    const blocks = this.#blocks;
    const start = blocks.start(slot);
    return new StoredService(namespace.name, name, blocks.buffer(slot), start, start + blocks.length(slot));
  }

  /** Gives an entry a service, in the place of its former one. */
  put(owner: Owner, service: Service): void {
    const octets = this.#writer.write(service);
    const block = octets ?? NO_OCTETS;
    if (owner.serviceSlot === NO_ENTRY) owner.serviceSlot = this.#blocks.add(block);
    else this.#blocks.replace(owner.serviceSlot, block);
    const slot = owner.serviceSlot;
    this.#owners[slot] = owner;
    if (octets === undefined) this.#large.set(slot, copyService(service));
    else this.#large.delete(slot);
  }

  delete(owner: Owner): void {
    const slot = owner.serviceSlot;
    if (slot === NO_ENTRY) return;
    owner.serviceSlot = NO_ENTRY;
    this.#owners[slot] = undefined;
    this.#large.delete(slot);
    this.#blocks.delete(slot);
  }

  /** All of them, as objects of their own. They may come and go meanwhile. */
  *copies(): Generator<Service> {
    for (const slot of this.#blocks.slots()) {
      const owner = this.#owners[slot];
      const service = owner && this.get(owner);
      if (service !== undefined) yield copyService(service);
    }
  }

  /** @param find the entry under a name */
  listing(find: (identity: Identity) => Owner | undefined): TableListing {
    return slotListing(
      this.#blocks,
      (identity) => find(identity)?.serviceSlot ?? NO_ENTRY,
      (slot) => ({
        namespace: this.#owners[slot]?.namespace.name ?? "",
        name: this.#owners[slot]?.name ?? "",
      }),
    );
  }
}

const POINTER_OCTETS = 8;
const NO_OCTETS: Uint8Array = new Uint8Array(0);
