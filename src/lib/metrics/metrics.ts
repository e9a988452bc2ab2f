/** The families of one process, and their exposition. */

import { MetricCells } from "./metric-cells.ts";
import type { FamilySettings } from "./metric-families.ts";
import {
  type AnyMetricFamily,
  CounterFamily,
  type GaugeDefinition,
  GaugeFamily,
  type HistogramDefinition,
  HistogramFamily,
  type MetricDefinition,
  MetricDefinitionError,
  type MetricType,
  sameElements,
} from "./metric-families.ts";
import { type MetricSnapshot, mergeSnapshots, snapshotOf } from "./metric-snapshot.ts";
import { type Exposition, type ExpositionFormat, MetricsExposition } from "./metrics-exposition.ts";

export interface MetricsRegistryOptions {
  /** Series of one family; further series share a single slot. Default 10,000. */
  readonly maxSlotsPerFamily?: number;
  /** Whether {@link MetricsRegistry.expose} adds the metrics of the process and of Node.js. Default true. */
  readonly processMetrics?: boolean;
}

/** Reads series that are counted elsewhere: one list for each place. */
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
   * Calls `callback` before each exposition, to set values that are not counted as they happen.
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
   * Adds series of other threads' registries to each exposition. They are merged with the families of this one by
   * name and labels.
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

  /** All families, in the order of their creation. */
  families(): Iterable<AnyMetricFamily> {
    return this.#families.values();
  }

  /** The families of this registry alone. `onError` gets the errors of collectors. */
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
   * Everything in the text format of Prometheus (default) or of OpenMetrics. A collector or a source that throws
   * costs only its own update; its error is in `errors`.
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
