import { nodeHttp } from "../../lib/files/node-modules.ts";
import { SLIM_DURATION_BUCKETS } from "../../lib/metrics/metric-families.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import { type HttpEndpoint, reachableHost } from "../../plugin/contract/site.ts";
import type {
  Clock,
  CounterSlot,
  HistogramSlot,
  Logger,
  MetricsRegistry,
  Timer,
} from "../../plugin/index.ts";

/** Milliseconds. */
const INTERVAL = 1_000;
const TIMEOUT = 3_000;
const SLOW = 1_000;

/**
 * Queries its own health endpoint once a second over a new connection, as an external client would: the duration
 * shows how busy the process is.
 */
export class SelfCheck {
  readonly #endpoint: HttpEndpoint;
  readonly #url: string;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #durations: HistogramSlot;
  readonly #failures: CounterSlot;
  readonly #agent = new (nodeHttp().Agent)({ keepAlive: false });
  #timer: Timer | undefined;
  #underWay = false;
  #failing = false;
  #stopped = false;

  /** @param url of the endpoint in messages */
  constructor(
    endpoint: HttpEndpoint,
    url: string,
    path: string,
    site: { readonly clock: Clock; readonly log: Logger; readonly metrics: MetricsRegistry },
  ) {
    this.#endpoint = endpoint;
    this.#url = url;
    this.#path = path;
    this.#clock = site.clock;
    this.#log = site.log;
    this.#durations = site.metrics
      .histogram({
        name: "coredns_health_request_duration_seconds",
        help: "Time to answer the server's own health requests, in seconds.",
        buckets: SLIM_DURATION_BUCKETS,
      })
      .slot();
    this.#failures = site.metrics
      .counter({
        name: "coredns_health_request_failures_total",
        help: "The server's own health requests that failed.",
      })
      .slot();
  }

  start(): void {
    this.#timer ??= this.#clock.every(INTERVAL, () => this.#ask());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#agent.destroy();
  }

  #ask(): void {
    if (this.#underWay) return;
    this.#underWay = true;
    const began = this.#clock.now();
    const { host, port } = this.#endpoint;
    const request = nodeHttp().get({ host: reachableHost(host), port, path: this.#path, agent: this.#agent });
    const timeout = this.#clock.after(TIMEOUT, () => request.destroy(new Error("no answer within 3s")));
    request.once("response", (response) => {
      response.resume();
      this.#succeeded(this.#clock.now() - began);
    });
    request.on("error", (error) => this.#failed(error));
    request.once("close", () => {
      timeout.cancel();
      this.#underWay = false;
    });
  }

  #succeeded(duration: number): void {
    this.#failing = false;
    this.#durations.observe(duration / 1000);
    if (duration <= SLOW) return;
    this.#log.warning(
      `Local health request to "${this.#url}" took more than 1s: ${formatGoDuration(duration)}`,
    );
  }

  /** Logged once, until a request succeeds. */
  #failed(error: Error): void {
    if (this.#stopped) return;
    this.#failures.increment();
    if (!this.#failing) this.#log.warning(`Local health request to "${this.#url}" failed: ${error.message}`);
    this.#failing = true;
  }
}
