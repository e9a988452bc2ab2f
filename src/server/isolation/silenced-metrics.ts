/** The registry as a plugin sees it whose counters stand still for queries that no client sent. */
import { MetricCells } from "../../lib/metrics/metric-cells.ts";
import {
  type AnyMetricFamily,
  CounterFamily,
  type FamilySettings,
  type GaugeDefinition,
  type GaugeFamily,
  type HistogramDefinition,
  HistogramFamily,
  type MetricDefinition,
  type Series,
} from "../../lib/metrics/metric-families.ts";
import { CounterSlot, type Exemplar, HistogramSlot } from "../../lib/metrics/metric-slots.ts";
import type { MetricSnapshot } from "../../lib/metrics/metric-snapshot.ts";
import { type MetricSource, MetricsRegistry } from "../../lib/metrics/metrics.ts";
import type { Exposition, ExpositionFormat } from "../../lib/metrics/metrics-exposition.ts";

/** Whether to discard the samples recorded now. */
export type IsSilent = () => boolean;

/** Gauges still work: they report a state, not a query. */
export class SilencedMetrics extends MetricsRegistry {
  readonly #metrics: MetricsRegistry;
  readonly #isSilent: IsSilent;

  constructor(metrics: MetricsRegistry, isSilent: IsSilent) {
    super({ processMetrics: false });
    this.#metrics = metrics;
    this.#isSilent = isSilent;
  }

  override counter(definition: MetricDefinition): CounterFamily {
    return new SilencedCounters(this.#metrics.counter(definition), this.#isSilent);
  }

  override gauge(definition: GaugeDefinition): GaugeFamily {
    return this.#metrics.gauge(definition);
  }

  override histogram(definition: HistogramDefinition): HistogramFamily {
    return new SilencedHistograms(this.#metrics.histogram(definition), this.#isSilent);
  }

  override onCollect(callback: () => void): () => void {
    return this.#metrics.onCollect(callback);
  }

  override addSource(read: MetricSource): () => void {
    return this.#metrics.addSource(read);
  }

  override families(): Iterable<AnyMetricFamily> {
    return this.#metrics.families();
  }

  override snapshot(onError?: (error: unknown) => void): MetricSnapshot[] {
    return this.#metrics.snapshot(onError);
  }

  override expose(format?: ExpositionFormat): Promise<Exposition> {
    return this.#metrics.expose(format);
  }
}

/** A family that makes no series itself. */
const NO_SERIES: FamilySettings = { cells: new MetricCells(), maxSlots: 0, refused: () => undefined };

class SilencedCounters extends CounterFamily {
  readonly #family: CounterFamily;
  readonly #isSilent: IsSilent;

  constructor(family: CounterFamily, isSilent: IsSilent) {
    super(family, NO_SERIES);
    this.#family = family;
    this.#isSilent = isSilent;
  }

  override slot(...labelValues: readonly string[]): CounterSlot {
    return new SilencedCounter(this.#family.slot(...labelValues), this.#isSilent);
  }

  override remove(...labelValues: readonly string[]): boolean {
    return this.#family.remove(...labelValues);
  }

  override clear(): void {
    this.#family.clear();
  }

  override *series(): Iterable<Series<CounterSlot>> {
    yield* this.#family.series();
  }
}

class SilencedHistograms extends HistogramFamily {
  readonly #family: HistogramFamily;
  readonly #isSilent: IsSilent;

  constructor(family: HistogramFamily, isSilent: IsSilent) {
    super(family, NO_SERIES);
    this.#family = family;
    this.#isSilent = isSilent;
  }

  override slot(...labelValues: readonly string[]): HistogramSlot {
    return new SilencedHistogram(this.#family.slot(...labelValues), this.#isSilent);
  }

  override remove(...labelValues: readonly string[]): boolean {
    return this.#family.remove(...labelValues);
  }

  override clear(): void {
    this.#family.clear();
  }

  override *series(): Iterable<Series<HistogramSlot>> {
    yield* this.#family.series();
  }
}

const NO_CELLS = { values: new Float64Array(0), offset: 0, length: 0 };

class SilencedCounter extends CounterSlot {
  readonly #slot: CounterSlot;
  readonly #isSilent: IsSilent;

  constructor(slot: CounterSlot, isSilent: IsSilent) {
    super(NO_CELLS);
    this.#slot = slot;
    this.#isSilent = isSilent;
  }

  override get value(): number {
    return this.#slot.value;
  }

  override increment(): void {
    if (!this.#isSilent()) this.#slot.increment();
  }

  override add(amount: number): void {
    if (!this.#isSilent()) this.#slot.add(amount);
  }

  override numbers(): Float64Array {
    return this.#slot.numbers();
  }
}

class SilencedHistogram extends HistogramSlot {
  readonly #slot: HistogramSlot;
  readonly #isSilent: IsSilent;

  constructor(slot: HistogramSlot, isSilent: IsSilent) {
    super(NO_CELLS, NO_CELLS.values);
    this.#slot = slot;
    this.#isSilent = isSilent;
  }

  override observe(value: number, count?: number): void {
    if (!this.#isSilent()) this.#slot.observe(value, count);
  }

  override exemplify(exemplar: Exemplar): void {
    if (!this.#isSilent()) this.#slot.exemplify(exemplar);
  }

  override get exemplars(): readonly (Exemplar | undefined)[] | undefined {
    return this.#slot.exemplars;
  }

  override get sum(): number {
    return this.#slot.sum;
  }

  override get count(): number {
    return this.#slot.count;
  }

  override cumulativeCount(bucket: number): number {
    return this.#slot.cumulativeCount(bucket);
  }

  override numbers(): Float64Array {
    return this.#slot.numbers();
  }
}
