import { MetricCells } from "./metric-cells.ts";
import { CounterSlot, GaugeSlot, HistogramSlot, type MetricSlot } from "./metric-slots.ts";
import { type MetricSnapshot, mergeSnapshots, snapshotOf } from "./metric-snapshot.ts";
import { type Exposition, type ExpositionFormat, MetricsExposition } from "./metrics-exposition.ts";

/** Seconds, 0.25 ms doubling up to 8.192 s: what durations are measured in (CoreDNS facts 1.23). */
export const DURATION_BUCKETS: readonly number[] = Array.from(
  { length: 16 },
  (_, power) => 0.00025 * 2 ** power,
);

/** Seconds, for durations of which there are many series (CoreDNS facts 1.23). */
export const SLIM_DURATION_BUCKETS: readonly number[] = [0.00025, 0.0025, 0.025, 0.25, 2.5];

/** Octets of a request or a response (CoreDNS facts 2.22). */
export const SIZE_BUCKETS: readonly number[] = [
  0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16_000, 32_000, 48_000, 64_000,
];

export interface MetricDefinition {
  /** As in Prometheus' data model: `[a-zA-Z_:][a-zA-Z0-9_:]*`. The name of a counter ends in `_total`. */
  readonly name: string;
  /** One sentence. */
  readonly help: string;
  /** The names of the labels, in the order in which `slot()` takes their values. Default none. */
  readonly labels?: readonly string[];
}

export interface GaugeDefinition extends MetricDefinition {
  /**
   * What becomes of the values of several threads in one exposition (`multisocket`): `sum` for what each thread has for itself, `max`
   * for what is the same in all of them. Default `max`. Counters and histograms are always summed.
   */
  readonly acrossThreads?: "sum" | "max";
}

export interface HistogramDefinition extends MetricDefinition {
  /** Upper bounds, rising, finite: the bucket for all that is larger comes by itself. */
  readonly buckets: readonly number[];
}

export type MetricType = "counter" | "gauge" | "histogram";

/** A metric that cannot exist, or not beside the one that has its name already. */
export class MetricDefinitionError extends Error {
  /** The name of the metric. */
  readonly metric: string;

  constructor(metric: string, reason: string) {
    super(`metric ${metric}: ${reason}`);
    this.name = "MetricDefinitionError";
    this.metric = metric;
  }
}

export interface MetricsRegistryOptions {
  /** How many series one family may have before further ones share a single slot. Default 10,000. */
  readonly maxSlotsPerFamily?: number;
  /** Whether {@link MetricsRegistry.expose} adds the metrics of the process and of Node.js. Default true. */
  readonly processMetrics?: boolean;
}

/** Series that are counted elsewhere, as they are now: one list for each place. */
export type MetricSource = () => Promise<readonly (readonly MetricSnapshot[])[]>;

/** All metrics of one server process. */
export class MetricsRegistry {
  readonly #families = new Map<string, AnyMetricFamily>();
  readonly #collectors = new Set<{ readonly callback: () => void }>();
  readonly #sources = new Set<{ readonly read: MetricSource }>();
  readonly #cells = new MetricCells();
  readonly #maxSlots: number;
  readonly #exposition: MetricsExposition;

  constructor(options: MetricsRegistryOptions = {}) {
    this.#maxSlots = options.maxSlotsPerFamily ?? 10_000;
    this.#exposition = new MetricsExposition(options.processMetrics ?? true);
  }

  /**
   * The family of that name, made at the first call.
   *
   * @throws MetricDefinitionError if the definition is not valid, or if the name belongs to a family of another
   *   type, with other labels or other buckets. A different help text is no conflict; the first one stays.
   */
  counter(definition: MetricDefinition): CounterFamily {
    const existing = this.#existing("counter", definition);
    if (existing?.type === "counter") return existing;
    return this.#add(new CounterFamily(definition, this.#settings()));
  }

  /** As {@link counter}. */
  gauge(definition: GaugeDefinition): GaugeFamily {
    const existing = this.#existing("gauge", definition);
    if (existing?.type === "gauge") return existing;
    return this.#add(new GaugeFamily(definition, this.#settings()));
  }

  /** As {@link counter}. */
  histogram(definition: HistogramDefinition): HistogramFamily {
    const existing = this.#existing("histogram", definition);
    if (existing?.type === "histogram") {
      if (!sameElements(existing.buckets, definition.buckets)) {
        throw new MetricDefinitionError(definition.name, "already exists with other buckets");
      }
      return existing;
    }
    return this.#add(new HistogramFamily(definition, this.#settings()));
  }

