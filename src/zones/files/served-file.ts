/** A zone served from a file, which is checked for changes. */
import type { Name } from "../../dns/name.ts";
import { formatZoneTextFault } from "../../dns/zone-text/fault.ts";
import type { Logger } from "../../lib/logging/log.ts";
import type { Timer } from "../../lib/time/clock.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import type { Site } from "../../plugin/contract/site.ts";
import { ZoneChangeError } from "../changes/zone-changes.ts";
import type { Zone } from "../data/zone.ts";
import type { ZoneChange } from "../data/zone-change.ts";
import { Freshness } from "../serving/freshness.ts";
import { ServedZone } from "../serving/served-zone.ts";
import type { ZoneService } from "../serving/zone-service.ts";
import type { DynamicZone } from "../updates/dynamic-zone.ts";
import { hasPlainAliases } from "./file-difference.ts";
import { ZoneFileSource } from "./file-source.ts";
import { MisplacedSoaError, type ReadZone, ZoneFileError } from "./parsed-file.ts";

export interface FileZoneOptions {
  readonly service: ZoneService;
  readonly site: Site;
  readonly origin: Name;
  readonly file: string;
  /** Milliseconds between two checks of the file, 0 for none. */
  readonly reload: number;
  /** Whether a changed file is read whatever its serial. */
  readonly byMtime: boolean;
  /** If the SOA record of the file is below the origin, the zone begins there. */
  readonly mayBeginBelow?: boolean;
}

/** A shorter interval would only cause load. Milliseconds. */
const SHORTEST_RELOAD = 100;

export class FileZone {
  #served: ServedZone;
  readonly file: string;
  readonly reload: number;
  /** Applies the file's content, if the zone accepts updates. */
  dynamic: DynamicZone | undefined;
  readonly #options: FileZoneOptions;
  readonly #source: ZoneFileSource;
  readonly #log: Logger;
  #timer: Timer | undefined;
  #isStopped = false;
  /** Confirmed by each check that finds the file unchanged. */
  readonly #freshness: Freshness;
  #checking: Promise<void> = Promise.resolve();

  constructor(options: FileZoneOptions) {
    const { site, origin, file } = options;
    this.#options = options;
    this.file = file;
    this.reload = options.reload;
    this.#served = new ServedZone(origin);
    this.#freshness = new Freshness(file, site.clock);
    this.served.freshness = this.#freshness;
    this.#source = new ZoneFileSource(file, this.served.apex, site.clock);
    this.#log = site.log;
  }

  /** Changes once if the file turns out to have a zone below its origin. */
  get served(): ServedZone {
    return this.#served;
  }

  /**
   * Reads the file for the first time.
   * @throws ZoneFileError, or the error of the file system
   */
  async load(): Promise<void> {
    const read = await this.#read();
    if (read === undefined || this.#isStopped) return;
    for (const warning of read.warnings) this.#log.warning(formatZoneTextFault(warning));
    await this.#replace(read.zone);
    this.#freshness.confirm();
  }

  /** The zone as the file has it now, beside the served one. */
  async readAgain(): Promise<Zone | undefined> {
    const { site, file } = this.#options;
    return (await new ZoneFileSource(file, this.served.apex, site.clock).read())?.zone;
  }

  /** Reads the file. If the SOA record is below the origin, which CoreDNS 1.14 accepts, the zone begins there. */
  async #read(): Promise<ReadZone | undefined> {
    try {
      return await this.#source.read();
    } catch (error) {
      const { service, file, mayBeginBelow } = this.#options;
      if (!(error instanceof MisplacedSoaError) || mayBeginBelow !== true) throw error;
      const { apex } = error;
      if (this.dynamic !== undefined || service.table.get(apex) !== undefined) throw error;
      this.#source.apex = apex;
      const read = await this.#source.read();
      const origin = this.served.spelled;
      const isServed = service.table.get(origin) === this.served;
      if (isServed) service.table.delete(this.served.apex);
      this.#served = new ServedZone(apex);
      this.#served.freshness = this.#freshness;
      if (isServed) service.table.add(this.#served);
      this.#log.warning(
        `"${file}" has its SOA record at ${apex}, not at ${origin}: the zone ${apex} is served. Name it in the Corefile: 'file ${file} ${withoutDot(apex)}'`,
      );
      return read;
    }
  }

  /** Reports that there is nothing to serve yet. */
  waitForFile(): void {
    const complaint = missing(this.file);
    this.#freshness.fail(complaint);
    this.#log.warning(`Failed to open "${complaint}": trying again in ${formatGoDuration(this.reload)}`);
  }

