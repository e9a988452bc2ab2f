/**
 * Answers queries for the zones of a plugin: `file`, `auto` and `secondary` do it in the same way (src/plugins/file/README.md and
 * src/plugins/secondary/README.md).
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Name } from "../../dns/name.ts";
import { Opcode, Rcode } from "../../dns/numbers.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { Logger } from "../../lib/logging/log.ts";
import type { GaugeFamily } from "../../lib/metrics/metric-families.ts";
import type { Handler, Next } from "../../plugin/chain/handler.ts";
import type { PluginInstance } from "../../plugin/contract/plugin-instance.ts";
import type { Site } from "../../plugin/contract/site.ts";
import type { StartOfAuthority, TransferSource, ZoneTransfer } from "../../plugin/contract/transfer.ts";
import { isAsNew, ZoneNotLoadedError } from "../../plugin/contract/transfer.ts";
import { DROPPED, type Outcome } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import type { Trace } from "../../plugin/query/trace.ts";
import type { Fallthrough } from "../../plugin/query/zones.ts";
import { Found, type FoundResult, ZoneAnswers } from "../answers/zone-answers.ts";
import {
  applyChange,
  isMissingFrom,
  mayBeAmendedBy,
  requireSerial,
  ZoneChangeError,
} from "../changes/zone-changes.ts";
import { differenceOf, journalLimit, pendingDifference } from "../changes/zone-journal.ts";
import { ZoneTransition } from "../changes/zone-transition.ts";
import { NO_NODE } from "../data/name-tree.ts";
import type { Zone } from "../data/zone.ts";
import type { ZoneChange } from "../data/zone-change.ts";
import { copyOfZone, soaRecord } from "../data/zone-transfer.ts";
import type { ZoneCopies } from "./copy-set.ts";
import { LaterPlugins } from "./later-plugins.ts";
import type { ServedZone } from "./served-zone.ts";
import { ZoneChoice } from "./zone-choice.ts";
import { ZoneTable } from "./zone-table.ts";

/** Extra memory of a zone during a change: an eighth. */
const SPARE = 8;

/** Hooks on the way of a zone to another state. */
interface PassingSteps {
  /** Bytes. */
  readonly limit: number;
  /** Called for the first state and after each change. */
  readonly taken: (zone: Zone) => void;
  readonly accept?: ((zone: Zone, pause: () => Promise<void>) => Promise<boolean>) | undefined;
  /** Called when everything is ready and nothing is visible yet. */
  readonly prepared?: (zone: Zone) => Promise<void>;
  readonly switched: (zone: Zone) => void;
  readonly finished?: () => Promise<void>;
}

interface NotedChange {
  readonly before: StartOfAuthority;
  readonly after: StartOfAuthority;
  readonly change: ZoneChange;
}

export class ZoneService implements TransferSource {
  readonly table: ZoneTable<ServedZone> = new ZoneTable();
  /** Sends new states to other data planes. */
  copies: ZoneCopies | undefined;
  readonly #answers = new ZoneAnswers();
  readonly #site: Site;
  readonly #later: LaterPlugins;
  readonly #choice: ZoneChoice;
  readonly #log: Logger;
  readonly #fallthrough: Fallthrough;
  readonly #octets: GaugeFamily;
  readonly #records: GaugeFamily;
  readonly #listeners = new Set<(apex: Name) => void>();
  readonly #ages: GaugeFamily;
  readonly #endCollecting: () => void;
  readonly #refusesOthers: boolean;

