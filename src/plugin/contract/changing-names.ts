/**
 * The names of a configuration whose data change without a reload, and the plugins to notify. A cache uses it to find
 * the other names that an answer depends on.
 */
import { hashName, type Name } from "../../dns/name.ts";
import { octetAt } from "../../dns/octets.ts";
import type { PluginInstance } from "./plugin-instance.ts";

/** With more zones than this, every name counts as changing. */
const MOST_ZONES = 20_000;
const MAX_LABELS = 127;

export interface ChangingZone {
  /** In wire form and lower case. */
  readonly apex: Uint8Array;
  /** Whether its plugin also tells of a name when the addresses change that answers for the name have beside their records. */
  readonly tellsOfAdditions: boolean;
}

/** Where there are too many zones to tell them apart. */
const ANY_ZONE: ChangingZone = { apex: Uint8Array.of(0), tellsOfAdditions: false };

/** The names and zones that plugins of a block change while they serve. */
export class ChangingNames {
  /** By the hashes of their names. */
  readonly #zones = new Map<number, ChangingZone[]>();
  /** For each number of labels whether a zone has as many: names with very many labels come from strangers. */
  readonly #depths = new Uint8Array(MAX_LABELS + 1);
  #count = 0;
  readonly #plugins: () => Iterable<PluginInstance>;

  /** @param plugins the instances of all server blocks, once all are made */
  constructor(plugins: () => Iterable<PluginInstance>) {
    this.#plugins = plugins;
  }

  /** A plugin says that names at and below these may change, and that it will {@link tell} of it. A zone that goes away may stay here. */
  addZones(zones: readonly Name[], { tellsOfAdditions = true } = {}): void {
    for (const { folded, hash, labelCount } of zones) {
      if (this.#count > MOST_ZONES) return;
      const others = this.#zones.get(hash) ?? [];
      const index = others.findIndex(({ apex }) => isEqual(apex, folded, 0));
      if (index === -1) this.#count++;
      // Two plugins may serve parts of one zone.
      else if (tellsOfAdditions) continue;
      else others.splice(index, 1);
      this.#zones.set(hash, [...others, { apex: folded, tellsOfAdditions }]);
      this.#depths[labelCount] = 1;
    }
  }

  /** Whether no name changes. */
  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Whether a name's data may change. The name is in wire form and lower case, and ends before `end`. */
  has(octets: Uint8Array, start: number, end: number): boolean {
    return this.zoneOf(octets, start, end) !== undefined;
  }

  /** The nearest zone of such a name. */
  zoneOf(octets: Uint8Array, start: number, end: number): ChangingZone | undefined {
    if (this.#count === 0) return undefined;
    if (this.#count > MOST_ZONES) return ANY_ZONE;
    let labels = 0;
    for (let at = start; octetAt(octets, at) !== 0; at += octetAt(octets, at) + 1) labels++;
    for (let at = start; ; at += octetAt(octets, at) + 1, labels--) {
      if (this.#depths[labels] === 1) {
        const zones = this.#zones.get(hashName(octets, at, end));
        if (zones !== undefined)
          for (const zone of zones)
            if (zone.apex.length === end - at && isEqual(zone.apex, octets, at)) return zone;
      }
      if (labels === 0) return undefined;
    }
  }

  /** Reports that the data of these names changed, and of all names below them. */
  tell(names: readonly Name[]): void {
    for (const instance of this.#plugins()) instance.forget?.(names);
  }
}

function isEqual(zone: Uint8Array, octets: Uint8Array, start: number): boolean {
  for (let at = 0; at < zone.length; at++) if (zone[at] !== octets[start + at]) return false;
  return true;
}
