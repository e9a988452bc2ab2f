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

export class ChangingNames {
  /** The apexes in wire form and lower case, by hash. */
  readonly #zones = new Map<number, Uint8Array[]>();
  /** For each number of labels, whether a zone has that many: names with very many labels come from attackers. */
  readonly #depths = new Uint8Array(MAX_LABELS + 1);
  #count = 0;
  readonly #plugins: () => Iterable<PluginInstance>;

  /** @param plugins the instances of all server blocks, once all are made */
  constructor(plugins: () => Iterable<PluginInstance>) {
    this.#plugins = plugins;
  }

  /**
   * Declares that data at and below these names may change, and that the plugin will call {@link tell}. A removed
   * zone may stay here.
   */
  addZones(zones: readonly Name[]): void {
    for (const { folded, hash, labelCount } of zones) {
      if (this.#count > MOST_ZONES) return;
      const others = this.#zones.get(hash) ?? [];
      if (others.some((other) => isEqual(other, folded, 0))) continue;
      this.#zones.set(hash, [...others, folded]);
      this.#depths[labelCount] = 1;
      this.#count++;
    }
  }

  /** Whether no name changes. */
  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Whether a name's data may change. The name is in wire form and lower case, and ends before `end`. */
  has(octets: Uint8Array, start: number, end: number): boolean {
    if (this.#count === 0) return false;
    if (this.#count > MOST_ZONES) return true;
    let labels = 0;
    for (let at = start; octetAt(octets, at) !== 0; at += octetAt(octets, at) + 1) labels++;
    for (let at = start; ; at += octetAt(octets, at) + 1, labels--) {
      if (this.#depths[labels] === 1) {
        const zones = this.#zones.get(hashName(octets, at, end));
        if (zones !== undefined)
          for (const zone of zones) if (zone.length === end - at && isEqual(zone, octets, at)) return true;
      }
      if (labels === 0) return false;
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
