/**
 * The parts of prom-client that print metrics, and its metrics of the process and of Node.js. The package as a whole loads the API of
 * OpenTelemetry, an HTTP client and `node:cluster` too, in one turn of the event loop: queries would wait 40 ms for the first scrape. The paths hold
 * for the version that package.json pins.
 */
import { createRequire } from "node:module";
import { setImmediate as nextTurn } from "node:timers/promises";
import type * as PromClient from "prom-client";

export type PromClientParts = Pick<typeof PromClient, "Registry" | "Counter" | "Gauge" | "Histogram">;

type PrintingRegistry = PromClient.Registry<PromClient.RegistryContentType>;
type ProcessMetric = (registry: PrintingRegistry, settings: { eventLoopMonitoringPrecision: number }) => void;

/** In the order of the package. Its CPU time is left out, as that is what needs OpenTelemetry: {@link addCpuTime}. */
const PROCESS_METRICS = [
  "processStartTime",
  "osMemoryHeap",
  "processOpenFileDescriptors",
  "processMaxFileDescriptors",
  "eventLoopLag",
  "processResources",
  "heapSizeAndUsed",
  "heapSpacesSizeAndUsed",
  "version",
  "gc",
];
/** Milliseconds, the package's own default. */
const EVENT_LOOP_PRECISION = 10;

/** Loads each part in a turn of its own. */
export async function loadPromClientParts(): Promise<PromClientParts> {
  const require = createRequire(import.meta.url);
  await nextTurn();
  const Registry: typeof PromClient.Registry = require("prom-client/lib/registry.js");
  await nextTurn();
  const Counter: typeof PromClient.Counter = require("prom-client/lib/counter.js");
  await nextTurn();
  const Gauge: typeof PromClient.Gauge = require("prom-client/lib/gauge.js");
  await nextTurn();
  const Histogram: typeof PromClient.Histogram = require("prom-client/lib/histogram.js");
  await nextTurn();
  return { Registry, Counter, Gauge, Histogram };
}

/** Has a registry show the metrics of the process and of Node.js, each made in a turn of its own. */
export async function addProcessMetrics(parts: PromClientParts, registry: PrintingRegistry): Promise<void> {
  const require = createRequire(import.meta.url);
  addCpuTime(parts, registry);
  for (const name of PROCESS_METRICS) {
    await nextTurn();
    const add: ProcessMetric = require(`prom-client/lib/metrics/${name}.js`);
    add(registry, { eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION });
  }
  await nextTurn();
}

/** With the names and words of the package; since the start of the process. */
function addCpuTime({ Counter }: PromClientParts, registry: PrintingRegistry): void {
  const add = (name: string, words: string, read: () => number): void => {
    new Counter({
      name,
      help: `Total ${words} time spent in seconds.`,
      registers: [registry],
      collect() {
        this.reset();
        this.inc(read() / 1e6);
      },
    });
  };
  add("process_cpu_user_seconds_total", "user CPU", () => process.cpuUsage().user);
  add("process_cpu_system_seconds_total", "system CPU", () => process.cpuUsage().system);
  add("process_cpu_seconds_total", "user and system CPU", () => {
    const { user, system } = process.cpuUsage();
    return user + system;
  });
}
