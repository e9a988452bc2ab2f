/** The metrics of the process and of Node.js, with the names and help texts of Prometheus clients. */
import { readdirSync, readFileSync } from "node:fs";
import { constants, monitorEventLoopDelay, PerformanceObserver } from "node:perf_hooks";
import { getHeapSpaceStatistics } from "node:v8";
import type { MetricSnapshot } from "./metric-snapshot.ts";

/** Milliseconds between two samples of the event loop. */
const RESOLUTION = 10;
/** Seconds. */
const GC_BUCKETS = [0.001, 0.01, 0.1, 1, 2, 5];
const GC_KINDS = new Map<unknown, string>([
  [constants.NODE_PERFORMANCE_GC_MAJOR, "major"],
  [constants.NODE_PERFORMANCE_GC_MINOR, "minor"],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, "incremental"],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, "weakcb"],
]);
const NANOSECONDS = 1e9;

/** A value with its labels. */
type Sample = readonly [value: number, ...labels: string[]];

/**
 * Counts from its creation on: the server makes it at the first scrape, so a server without scrapes does not pay for
 * it.
 */
export class ProcessMetrics {
  readonly #delays = monitorEventLoopDelay({ resolution: RESOLUTION });
  readonly #collections = new Map<string, Float64Array>();
  readonly #started = Math.round(Date.now() / 1000 - process.uptime());
  readonly #maxFiles = maxOpenFiles();
  /** Duration in seconds of an event-loop turn at the last scrape. */
  #lag = 0;
  /** The last values from the system: it gives none once no more files can be opened. */
  #memory: ReadonlyMap<string, number> = new Map();
  #openFiles: number | undefined;

