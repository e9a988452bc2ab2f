/** A zone that is listed from a back end: known records stay in force until newer ones are listed. */

import { setImmediate as nextTurn } from "node:timers/promises";
import type { Name } from "../../dns/name.ts";
import { formatRecord } from "../../dns/resource-record.ts";
import type { GaugeFamily } from "../../lib/metrics/metric-families.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { BackOff } from "../../lib/time/back-off.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import type { Site } from "../../plugin/contract/site.ts";
import { isAsNew } from "../../plugin/contract/transfer.ts";
import { compareZones } from "../changes/zone-journal.ts";
import type { Zone } from "../data/zone.ts";
import { soaRecord } from "../data/zone-transfer.ts";
import { Freshness } from "../serving/freshness.ts";
import { ServedZone } from "../serving/served-zone.ts";
import type { ZoneService } from "../serving/zone-service.ts";
import { ZoneListing } from "./zone-listing.ts";
import { type ZoneSource, ZoneSourceError } from "./zone-source.ts";

export interface BackedZoneOptions {
  readonly service: ZoneService;
  readonly site: Site;
  readonly apex: Name;
  readonly source: ZoneSource;
  /** Milliseconds between two listings, or the minimum between them if the source reports changes. */
  readonly refresh: number;
  readonly passedOver: GaugeFamily;
}

/** Bytes: some two million records. */
const MAX_OCTETS = 256 * 1024 * 1024;
/** Milliseconds. */
const FIRST_WAIT = 1_000;
const SHORTEST_LONGEST_WAIT = 60_000;
/** Limit for the pauses that back ends ask for. */
const LONGEST_ASKED_WAIT = 600_000;
/** Random part of an interval, so that servers that started together do not list together. */
const REFRESH_JITTER = 0.1;
/** Skipped records named in the log, per listing. */
const MAX_COMPLAINTS = 10;

export class BackedZone {
  readonly served: ServedZone;
  readonly source: ZoneSource;
  readonly freshness: Freshness;
  readonly #options: BackedZoneOptions;
  readonly #abort = new AbortController();
  readonly #backOff: BackOff;
  /** Complaints about records in the last listing, so that each is logged once. */
  #complaints: ReadonlySet<string> = new Set();
  /** Milliseconds. */
  #lastTook = 0;
  readonly #loaded = Promise.withResolvers<void>();

  constructor(options: BackedZoneOptions) {
    const { apex, site, source, refresh } = options;
    this.#options = options;
    this.source = source;
    this.served = new ServedZone(apex);
    this.freshness = new Freshness(source.text, site.clock);
    this.served.freshness = this.freshness;
    const longest = Math.max(refresh, SHORTEST_LONGEST_WAIT);
    this.#backOff = new BackOff({ first: FIRST_WAIT, longest, random: site.random });
  }

  /** Resolves when there is something to serve, or the zone is stopped. */
  get loaded(): Promise<void> {
    return this.#loaded.promise;
  }

  /** Takes over the records of the same zone in the previous configuration: nothing is listed again. */
  async inherit({ served, freshness }: BackedZone): Promise<void> {
    if (served.zone === undefined) return;
    await this.take(served.zone, freshness.confirmedAt);
    if (freshness.fault !== "") this.freshness.fail(freshness.fault);
  }

  /** Puts a zone into force. @param confirmedAt milliseconds of the clock's `now`; default: now */
  async take(zone: Zone, confirmedAt?: number): Promise<void> {
    await this.#options.service.replace(this.served, zone);
    this.freshness.confirm(confirmedAt);
    this.#loaded.resolve();
  }

