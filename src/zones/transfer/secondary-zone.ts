/** A zone that is kept up to date from its primaries (RFC 1034 section 4.3.5, RFC 1996). */

import { setImmediate as nextTurn } from "node:timers/promises";
import type { Name } from "../../dns/name.ts";
import { Rcode } from "../../dns/numbers.ts";
import { TsigExchange } from "../../dns/tsig/exchange.ts";
import type { TsigKey } from "../../dns/tsig/keys.ts";
import type { CounterFamily } from "../../lib/metrics/metric-families.ts";
import { parseScopedIpAddress } from "../../lib/net/ip-address.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { BackOff } from "../../lib/time/back-off.ts";
import type { Timer } from "../../lib/time/clock.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import type { Site } from "../../plugin/contract/site.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import type { StreamDialler } from "../../upstream/tcp/tcp-connection.ts";
import { applyChange, nameServersAfter, requireSerial, ZoneChangeError } from "../changes/zone-changes.ts";
import type { Zone } from "../data/zone.ts";
import type { ZoneChange } from "../data/zone-change.ts";
import { Freshness } from "../serving/freshness.ts";
import { ServedZone } from "../serving/served-zone.ts";
import type { ZoneService } from "../serving/zone-service.ts";
import { NotifyAllowance } from "./notify-allowance.ts";
import type { Primary } from "./primary.ts";
import type { TransferGate } from "./transfer-gate.ts";
import { type TransferInOptions, type TransferredZone, wholeZone } from "./transfer-in.ts";
import { TransferWays } from "./transfer-ways.ts";
import type { ZoneStore } from "./zone-store.ts";

export interface SecondaryZoneOptions {
  readonly service: ZoneService;
  readonly site: Site;
  readonly apex: Name;
  readonly primaries: readonly Primary[];
  /** Name of the key that signs queries to primaries, their answers and their NOTIFY. */
  readonly key: Name | undefined;
  /** Bytes that the zone may take. */
  readonly limit: number;
  /** Keeps copies across restarts. */
  readonly store: ZoneStore | undefined;
  /** Whether the primaries are never asked for changes. */
  readonly axfrOnly: boolean;
  readonly transfers: CounterFamily;
  readonly gate: TransferGate;
  /** Notifies other data planes that serve the zone: a primary has a newer state, or this one has transferred it. */
  readonly tellOthers: (apex: Name, news: "notified" | "transferred") => void;
  /** Checks each state before it is served, and throws to refuse it; the returned function is called once it is served. */
  readonly examine?: ((zone: Zone) => Promise<() => void>) | undefined;
}

/** Known once the server starts. */
export interface PrimaryAccess {
  /** The key named in the options. */
  readonly key: TsigKey | undefined;
  /** How to reach a primary, if not over plain TCP. */
  readonly diallers: ReadonlyMap<Primary, StreamDialler>;
}

interface Notifier {
  /** For people. */
  readonly address: string;
  /** In the form of {@link addressKey}. */
  readonly key: string;
}

/** Milliseconds. */
const FIRST_WAIT = 250;
const LONGEST_WAIT = 10_000;
const SHORTEST_INTERVAL = 1_000;
const REFRESH_JITTER = 5_000;
const RETRY_JITTER = 2_000;
/** Milliseconds that a reload waits for the first transfer. */
const LONGEST_WARM_UP = 5_000;

export class SecondaryZone {
  readonly served: ServedZone;
  readonly #options: SecondaryZoneOptions;
  readonly #abort = new AbortController();
  readonly #primaryAddresses: ReadonlySet<string>;
  #access: PrimaryAccess = { key: undefined, diallers: new Map() };
  #timer: Timer | undefined;
  #expiry: Timer | undefined;
  #isChecking = false;
  /** Whether the copy on disk is out of date. */
  #mustKeep = true;
  /** Whether another check of the primaries was requested during the current one. */
  #isAskedAgain = false;
  /** The sender of the NOTIFY that waits for its check. */
  #notifier: Notifier | undefined;
  #notifyTimer: Timer | undefined;
  readonly #notifyAllowance: NotifyAllowance;
  /** The older serials of primaries that were already logged. */
  readonly #behind = new Map<Primary, number>();
  readonly #backOff: BackOff;
  readonly #ways: TransferWays;
  /** Confirmed by each primary that says that the zone is up to date. */
  readonly #freshness: Freshness;
  /** The reason of the retries that was logged last. */
  #saidFault: string | undefined;
  readonly #loaded = Promise.withResolvers<void>();

