/** Families of metrics: counters, gauges and histograms by their labels. */
import type { MetricCells } from "./metric-cells.ts";
import { CounterSlot, GaugeSlot, HistogramSlot, type MetricSlot } from "./metric-slots.ts";

/** Buckets for durations in seconds: 0.25 ms doubling up to 8.192 s (docs/spec/coredns-behaviour.md#metrics). */
export const DURATION_BUCKETS: readonly number[] = Array.from(
  { length: 16 },
  (_, power) => 0.00025 * 2 ** power,
);

/** Seconds, for durations with many series (docs/spec/coredns-behaviour.md#metrics). */
export const SLIM_DURATION_BUCKETS: readonly number[] = [0.00025, 0.0025, 0.025, 0.25, 2.5];

/** Octets of a request or a response (src/plugins/prometheus/README.md). */
export const SIZE_BUCKETS: readonly number[] = [
  0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16_000, 32_000, 48_000, 64_000,
];

/** The name, the help and the labels of a metric. */
export interface MetricDefinition {
  /** As in Prometheus' data model: `[a-zA-Z_:][a-zA-Z0-9_:]*`. The name of a counter ends in `_total`. */
  readonly name: string;
  /** One sentence. */
  readonly help: string;
  /** The names of the labels, in the order in which `slot()` takes their values. Default none. */
  readonly labels?: readonly string[];
}

/** A gauge, and how the values of several threads add up. */
export interface GaugeDefinition extends MetricDefinition {
  /**
   * How values of several threads are combined in one exposition (`multisocket`): `sum` for values that each thread
   * has for itself, `max` for values that are equal in all of them. Default `max`. Counters and histograms are always
   * summed.
   */
  readonly acrossThreads?: "sum" | "max";
}

/** A histogram and its buckets. */
export interface HistogramDefinition extends MetricDefinition {
  /** Upper bounds, rising, finite: the last bucket, without a bound, is implied. */
  readonly buckets: readonly number[];
}

/** The kinds of metric, as Prometheus names them. */
export type MetricType = "counter" | "gauge" | "histogram";

/** An invalid metric, or one that conflicts with another of the same name. */
export class MetricDefinitionError extends Error {
  /** The name of the metric. */
  readonly metric: string;

  constructor(metric: string, reason: string) {
    super(`metric ${metric}: ${reason}`);
    this.name = "MetricDefinitionError";
    this.metric = metric;
  }
}

/** What the registry gives to each family. */
export interface FamilySettings {
  readonly cells: MetricCells;
  readonly maxSlots: number;
  readonly refused: (name: string) => void;
}

/** One series as an exposition sees it. */
export interface Series<Slot extends MetricSlot> {
  readonly labelValues: readonly string[];
  readonly slot: Slot;
}

/** All series of one name. */
export abstract class MetricFamily<Slot extends MetricSlot> {
  abstract readonly type: MetricType;
  /** As in the definition. */
  readonly name: string;
  /** As in the definition. */
  readonly help: string;
  /** The names of the labels, in the order of the values of `slot()`. */
  readonly labels: readonly string[];
  readonly #settings: FamilySettings;
  readonly #series = new Map<string, Series<Slot>>();
  #overflow: Series<Slot> | undefined;

  constructor(definition: MetricDefinition, settings: FamilySettings) {
    checkDefinition(definition);
    this.name = definition.name;
    this.help = definition.help;
    this.labels = [...(definition.labels ?? [])];
    this.#settings = settings;
  }

