/**
 * Health of an upstream. Probes start only after a query has failed, and repeat until an answer arrives. Any reply counts, whatever
 * its rcode (docs/spec/coredns-behaviour.md#upstream-connections).
 */
import { encodeMessage, makeQuery } from "../dns/message.ts";
import type { Name } from "../dns/name.ts";
import { Flag } from "../dns/numbers.ts";
import { readU16 } from "../dns/octets.ts";
import { RecordType } from "../dns/type-names.ts";
import type { CounterSlot } from "../lib/metrics/metric-slots.ts";
import type { Clock, Timer } from "../lib/time/clock.ts";
import { type Exchange, Fit, UpstreamRequest } from "./exchange/exchange.ts";
import type { ExchangeError } from "./exchange/exchange-error.ts";

export interface HealthProbe {
  /** The name whose NS records are queried. */
  readonly domain: Name;
  readonly recursionDesired: boolean;
  /** Milliseconds from a failed probe to the next. */
  readonly interval: number;
  /** Called with the upstream's address and port; see {@link HealthMonitorOptions.changed}. */
  readonly onChange?: (to: string, change: HealthChange) => void;
}

export interface HealthMonitorOptions extends HealthProbe {
  readonly exchange: Exchange;
  readonly clock: Clock;
  /** Counts failed probes. */
  readonly failures: CounterSlot;
  /** Called at the first failed probe, with the reason, and at the success that ends the failures. */
  readonly changed?: ((change: HealthChange) => void) | undefined;
}

export interface HealthChange {
  /** The reason of the failure; `undefined` once the upstream answers again. */
  readonly fault: string | undefined;
  /** Milliseconds since the first failed probe. */
  readonly since: number;
}

/** Milliseconds for a probe's answer, and for its connection. */
export const PROBE_TIMEOUT = 1_000;

export class HealthMonitor {
  readonly #options: HealthMonitorOptions;
  readonly #probe: Probe;
  #fails = 0;
  #fault = "";
  #failsSince = 0;
  #checking = false;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(options: HealthMonitorOptions) {
    this.#options = options;
    this.#probe = new Probe(options, (error) => this.#concluded(error));
  }

  /** Failed probes since the last success. */
  get fails(): number {
    return this.#fails;
  }

  /** The reason of the last failed probe; empty since the last success. */
  get fault(): string {
    return this.#fault;
  }

  /** Whether probes are running: they end with the first success. */
  get checking(): boolean {
    return this.#checking;
  }

  /** @param maxFails failed probes that do not yet count as down; 0 for an upstream that is never down */
  isDown(maxFails: number): boolean {
    return maxFails > 0 && this.#fails > maxFails;
  }

  /** Starts to probe after a failed query, unless probes are running. */
  check(): void {
    if (this.#checking || this.#stopped) return;
    this.#checking = true;
    this.#send();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  #send(): void {
    if (!this.#stopped) this.#options.exchange.send(this.#probe, PROBE_TIMEOUT, PROBE_TIMEOUT);
  }

  #concluded(error: ExchangeError | undefined): void {
    if (this.#stopped) return;
    const { clock, changed } = this.#options;
    if (error === undefined) {
      const hadFailed = this.#fails > 0;
      this.#fails = 0;
      this.#fault = "";
      this.#checking = false;
      if (hadFailed) changed?.({ fault: undefined, since: clock.now() - this.#failsSince });
      return;
    }
    this.#fails++;
    this.#fault = error.message;
    if (this.#fails === 1) {
      this.#failsSince = clock.now();
      changed?.({ fault: this.#fault, since: 0 });
    }
    this.#options.failures.increment();
    this.#timer = clock.after(this.#options.interval, () => this.#send());
  }
}

class Probe extends UpstreamRequest {
  readonly bytes: Uint8Array;
  readonly questionEnd: number;
  readonly #conclude: (error: ExchangeError | undefined) => void;

  constructor(
    { domain, recursionDesired }: HealthProbe,
    conclude: (error: ExchangeError | undefined) => void,
  ) {
    super();
    const question = { name: domain, type: RecordType.NS };
    this.bytes = encodeMessage(makeQuery(question, { flags: recursionDesired ? Flag.RD : 0 }));
    this.questionEnd = this.bytes.length;
    this.#conclude = conclude;
  }

  get length(): number {
    return this.bytes.length;
  }

  override get isProbe(): boolean {
    return true;
  }

  /** Any response shows that the server is alive. */
  override fit(message: Uint8Array): Fit {
    return (readU16(message, 2) & Flag.QR) === 0 ? Fit.NONE : Fit.WHOLE;
  }

  answered(): void {
    this.#conclude(undefined);
  }

  failed(error: ExchangeError): void {
    this.#conclude(error);
  }
}