  /** Starts to check the file. */
  watch(): void {
    if (this.reload === 0 || this.#isStopped) return;
    this.#timer = this.#options.site.clock.after(Math.max(this.reload, SHORTEST_RELOAD), () => {
      void this.check().then(() => this.watch());
    });
  }

  /** Checks the file at once, and applies its changes. */
  check(): Promise<void> {
    this.#checking = this.#checking.then(() => this.#check());
    return this.#checking;
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  describe(): string {
    const { zone, spelled } = this.served;
    const { fault } = this.#freshness;
    if (zone === undefined) return `${spelled} not loaded: ${fault}`;
    const trouble = fault === "" ? "" : `, the file cannot be taken over: ${fault}`;
    return `${spelled} serial ${zone.serial}, ${zone.recordCount} records${trouble}`;
  }

  /** The reason why the file is not in force as it is; empty if it is. */
  get fault(): string {
    return this.#freshness.fault;
  }

  async #check(): Promise<void> {
    if (this.#isStopped) return;
    if (!(await this.#source.hasChanged())) return this.#confirm();
    const { zone: current } = this.served;
    // For a zone that accepts updates, the serial in the file.
    const serial = this.dynamic?.base ?? current?.serial;
    const known = this.#options.byMtime || this.#source.hasGrown ? undefined : serial;
    try {
      if (current !== undefined && (await this.#amend(current, known))) return;
      const read = await (current === undefined ? this.#read() : this.#source.read(known, current));
      if (this.#isStopped) return;
      this.#freshness.confirm();
      if (read === undefined) return;
      for (const warning of read.warnings) this.#log.warning(formatZoneTextFault(warning));
      await this.#replace(read.zone);
      this.#sayReloaded(read.zone.serial, serial);
    } catch (error) {
      if (!this.#isStopped) this.#complain(error);
    }
  }

  /** Applies the file's changes without a second zone. @returns false if the file needs a full read */
  async #amend(current: Zone, known: number | undefined): Promise<boolean> {
    const { service } = this.#options;
    const former = current.serial;
    // A zone that accepts updates is more than its file.
    if (this.dynamic !== undefined || !current.mayBegin) return false;
    current.readers++;
    const difference = await this.#source.compare(current, known).finally(() => current.readers--);
    if (this.#isStopped) return true;
    if (difference === "same") {
      this.#freshness.confirm();
      return true;
    }
    if (difference === undefined || !(await this.#adopt(service, difference.change))) return false;
    for (const warning of difference.warnings) this.#log.warning(formatZoneTextFault(warning));
    this.#freshness.confirm();
    this.#sayReloaded(current.serial, former);
    return true;
  }

  async #adopt(service: ZoneService, change: ZoneChange): Promise<boolean> {
    try {
      return await service.adopt(this.served, change, Number.POSITIVE_INFINITY, hasPlainAliases);
    } catch (error) {
      if (error instanceof ZoneChangeError) return false;
      throw error;
    }
  }

  #sayReloaded(serial: number, former: number | undefined): void {
    const { spelled } = this.served;
    this.#log.info(`Successfully reloaded zone "${spelled}" in "${this.file}" with ${serial} SOA serial`);
    if (this.#source.hasGrown && serial === former)
      this.#log.warning(
        `Zone "${spelled}" was read before "${this.file}" was complete: secondaries that have serial ${serial} need a new one. Write to another file, and rename it`,
      );
  }

  /** The file is as it was when it was read, including its faults. */
  #confirm(): void {
    if (this.#freshness.fault === "" && this.served.zone !== undefined) this.#freshness.confirm();
  }

  #replace(zone: Zone): Promise<void> {
    return this.dynamic === undefined
      ? this.#options.service.replace(this.served, zone)
      : this.dynamic.takeOver(zone);
  }

  /** Once, until the reason changes: the old zone stays in force. */
  #complain(error: unknown): void {
    const reason = isMissing(error)
      ? missing(this.file)
      : error instanceof Error
        ? error.message
        : String(error);
    if (!this.#freshness.fail(reason)) return;
    const { spelled } = this.served;
    if (error instanceof ZoneFileError) this.#log.error(`Parsing zone "${spelled}": ${reason}`);
    else this.#log.error(`Failed to open zone "${spelled}" in "${this.file}": ${reason}`);
  }
}

function withoutDot(name: Name): string {
  return name.toString().replace(/(?<=.)\.$/, "");
}

function missing(file: string): string {
  return `open ${file}: no such file or directory`;
}

export function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
