/**
 * Sends traces in batches, one request at a time. Queries never wait for it: spans that cannot be sent in time are
 * dropped and counted.
 */
import { messageOf } from "../../lib/text/message-of.ts";
import { BackOff } from "../../lib/time/back-off.ts";
import type { Clock, CounterSlot, Logger, MetricsRegistry, Random, Timer } from "../../plugin/index.ts";
import type { Collector } from "./collector.ts";
import type { FinishedTrace } from "./finished-trace.ts";
import type { SpanFormat } from "./span-format.ts";
import { type SpanBatch, SpanQueue } from "./span-queue.ts";

export interface ExporterOptions {
  readonly format: SpanFormat;
  readonly collector: Pick<Collector, "place" | "open" | "send" | "close">;
  readonly headers: Readonly<Record<string, string>>;
  /** Bound for the bytes that wait. */
  readonly maxOctets: number;
  readonly maxSpans: number;
  /** Spans in one request. */
  readonly batchSpans: number;
  /** Milliseconds that a span waits for others. */
  readonly interval: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
}

/** Milliseconds. */
const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 30_000;
/** Bound in milliseconds for the wait at a stop. */
const LAST_PATIENCE = 2_000;

export class Exporter {
  readonly #options: ExporterOptions;
  readonly #queue: SpanQueue;
  readonly #backOff: BackOff;
  readonly #counters: ExportCounters;
  readonly #forgetCollector: () => void;
  /** A failed batch, which is sent again before anything else. */
  #unsent: SpanBatch | undefined;
  #sending: Promise<void> | undefined;
  #timer: Timer | undefined;
  #isWaiting = false;
  #hasStopped = false;
  #lastProblem = "";
  #toldOctets = 0;

  constructor(options: ExporterOptions) {
    const { maxOctets, maxSpans, random, metrics } = options;
    this.#options = options;
    this.#queue = new SpanQueue(maxOctets, maxSpans);
    this.#backOff = new BackOff({ first: FIRST_WAIT, longest: LONGEST_WAIT, random });
    this.#counters = new ExportCounters(metrics);
    this.#forgetCollector = metrics.onCollect(() => this.#tellWaiting(this.#waitingOctets));
  }

  /** @throws SetupError */
  open(): Promise<void> {
    return this.#options.collector.open();
  }

