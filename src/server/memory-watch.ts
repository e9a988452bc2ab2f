/** Looks at how much memory the process has, and has the listeners shed before the system ends it. */
import type { Clock, Timer } from "../lib/clock.ts";
import type { CounterSlot, GaugeSlot } from "../lib/metric-slots.ts";
import type { MetricsRegistry } from "../lib/metrics.ts";
import { type MemoryBudget, tightened, WAITING_OCTETS } from "./memory-budget.ts";

/** What is bounded by the budget. */
export interface BoundedListeners {
  /** Queries that wait. */
  readonly waiting: number;
  /** Octets that clients have left unread. */
  readonly unsent: number;
  bound(budget: MemoryBudget): void;
}

export interface MemoryWatchOptions {
  readonly budget: MemoryBudget;
  /** Octets of memory that the process has. */
  readonly resident: () => number;
  readonly listeners: BoundedListeners;
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
  readonly log: { warning(text: string): void };
}

/** Milliseconds between two looks. */
const INTERVAL = 250;
/** Below this share of what is tight it no longer is: one that comes and goes must not be a new one each time. */
const EASED = 0.95;

export class MemoryWatch {
  readonly #options: MemoryWatchOptions;
  readonly #pressure: CounterSlot;
  readonly #gauges: readonly [waiting: GaugeSlot, connections: GaugeSlot];
  readonly #forgetCollector: () => void;
  #timer: Timer | undefined;
  #isTight = false;
  #isTold = false;

  constructor(options: MemoryWatchOptions) {
    const { metrics, budget } = options;
    this.#options = options;
    this.#pressure = metrics
      .counter({
        name: "portolan_memory_pressure_total",
        help: "Times that memory became tight, so that fewer queries could wait and less could be left unread.",
      })
      .slot();
    const gauge = (name: string, help: string): GaugeSlot =>
      metrics.gauge({ name: `portolan_memory_${name}_bytes`, help, acrossThreads: "sum" }).slot();
    this.#gauges = [
      gauge("waiting", "Memory of queries that wait, estimated by their number."),
      gauge("connections", "Replies that clients of stream connections have left unread."),
    ];
    if (budget.limit !== undefined)
      metrics
        .gauge({
          name: "portolan_memory_limit_bytes",
          help: "Memory that the control group of the process allows.",
        })
        .slot()
        .set(budget.limit);
    this.#forgetCollector = metrics.onCollect(() => this.#collect());
  }

  /** To be called when the server has what it needs at rest. */
  start(): void {
    const { budget, clock, listeners } = this.#options;
    listeners.bound(this.#isTight ? tightened(budget) : budget);
    if (budget.limit === undefined || this.#timer !== undefined) return;
    this.#warnOfTooLittle(budget.limit);
    this.#timer = clock.every(INTERVAL, () => this.#look());
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#forgetCollector();
  }

  #warnOfTooLittle(limit: number): void {
    const needed = this.#options.resident() + WORKING_OCTETS;
    if (limit >= needed) return;
    this.#options.log.warning(
      `the memory limit of ${inMebibytes(limit)} is below the ${inMebibytes(needed)} that the server needs with this Corefile: raise the limit, or the server may be killed`,
    );
  }

  #look(): void {
    const { budget, resident, listeners, log } = this.#options;
    const octets = resident();
    if (this.#isTight ? octets >= budget.tight * EASED : octets < budget.tight) return;
    this.#isTight = !this.#isTight;
    listeners.bound(this.#isTight ? tightened(budget) : budget);
    if (!this.#isTight) return;
    this.#pressure.increment();
    if (this.#isTold) return;
    this.#isTold = true;
    log.warning(
      `memory is low: ${inMebibytes(octets)} of ${inMebibytes(budget.limit ?? 0)} are in use, so fewer queries may wait (portolan_memory_pressure_total counts how often)`,
    );
  }

  #collect(): void {
    const { listeners } = this.#options;
    this.#gauges[0].set(listeners.waiting * WAITING_OCTETS);
    this.#gauges[1].set(listeners.unsent);
  }
}

/** What answering takes beside what lies at rest: young garbage, queries that wait, buffers. */
const WORKING_OCTETS = 16 * 1024 * 1024;

function inMebibytes(octets: number): string {
  return `${Math.round(octets / (1024 * 1024))} MiB`;
}
