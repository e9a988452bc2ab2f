/** Watches the resident memory of the process, and makes the listeners shed load before the system kills it. */

import type { CounterSlot, GaugeSlot } from "../../lib/metrics/metric-slots.ts";
import type { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import { type MemoryBudget, memoryBudget, tightened, WAITING_OCTETS } from "./memory-budget.ts";

/** The listeners of a thread, which the budget bounds. */
export interface BoundedListeners {
  /** Pending queries. */
  readonly waiting: number;
  /** Bytes that stream connections hold: replies that clients have not read, and incomplete messages from clients. */
  readonly unsent: number;
  /** Bytes of the stream connections themselves. */
  readonly connections: number;
  bound(budget: MemoryBudget): void;
}

export interface MemoryWatchOptions {
  /** Whether this watch logs and counts: each thread has one, and all look at the same process. */
  readonly leads: boolean;
  /** Memory of the process in bytes; `undefined` without a limit. */
  readonly limit: number | undefined;
  /** Resident memory of the process in bytes. */
  readonly resident: () => number;
  readonly listeners: BoundedListeners;
  /** Frees memory that can be freed at once, when memory has become tight. */
  readonly relieve: () => void;
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
  readonly log: { warning(text: string): void };
}

/** Milliseconds between two measurements. */
const INTERVAL = 250;
/**
 * Memory is tight until it falls below this share of the limit, so that a load near the limit does not toggle the
 * state.
 */
const EASED = 0.95;

export class MemoryWatch {
  readonly #options: MemoryWatchOptions;
  readonly #pressure: CounterSlot | undefined;
  readonly #gauges: readonly [waiting: GaugeSlot, connections: GaugeSlot, unread: GaugeSlot];
  readonly #forgetCollector: () => void;
  #budget: MemoryBudget;
  #timer: Timer | undefined;
  #isTight = false;
  #isTold = false;

  constructor(options: MemoryWatchOptions) {
    const { metrics, limit, leads } = options;
    this.#options = options;
    this.#budget = memoryBudget(limit);
    const gauge = (name: string, help: string): GaugeSlot =>
      metrics.gauge({ name: `portolan_memory_${name}_bytes`, help, acrossThreads: "sum" }).slot();
    this.#gauges = [
      gauge("waiting", "Memory of pending queries, estimated from their number."),
      gauge(
        "connections",
        "Memory of stream connections, estimated from their number, with unread replies and incomplete messages.",
      ),
      gauge(
        "unread",
        "Unread replies and incomplete messages of stream connections; part of portolan_memory_connections_bytes.",
      ),
    ];
    this.#forgetCollector = metrics.onCollect(() => this.#collect());
    if (!leads) return;
    this.#pressure = metrics
      .counter({
        name: "portolan_memory_pressure_total",
        help: "Times that memory became tight, so that the bounds on pending queries and unread replies were lowered.",
      })
      .slot();
    if (limit === undefined) return;
    metrics
      .gauge({
        name: "portolan_memory_limit_bytes",
        help: "Memory limit of the control group of the process.",
      })
      .slot()
      .set(limit);
  }

  /**
   * Call it when the server holds its resting memory.
   * @param threads that answer from now on
   */
  start(threads: number): void {
    const { limit, leads, clock } = this.#options;
    this.#budget = memoryBudget(limit, threads);
    this.#bound();
    if (limit === undefined || this.#timer !== undefined) return;
    if (leads) this.#warnOfTooLittle(limit);
    this.#timer = clock.every(INTERVAL, () => this.look());
  }

  /** Whether memory is tight. */
  get isTight(): boolean {
    return this.#isTight;
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#forgetCollector();
  }

  #bound(): void {
    this.#options.listeners.bound(this.#isTight ? tightened(this.#budget) : this.#budget);
  }

  #warnOfTooLittle(limit: number): void {
    const needed = this.#options.resident() + WORKING_OCTETS * this.#budget.threads;
    if (limit >= needed) return;
    this.#options.log.warning(
      `the memory limit of ${inMebibytes(limit)} is below the ${inMebibytes(needed)} that the server needs with this Corefile: raise the limit, or the server may be killed`,
    );
  }

  /** Measures at once, for a caller that has just received much. */
  look(): void {
    const { tight } = this.#budget;
    const octets = this.#options.resident();
    if (this.#isTight ? octets >= tight * EASED : octets < tight) return;
    this.#isTight = !this.#isTight;
    this.#bound();
    if (!this.#isTight) return;
    this.#options.relieve();
    this.#pressure?.increment();
    if (this.#isTold || !this.#options.leads) return;
    this.#isTold = true;
    this.#options.log.warning(
      `memory is low: ${inMebibytes(octets)} of ${inMebibytes(this.#budget.limit ?? 0)} are in use. Fewer queries may be pending until that changes (portolan_memory_pressure_total counts how often)`,
    );
  }

  #collect(): void {
    const { listeners } = this.#options;
    this.#gauges[0].set(listeners.waiting * WAITING_OCTETS);
    this.#gauges[1].set(listeners.unsent + listeners.connections);
    this.#gauges[2].set(listeners.unsent);
  }
}

/** Memory for answering in each thread, beside the resting memory: young garbage, pending queries, buffers. */
const WORKING_OCTETS = 16 * 1024 * 1024;

function inMebibytes(octets: number): string {
  return `${Math.round(octets / (1024 * 1024))} MiB`;
}