  constructor(options: SecondaryZoneOptions) {
    this.#options = options;
    this.served = new ServedZone(options.apex);
    this.#ways = new TransferWays(options.axfrOnly, options.site.log);
    const { clock, random } = options.site;
    this.#notifyAllowance = new NotifyAllowance(clock);
    this.#backOff = new BackOff({ first: FIRST_WAIT, longest: LONGEST_WAIT, jitter: 0, random });
    this.#freshness = new Freshness(options.primaries.map(({ text }) => text).join(" "), clock);
    this.served.freshness = this.#freshness;
    this.served.notified = (query) => this.#notified(query);
    this.#primaryAddresses = new Set(options.primaries.map(({ address }) => addressKey(address.host)));
    options.service.table.add(this.served);
  }

  get key(): Name | undefined {
    return this.#options.key;
  }

  get store(): ZoneStore | undefined {
    return this.#options.store;
  }

  /** Takes over the copy from disk, and starts to check the primaries. */
  async start(access: PrimaryAccess): Promise<void> {
    this.#access = access;
    await this.#restore();
    void this.#check();
  }

  /** Takes over the same zone of the previous configuration: nothing is transferred again. */
  async inherit(former: SecondaryZone): Promise<void> {
    const { zone } = former.served;
    const { confirmedAt } = former.#freshness;
    if (zone === undefined || confirmedAt === undefined) return;
    await this.#replace(zone);
    this.#mustKeep = former.store === undefined || former.#mustKeep;
    this.#confirmed(zone, confirmedAt);
  }

  /** Resolves when there is something to serve, or after some seconds. */
  async loaded(): Promise<void> {
    const timer = this.#options.site.clock.after(LONGEST_WARM_UP, () => this.#loaded.resolve());
    await this.#loaded.promise;
    timer.cancel();
  }

  stop(): void {
    this.#loaded.resolve();
    this.#abort.abort(new Error("the server stops"));
    this.#timer?.cancel();
    this.#expiry?.cancel();
    this.#notifyTimer?.cancel();
  }

  describe(): string {
    const { zone, spelled, isExpired } = this.served;
    const fault = this.#freshness.fault === "" ? "" : `: ${this.#freshness.fault}`;
    if (zone === undefined) return `${spelled} not transferred yet${fault}`;
    return `${spelled} serial ${zone.serial}, ${zone.recordCount} records${isExpired ? ", expired" : ""}${fault}`;
  }

  /** The reason why the zone is not up to date; empty if it is. */
  get fault(): string {
    const { zone, isExpired } = this.served;
    const { fault } = this.#freshness;
    if (zone === undefined) return fault === "" ? "not transferred yet" : `not transferred yet: ${fault}`;
    if (isExpired) return fault === "" ? "expired" : `expired: ${fault}`;
    return fault;
  }

