/**
 * The certificate of one name: obtained if there is no valid one, renewed in time, and kept in force if renewal
 * fails. It belongs to no configuration: a reload with the same options takes it over with any order in progress.
 */

import type { GaugeFamily } from "../../../lib/metrics/metric-families.ts";
import { reasonOf } from "../../../lib/net/http-client.ts";
import { BackOff } from "../../../lib/time/back-off.ts";
import { formatGoDuration } from "../../../lib/time/duration.ts";
import type { Clock, CounterFamily, Logger, Site } from "../../../plugin/index.ts";
import { type AcmeClient, pause } from "./acme-client.ts";
import { AcmeError } from "./acme-error.ts";
import { type AcmeStorage, newKey, pemOf, readCertificate, type StoredCertificate } from "./acme-storage.ts";
import { renewalIdentifier, signingRequest } from "./certificate-facts.ts";

export interface ManagedCertificateOptions {
  readonly domain: string;
  /** The CA's name in messages. */
  readonly authority: string;
  readonly client: AcmeClient;
  readonly storage: AcmeStorage;
  readonly clock: Clock;
  readonly random: Site["random"];
  readonly log: Logger;
  readonly orders: CounterFamily;
  readonly expiry: GaugeFamily;
  /** See `OrderOptions.show`. */
  readonly show: (name: string, text: string, signal: AbortSignal) => Promise<() => void>;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** A CA that cannot be reached is tried again soon; rejections count against its limits (RFC 8555 section 6.6). */
const UNREACHABLE = { first: 5_000, longest: HOUR };
const REFUSED = { first: 5 * MINUTE, longest: 12 * HOUR };
/** Interval of requests for renewal information (RFC 9773 section 4.3.2). */
const POLL = { usual: 6 * HOUR, least: MINUTE, most: DAY };
/** Lowest age of a certificate at its renewal; less if it is valid only for hours. */
const LEAST_AGE = HOUR;

export class ManagedCertificate {
  readonly #options: ManagedCertificateOptions;
  readonly #end = new AbortController();
  readonly #watchers = new Set<() => void>();
  #current: StoredCertificate | undefined;
  #holders = 0;
  #isRunning = false;
  #plan: RenewalPlan | undefined;

  constructor(options: ManagedCertificateOptions) {
    this.#options = options;
  }

  get current(): StoredCertificate | undefined {
    return this.#current;
  }

  /** @returns a function that removes the watcher */
  watch(changed: () => void): () => void {
    this.#watchers.add(changed);
    return () => void this.#watchers.delete(changed);
  }

  hold(): void {
    this.#holders++;
  }