  add(trace: FinishedTrace): void {
    const spans = 1 + trace.children.length;
    const lost = this.#queue.add(this.#options.format.encode(trace), spans);
    if (lost > 0) this.#counters.full.add(lost);
    if (this.#isWaiting || this.#sending !== undefined || this.#hasStopped) return;
    if (this.#queue.spans >= this.#options.batchSpans) this.#send();
    else this.#timer ??= this.#options.clock.after(this.#options.interval, () => this.#send());
  }

  /** Sends the waiting spans, if that is quick. */
  async stop(): Promise<void> {
    this.#hasStopped = true;
    const { clock, collector } = this.#options;
    const { promise: patience, resolve } = Promise.withResolvers<void>();
    const timer = clock.after(LAST_PATIENCE, resolve);
    await Promise.race([this.#sendRest(), patience]);
    timer.cancel();
    this.#timer?.cancel();
    collector.close();
    this.#forgetCollector();
    this.#counters.unsent.add(this.#queue.spans + (this.#unsent?.spans ?? 0));
    this.#tellWaiting(0);
  }

  /** Includes the batch in progress or to be sent again. */
  get #waitingOctets(): number {
    const unsent = this.#unsent?.traces ?? [];
    return unsent.reduce((sum, { length }) => sum + length, this.#queue.octets);
  }

  /** Each server block with `trace` has a part of the gauge. */
  #tellWaiting(octets: number): void {
    this.#counters.waiting.add(octets - this.#toldOctets);
    this.#toldOctets = octets;
  }

  async #sendRest(): Promise<void> {
    await this.#sending;
    // A collector that just failed is not tried again at once.
    while (!this.#isWaiting && (this.#queue.spans > 0 || this.#unsent !== undefined)) await this.#deliver();
  }

  #send(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#isWaiting = false;
    this.#sending ??= this.#deliver().then(() => {
      this.#sending = undefined;
      if (this.#hasStopped || this.#isWaiting) return;
      if (this.#queue.spans >= this.#options.batchSpans) this.#send();
      else if (this.#queue.spans > 0)
        this.#timer = this.#options.clock.after(this.#options.interval, () => this.#send());
    });
  }

  async #deliver(): Promise<void> {
    const { format, collector, headers, batchSpans } = this.#options;
    const batch = this.#unsent ?? this.#queue.take(batchSpans);
    this.#unsent = batch;
    let problem: string;
    try {
      const answer = await collector.send({
        method: format.method,
        headers: { "content-type": format.contentType, ...format.headers?.(batch.traces.length), ...headers },
        body: format.body(batch.traces),
      });
      if (answer.status >= 200 && answer.status < 300) {
        this.#sent(batch, format.refused?.(answer.text) ?? 0);
        return;
      }
      problem = `${collector.place} answers ${answer.status}${firstLine(answer.text)}`;
      if (!isTransient(answer.status)) {
        this.#unsent = undefined;
        this.#counters.refused.add(batch.spans);
        this.#complain(`${problem}: spans are dropped`);
        return;
      }
      this.#tryLater(answer.retryAfter);
    } catch (error) {
      problem = `${collector.place} cannot be reached: ${messageOf(error)}`;
      this.#tryLater(undefined);
    }
    this.#complain(`${problem}: trying again`);
  }

  #sent(batch: SpanBatch, refused: number): void {
    this.#unsent = undefined;
    this.#backOff.reset();
    this.#counters.sent.add(Math.max(0, batch.spans - refused));
    if (refused === 0) {
      if (this.#lastProblem !== "")
        this.#options.log.info(`${this.#options.collector.place} accepts spans again`);
      this.#lastProblem = "";
      return;
    }
    this.#counters.refused.add(Math.min(refused, batch.spans));
    this.#complain(`${this.#options.collector.place} refuses some spans`);
  }

  #tryLater(retryAfter: number | undefined): void {
    const wait = Math.max(this.#backOff.next(), retryAfter ?? 0);
    this.#isWaiting = true;
    if (!this.#hasStopped) this.#timer = this.#options.clock.after(wait, () => this.#send());
  }

  /** Logs each problem once, until there is another. */
  #complain(problem: string): void {
    if (problem === this.#lastProblem) return;
    this.#lastProblem = problem;
    this.#options.log.error(problem);
  }
}

class ExportCounters {
  readonly sent: CounterSlot;
  readonly full: CounterSlot;
  readonly refused: CounterSlot;
  readonly unsent: CounterSlot;
  readonly waiting: { add(amount: number): void };

  constructor(metrics: MetricsRegistry) {
    this.sent = metrics
      .counter({
        name: "portolan_trace_sent_spans_total",
        help: "Spans accepted by the collector.",
        labels: [],
      })
      .slot();
    const dropped = metrics.counter({
      name: "portolan_trace_dropped_spans_total",
      help: "Spans dropped, by reason.",
      labels: ["reason"],
    });
    this.full = dropped.slot("full");
    this.refused = dropped.slot("refused");
    this.unsent = dropped.slot("unsent");
    this.waiting = metrics
      .gauge({
        name: "portolan_trace_waiting_bytes",
        help: "Bytes of spans waiting to be sent.",
        labels: [],
        acrossThreads: "sum",
      })
      .slot();
  }
}

/** Whether the collector is temporarily unavailable, or asks for a pause. */
function isTransient(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}

/** The first line of a collector's error message. */
function firstLine(text: string): string {
  const line = (/^[^\r\n]*/.exec(text.trim())?.[0] ?? "").slice(0, 200);
  return line === "" ? "" : ` (${line})`;
}
