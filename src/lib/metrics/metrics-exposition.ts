import { setImmediate as nextTurn } from "node:timers/promises";
import type { MetricSnapshot, SeriesSnapshot } from "./metric-snapshot.ts";
import { ProcessMetrics } from "./process-metrics.ts";

/** `prometheus`: text format 0.0.4; `openmetrics`: OpenMetrics text format 1.0.0. */
export type ExpositionFormat = "prometheus" | "openmetrics";

/** The answer to a scrape. */
export interface Exposition {
  readonly contentType: string;
  readonly body: string;
  /** Errors that cost only a part of the body. */
  readonly errors: readonly unknown[];
}

const CONTENT_TYPES: Readonly<Record<ExpositionFormat, string>> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};
/** Characters printed in one turn of the event loop. */
const PRINTED_IN_TURN = 4096;

/** Prints families, after those of the process and of Node.js. */
export class MetricsExposition {
  readonly #hasProcessMetrics: boolean;
  #processMetrics: ProcessMetrics | undefined;
  /** All families that were ever shown, without their series, in order of appearance. */
  readonly #known = new Map<string, MetricSnapshot>();
  readonly #refused = new Set<string>();

  constructor(processMetrics: boolean) {
    this.#hasProcessMetrics = processMetrics;
  }

  async expose(families: readonly MetricSnapshot[], format: ExpositionFormat): Promise<Exposition> {
    const errors: unknown[] = [];
    const shown = new Map(this.#ofProcess().map((family) => [family.name, family]));
    for (const family of families) {
      if (!shown.has(family.name)) shown.set(family.name, family);
      else if (!this.#refused.has(family.name)) {
        this.#refused.add(family.name);
        errors.push(new Error(`the process has a metric with the name ${family.name} already`));
      }
    }
    for (const [name, family] of shown) {
      if (!this.#known.has(name)) this.#known.set(name, { ...family, series: [] });
    }
    // The family of a thread that has ended stays, without series.
    const all = Array.from(this.#known, ([name, family]) => shown.get(name) ?? family);
    return { contentType: CONTENT_TYPES[format], body: await print(all, format), errors };
  }

  #ofProcess(): readonly MetricSnapshot[] {
    if (!this.#hasProcessMetrics) return [];
    this.#processMetrics ??= new ProcessMetrics();
    return this.#processMetrics.read();
  }
}

/** In portions, one in each turn of the event loop. */
async function print(families: readonly MetricSnapshot[], format: ExpositionFormat): Promise<string> {
  const texts: string[] = [];
  let printed = 0;
  for (const family of families) {
    const text = printFamily(family, format);
    texts.push(text);
    printed += text.length;
    if (printed < PRINTED_IN_TURN) continue;
    printed = 0;
    await nextTurn();
  }
  return format === "openmetrics" ? `${texts.join("\n")}\n# EOF\n` : `${texts.join("\n\n")}\n`;
}

function printFamily(family: MetricSnapshot, format: ExpositionFormat): string {
  const { type, help, labels, series } = family;
  // OpenMetrics names the family of a counter without the suffix of its series.
  const isNamedShort = format === "openmetrics" && type === "counter";
  const name = isNamedShort ? family.name.replace(/_total$/, "") : family.name;
  const lines = [`# HELP ${name} ${escaped(help)}`, `# TYPE ${name} ${type}`];
  for (const one of series) {
    const pairs = labels.map((label, at) => `${label}="${escapeLabel(one.labelValues[at] ?? "")}"`);
    if (type === "histogram") pushHistogram(lines, family, one, pairs, format);
    else
      lines.push(
        `${isNamedShort ? `${name}_total` : name}${braced(pairs)} ${numberText(one.numbers[0] ?? 0)}`,
      );
  }
  return lines.join("\n");
}

function pushHistogram(
  lines: string[],
  { name, buckets }: MetricSnapshot,
  { numbers, exemplars }: SeriesSnapshot,
  pairs: readonly string[],
  format: ExpositionFormat,
): void {
  let count = 0;
  for (const [at, bound] of [...buckets, Number.POSITIVE_INFINITY].entries()) {
    count += numbers[at] ?? 0;
    const line = `${name}_bucket${braced([...pairs, `le="${numberText(bound)}"`])} ${count}`;
    // The other format has no exemplars.
    const example = format === "openmetrics" ? exemplars?.[at] : undefined;
    if (example === undefined) lines.push(line);
    else {
      const { traceId, value, at: time } = example;
      lines.push(`${line} # {trace_id="${escapeLabel(traceId)}"} ${numberText(value)} ${time.toFixed(3)}`);
    }
  }
  lines.push(`${name}_sum${braced(pairs)} ${numberText(numbers[buckets.length + 1] ?? 0)}`);
  lines.push(`${name}_count${braced(pairs)} ${count}`);
}

function braced(pairs: readonly string[]): string {
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function numberText(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return `${value}`;
  return value < 0 ? "-Inf" : "+Inf";
}

function escapeLabel(text: string): string {
  return escaped(text).replaceAll('"', '\\"');
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}