  constructor() {
    this.#delays.enable();
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) this.#countCollection(entry);
    }).observe({ entryTypes: ["gc"] });
  }

  /** The current values of all metrics. */
  read(): MetricSnapshot[] {
    return [...this.#ofProcess(), ...this.#ofEventLoop(), ...ofHeap(), ofNode(), this.#ofCollections()];
  }

  #ofProcess(): MetricSnapshot[] {
    const { user, system } = process.cpuUsage();
    this.#memory = attempt(processMemory) ?? this.#memory;
    this.#openFiles = attempt(openFiles) ?? this.#openFiles;
    const memory = (field: string): Sample[] => samples(this.#memory.get(field));
    return [
      counter("process_cpu_user_seconds_total", "Total user CPU time spent in seconds.", user / 1e6),
      counter("process_cpu_system_seconds_total", "Total system CPU time spent in seconds.", system / 1e6),
      counter(
        "process_cpu_seconds_total",
        "Total user and system CPU time spent in seconds.",
        (user + system) / 1e6,
      ),
      gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", [
        [this.#started],
      ]),
      gauge("process_resident_memory_bytes", "Resident memory size in bytes.", memory("VmRSS")),
      ...onLinux(gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", memory("VmSize"))),
      ...onLinux(gauge("process_heap_bytes", "Process heap size in bytes.", memory("VmData"))),
      ...onLinux(gauge("process_open_fds", "Number of open file descriptors.", samples(this.#openFiles))),
      ...onLinux(
        gauge("process_max_fds", "Maximum number of open file descriptors.", samples(this.#maxFiles)),
      ),
    ];
  }

  #ofEventLoop(): MetricSnapshot[] {
    const start = performance.now();
    // The result shows in the next scrape.
    setImmediate(() => {
      this.#lag = (performance.now() - start) / 1000;
    });
    const delays = this.#delays;
    const lag = (name: string, help: string, nanoseconds: number): MetricSnapshot =>
      gauge(`nodejs_eventloop_lag_${name}_seconds`, help, [[nanoseconds / NANOSECONDS]]);
    const families = [
      gauge("nodejs_eventloop_lag_seconds", "Lag of event loop in seconds.", [[this.#lag]]),
      lag("min", "The minimum recorded event loop delay.", delays.min),
      lag("max", "The maximum recorded event loop delay.", delays.max),
      lag("mean", "The mean of the recorded event loop delays.", delays.mean),
      lag("stddev", "The standard deviation of the recorded event loop delays.", delays.stddev),
      ...[50, 90, 99].map((percent) =>
        lag(
          `p${percent}`,
          `The ${percent}th percentile of the recorded event loop delays.`,
          delays.percentile(percent),
        ),
      ),
      activeResources(),
    ];
    delays.reset();
    return families;
  }

  #countCollection(entry: { readonly duration: number }): void {
    const kind = GC_KINDS.get(kindOf(entry));
    if (kind === undefined) return;
    // As in a snapshot: a count for each bucket, one for longer collections, and the sum.
    const numbers = this.#collections.get(kind) ?? new Float64Array(GC_BUCKETS.length + 2);
    this.#collections.set(kind, numbers);
    const seconds = entry.duration / 1000;
    const at = GC_BUCKETS.findIndex((bound) => seconds <= bound);
    const bucket = at < 0 ? GC_BUCKETS.length : at;
    numbers[bucket] = (numbers[bucket] ?? 0) + 1;
    numbers[GC_BUCKETS.length + 1] = (numbers[GC_BUCKETS.length + 1] ?? 0) + seconds;
  }

  #ofCollections(): MetricSnapshot {
    return {
      name: "nodejs_gc_duration_seconds",
      help: "Garbage collection duration by kind, one of major, minor, incremental or weakcb.",
      type: "histogram",
      labels: ["kind"],
      buckets: GC_BUCKETS,
      acrossThreads: "sum",
      series: Array.from(this.#collections, ([kind, numbers]) => ({ labelValues: [kind], numbers })),
    };
  }
}

function ofHeap(): MetricSnapshot[] {
  const { heapTotal, heapUsed, external } = process.memoryUsage();
  const spaces = getHeapSpaceStatistics();
  const sizes = (words: string, sizeOf: (space: (typeof spaces)[number]) => number): MetricSnapshot =>
    gauge(
      `nodejs_heap_space_size_${words}_bytes`,
      `Process heap space size ${words} from Node.js in bytes.`,
      spaces.map((space) => [sizeOf(space), space.space_name.replace(/_space.*$/, "")]),
      ["space"],
    );
  return [
    gauge("nodejs_heap_size_total_bytes", "Process heap size from Node.js in bytes.", [[heapTotal]]),
    gauge("nodejs_heap_size_used_bytes", "Process heap size used from Node.js in bytes.", [[heapUsed]]),
    gauge("nodejs_external_memory_bytes", "Node.js external memory size in bytes.", [[external]]),
    sizes("total", (space) => space.space_size),
    sizes("used", (space) => space.space_used_size),
    sizes("available", (space) => space.space_available_size),
  ];
}

function activeResources(): MetricSnapshot {
  const byType = Map.groupBy(process.getActiveResourcesInfo(), (type) => type);
  return gauge(
    "nodejs_active_resources",
    "Number of active resources that are currently keeping the event loop alive, grouped by async resource type.",
    Array.from(byType, ([type, all]) => [all.length, type]),
    ["type"],
  );
}

function ofNode(): MetricSnapshot {
  const [major = "", minor = "", patch = ""] = process.versions.node.split(".");
  return gauge(
    "nodejs_version_info",
    "Node.js version info.",
    [[1, process.version, major, minor, patch]],
    ["version", "major", "minor", "patch"],
  );
}

function counter(name: string, help: string, value: number): MetricSnapshot {
  return { ...gauge(name, help, [[value]]), type: "counter" };
}

function gauge(
  name: string,
  help: string,
  values: readonly Sample[],
  labels: readonly string[] = [],
): MetricSnapshot {
  const series = values.map(([value, ...labelValues]) => ({ labelValues, numbers: Float64Array.of(value) }));
  return { name, help, type: "gauge", labels, buckets: [], acrossThreads: "sum", series };
}

function samples(value: number | undefined): Sample[] {
  return value === undefined ? [] : [[value]];
}

function onLinux(family: MetricSnapshot): MetricSnapshot[] {
  return process.platform === "linux" ? [family] : [];
}

/** Bytes by the names of proc(5). */
function processMemory(): ReadonlyMap<string, number> {
  if (process.platform !== "linux") return new Map([["VmRSS", process.memoryUsage.rss()]]);
  const status = readFileSync("/proc/self/status", "latin1");
  return new Map(
    Array.from(status.matchAll(/^(Vm\w+):\s*(\d+) kB$/gm), ([, field = "", size]) => [
      field,
      Number(size) * 1024,
    ]),
  );
}

function openFiles(): number {
  // Without the descriptor that reads the folder.
  return readdirSync("/proc/self/fd").length - 1;
}

function maxOpenFiles(): number | undefined {
  const limits = attempt(() => readFileSync("/proc/self/limits", "latin1")) ?? "";
  const [, soft] = /^Max open files +(\w+)/m.exec(limits) ?? [];
  return soft === "unlimited" ? Number.POSITIVE_INFINITY : (soft && Number(soft)) || undefined;
}

/** The kind of a garbage-collection entry. */
function kindOf(entry: object): unknown {
  const detail: unknown = "detail" in entry ? entry.detail : undefined;
  return typeof detail === "object" && detail !== null && "kind" in detail ? detail.kind : undefined;
}

function attempt<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