  /** @param refusesOthers whether the last plugin of a chain refuses queries outside of its zones: otherwise they fail */
  constructor(self: PluginInstance, site: Site, fallthrough: Fallthrough, refusesOthers = true) {
    this.#refusesOthers = refusesOthers;
    this.#site = site;
    this.#later = new LaterPlugins(self, site);
    this.#choice = new ZoneChoice(this.table, this.#answers, this.#later);
    this.#log = site.log;
    this.#fallthrough = fallthrough;
    this.#octets = site.metrics.gauge({
      name: "portolan_zone_memory_bytes",
      help: "Memory used by the records of a zone, in bytes.",
      labels: ["zone"],
    });
    this.#records = site.metrics.gauge({
      name: "portolan_zone_records",
      help: "Records of a zone.",
      labels: ["zone"],
    });
    this.#ages = site.metrics.gauge({
      name: "portolan_zone_age_seconds",
      help: "Seconds since the zone's source was last contacted; absent until the first contact.",
      labels: ["zone"],
    });
    this.#endCollecting = site.metrics.onCollect(() => {
      for (const served of this.table.zones()) {
        const age = oldestAge(served);
        if (age !== undefined) this.#ages.slot(served.apex.toString()).set(age / 1_000);
      }
    });
  }

  stop(): void {
    this.#endCollecting();
  }

  readonly handle: Handler = (query, next) => {
    const served = this.find(query);
    return served === undefined ? this.passOn(query, next) : this.answer(served, query, next);
  };

  /** The zone that answers the query. */
  find(query: Query): ServedZone | undefined {
    return this.#choice.find(query);
  }

  /** Passes on a query outside of all zones. */
  passOn(query: Query, next: Next): Outcome | Promise<Outcome> {
    query.trace?.note("no zone of this plugin contains the name");
    return this.#refusesOthers && this.#later.isEmpty ? query.fail(Rcode.REFUSED) : next(query);
  }

  /** Answers a query for a name in a zone. */
  answer(served: ServedZone, query: Query, next: Next): Outcome | Promise<Outcome> {
    if (query.opcode === Opcode.NOTIFY) return this.#notified(served, query);
    if (query.type === RecordType.AXFR || query.type === RecordType.IXFR) {
      query.trace?.note("zone transfers are handled by the transfer plugin: REFUSED");
      return query.fail(Rcode.REFUSED);
    }
    const chosen = served.behind.length === 0 ? served : this.#choice.amongSameName(served, query);
    const { zone } = chosen;
    if (zone === undefined) return query.fail(Rcode.SERVFAIL, new ZoneNotLoadedError(served.spelled));
    if (chosen.isExpired) {
      this.#log.warning(`Zone ${served.spelled} is expired`);
      return query.fail(Rcode.SERVFAIL);
    }
    const outcome = this.#answers.answer(zone, query);
    const { found, wildcard } = this.#answers;
    if (query.trace !== undefined) noteAnswer(query.trace, chosen, found);
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

  /** Puts new records of a zone into force. The difference is recorded if the zone may be transferred. */
  async replace(served: ServedZone, zone: Zone): Promise<void> {
    const former = served.zone;
    if (former !== undefined && this.#listeners.size > 0) {
      const limit = journalLimit(zone);
      former.readers++;
      const difference = await differenceOf(former, zone, limit, nextTurn).finally(() => former.readers--);
      if (difference === undefined) served.journal.clear();
      else served.journal.add(difference, limit);
    }
    served.zone = zone;
    served.isExpired = false;
    this.#tell(served);
    await former?.release(nextTurn);
    await this.copies?.publishWhole(served);
  }

  /** Changes the records of the zone in force, recorded as in {@link replace}. All in one turn. */
  amend(served: ServedZone, zone: Zone, change: ZoneChange): void {
    this.#amend(served, zone, change);
    this.#tell(served);
  }

  /**
   * Moves a zone through several states: one state per turn for small changes, and otherwise in a single step to the last.
   * @throws ZoneChangeError if a change does not fit; the states before it may be in force then
   */
  async advance(served: ServedZone, changes: readonly ZoneChange[], limit: number): Promise<void> {
    const { zone } = served;
    if (zone === undefined) throw new ZoneNotLoadedError(served.spelled);
    let done = 0;
    try {
      for (const change of changes) {
        if (!mayBeAmendedBy(zone, change)) break;
        requireSerial(zone, change);
        const missing = isMissingFrom(zone, change);
        if (missing !== undefined) throw missing;
        this.#amend(served, zone, change);
        if (++done < changes.length) await nextTurn();
      }
    } finally {
      if (done > 0) this.#tell(served);
    }
    if (done === changes.length) return;
    const left = changes.slice(done);
    const states: StartOfAuthority[] = [];
    await this.#pass(served, zone, left, {
      limit,
      taken: (next) => void states.push(soaRecord(next)),
      switched: (next) => {
        for (const [index, change] of left.entries()) {
          const [before, after] = states.slice(index, index + 2);
          if (before !== undefined && after !== undefined)
            this.#note(served, next, { before, after, change });
        }
      },
    });
  }

  /**
   * Moves a zone to another state that the caller has compared with it. The change is computed again, without records that only
   * seemed to change.
   * @param accept checks the changed names before they become visible
   * @returns false if `accept` refused; the zone is unchanged then
   * @throws ZoneChangeError as {@link advance}
   */
  async adopt(
    served: ServedZone,
    change: ZoneChange,
    limit: number,
    accept?: PassingSteps["accept"],
  ): Promise<boolean> {
    const { zone } = served;
    if (zone === undefined) throw new ZoneNotLoadedError(served.spelled);
    const states: StartOfAuthority[] = [];
    let logs: Awaited<ReturnType<typeof pendingDifference>>;
    const isWanted = this.#listeners.size > 0 || this.copies !== undefined;
    return await this.#pass(served, zone, [change], {
      limit,
      accept,
      taken: (next) => void states.push(soaRecord(next)),
      prepared: async (next) => {
        // The new data are in the zone's tables now.
        change.removed.discard();
        change.added.discard();
        if (isWanted) logs = await pendingDifference(next, journalLimit(next), nextTurn);
      },
      switched: (next) => {
        const [before, after] = states;
        if (before === undefined || after === undefined) return;
        if (logs !== undefined) this.#note(served, next, { before, after, change: { ...change, ...logs } });
        else served.journal.clear();
      },
      finished: async () => {
        if (isWanted && logs === undefined) await this.copies?.publishWhole(served);
      },
    });
  }

  /** Changes the zone invisibly, or a copy if the old one is needed. All or nothing. */
  async #pass(
    served: ServedZone,
    zone: Zone,
    changes: readonly ZoneChange[],
    steps: PassingSteps,
  ): Promise<boolean> {
    // During a reload two generations share a zone, each with its own history.
    if (!zone.mayBegin || zone.holders > 1) return await this.#passOnCopy(served, zone, changes, steps);
    const transition = new ZoneTransition(zone);
    let isAccepted = true;
    try {
      steps.taken(zone);
      for (const change of changes) {
        transition.after(() => requireSerial(zone, change));
        await transition.take(change, nextTurn);
        transition.after(() => steps.taken(zone));
      }
      await transition.order(nextTurn);
      requireSize(zone, steps.limit);
      isAccepted = (await steps.accept?.(zone, nextTurn)) ?? true;
      if (isAccepted) await steps.prepared?.(zone);
      while (zone.readers > 0) await nextTurn();
      if (served.zone !== zone || zone.holders > 1)
        throw new ZoneChangeError("the zone was changed by another operation");
    } catch (error) {
      await transition.undo(nextTurn);
      throw error;
    }
    if (!isAccepted) {
      await transition.undo(nextTurn);
      return false;
    }
    transition.switchOver();
    served.isExpired = false;
    steps.switched(zone);
    this.#tell(served);
    await transition.finish(nextTurn);
    await steps.finished?.();
    return true;
  }

  async #passOnCopy(
    served: ServedZone,
    zone: Zone,
    changes: readonly ZoneChange[],
    steps: PassingSteps,
  ): Promise<boolean> {
    // The changed names cannot be checked here.
    if (steps.accept !== undefined) return false;
    const { version } = zone;
    const copy = await zone.copy(nextTurn);
    steps.taken(copy);
    for (const change of changes) {
      requireSerial(copy, change);
      await applyChange(copy, change, nextTurn);
      steps.taken(copy);
    }
    await copy.order(nextTurn);
    requireSize(copy, steps.limit);
    if (served.zone !== zone || zone.version !== version)
      throw new ZoneChangeError("the zone was changed by another operation");
    served.zone = copy;
    served.isExpired = false;
    steps.switched(copy);
    this.#tell(served);
    await zone.release(nextTurn);
    await steps.finished?.();
    return true;
  }

  #amend(served: ServedZone, zone: Zone, change: ZoneChange): void {
    const before = soaRecord(zone);
    zone.amend(change);
    this.#note(served, zone, { before, after: soaRecord(zone), change });
  }

  #note(served: ServedZone, zone: Zone, { before, after, change }: NotedChange): void {
    const [fromSerial, toSerial] = [before.data.serial, after.data.serial];
    this.copies?.publishChange(served, change);
    if (this.#listeners.size === 0 || isAsNew(fromSerial, toSerial)) served.journal.clear();
    else {
      const { removed, added } = change;
      served.journal.add({ before, after, fromSerial, toSerial, removed, added }, journalLimit(zone));
    }
  }

  #tell(served: ServedZone): void {
    this.#site.changingNames.addZones([served.apex]);
    const label = served.apex.toString();
    const sameName = this.table.get(served.apex) ?? served;
    const zones = [sameName, ...sameName.behind].map((each) => each.zone);
    this.#octets.slot(label).set(zones.reduce((sum, each) => sum + (each?.size ?? 0), 0));
    this.#records.slot(label).set(zones.reduce((sum, each) => sum + (each?.recordCount ?? 0), 0));
    this.#site.changingNames.tell([served.apex]);
    for (const listener of this.#listeners) listener(served.apex);
  }

  /** A zone is no longer served. */
  remove(served: ServedZone): void {
    this.table.delete(served.apex);
    const label = served.apex.toString();
    this.#octets.slot(label).set(0);
    this.#records.slot(label).set(0);
    this.#ages.remove(label);
    this.#site.changingNames.tell([served.apex]);
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
}

function oldestAge({ freshness, behind }: ServedZone): number | undefined {
  let oldest = freshness?.age;
  for (const { freshness: other } of behind) {
    const age = other?.age;
    if (age !== undefined && (oldest === undefined || age > oldest)) oldest = age;
  }
  return oldest;
}

function noteAnswer(trace: Trace, { spelled, freshness }: ServedZone, found: FoundResult): void {
  trace.note(`zone ${spelled}: ${FOUND_WORDS[found]}`);
  if (freshness !== undefined) trace.note(`zone ${spelled}: ${freshness.source}, ${freshness.describe()}`);
}

const FOUND_WORDS: Readonly<Record<number, string>> = {
  [Found.DATA]: "the name has such records",
  [Found.NO_DATA]: "the name has no records of this type",
  [Found.NO_NAME]: "the name does not exist",
  [Found.EMPTY_NON_TERMINAL]: "the name has no records, only names below it do",
  [Found.DELEGATION]: "the name is delegated",
  [Found.ALIAS]: "the name is an alias",
};

/** @throws ZoneChangeError */
function requireSize(zone: Zone, limit: number): void {
  if (zone.used > limit + limit / SPARE) throw new ZoneChangeError(`the zone is larger than ${limit} octets`);
}
