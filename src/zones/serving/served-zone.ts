/** A zone that a plugin serves: the records in force, and the listeners for changes. */
import type { Name } from "../../dns/name.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import { ZoneJournal } from "../changes/zone-journal.ts";
import type { Zone } from "../data/zone.ts";
import type { Freshness } from "./freshness.ts";

export class ServedZone {
  /** In lower case. */
  readonly apex: Name;
  /** As written by the user, for logs. */
  readonly spelled: Name;
  #zone: Zone | undefined;
  /** The steps to {@link zone} from earlier states. */
  readonly journal: ZoneJournal = new ZoneJournal();
  /** A copy that no primary has confirmed for longer than its SOA record allows is no longer served. */
  isExpired = false;
  /** The last contact with its source. */
  freshness: Freshness | undefined;
  /** Further zones of the same name, which are searched in order for names missing here. */
  readonly behind: ServedZone[] = [];
  /** Handles NOTIFY; without it NOTIFY is dropped. */
  notified: ((query: Query) => Outcome) | undefined;

  constructor(apex: Name) {
    this.apex = apex.toLowerCase();
    this.spelled = apex;
  }

  /** `undefined` until it is loaded. */
  get zone(): Zone | undefined {
    return this.#zone;
  }

  set zone(zone: Zone | undefined) {
    if (this.#zone !== undefined) this.#zone.holders--;
    if (zone !== undefined) zone.holders++;
    this.#zone = zone;
  }
}
