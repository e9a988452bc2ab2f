/** Reads dnsmasq's statistics, which are TXT records of class CHAOS (docs/spec/kube-dns.md#sidecar). */
import { encodeMessage, type Message, makeQuery } from "../../dns/message.ts";
import { Name } from "../../dns/name.ts";
import { Flag, RecordClass } from "../../dns/numbers.ts";
import { TXT } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { CounterSlot } from "../../lib/metrics/metric-slots.ts";
import type { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import type { Random } from "../../plugin/contract/site.ts";
import type { AskOnce } from "../ask-once.ts";

/** Metric, name of the query, and help text. */
const STATISTICS = [
  ["hits", "hits.bind.", "Number of DNS cache hits (from start of process)."],
  ["misses", "misses.bind.", "Number of DNS cache misses (from start of process)."],
  ["evictions", "evictions.bind.", "Counter of DNS cache evictions (from start of process)."],
  ["insertions", "insertions.bind.", "Counter of DNS cache insertions (from start of process)."],
  ["max_size", "cachesize.bind.", "Maximum size of the DNS cache."],
] as const;

const PATIENCE = 2_000;

export interface DnsmasqMetricsOptions {
  readonly server: { readonly host: string; readonly port: number };
  /** Milliseconds. */
  readonly interval: number;
  readonly namespace: string;
  readonly metrics: MetricsRegistry;
  readonly clock: Clock;
  readonly random: Random;
  readonly ask: AskOnce;
}

interface Statistic {
  readonly question: Name;
  readonly counter: CounterSlot;
  /** The last value of dnsmasq. */
  last: number;
}

export class DnsmasqMetrics {
  readonly #options: DnsmasqMetricsOptions;
  readonly #statistics: readonly Statistic[];
  readonly #errors: CounterSlot;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(options: DnsmasqMetricsOptions) {
    const { metrics, namespace } = options;
    const counter = (name: string, help: string): CounterSlot =>
      metrics.counter({ name: `${namespace}_dnsmasq_${name}`, help }).slot();
    this.#options = options;
    this.#statistics = STATISTICS.map(([name, question, help]) => ({
      question: Name.parse(question),
      counter: counter(name, help),
      last: 0,
    }));
    this.#errors = counter("errors", "Number of errors that have occurred getting metrics.");
  }

  start(): void {
    void this.#run();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async #run(): Promise<void> {
    try {
      const values = await Promise.all(this.#statistics.map(({ question }) => this.#ask(question)));
      for (const [index, statistic] of this.#statistics.entries()) take(statistic, values[index] ?? 0);
    } catch {
      this.#errors.increment();
    }
    if (!this.#isStopped)
      this.#timer = this.#options.clock.after(this.#options.interval, () => void this.#run());
  }

  async #ask(question: Name): Promise<number> {
    const { server, random, ask } = this.#options;
    const query = makeQuery(
      { name: question, type: RecordType.TXT, class: RecordClass.CH },
      { id: random.unpredictable() & 0xffff, flags: Flag.RD },
    );
    return readNumber(await ask(server, encodeMessage(query), PATIENCE));
  }
}

/** A counter never falls: after a restart of dnsmasq, the new value is only a starting point. */
function take(statistic: Statistic, value: number): void {
  if (value > statistic.last) statistic.counter.add(value - statistic.last);
  statistic.last = value;
}

/** Requires exactly one TXT record with exactly one number. */
function readNumber({ answer }: Message): number {
  const [record] = answer;
  if (record === undefined || answer.length !== 1 || !TXT.is(record)) throw new Error("not one TXT record");
  const { strings } = record.data;
  const text = Buffer.from(strings[0] ?? []).toString();
  if (strings.length !== 1 || !/^\d+$/.test(text)) throw new Error(`'${text}' is not a number`);
  return Number(text);
}