  async #restore(): Promise<void> {
    const { store, site } = this.#options;
    if (this.served.zone !== undefined) return;
    try {
      const kept = await store?.read(this.served.apex);
      if (kept === undefined) return;
      await this.#replace(kept.zone);
      this.#mustKeep = false;
      // From here on, changes of the machine's wall clock do not change the age of the zone.
      const { clock } = site;
      this.#confirmed(kept.zone, clock.now() - Math.max(0, clock.wallTime() - kept.confirmedAt));
    } catch (error) {
      site.log.warning(`Kept copy of ${this.served.spelled} cannot be read: ${messageOf(error)}`);
    }
  }

  /** Checks the primaries at once. */
  ask(): void {
    if (!this.#abort.signal.aborted) void this.#check();
  }

  /**
   * Checks one primary after the other, up to the first that answers. Never rejects.
   * @param notifier address that NOTIFY came from: its primaries come first, and are checked up to the one with news
   */
  async #check(notifier?: string): Promise<void> {
    if (this.#isChecking) {
      this.#isAskedAgain = true;
      return;
    }
    this.#isChecking = true;
    this.#isAskedAgain = false;
    this.#timer?.cancel();
    let fault = "";
    let isDone = false;
    const [notifying, others] = this.#inOrder(notifier);
    for (const primary of [...notifying, ...others]) {
      if (isDone && !notifying.includes(primary)) break;
      const leave = await this.#options.gate.enter();
      try {
        if (this.#abort.signal.aborted) return;
        const way = await this.#askPrimary(primary);
        isDone = true;
        if (way !== "same") break;
      } catch (error) {
        fault = messageOf(error);
        if (!this.#abort.signal.aborted && !isDone) this.#complain(primary, fault);
      } finally {
        leave();
      }
    }
    this.#isChecking = false;
    if (this.#abort.signal.aborted) return;
    if (isDone) {
      this.#backOff.reset();
      this.#saidFault = undefined;
    }
    if (this.#isAskedAgain) return void this.#check();
    this.#schedule(isDone, fault);
    this.#heedNotify();
  }

  /** The primaries at an address, and the others. Without an address, only the first primary is in the first group. */
  #inOrder(notifier: string | undefined): readonly [readonly Primary[], readonly Primary[]] {
    const { primaries } = this.#options;
    if (notifier === undefined) return [primaries.slice(0, 1), primaries.slice(1)];
    const isThere = ({ address }: Primary): boolean => addressKey(address.host) === notifier;
    return [primaries.filter(isThere), primaries.filter((primary) => !isThere(primary))];
  }

  /** @returns the result */
  async #askPrimary(primary: Primary): Promise<TransferredZone["way"]> {
    const { site, limit, store, transfers, examine } = this.#options;
    const { apex, spelled } = this.served;
    const { key, diallers } = this.#access;
    const wallSeconds = () => Math.floor(site.clock.wallTime() / 1_000);
    const question: TransferInOptions = {
      apex,
      remote: primary.address,
      dialler: diallers.get(primary),
      current: this.served.zone,
      // A state that must be examined has to be complete before it is served.
      compares: examine === undefined,
      clock: site.clock,
      id: site.random.unpredictable() & 0xffff,
      limit,
      guard: key === undefined ? undefined : () => new TsigExchange(key, wallSeconds),
      signal: this.#abort.signal,
      pause: nextTurn,
    };
    const result = await this.#takeOver(await this.#ways.transfer(primary, question), question);
    if (this.#abort.signal.aborted) return result.way;
    const { zone } = this.served;
    const isBehind = result.way === "same" && zone !== undefined && result.serial !== zone.serial;
    transfers.slot(apex.toString(), isBehind ? "older" : result.way).increment();
    this.#sayBehind(primary, isBehind ? result.serial : undefined);
    if (zone === undefined) return result.way;
    // Before writing to disk, which may take a while: a reload during the write takes over zone and time.
    this.#confirmed(zone, site.clock.now());
    if (result.way !== "same") {
      site.log.info(`Transferred: ${spelled} from ${primary.text}`);
      this.#mustKeep = true;
      this.#options.tellOthers(apex, "transferred");
    }
    if (store === undefined) return result.way;
    if (this.#mustKeep) await this.#keep(store, zone);
    else await store.confirm(apex);
    return result.way;
  }

  /** A copy that could not be written is tried again at the next check. */
  async #keep(store: ZoneStore, zone: Zone): Promise<void> {
    try {
      await store.write(zone);
      this.#mustKeep = false;
    } catch (error) {
      this.#options.site.log.warning(`Copy of ${this.served.spelled} cannot be kept: ${messageOf(error)}`);
    }
  }

  /**
   * Puts the result of a transfer into force; if changes do not fit, the whole zone is requested. @returns the kind of result in
   * the end
   */
  async #takeOver(result: TransferredZone, question: TransferInOptions): Promise<TransferredZone> {
    if (this.#abort.signal.aborted || result.way === "same") return result;
    const { limit, service } = this.#options;
    if (result.way === "axfr") {
      if ("zone" in result) await this.#replace(result.zone);
      else await service.adopt(this.served, result.change, limit);
      return result;
    }
    try {
      await this.#advance(result.changes);
      return result;
    } catch (error) {
      if (!(error instanceof ZoneChangeError)) throw error;
      return await this.#takeOver(await wholeZone({ ...question, current: this.served.zone }), question);
    }
  }

  async #advance(changes: readonly ZoneChange[]): Promise<void> {
    const { examine, service, limit } = this.#options;
    const { zone } = this.served;
    if (zone !== undefined && nameServersAfter(zone, changes) === 0)
      throw new ZoneChangeError("the changes leave no NS records at the apex");
    if (examine === undefined || zone === undefined) return service.advance(this.served, changes, limit);
    // The last state has to be examined before it is served.
    const next = await zone.copy(nextTurn);
    for (const change of changes) {
      requireSerial(next, change);
      await applyChange(next, change, nextTurn);
    }
    await next.order(nextTurn);
    await this.#replace(next);
  }

  async #replace(zone: Zone): Promise<void> {
    const { examine, service } = this.#options;
    const took = await examine?.(zone);
    await service.replace(this.served, zone);
    took?.();
  }

  /** @param confirmedAt when a primary said that the zone is up to date, in milliseconds of the clock's `now` */
  #confirmed(zone: Zone, confirmedAt: number): void {
    this.#freshness.confirm(confirmedAt);
    this.#loaded.resolve();
    const age = this.#options.site.clock.now() - confirmedAt;
    const left = zone.soaNumber(3) * 1_000 - age;
    this.served.isExpired = left <= 0;
    this.#expiry?.cancel();
    this.#expiry = this.#options.site.clock.after(left, () => {
      this.served.isExpired = true;
      this.#options.site.log.warning(`Zone ${this.served.spelled} is expired`);
    });
  }

  #schedule(isDone: boolean, fault: string): void {
    const { site } = this.#options;
    const { zone } = this.served;
    let wait: number;
    if (zone === undefined) {
      wait = this.#backOff.next();
      this.#sayRetries(wait, fault);
    } else {
      const seconds = zone.soaNumber(isDone ? 1 : 2);
      const jitter = site.random.fraction() * (isDone ? REFRESH_JITTER : RETRY_JITTER);
      wait = Math.max(seconds * 1_000, SHORTEST_INTERVAL) + jitter;
    }
    this.#timer = site.clock.after(wait, () => void this.#check());
  }

  /** Once, until the reason changes: the retries themselves are no news. A transfer logs the end. */
  #sayRetries(wait: number, fault: string): void {
    if (fault === this.#saidFault) return;
    this.#saidFault = fault;
    this.#options.site.log.warning(
      `All '${this.served.spelled}' masters failed to transfer, retrying in ${formatGoDuration(wait)}: ${fault}`,
    );
  }

  /** Once, until the reason changes. */
  #complain(primary: Primary, fault: string): void {
    const { site, transfers } = this.#options;
    transfers.slot(this.served.apex.toString(), "failed").increment();
    const text = `Failed to transfer \`${this.served.spelled}' from "${primary.text}": ${fault}`;
    if (this.#freshness.fail(text)) site.log.error(text);
  }

  /** Once, until the primary has another serial. */
  #sayBehind(primary: Primary, serial: number | undefined): void {
    const known = this.#behind.get(primary);
    if (serial === undefined) this.#behind.delete(primary);
    else this.#behind.set(primary, serial);
    if (serial === undefined || serial === known) return;
    this.#options.site.log.warning(
      `"${primary.text}" has serial ${serial} of '${this.served.spelled}', which is older than ${this.served.zone?.serial}: the zone stays as it is`,
    );
  }

  #notified(query: Query): Outcome {
    const { address } = query.client;
    const addressOfPrimary = query.client.octets.join(".");
    if (!this.#primaryAddresses.has(addressOfPrimary)) {
      query.trace?.note(`NOTIFY from ${address}, which is not a primary of the zone`);
      return query.fail(Rcode.REFUSED);
    }
    const { key } = this.#options;
    const { signer } = query.root;
    if (key !== undefined && signer?.equals(key) !== true) {
      query.trace?.note(`NOTIFY that is not signed with the key ${key}`);
      return query.fail(Rcode.REFUSED);
    }
    this.#notifier = { address, key: addressOfPrimary };
    if (!this.#isChecking) this.#heedNotify();
    return query.reply({ authoritative: true });
  }

  /**
   * Checks the primaries as soon as the rate limit of NOTIFY allows it. One check covers all NOTIFY messages that arrive before it
   * begins.
   */
  #heedNotify(): void {
    const notifier = this.#notifier;
    if (notifier === undefined || this.#notifyTimer !== undefined) return;
    const { clock, log } = this.#options.site;
    const wait = this.#notifyAllowance.take();
    if (wait > 0) {
      this.#notifyTimer = clock.after(wait, () => {
        this.#notifyTimer = undefined;
        if (!this.#isChecking) this.#heedNotify();
      });
      return;
    }
    this.#notifier = undefined;
    log.info(`Notify from ${notifier.address} for ${this.served.spelled}: checking transfer`);
    void this.#check(notifier.key);
    this.#options.tellOthers(this.served.apex, "notified");
  }
}

function addressKey(host: string): string {
  return parseScopedIpAddress(host)?.octets.join(".") ?? host;
}