  /** Stops the work in progress when the last user releases the certificate. */
  release(): void {
    if (--this.#holders === 0) this.#end.abort();
  }

  /** Loads the certificate from the disk, unless one is present. */
  async load(): Promise<void> {
    const { domain, storage, clock, log } = this.#options;
    if (this.#current !== undefined) return;
    try {
      const stored = await storage.read(domain);
      if (stored !== undefined && stored.notAfter > clock.wallTime()) this.#take(stored);
    } catch (error) {
      log.warning(`the stored certificate for ${domain} is not used: ${reasonOf(error)}`);
    }
  }

  /** Takes a certificate that another data plane has obtained. */
  take(chain: string, key: string): void {
    if (this.#current?.chain !== chain) this.#take(readCertificate(chain, key));
  }

  /** Starts to obtain and renew the certificate. */
  begin(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    const { clock, random, log, domain, authority, orders } = this.#options;
    const { signal } = this.#end;
    const unreachable = new BackOff({ ...UNREACHABLE, random });
    const refused = new BackOff({ ...REFUSED, random });
    while (!signal.aborted) {
      try {
        await this.#untilDue();
        await this.#obtain();
        unreachable.reset();
        refused.reset();
        orders.slot(domain, "issued").increment();
      } catch (error) {
        if (signal.aborted) return;
        orders.slot(domain, "failed").increment();
        const { isTransient, retryAfter } =
          error instanceof AcmeError ? error : { isTransient: false, retryAfter: 0 };
        const wait = Math.max((isTransient ? unreachable : refused).next(), Math.min(retryAfter, DAY));
        const kept = this.#current === undefined ? "" : "; the previous certificate stays in use";
        log.error(
          `no certificate for ${domain} from ${authority}: ${reasonOf(error)}; next attempt in ${formatGoDuration(Math.round(wait / 1000) * 1000)}${kept}`,
        );
        await pause(clock, wait, signal).catch(() => undefined);
      }
    }
  }

  /** Resolves when a certificate has to be obtained: at once without a valid one. */
  async #untilDue(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#end;
    for (;;) {
      const certificate = this.#current;
      if (certificate === undefined) return;
      this.#plan ??= this.#planByLifetime(certificate);
      if (this.#plan.askAt <= clock.wallTime()) await this.#askForWindow(certificate, this.#plan);
      const { notBefore, notAfter } = certificate;
      // Guards against a loop of renewals if a CA asks for each certificate to be renewed at once.
      const earliest = notBefore + Math.min(LEAST_AGE, (notAfter - notBefore) / 20);
      const wait = Math.max(this.#plan.renewAt, earliest) - clock.wallTime();
      if (wait <= 0) return;
      // Waits in short steps because the wall clock may be set.
      await pause(clock, Math.min(wait, Math.max(1_000, this.#plan.askAt - clock.wallTime()), HOUR), signal);
    }
  }

  /**
   * At two thirds of a lifetime, half of a short one, minus a random share, because many servers may have started
   * together.
   */
  #planByLifetime({ notBefore, notAfter }: StoredCertificate): RenewalPlan {
    const lifetime = notAfter - notBefore;
    const share = lifetime < 10 * DAY ? 1 / 2 : 2 / 3;
    const renewAt = notBefore + lifetime * (share - 0.05 * this.#options.random.fraction());
    return { renewAt, askAt: 0, window: undefined };
  }

  /** The CA's window wins, as it may have to revoke the certificate (RFC 9773 section 4.2). */
  async #askForWindow(certificate: StoredCertificate, plan: RenewalPlan): Promise<void> {
    const { client, clock, random, log, domain } = this.#options;
    const identifier = renewalIdentifier(certificate.raw);
    plan.askAt = clock.wallTime() + POLL.usual * (0.75 + 0.25 * random.fraction());
    if (identifier === undefined) return;
    try {
      const window = await client.renewalWindow(identifier, this.#end.signal);
      if (window === undefined) return;
      const { start, end, retryAfter } = window;
      if (retryAfter > 0)
        plan.askAt = clock.wallTime() + Math.min(POLL.most, Math.max(POLL.least, retryAfter));
      if (plan.window?.start === start && plan.window.end === end) return;
      plan.window = window;
      plan.renewAt = start + (end - start) * random.fraction();
    } catch (error) {
      this.#end.signal.throwIfAborted();
      // Without an answer the certificate is renewed by its lifetime.
      log.debug(`no renewal information for ${domain}: ${reasonOf(error)}`);
    }
  }

  async #obtain(): Promise<void> {
    const { domain, authority, client, storage, log, show } = this.#options;
    const { signal } = this.#end;
    const key = newKey();
    const replaced = this.#current;
    const chain = await client.obtain({
      domain,
      replaces: replaced === undefined ? undefined : renewalIdentifier(replaced.raw),
      signingRequest: signingRequest(domain, key),
      show: (name, text) => show(name, text, signal),
      signal,
    });
    const certificate = readCertificate(chain, pemOf(key));
    try {
      await storage.write(domain, certificate);
    } catch (error) {
      log.error(`cannot store the certificate for ${domain}: ${reasonOf(error)}`);
    }
    this.#plan = undefined;
    this.#take(certificate);
    log.info(
      `certificate for ${domain} from ${authority} is in use for new connections; it expires on ${new Date(certificate.notAfter).toISOString()}`,
    );
  }

  #take(certificate: StoredCertificate): void {
    this.#current = certificate;
    this.#options.expiry.slot(this.#options.domain).set(certificate.notAfter / 1000);
    for (const changed of this.#watchers) changed();
  }
}

/** The time of the next renewal. */
interface RenewalPlan {
  /** Milliseconds since 1970. */
  renewAt: number;
  /** When renewal information is requested next. */
  askAt: number;
  /** The window that {@link renewAt} was chosen from. */
  window: { readonly start: number; readonly end: number } | undefined;
}
