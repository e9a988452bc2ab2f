/** Chooses the zone of a plugin that answers a query. */
import { RecordType } from "../../dns/type-names.ts";
import type { Query } from "../../plugin/query/query.ts";
import { Found, type ZoneAnswers } from "../answers/zone-answers.ts";
import type { LaterPlugins } from "./later-plugins.ts";
import type { ServedZone } from "./served-zone.ts";
import type { ZoneTable } from "./zone-table.ts";

const NO_RANK = 4;
/** Ranks the answers of several zones: the lowest is the best. */
const RANKS: Readonly<Record<number, number>> = {
  [Found.DELEGATION]: 1,
  [Found.EMPTY_NON_TERMINAL]: 2,
  [Found.NO_NAME]: 3,
};

export class ZoneChoice {
  readonly #table: ZoneTable<ServedZone>;
  readonly #answers: ZoneAnswers;
  readonly #later: LaterPlugins;

  constructor(table: ZoneTable<ServedZone>, answers: ZoneAnswers, later: LaterPlugins) {
    this.#table = table;
    this.#answers = answers;
    this.#later = later;
  }

  /** The zone with the longest name that contains the query's name; for DS of an apex the parent. */
  find(query: Query): ServedZone | undefined {
    const own = this.#table.find(query.bytes, 12, query.nameEnd);
    if (query.type !== RecordType.DS || own?.apex.wire.length !== query.nameEnd - 12) return own;
    return this.#parentOf(own, query);
  }

  /**
   * DS records of a zone are data of its parent, which answers even if the child is here as well (RFC 4035 section 3.1.4.1). A
   * higher zone cannot answer for the parent if it does not have the name, or delegates it to a zone between the two.
   */
  #parentOf(own: ServedZone, query: Query): ServedZone | undefined {
    const parent = this.#table.find(query.bytes, 12, query.nameEnd, true);
    if (parent === undefined || parent === own) {
      if (!this.#later.haveParentOf(own.apex)) return own;
      query.trace?.note("a later plugin has the parent of this zone, which has the DS records");
      return undefined;
    }
    if (parent.zone === undefined) return parent;
    const found = this.#answers.find(parent.zone, query);
    return found === Found.NO_NAME || found === Found.DELEGATION ? own : parent;
  }

  /**
   * Of several zones with the same name, the first that has the queried name, then the first that delegates it
   * (src/plugins/route53/README.md). An unloaded one may have it, so it ends the search.
   */
  amongSameName(served: ServedZone, query: Query): ServedZone {
    let best = served;
    let bestRank = NO_RANK;
    for (let index = -1; index < served.behind.length; index++) {
      const each = index < 0 ? served : (served.behind[index] ?? served);
      if (each.zone === undefined || each.isExpired) return bestRank < NO_RANK ? best : each;
      const rank = RANKS[this.#answers.find(each.zone, query)] ?? 0;
      if (rank === 0) return each;
      if (rank < bestRank) {
        bestRank = rank;
        best = each;
      }
    }
    return best;
  }
}
