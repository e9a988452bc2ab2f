/** The numbers of metric families at one time, in a form that can be sent to another thread, and their merging. */
import type { AnyMetricFamily, MetricType } from "./metric-families.ts";
import { type Exemplar, HistogramSlot } from "./metric-slots.ts";

export interface MetricSnapshot {
  readonly name: string;
  readonly help: string;
  readonly type: MetricType;
  readonly labels: readonly string[];
  /** Upper bounds, of a histogram only; the last bucket, without a bound, is not listed. */
  readonly buckets: readonly number[];
  /** How values of several threads are combined. */
  readonly acrossThreads: "sum" | "max";
  readonly series: readonly SeriesSnapshot[];
}

export interface SeriesSnapshot {
  readonly labelValues: readonly string[];
  /** One number; for a histogram the count of each bucket, not cumulative, then the sum. */
  readonly numbers: Float64Array;
  /** Of a histogram: at most one for each bucket. */
  readonly exemplars?: readonly (Exemplar | undefined)[] | undefined;
}

export function snapshotOf(family: AnyMetricFamily): MetricSnapshot {
  const { name, help, type, labels } = family;
  const series: SeriesSnapshot[] = [];
  for (const { labelValues, slot } of family.series()) {
    const exemplars = slot instanceof HistogramSlot ? slot.exemplars : undefined;
    series.push({ labelValues, numbers: slot.numbers(), ...(exemplars !== undefined && { exemplars }) });
  }
  return {
    name,
    help,
    type,
    labels,
    buckets: family.type === "histogram" ? family.buckets : [],
    acrossThreads: family.type === "gauge" ? family.acrossThreads : "sum",
    series,
  };
}

/**
 * Merges the families of several threads into one list. Series of the same name and labels become one. A family that
 * differs from the first of its name (in type, labels or buckets) is left out.
 */
export function mergeSnapshots(lists: readonly (readonly MetricSnapshot[])[]): MetricSnapshot[] {
  const merged = new Map<string, MergedFamily>();
  for (const list of lists) {
    for (const family of list) {
      const known = merged.get(family.name);
      if (known === undefined) merged.set(family.name, new MergedFamily(family));
      else known.add(family);
    }
  }
  return Array.from(merged.values(), (family) => family.snapshot());
}

/** The numbers that remain of a thread that has ended: its gauges describe a state that is gone. */
export function withoutGauges(list: readonly MetricSnapshot[]): MetricSnapshot[] {
  return list.filter(({ type }) => type !== "gauge");
}

class MergedFamily {
  readonly #first: MetricSnapshot;
  readonly #series = new Map<string, SeriesSnapshot>();

  constructor(first: MetricSnapshot) {
    this.#first = first;
    this.#addSeries(first);
  }

  add(family: MetricSnapshot): void {
    const { type, labels, buckets } = this.#first;
    if (
      family.type !== type ||
      !sameElements(family.labels, labels) ||
      !sameElements(family.buckets, buckets)
    )
      return;
    this.#addSeries(family);
  }

  snapshot(): MetricSnapshot {
    return { ...this.#first, series: [...this.#series.values()] };
  }

  #addSeries({ series }: MetricSnapshot): void {
    for (const { labelValues, numbers, exemplars } of series) {
      const key = JSON.stringify(labelValues);
      const known = this.#series.get(key);
      if (known === undefined) {
        // A copy: the lists belong to the caller.
        this.#series.set(key, {
          labelValues,
          numbers: numbers.slice(),
          ...(exemplars !== undefined && { exemplars }),
        });
        continue;
      }
      if (exemplars !== undefined)
        this.#series.set(key, { ...known, exemplars: latest(known.exemplars, exemplars) });
      for (const [at, number] of numbers.entries()) {
        const other = known.numbers[at] ?? 0;
        known.numbers[at] = this.#first.acrossThreads === "sum" ? other + number : Math.max(other, number);
      }
    }
  }
}

/** The latest exemplar of each bucket. */
function latest(
  some: readonly (Exemplar | undefined)[] = [],
  others: readonly (Exemplar | undefined)[],
): (Exemplar | undefined)[] {
  return others.map((other, at) => {
    const one = some[at];
    return one !== undefined && (other === undefined || one.at > other.at) ? one : other;
  });
}

function sameElements<Element>(one: readonly Element[], other: readonly Element[]): boolean {
  return one.length === other.length && one.every((element, at) => element === other[at]);
}
