/** A part of a zone as a zone of its own, to compute the result of a change while the zone stays as it is. */
import type { Name } from "../../dns/name.ts";
import { eachRecord } from "../data/each-record.ts";
import { NO_NODE } from "../data/name-tree.ts";
import { Zone } from "../data/zone.ts";

/** Names between two pauses. */
const PORTION = 100;

/**
 * Copies the records of the apex and of some names. Names outside of the zone are skipped. The zone must not change until the
 * promise resolves.
 * @param pause called between portions
 */
export async function partOf(zone: Zone, names: Iterable<Name>, pause: () => Promise<void>): Promise<Zone> {
  const part = new Zone(zone.apex);
  const taken = new Set<number>();
  take(zone, zone.apex, part, taken);
  let count = 0;
  for (const name of names) {
    if (++count % PORTION === 0) await part.makeRoom(pause);
    if (name.isAtOrBelow(zone.apex)) take(zone, name, part, taken);
  }
  return part;
}

function take({ records }: Zone, { wire }: Name, part: Zone, taken: Set<number>): void {
  const node = records.nodeFor(wire, wire.length, false);
  if (node === NO_NODE || taken.has(node)) return;
  taken.add(node);
  eachRecord(records, node, records.first(node), (record) => void part.addPlain(record));
}
