/** Zones that a plugin serves, and names that may fall through, for all plugins. */
import { Name } from "../../dns/name.ts";
import { FOLD, octetAt } from "../../dns/octets.ts";
import type { Query } from "./query.ts";

/** A list of zones; a name belongs to the longest one that is an ancestor of it or itself (docs/spec/coredns-behaviour.md#arguments). */
export class ZoneList {
  /** The zones in the order given. */
  readonly zones: readonly Name[];
  readonly #longestFirst: readonly Name[];
  readonly #hasRoot: boolean;

  constructor(zones: readonly Name[]) {
    this.zones = zones;
    this.#longestFirst = [...zones].sort((a, b) => b.wire.length - a.wire.length);
    this.#hasRoot = zones.some((zone) => zone.isRoot);
  }

  /** The zone that `name` belongs to. */
  match(name: Name): Name | undefined {
    for (const zone of this.#longestFirst) if (zone.isRoot || name.isAtOrBelow(zone)) return zone;
    return undefined;
  }

  /** Like {@link match}, on the octets of the query: most queries that bypass a plugin need no `Name` for that. */
  matchQuery({ bytes, nameEnd }: Pick<Query, "bytes" | "nameEnd">): Name | undefined {
    if (this.#hasRoot && this.#longestFirst.length === 1) return Name.root;
    for (const zone of this.#longestFirst) {
      const place = nameEnd - zone.folded.length;
      if (place >= 12 && isNameAt(zone.folded, bytes, place) && isLabelAt(bytes, place)) return zone;
    }
    return undefined;
  }

  /** Whether a name is in one of the zones. */
  contains(name: Name): boolean {
    return this.#hasRoot || this.match(name) !== undefined;
  }

  toString(): string {
    return this.zones.join(",");
  }
}

/** Whether a label or the root of the question's name begins at this offset. */
function isLabelAt(bytes: Uint8Array, place: number): boolean {
  let at = 12;
  while (at < place) at += octetAt(bytes, at) + 1;
  return at === place;
}

/** Whether an uncompressed name is at this offset, in any case. @param folded the name in lower case */
function isNameAt(folded: Uint8Array, bytes: Uint8Array, start: number): boolean {
  for (let index = 0; index < folded.length; index++)
    if (octetAt(FOLD, octetAt(bytes, start + index)) !== octetAt(folded, index)) return false;
  return true;
}

/** The `fallthrough [ZONES...]` option: the names that a plugin passes on if it does not have them. */
export class Fallthrough {
  /** No name goes on. */
  static readonly none: Fallthrough = new Fallthrough(new ZoneList([]));
  /** Every name goes on. */
  static readonly everything: Fallthrough = new Fallthrough(new ZoneList([Name.root]));

  /** The zones of which names go on. */
  readonly zones: ZoneList;

  constructor(zones: ZoneList) {
    this.zones = zones;
  }

  /** Whether a query for the name goes to the next plugin when this one has no answer. */
  permits(name: Name): boolean {
    return this.zones.contains(name);
  }
}
