/**
 * Zones by name. Finds the zone of a query's name by the hashes of its suffixes, in a time that does not depend on the number of
 * zones.
 */
import type { Name } from "../../dns/name.ts";
import { FOLD, octetAt } from "../../dns/octets.ts";

export interface NamedZone {
  /** In lower case. */
  readonly apex: Name;
}

const HASH_BASIS = 0x811c9dc5 | 0;
const HASH_PRIME = 0x01000193;

export class ZoneTable<Z extends NamedZone> {
  readonly #byHash = new Map<number, Z[]>();
  /** A single zone is found without hashes. */
  #only: Z | undefined;

  constructor(zones: Iterable<Z> = []) {
    for (const zone of zones) this.add(zone);
  }

  /** A zone of the same name is replaced. */
  add(zone: Z): void {
    const others = (this.#byHash.get(zone.apex.hash) ?? []).filter(({ apex }) => !apex.equals(zone.apex));
    this.#byHash.set(zone.apex.hash, [...others, zone]);
    this.#findOnly();
  }

  delete(apex: Name): void {
    const left = (this.#byHash.get(apex.hash) ?? []).filter((zone) => !zone.apex.equals(apex));
    if (left.length === 0) this.#byHash.delete(apex.hash);
    else this.#byHash.set(apex.hash, left);
    this.#findOnly();
  }

  get(apex: Name): Z | undefined {
    return this.#byHash.get(apex.hash)?.find((zone) => zone.apex.equals(apex));
  }

  *zones(): Generator<Z> {
    for (const zones of this.#byHash.values()) yield* zones;
  }

  #findOnly(): void {
    const zones = [...this.#byHash.values()];
    this.#only = zones.length === 1 && zones[0]?.length === 1 ? zones[0][0] : undefined;
  }

  /**
   * The zone with the longest name at or above the name `bytes[start, end)`.
   * @param above excludes the name itself: for DS, which the parent has
   */
  find(bytes: Uint8Array, start: number, end: number, above = false): Z | undefined {
    const only = this.#only;
    if (only !== undefined) return isBelow(only.apex.wire, bytes, start, end, above) ? only : undefined;
    let found: Z | undefined;
    let hash = HASH_BASIS;
    const starts = labelStarts;
    let label = 0;
    for (let at = start; octetAt(bytes, at) !== 0; at += octetAt(bytes, at) + 1) starts[label++] = at;
    starts[label] = end - 1;
    for (let at = end - 1; label >= 0; label--) {
      const from = starts[label] as number;
      for (; at >= from; at--) hash = Math.imul(hash ^ octetAt(FOLD, octetAt(bytes, at)), HASH_PRIME);
      if (above && from === start && end - start > 1) break;
      const zones = this.#byHash.get(hash);
      if (zones !== undefined)
        found = zones.find(({ apex }) => standsAt(apex.wire, bytes, from, end)) ?? found;
    }
    return found;
  }
}

/** Whether the name `bytes[start, end)` is the zone's, or is below it. */
function isBelow(wire: Uint8Array, bytes: Uint8Array, start: number, end: number, above: boolean): boolean {
  const from = end - wire.length;
  let at = start;
  while (at < from) at += octetAt(bytes, at) + 1;
  if (at !== from || (above && from === start && wire.length > 1)) return false;
  return standsAt(wire, bytes, from, end);
}

const labelStarts = new Uint16Array(129);

function standsAt(wire: Uint8Array, bytes: Uint8Array, from: number, end: number): boolean {
  if (end - from !== wire.length) return false;
  for (let at = 0; at < wire.length; at++) {
    if (octetAt(FOLD, octetAt(bytes, from + at)) !== wire[at]) return false;
  }
  return true;
}
