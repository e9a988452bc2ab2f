import type { Name } from "../../dns/index.ts";
import { type Query, ZoneList } from "../../plugin/index.ts";

/** Finds the zone of a server block that a query belongs to, from the bytes of the query. */
export class ZoneFinder {
  readonly #zones: ZoneList;
  readonly #texts: ReadonlyMap<Name, string>;
  /** The zone of a block with a single zone, to which every query belongs. */
  readonly only: string | undefined;

  constructor(zones: readonly Name[]) {
    this.#zones = new ZoneList(zones);
    this.#texts = new Map(zones.map((zone) => [zone, zone.toLowerCase().toString()]));
    this.only = zones.length === 1 ? [...this.#texts.values()][0] : undefined;
  }

  /** The longest matching zone as text, `.` without one. */
  labelOf(query: Query): string {
    if (this.only !== undefined) return this.only;
    const zone = this.#zones.matchQuery(query);
    return (zone === undefined ? undefined : this.#texts.get(zone)) ?? ".";
  }
}
