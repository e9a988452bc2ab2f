/** What a complete listing of a kind has named of what is there already. */
import { NO_ENTRY } from "../../lib/slab/growing-index.ts";
import type { Identity } from "../objects/objects.ts";
import type { BlockTable, Slot } from "./block-table.ts";

export interface TableListing {
  /** Notes an object that has just been put. */
  note(identity: Identity): void;
  /** All objects of the table that were not noted, and undefined for each that was. They may come and go meanwhile. */
  rest(): Generator<Identity | undefined>;
}

/** The listing of a table of objects: they are noted themselves, for they are there anyway. */
export class NamedObjects implements TableListing {
  readonly #all: () => Iterable<Identity>;
  readonly #find: (identity: Identity) => object | undefined;
  /** Where there was nothing, nothing can be missing. */
  readonly #named: Set<object> | undefined;

  /** @param find what the table has under a name, the very object that `all` has */
  constructor(all: () => Iterable<Identity>, find: (identity: Identity) => object | undefined) {
    this.#all = all;
    this.#find = find;
    this.#named = isEmpty(all()) ? undefined : new Set();
  }

  note(identity: Identity): void {
    const object = this.#named && this.#find(identity);
    if (object !== undefined) this.#named?.add(object);
  }

  *rest(): Generator<Identity | undefined> {
    const named = this.#named;
    if (named !== undefined) for (const object of this.#all()) yield named.has(object) ? undefined : object;
  }
}

function isEmpty(objects: Iterable<unknown>): boolean {
  for (const _ of objects) return false;
  return true;
}

/**
 * The listing of what stands in blocks: each notes the latest listing that named it.
 * @param find where something stands, {@link NO_ENTRY} for what is not there
 */
export function slotListing(
  blocks: BlockTable,
  find: (identity: Identity) => Slot,
  identityOf: (slot: Slot) => Identity,
): TableListing {
  const listing = blocks.beginListing();
  return {
    note(identity) {
      const slot = find(identity);
      if (slot !== NO_ENTRY) blocks.name(slot, listing);
    },
    *rest() {
      for (const slot of blocks.unnamed(listing)) yield slot === undefined ? undefined : identityOf(slot);
    },
  };
}