  /**
   * Lists the zone, and puts it into force if it differs.
   * @throws the source's errors
   */
  async load(): Promise<void> {
    const { site, source, passedOver } = this.#options;
    const { apex } = this.served;
    const complaints = new Set<string>();
    let count = 0;
    const listing = new ZoneListing(apex, MAX_OCTETS, (complaint) => {
      count++;
      if (complaints.size < MAX_COMPLAINTS) complaints.add(complaint);
    });
    const began = site.clock.now();
    await source.list(listing, this.#abort.signal);
    let isNumberedHere = false;
    const zone = listing.finish((serial) => {
      isNumberedHere = serial === 0 || this.#isCopied;
      return isNumberedHere ? this.#nextSerial() : serial;
    });
    await zone.order(nextTurn);
    if (this.#abort.signal.aborted) return;
    for (const complaint of complaints) if (!this.#complaints.has(complaint)) site.log.warning(complaint);
    if (count > complaints.size && this.#complaints.size === 0)
      site.log.warning(`${count - complaints.size} more records of ${source.text} are skipped`);
    this.#complaints = complaints;
    passedOver.slot(apex.toString()).set(count);
    if (this.served.zone !== undefined && (await isSame(this.served.zone, zone, isNumberedHere))) {
      this.freshness.confirm();
    } else await this.take(zone);
    this.#lastTook = site.clock.now() - began;
  }

  /** Keeps the zone up to date with the source, until {@link stop}. */
  watch(): void {
    void this.#run();
  }

  stop(): void {
    this.#abort.abort(new Error("the server stops"));
    this.#loaded.resolve();
  }

  describe(): string {
    const { spelled, zone } = this.served;
    if (zone === undefined) {
      const { fault } = this.freshness;
      return `${spelled} (${this.source.text}): not loaded yet${fault === "" ? "" : `: ${fault}`}`;
    }
    const size = `serial ${zone.serial}, ${zone.recordCount} records`;
    return `${spelled} (${this.source.text}): ${size}, ${this.freshness.describe()}`;
  }

  /** The reason why the zone is not up to date; empty if it is. */
  get fault(): string {
    const { fault } = this.freshness;
    if (this.served.zone !== undefined) return fault;
    return fault === "" ? "not loaded yet" : `not loaded yet: ${fault}`;
  }

  async #run(): Promise<void> {
    const { signal } = this.#abort;
    let wait = this.served.zone === undefined ? 0 : this.#pause();
    while (!signal.aborted) {
      if (wait > 0) await this.#wait(wait);
      if (signal.aborted) return;
      try {
        if (this.served.zone !== undefined && this.freshness.fault === "") {
          const mayDiffer = (await this.source.changed?.(signal)) ?? true;
          if (!mayDiffer) {
            this.freshness.confirm();
            continue;
          }
        }
        const before = this.freshness.fault;
        await this.load();
        if (before !== "") this.#options.site.log.info(`${this.source.text} is available again`);
        this.#backOff.reset();
        wait = this.#pause();
      } catch (error) {
        if (signal.aborted) return;
        wait = this.#failed(error);
      }
    }
  }

  #pause(): number {
    const { refresh, site } = this.#options;
    return Math.max(this.#lastTook, refresh) * (1 - REFRESH_JITTER * site.random.fraction());
  }

  /** @returns milliseconds until the next attempt */
  #failed(error: unknown): number {
    const reason = messageOf(error);
    const asked = error instanceof ZoneSourceError ? Math.min(error.retryAfter, LONGEST_ASKED_WAIT) : 0;
    const wait = Math.max(asked, this.#backOff.next());
    if (this.freshness.fail(reason)) {
      const kept = this.served.zone === undefined ? "" : ", the records known so far stay in force";
      const { spelled } = this.served;
      this.#options.site.log.error(
        `Failed to update zone ${spelled}: ${reason}; trying again in ${formatGoDuration(Math.round(wait))}${kept}`,
      );
    }
    return wait;
  }

  /** Some providers keep the serial when records change, which is of no use to secondaries. */
  get #isCopied(): boolean {
    return this.#options.site.block.plugins().some(({ name }) => name === "transfer");
  }

  /** A later state has a later serial, whichever server secondaries transfer the zone from (RFC 1982). */
  #nextSerial(): number {
    const now = Math.floor(this.#options.site.clock.wallTime() / 1_000) >>> 0;
    const { zone } = this.served;
    return zone !== undefined && isAsNew(zone.serial, now) ? (zone.serial + 1) >>> 0 : now;
  }

  #wait(milliseconds: number): Promise<void> {
    const { signal } = this.#abort;
    return new Promise((resolve) => {
      const end = (): void => {
        timer.cancel();
        signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = this.#options.site.clock.after(milliseconds, end);
      signal.addEventListener("abort", end);
    });
  }
}

/** @param anySerial whether the serial is ours, and so no difference between two zones */
async function isSame(before: Zone, after: Zone, anySerial: boolean): Promise<boolean> {
  const text = (zone: Zone): string => {
    const soa = soaRecord(zone);
    return formatRecord(anySerial ? { ...soa, data: { ...soa.data, serial: 0 } } : soa);
  };
  if (text(before) !== text(after)) return false;
  return (await compareZones(before, after, 0, nextTurn)) !== undefined;
}
