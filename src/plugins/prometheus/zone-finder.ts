import type { Name } from "../../dns/index.ts";
import { octetAt } from "../../dns/octets.ts";
import type { Query } from "../../plugin/index.ts";
import { isNameAt } from "../../plugin/zones.ts";

interface ZoneLabel {
  readonly folded: Uint8Array;
  readonly text: string;
}

/** Finds the zone of a server block that a query belongs to, on the octets of the query. */
export class ZoneFinder {
  readonly #zones: readonly ZoneLabel[];
  /** Of a block with one zone: every query of the block belongs to it. */
  readonly #only: string | undefined;

  constructor(zones: readonly Name[]) {
    this.#zones = zones.map((zone) => ({ folded: zone.folded, text: zone.toLowerCase().toString() }));
    this.#only = this.#zones.length === 1 ? this.#zones[0]?.text : undefined;
  }

  /** The longest zone as text, `.` when there is none. */
  labelOf(query: Query): string {
    if (this.#only !== undefined) return this.#only;
    const { bytes, nameEnd } = query;
    for (let at = 12; at < nameEnd; at += octetAt(bytes, at) + 1) {
      for (const zone of this.#zones) {
        if (zone.folded.length === nameEnd - at && isNameAt(zone.folded, bytes, at)) return zone.text;
      }
    }
    return ".";
  }
}
