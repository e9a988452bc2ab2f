import { join } from "node:path";
import type { KeyPair, Name } from "../../dns/index.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import { TurnShare } from "../../lib/time/turn-share.ts";
import { isAsNew } from "../../plugin/contract/transfer.ts";
import { type PluginInstance, SetupError, type Site, type Timer } from "../../plugin/index.ts";
import { ZoneFileSource } from "../../zones/files/file-source.ts";
import { readKeyFiles } from "../../zones/signing/zone-keys.ts";
import { signedZoneLines } from "../../zones/signing/zone-signing.ts";
import type { SignConfig } from "./config.ts";
import { replaceFile, signingState } from "./signed-file.ts";

/** Seconds. Bounds for the start and the lifetime of signatures; each process chooses random times within them. */
const HOUR = 3600;
const DAY = 24 * HOUR;
const BEFORE = 3 * HOUR;
const BEFORE_JITTER = 18 * HOUR;
const AFTER = 32 * DAY;
const AFTER_JITTER = 5 * DAY;

/** Milliseconds between two checks of the files. */
const INTERVAL = 60_000;
/** Milliseconds per turn of the event loop. */
const SHARE = 1;

interface SignedZone {
  readonly apex: Name;
  readonly source: string;
  readonly target: string;
  readonly nsec3: boolean;
  readonly keys: readonly KeyPair[];
}

export class ZoneFileSigning implements PluginInstance {
  readonly #lines: readonly SignConfig[];
  readonly #site: Site;
  readonly #before: number;
  readonly #after: number;
  #zones: readonly SignedZone[] = [];
  #timer: Timer | undefined;
  #isStopped = false;
  #working: Promise<void> = Promise.resolve();
  readonly #complaints = new Map<SignedZone, string>();
  /** Stamps of the sources whose zones are known to be signed. */
  readonly #stamps = new Map<SignedZone, string>();

  constructor(lines: readonly SignConfig[], site: Site) {
    this.#lines = lines;
    this.#site = site;
    this.#before = BEFORE + Math.floor(site.random.fraction() * BEFORE_JITTER);
    this.#after = AFTER + Math.floor(site.random.fraction() * AFTER_JITTER);
  }

  /** Reads the keys without writing a file. */
  examine(): Promise<void> {
    return this.start();
  }

  async start(): Promise<void> {
    const zones: SignedZone[] = [];
    for (const line of this.#lines) {
      const keys = await this.#readKeys(line);
      for (const zone of line.zones.zones) {
        const apex = zone.toLowerCase();
        const own = keys.filter(({ owner }) => owner.equals(apex));
        if (own.length === 0)
          throw new SetupError(`no key of 'sign ${line.dbfile}' belongs to the zone ${apex}`);
        zones.push({
          apex,
          source: this.#site.resolvePath(line.dbfile),
          target: join(this.#site.resolvePath(line.directory), `db.${apex}signed`),
          nsec3: line.nsec3,
          keys: own,
        });
      }
    }
    this.#zones = zones;
  }

  /** Runs in the background: `file` waits for the file. */
  started(): void {
    void this.check(true);
    this.#timer = this.#site.clock.every(INTERVAL, () => void this.check(false));
  }

  stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    return this.#working;
  }

  /** Signs the zones that need it, one after the other. Never rejects. */
  check(isFirst: boolean): Promise<void> {
    this.#working = this.#working.then(async () => {
      for (const zone of this.#zones) if (!this.#isStopped) await this.#check(zone, isFirst);
    });
    return this.#working;
  }

  async #readKeys({ key }: SignConfig): Promise<KeyPair[]> {
    const keys: KeyPair[] = [];
    for (const { name } of key) {
      for (const word of name) {
        const path = this.#site.resolvePath(word);
        const pair = await readKeyFiles(path);
        if (!pair.isEntryPoint)
          throw new SetupError(`DNSKEY in "${path.replace(/\.(?:key|private)$/, "")}.key" is not a CSK/KSK`);
        keys.push(pair);
      }
    }
    return keys;
  }

  async #check(zone: SignedZone, isFirst: boolean): Promise<void> {
    const { apex, source, target, keys } = zone;
    const { log, clock } = this.#site;
    try {
      const now = Math.floor(clock.wallTime() / 1000);
      const tags = keys.map(({ tag }) => tag);
      const known = this.#stamps.get(zone);
      const { why, stamp, serial: former } = await signingState({ source, target, tags, now, stamp: known });
      if (why === undefined) {
        if (isFirst) log.info(`Skipping signing zone "${apex}" in "${target}": signatures are valid`);
      } else {
        log.info(`Signing "${apex}" because ${why}`);
        const begun = clock.now();
        const serial = nextSerial(former, now);
        await this.#sign(zone, now, serial);
        const next = new Date(clock.wallTime() + INTERVAL).toISOString();
        log.info(
          `Successfully signed zone "${apex}" in "${target}" with key tags "${tags.join(",")}" and ${serial} SOA serial, elapsed ${formatGoDuration(clock.now() - begun)}, next: ${next}`,
        );
      }
      this.#stamps.set(zone, stamp);
      this.#complaints.delete(zone);
    } catch (error) {
      if (!this.#isStopped) this.#complain(zone, messageOf(error));
    }
  }

  async #sign({ apex, source, target, keys, nsec3 }: SignedZone, now: number, serial: number): Promise<void> {
    const read = await new ZoneFileSource(source, apex, this.#site.clock).read();
    if (read === undefined) return;
    const lines = signedZoneLines(read.zone, {
      keys,
      serial,
      inception: now - this.#before,
      expiration: now + this.#after,
      nsec3,
      pause: new TurnShare(this.#site.clock, SHARE).rest,
    });
    await replaceFile(
      target,
      `${process.pid}-${this.#site.random.unpredictable().toString(16)}`,
      this.#whileRunning(lines),
    );
  }

  async *#whileRunning(lines: AsyncIterable<string>): AsyncGenerator<string> {
    for await (const line of lines) {
      if (this.#isStopped) throw new Error("the server is stopping");
      yield line;
    }
  }

  /** Logs a reason once, until it changes; the old signed file stays. */
  #complain(zone: SignedZone, reason: string): void {
    if (this.#complaints.get(zone) === reason) return;
    this.#complaints.set(zone, reason);
    this.#site.log.warning(`Error signing "${zone.apex}" from "${zone.source}": ${reason}`);
  }
}

/**
 * The current time, unless secondaries may have seen a serial as new: the clock was set back, or it is the same
 * second.
 */
function nextSerial(former: number | undefined, now: number): number {
  return former !== undefined && isAsNew(former, now) ? (former + 1) >>> 0 : now;
}