  /**
   * The slot of one series, made at the first call. Resolve it at set-up and keep it; the lookup is not free.
   *
   * Beyond the bound on series all new ones share one slot, which has `overflow` as the value of each label, and
   * `portolan_metrics_refused_series_total` counts the calls.
   *
   * @throws MetricDefinitionError if the number of values differs from the number of labels.
   */
  slot(...labelValues: readonly string[]): Slot {
    const key = this.#key(labelValues);
    const series = this.#series.get(key);
    if (series !== undefined) return series.slot;
    if (this.#series.size >= this.#settings.maxSlots) return this.#overflowSlot();
    const slot = this.createSlot(this.#settings.cells);
    this.#series.set(key, { labelValues: [...labelValues], slot });
    return slot;
  }

  /** Ends one series; false if it does not exist. Its slot may still be written, without effect. */
  remove(...labelValues: readonly string[]): boolean {
    const key = this.#key(labelValues);
    const series = this.#series.get(key);
    if (series === undefined) return false;
    this.#series.delete(key);
    this.#settings.cells.free(series.slot.detach());
    return true;
  }

  /** Ends all series. */
  clear(): void {
    for (const series of this.#series.values()) this.#settings.cells.free(series.slot.detach());
    this.#series.clear();
    if (this.#overflow !== undefined) this.#settings.cells.free(this.#overflow.slot.detach());
    this.#overflow = undefined;
  }

  /** What an exposition shows. */
  *series(): Iterable<Series<Slot>> {
    yield* this.#series.values();
    // The sum of overflowing series keeps a total right; a gauge of mixed series would be meaningless.
    if (this.#overflow !== undefined && this.type !== "gauge") yield this.#overflow;
  }

  protected abstract createSlot(cells: MetricCells): Slot;

  #overflowSlot(): Slot {
    this.#overflow ??= {
      labelValues: this.labels.map(() => "overflow"),
      slot: this.createSlot(this.#settings.cells),
    };
    this.#settings.refused(this.name);
    return this.#overflow.slot;
  }

  #key(labelValues: readonly string[]): string {
    if (labelValues.length !== this.labels.length) {
      throw new MetricDefinitionError(
        this.name,
        `needs ${this.labels.length} label values, not ${labelValues.length}`,
      );
    }
    if (labelValues.length === 1) return labelValues[0] ?? "";
    let key = "";
    // With its length in front, no value can be confused with another.
    for (const value of labelValues) key += `${value.length}:${value}`;
    return key;
  }
}

export class CounterFamily extends MetricFamily<CounterSlot> {
  override readonly type = "counter";

  protected override createSlot(cells: MetricCells): CounterSlot {
    return new CounterSlot(cells.allocate(1));
  }
}

export class GaugeFamily extends MetricFamily<GaugeSlot> {
  override readonly type = "gauge";
  readonly acrossThreads: "sum" | "max";

  constructor(definition: GaugeDefinition, settings: FamilySettings) {
    super(definition, settings);
    this.acrossThreads = definition.acrossThreads ?? "max";
  }

  protected override createSlot(cells: MetricCells): GaugeSlot {
    return new GaugeSlot(cells.allocate(1));
  }
}

export class HistogramFamily extends MetricFamily<HistogramSlot> {
  override readonly type = "histogram";
  readonly buckets: readonly number[];
  readonly #bounds: Float64Array;

  constructor(definition: HistogramDefinition, settings: FamilySettings) {
    super(definition, settings);
    checkBuckets(definition);
    this.buckets = [...definition.buckets];
    this.#bounds = Float64Array.from(definition.buckets);
  }

  protected override createSlot(cells: MetricCells): HistogramSlot {
    // One cell for each bucket, one for values above the last bound, one for the sum.
    return new HistogramSlot(cells.allocate(this.#bounds.length + 2), this.#bounds);
  }
}

export type AnyMetricFamily = CounterFamily | GaugeFamily | HistogramFamily;

export function checkDefinition({ name, help, labels = [] }: MetricDefinition): void {
  if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) {
    throw new MetricDefinitionError(JSON.stringify(name), "not a valid metric name");
  }
  if (help === "") throw new MetricDefinitionError(name, "has no help text");
  for (const [index, label] of labels.entries()) {
    if (!/^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/.test(label)) {
      throw new MetricDefinitionError(name, `${JSON.stringify(label)} is not a valid label name`);
    }
    if (labels.indexOf(label) !== index)
      throw new MetricDefinitionError(name, `has the label ${label} twice`);
  }
}

export function checkBuckets({ name, labels = [], buckets }: HistogramDefinition): void {
  if (labels.includes("le")) throw new MetricDefinitionError(name, "the label le belongs to the buckets");
  for (const [index, bound] of buckets.entries()) {
    if (!Number.isFinite(bound) || bound <= (buckets[index - 1] ?? -Infinity)) {
      throw new MetricDefinitionError(name, `buckets must be finite and rising, ${bound} is not`);
    }
  }
}

export function sameElements<Element>(one: readonly Element[], other: readonly Element[]): boolean {
  return one.length === other.length && one.every((element, index) => element === other[index]);
}
