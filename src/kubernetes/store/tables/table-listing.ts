/** What a complete listing of a kind has named of what is there already. */
import { NO_ENTRY } from "../../../lib/collections/slab/growing-index.ts";
import type { Identity } from "../../objects/objects.ts";
import type { BlockTable, Slot } from "./block-table.ts";

export interface TableListing {
  /** Notes an object that has just been put. */
  note(identity: Identity): void;
  /** All objects of the table that were not noted, and undefined for each that was. They may come and go meanwhile. */
  rest(): Generator<Identity | undefined>;
}

/**
 * The listing of what stands in blocks: each notes the latest listing that named it.
 * @param find where something stands, {@link NO_ENTRY} for what is not there
 * @param identityOf `undefined` for a place that stands for no object
 */
export function slotListing(
  blocks: BlockTable,
  find: (identity: Identity) => Slot,
  identityOf: (slot: Slot) => Identity | undefined,
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
