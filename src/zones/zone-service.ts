/** Queries for zones that a plugin serves: `file`, `auto` and `secondary` answer alike (CoreDNS facts 2.48 to 2.50). */
import { setImmediate as nextImmediate } from "node:timers/promises";
import type { Name } from "../dns/name.ts";
import { Opcode, Rcode } from "../dns/numbers.ts";
import { RecordType } from "../dns/type-names.ts";
import type { Logger } from "../lib/log.ts";
import type { GaugeFamily } from "../lib/metric-families.ts";
import type { Handler, Next } from "../plugin/handler.ts";
import { DROPPED, type Outcome } from "../plugin/outcome.ts";
import type { PluginInstance } from "../plugin/plugin-instance.ts";
import type { Query } from "../plugin/query.ts";
import type { Site } from "../plugin/site.ts";
import type { TransferSource, ZoneTransfer } from "../plugin/transfer.ts";
import { ZoneNotLoadedError } from "../plugin/transfer.ts";
import type { Fallthrough } from "../plugin/zones.ts";
import { NO_NODE } from "./name-tree.ts";
import type { ServedZone } from "./served-zone.ts";
import type { Zone } from "./zone.ts";
import { Found, ZoneAnswers } from "./zone-answers.ts";
import { differenceOf, journalLimit } from "./zone-journal.ts";
import { ZoneTable } from "./zone-table.ts";
import { copyOfZone } from "./zone-transfer.ts";

export class ZoneService implements TransferSource {
  readonly table: ZoneTable<ServedZone> = new ZoneTable();
  readonly #answers = new ZoneAnswers();
  readonly #site: Site;
  readonly #self: PluginInstance;
  readonly #log: Logger;
  readonly #fallthrough: Fallthrough;
  readonly #octets: GaugeFamily;
  readonly #records: GaugeFamily;
  readonly #listeners = new Set<(apex: Name) => void>();
  #isLast: boolean | undefined;

  constructor(self: PluginInstance, site: Site, fallthrough: Fallthrough) {
    this.#self = self;
    this.#site = site;
    this.#log = site.log;
    this.#fallthrough = fallthrough;
    this.#octets = site.metrics.gauge({
      name: "portolan_zone_memory_bytes",
      help: "Memory that the records of a zone take.",
      labels: ["zone"],
    });
    this.#records = site.metrics.gauge({
      name: "portolan_zone_records",
      help: "Records of a zone.",
      labels: ["zone"],
    });
  }

  readonly handle: Handler = (query, next) => {
    const served = this.table.find(query.bytes, 12, query.nameEnd);
    return served === undefined ? this.passOn(query, next) : this.answer(served, query, next);
  };

  /** A query that no zone holds. */
  passOn(query: Query, next: Next): Outcome | Promise<Outcome> {
    query.trace?.note("no zone of this plugin holds the name");
    this.#isLast ??= this.#isLastInChain();
    return this.#isLast ? query.fail(Rcode.REFUSED) : next(query);
  }

  /** A query for a name in a zone. */
  answer(served: ServedZone, query: Query, next: Next): Outcome | Promise<Outcome> {
    if (query.opcode === Opcode.NOTIFY) return this.#notified(served, query);
    if (query.type === RecordType.AXFR || query.type === RecordType.IXFR) {
      query.trace?.note("zone transfers are refused: see the plugin transfer");
      return query.fail(Rcode.REFUSED);
    }
    const { zone } = served;
    if (zone === undefined) return query.fail(Rcode.SERVFAIL, new ZoneNotLoadedError(served.spelled));
    if (served.isExpired) {
      this.#log.warning(`Zone ${served.spelled} is expired`);
      return query.fail(Rcode.SERVFAIL);
    }
    const outcome = this.#answers.answer(zone, query);
    const { found, wildcard } = this.#answers;
    if (query.trace !== undefined) query.trace.note(`zone ${served.spelled}: ${FOUND_WORDS[found]}`);
    if (found === Found.NO_NAME || found === Found.EMPTY_NON_TERMINAL) {
      if (this.#fallthrough.permits(query.name)) {
        query.trace?.note("falls through");
        return next(query);
      }
    }
    if (wildcard !== NO_NODE && query.metadata !== undefined)
      query.setMetadata("zone/wildcard", zone.records.nodeName(wildcard).toString());
    return outcome;
  }

  /** Puts other records of a zone into force, with what changed noted where somebody hands out copies. */
  async replace(served: ServedZone, zone: Zone): Promise<void> {
    const former = served.zone;
    if (former !== undefined && this.#listeners.size > 0) {
      const limit = journalLimit(zone);
      const difference = await differenceOf(former, zone, limit, nextTurn);
      if (difference === undefined) served.journal.clear();
      else served.journal.add(difference, limit);
    }
    served.zone = zone;
    served.isExpired = false;
    const label = served.apex.toString();
    this.#octets.slot(label).set(zone.size);
    this.#records.slot(label).set(zone.recordCount);
    for (const { instance } of this.#site.block.plugins()) instance.forget?.([served.apex]);
    for (const listener of this.#listeners) listener(served.apex);
  }

  /** A zone that is served no more. */
  remove(served: ServedZone): void {
    this.table.delete(served.apex);
    const label = served.apex.toString();
    this.#octets.slot(label).set(0);
    this.#records.slot(label).set(0);
    for (const { instance } of this.#site.block.plugins()) instance.forget?.([served.apex]);
  }

  get transferZones(): readonly Name[] {
    return Array.from(this.table.zones(), ({ apex }) => apex);
  }

  transfer(apex: Name): ZoneTransfer | undefined {
    const served = this.table.get(apex);
    if (served === undefined) return undefined;
    if (served.zone === undefined || served.isExpired) throw new ZoneNotLoadedError(apex);
    const { journal, zone } = served;
    return { ...copyOfZone(zone), changesSince: (serial) => journal.since(serial, zone.serial) };
  }

  onZoneChange(listener: (apex: Name) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #notified(served: ServedZone, query: Query): Outcome {
    if (served.notified === undefined) {
      this.#log.info(`Dropping notify from ${query.client.address} for ${served.spelled}`);
      return DROPPED;
    }
    return served.notified(query);
  }

  #isLastInChain(): boolean {
    const plugins = this.#site.block.plugins();
    const own = plugins.findIndex(({ instance }) => instance === this.#self);
    return own >= 0 && !plugins.slice(own + 1).some(({ instance }) => instance.handle !== undefined);
  }
}

const FOUND_WORDS: Readonly<Record<number, string>> = {
  [Found.DATA]: "the name has such records",
  [Found.NO_DATA]: "the name has no records of this type",
  [Found.NO_NAME]: "the name does not exist",
  [Found.EMPTY_NON_TERMINAL]: "the name has no records, only names below it do",
  [Found.DELEGATION]: "the name is delegated",
  [Found.ALIAS]: "the name is an alias",
};

async function nextTurn(): Promise<void> {
  await nextImmediate();
}
