import { setImmediate as nextTurn } from "node:timers/promises";
import type { Registry, RegistryContentType } from "prom-client";
import type { MetricSnapshot } from "./metric-snapshot.ts";
import { addProcessMetrics, loadPromClientParts, type PromClientParts } from "./prom-client-parts.ts";

/** `prometheus`: text format 0.0.4; `openmetrics`: OpenMetrics text format 1.0.0. */
export type ExpositionFormat = "prometheus" | "openmetrics";

/** What a scrape is answered with. */
export interface Exposition {
  readonly contentType: string;
  readonly body: string;
  /** What went wrong meanwhile, and cost a part of the body only. */
  readonly errors: readonly unknown[];
}

/**
 * Prints families through prom-client, which adds its metrics of the process and of Node.js. The library is loaded
 * with the first exposition: a server that nobody scrapes does without it.
 */
export class MetricsExposition {
  readonly #processMetrics: boolean;
  #printer: Promise<Printer> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(processMetrics: boolean) {
    this.#processMetrics = processMetrics;
  }

  expose(families: readonly MetricSnapshot[], format: ExpositionFormat): Promise<Exposition> {
    // The library keeps the format in the registry, so two scrapes at once must take turns.
    const exposition = this.#last.then(async () => {
      this.#printer ??= createPrinter(this.#processMetrics);
      return (await this.#printer).print(families, format);
    });
    this.#last = exposition.catch(() => undefined);
    return exposition;
  }
}

async function createPrinter(processMetrics: boolean): Promise<Printer> {
  const client = await loadPromClientParts();
  const registry = new client.Registry<RegistryContentType>();
  if (processMetrics) {
    await addProcessMetrics(client, registry);
    registry.removeSingleMetric(REMOVED);
  }
  return new Printer(client, registry);
}

/** A gauge with the name of a counter, which promtool refuses. `nodejs_active_resources` has the numbers by type. */
const REMOVED = "nodejs_active_resources_total";
/** Characters that are printed in a turn of the event loop. */
const PRINTED_IN_TURN = 4096;

class Printer {
  readonly #client: PromClientParts;
  readonly #registry: Registry<RegistryContentType>;
  readonly #names = new Map<object, string>();
  readonly #registered = new Map<string, Registered>();

  constructor(client: PromClientParts, registry: Registry<RegistryContentType>) {
    this.#client = client;
    this.#registry = registry;
  }

  async print(families: readonly MetricSnapshot[], format: ExpositionFormat): Promise<Exposition> {
    const errors: unknown[] = [];
    // A family of another thread may be gone by now.
    for (const registered of this.#registered.values()) registered.family = undefined;
    for (const family of families) {
      const known = this.#registered.get(family.name);
      if (known !== undefined) {
        known.family = family;
        continue;
      }
      const registered = { family };
      this.#registered.set(family.name, registered);
      try {
        this.#registry.registerMetric(adapt(this.#client, family, registered));
      } catch (error) {
        // Somebody took the name of a process metric.
        errors.push(error);
      }
    }

    // OpenMetrics has counters without "_total" (see below), for this exposition alone.
    for (const metric of this.#registry.getMetricsAsArray()) {
      const name = this.#names.get(metric);
      if (name === undefined) this.#names.set(metric, metric.name);
      else metric.name = name;
    }

    const { OPENMETRICS_CONTENT_TYPE, PROMETHEUS_CONTENT_TYPE } = this.#client.Registry;
    const contentType = format === "openmetrics" ? OPENMETRICS_CONTENT_TYPE : PROMETHEUS_CONTENT_TYPE;
    this.#registry.setContentType(contentType);
    return { contentType, body: await this.#body(format), errors };
  }

  /** As `Registry.metrics` of the library, in portions. */
  async #body(format: ExpositionFormat): Promise<string> {
    const isOpenMetrics = format === "openmetrics";
    const texts: string[] = [];
    let printed = 0;
    for (const [name, metric] of this.#named()) {
      if (isOpenMetrics && metric instanceof this.#client.Counter) metric.name = name.replace(/_total$/, "");
      const text = await this.#registry.getSingleMetricAsString(name);
      texts.push(text);
      printed += text.length;
      if (printed < PRINTED_IN_TURN) continue;
      printed = 0;
      await nextTurn();
    }
    return isOpenMetrics ? `${texts.join("\n")}\n# EOF\n` : `${texts.join("\n\n")}\n`;
  }

  /** The metrics of the library with the names under which it knows them. */
  #named() {
    return this.#registry
      .getMetricsAsArray()
      .map((metric) => [this.#names.get(metric) ?? metric.name, metric] as const);
  }
}

/** What a metric of prom-client shows at the scrape under way. */
interface Registered {
  family: MetricSnapshot | undefined;
}

/** A metric of prom-client whose values are those of the family at the moment of the scrape. */
function adapt(client: PromClientParts, family: MetricSnapshot, shown: Registered) {
  const configuration = {
    name: family.name,
    help: family.help,
    labelNames: [...family.labels],
    registers: [],
  };
  switch (family.type) {
    case "counter":
      return new (class extends client.Counter {
        override async get() {
          return { ...(await super.get()), values: plainValues(shown.family) };
        }
      })(configuration);
    case "gauge":
      return new (class extends client.Gauge {
        override async get() {
          return { ...(await super.get()), values: plainValues(shown.family) };
        }
      })(configuration);
    case "histogram":
      return new (class extends client.Histogram {
        /** Not in the library's types: what both its registry and its own `get` ask for. */
        getForPromString() {
          const { name, help, type } = family;
          const values = histogramValues(shown.family);
          return Promise.resolve({ name, help, type, values, aggregator: "sum" });
        }
      })({ ...configuration, buckets: [...family.buckets] });
  }
}

interface Value {
  /** Shown in OpenMetrics alone: the other format has no place for it. */
  exemplar?: { labelSet: Record<string, string>; value: number; timestamp: string };
  metricName?: string;
  labels: Record<string, string | number>;
  value: number;
}

function plainValues(family: MetricSnapshot | undefined): Value[] {
  if (family === undefined) return [];
  return family.series.map(({ labelValues, numbers }) => ({
    labels: labelsOf(family, labelValues),
    value: numbers[0] ?? 0,
  }));
}

function histogramValues(family: MetricSnapshot | undefined): Value[] {
  const values: Value[] = [];
  if (family === undefined) return values;
  const { name, buckets } = family;
  for (const { labelValues, numbers, exemplars } of family.series) {
    const labels = labelsOf(family, labelValues);
    let count = 0;
    for (const [index, bound] of [...buckets, "+Inf"].entries()) {
      count += numbers[index] ?? 0;
      const example = exemplars?.[index];
      values.push({
        metricName: `${name}_bucket`,
        labels: { ...labels, le: bound },
        value: count,
        ...(example !== undefined && {
          exemplar: {
            labelSet: { trace_id: example.traceId },
            value: example.value,
            timestamp: example.at.toFixed(3),
          },
        }),
      });
    }
    values.push({ metricName: `${name}_sum`, labels, value: numbers[buckets.length + 1] ?? 0 });
    values.push({ metricName: `${name}_count`, labels, value: count });
  }
  return values;
}

function labelsOf(family: MetricSnapshot, labelValues: readonly string[]): Record<string, string | number> {
  const labels: Record<string, string | number> = {};
  for (const [index, label] of family.labels.entries()) labels[label] = labelValues[index] ?? "";
  return labels;
}
