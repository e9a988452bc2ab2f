/** A zone that a plugin serves: the records in force, and who wants to know of others. */
import type { Name } from "../../dns/name.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import { ZoneJournal } from "../changes/zone-journal.ts";
import type { Zone } from "../data/zone.ts";
import type { Freshness } from "./freshness.ts";

export class ServedZone {
  /** In lower case. */
  readonly apex: Name;
  /** As people write it: logs say it so. */
  readonly spelled: Name;
  #zone: Zone | undefined;
  /** The way to {@link zone} from earlier states. */
  readonly journal: ZoneJournal = new ZoneJournal();
  /** A copy that nobody confirmed for longer than its SOA record allows is no longer served. */
  isExpired = false;
  /** When its source was heard of. */
  freshness: Freshness | undefined;
  /** Further zones of the same name, which are asked in order for what is not in this one. */
  readonly behind: ServedZone[] = [];
  /** Told of NOTIFY; without it NOTIFY is dropped. */
  notified: ((query: Query) => Outcome) | undefined;

  constructor(apex: Name) {
    this.apex = apex.toLowerCase();
    this.spelled = apex;
  }

  /** `undefined` until it was loaded. */
  get zone(): Zone | undefined {
    return this.#zone;
  }

  set zone(zone: Zone | undefined) {
    if (this.#zone !== undefined) this.#zone.holders--;
    if (zone !== undefined) zone.holders++;
    this.#zone = zone;
  }
}
