/** Services by their addresses. */
import { NO_ENTRY } from "../../../lib/collections/slab/growing-index.ts";
import type { AddressKey } from "../../objects/addresses.ts";
import type { Service } from "../../objects/objects.ts";
import type { AddressSlots } from "../tables/address-slots.ts";
import { type EntryTables, IndexedService } from "./indexed-service.ts";

/**
 * The services with an address, in the order in which they got it.
 * @param keysOf the addresses of a service that are meant
 */
export function entriesAt(
  tables: EntryTables,
  index: AddressSlots,
  key: AddressKey,
  keysOf: (service: Service | undefined) => Iterable<AddressKey>,
): readonly IndexedService[] {
  let entry = index.first(key);
  if (entry === NO_ENTRY) return NOTHING;
  const found: IndexedService[] = [];
  // A reader may be led round a circle while another thread writes: the bound ends it.
  for (let left = index.places; entry !== NO_ENTRY && left > 0; left--) {
    const service = new IndexedService(tables, index.slot(entry));
    // The hash of an address of IPv4 is as good as the address.
    if (typeof key === "number" || new Set(keysOf(service.service)).has(key)) found.push(service);
    entry = index.after(entry);
  }
  // Two addresses of IPv6 of one service may have the same hash.
  if (typeof key !== "number" && found.length > 1)
    return [...new Map(found.map((each) => [each.slot, each])).values()];
  return found;
}

const NOTHING: readonly IndexedService[] = [];
