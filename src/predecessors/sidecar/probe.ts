/** One DNS probe: sends queries periodically and keeps the last result. */

import { encodeMessage, makeQuery } from "../../dns/message.ts";
import { Flag, RecordClass } from "../../dns/numbers.ts";
import type { CounterSlot, HistogramSlot } from "../../lib/metrics/metric-slots.ts";
import type { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import type { Random } from "../../plugin/contract/site.ts";
import type { AskOnce } from "../ask-once.ts";
import type { Page } from "../http-pages.ts";
import type { ProbeSpec } from "./probe-spec.ts";

/** Milliseconds for one answer. */
const PATIENCE = 2_000;
/** Milliseconds: 0.25 to 8192, each twice the previous. */
const LATENCY_BUCKETS: readonly number[] = Array.from({ length: 16 }, (_, power) => 0.25 * 2 ** power);

export interface ProbeOptions {
  readonly spec: ProbeSpec;
  /** Prefix of metric names. */
  readonly namespace: string;
  readonly metrics: MetricsRegistry;
  readonly clock: Clock;
  readonly random: Random;
  readonly ask: AskOnce;
}

export class SidecarProbe {
  readonly #options: ProbeOptions;
  readonly #latency: HistogramSlot;
  readonly #errors: CounterSlot;
  #result: { readonly seconds: number; readonly error: string } = {
    seconds: 0,
    error: "waiting for first probe",
  };
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(options: ProbeOptions) {
    const { metrics, namespace, spec } = options;
    this.#options = options;
    this.#latency = metrics
      .histogram({
        name: `${namespace}_probe_${spec.label}_latency_ms`,
        help: `Latency of the DNS probe requests ${spec.label}, in milliseconds.`,
        buckets: LATENCY_BUCKETS,
      })
      .slot();
    this.#errors = metrics
      .counter({
        name: `${namespace}_probe_${spec.label}_errors`,
        help: `Count of errors in probing for ${spec.label}.`,
      })
      .slot();
  }

  /** The path of its page. */
  get path(): string {
    return `/healthcheck/${this.#options.spec.label}`;
  }

  /** Starts at a random time within one interval, so that the probes of many pods are spread. */
  start(): void {
    const { clock, random, spec } = this.#options;
    this.#timer = clock.after(random.fraction() * spec.interval, () => void this.#run());
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  page(): Page {
    const { seconds, error } = this.#result;
    const body = JSON.stringify({ IsOk: error === "", LatencySeconds: seconds, Err: error });
    return { status: error === "" ? 200 : 503, body, contentType: "application/json" };
  }

  async #run(): Promise<void> {
    const { clock, spec } = this.#options;
    const begin = clock.now();
    await this.#ask(begin);
    if (this.#isStopped) return;
    const taken = clock.now() - begin;
    this.#timer = clock.after(Math.max(0, spec.interval - taken), () => void this.#run());
  }

  async #ask(begin: number): Promise<void> {
    const { clock, random, spec, ask } = this.#options;
    const query = makeQuery(
      { name: spec.name, type: spec.type, class: RecordClass.IN },
      { id: random.unpredictable() & 0xffff, flags: Flag.RD },
    );
    let error = "";
    try {
      const reply = await ask(spec, encodeMessage(query), PATIENCE);
      if (reply.answer.length === 0) error = "no answer records";
    } catch (thrown) {
      error = messageOf(thrown);
    }
    const milliseconds = clock.now() - begin;
    if (error === "") this.#latency.observe(milliseconds);
    else this.#errors.increment();
    this.#result = { seconds: error === "" ? milliseconds / 1000 : 0, error };
  }
}