  /**
   * Has `callback` called before each exposition, to set what nobody counts as it happens.
   *
   * @returns a function that ends it.
   */
  onCollect(callback: () => void): () => void {
    const collector = { callback };
    this.#collectors.add(collector);
    return () => {
      this.#collectors.delete(collector);
    };
  }

  /**
   * Adds series from elsewhere to each exposition: what the registries of other threads count. They are merged with the families of
   * this one by name and labels.
   *
   * @returns a function that ends it.
   */
  addSource(read: MetricSource): () => void {
    const source = { read };
    this.#sources.add(source);
    return () => {
      this.#sources.delete(source);
    };
  }

  /** All families, in the order of their making. */
  families(): Iterable<AnyMetricFamily> {
    return this.#families.values();
  }

  /** The families of this registry alone, as they are now. `onError` takes what a collector throws. */
  snapshot(onError: (error: unknown) => void = () => undefined): MetricSnapshot[] {
    for (const { callback } of [...this.#collectors]) {
      try {
        callback();
      } catch (error) {
        onError(error);
      }
    }
    return Array.from(this.#families.values(), snapshotOf);
  }

  /**
   * Everything in the text format of Prometheus (default) or of OpenMetrics. A collector or a source that throws costs its
   * own freshness only; what it threw is in `errors`.
   */
  async expose(format: ExpositionFormat = "prometheus"): Promise<Exposition> {
    const errors: unknown[] = [];
    const onError = (error: unknown): void => void errors.push(error);
    const elsewhere = await this.#readSources(onError);
    const own = this.snapshot(onError);
    const merged = elsewhere.length === 0 ? own : mergeSnapshots([own, ...elsewhere]);
    const exposition = await this.#exposition.expose(merged, format);
    return { ...exposition, errors: [...errors, ...exposition.errors] };
  }

  async #readSources(onError: (error: unknown) => void): Promise<(readonly MetricSnapshot[])[]> {
    if (this.#sources.size === 0) return [];
    const results = await Promise.allSettled(Array.from(this.#sources, ({ read }) => read()));
    return results.flatMap((result) => {
      if (result.status === "fulfilled") return result.value;
      onError(result.reason);
      return [];
    });
  }

  #settings(): FamilySettings {
    return { cells: this.#cells, maxSlots: this.#maxSlots, refused: (name) => this.#countRefusal(name) };
  }

  #existing(type: MetricType, definition: MetricDefinition): AnyMetricFamily | undefined {
    const family = this.#families.get(definition.name);
    if (family === undefined) return undefined;
    if (family.type !== type) {
      throw new MetricDefinitionError(definition.name, `already exists as a ${family.type}, not a ${type}`);
    }
    if (!sameElements(family.labels, definition.labels ?? [])) {
      const labels = family.labels.length === 0 ? "no labels" : `labels ${family.labels.join(", ")}`;
      throw new MetricDefinitionError(definition.name, `already exists with ${labels}`);
    }
    return family;
  }

  #add<Family extends AnyMetricFamily>(family: Family): Family {
    this.#families.set(family.name, family);
    return family;
  }

  #countRefusal(name: string): void {
    this.counter({
      name: "portolan_metrics_refused_series_total",
      help: "Requests for a further series of a metric that had reached its bound.",
      labels: ["metric"],
    })
      .slot(name)
      .increment();
  }
}

interface FamilySettings {
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
  readonly name: string;
  readonly help: string;
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
   * Past the bound on series every new one gets the same slot, which stands in the exposition with `overflow`
   * as the value of each label, and `portolan_metrics_refused_series_total` counts the calls.
   *
   * @throws MetricDefinitionError if the number of values is not that of the labels.
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

  /** Ends one series; false if there is none. Whoever still holds its slot writes where nobody reads. */
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
    // The sum of what did not fit keeps a total right; the last gauge of many strangers says nothing.
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
    // With its length before it, no value can look like the end of another.
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
    // One cell a bucket, one for what is above the last bound, one for the sum.
    return new HistogramSlot(cells.allocate(this.#bounds.length + 2), this.#bounds);
  }
}

export type AnyMetricFamily = CounterFamily | GaugeFamily | HistogramFamily;

function checkDefinition({ name, help, labels = [] }: MetricDefinition): void {
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

function checkBuckets({ name, labels = [], buckets }: HistogramDefinition): void {
  if (labels.includes("le")) throw new MetricDefinitionError(name, "the label le belongs to the buckets");
  for (const [index, bound] of buckets.entries()) {
    if (!Number.isFinite(bound) || bound <= (buckets[index - 1] ?? -Infinity)) {
      throw new MetricDefinitionError(name, `buckets must be finite and rising, ${bound} is not`);
    }
  }
}

function sameElements<Element>(one: readonly Element[], other: readonly Element[]): boolean {
  return one.length === other.length && one.every((element, index) => element === other[index]);
}
