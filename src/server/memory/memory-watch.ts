/** Looks at how much memory the process has, and has the listeners shed before the system ends it. */

import type { CounterSlot, GaugeSlot } from "../../lib/metrics/metric-slots.ts";
import type { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import { type MemoryBudget, memoryBudget, tightened, WAITING_OCTETS } from "./memory-budget.ts";

/** What is bounded by the budget: the listeners of a thread. */
export interface BoundedListeners {
  /** Queries that wait. */
  readonly waiting: number;
  /** Octets that stream connections hold: replies that clients have not read, and what they sent that is not taken yet. */
  readonly unsent: number;
  /** Octets that stream connections take themselves. */
  readonly connections: number;
  bound(budget: MemoryBudget): void;
}

export interface MemoryWatchOptions {
  /** Whether it is the one that logs and counts: each thread has a watch of its own, and all look at the same process. */
  readonly leads: boolean;
  /** Octets that the process may have; `undefined` where nobody set a limit. */
  readonly limit: number | undefined;
  /** Octets of memory that the process has. */
  readonly resident: () => number;
  readonly listeners: BoundedListeners;
  /** Gives back what can be had at once, when memory has become tight. */
  readonly relieve: () => void;
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
      gauge("waiting", "Memory of queries that wait, estimated by their number."),
      gauge(
        "connections",
        "Stream connections, estimated by their number, with replies that clients have left unread, and messages that are not whole.",
      ),
      gauge(
        "unread",
        "Replies that clients of stream connections have left unread, and what they sent that is not taken yet; part of portolan_memory_connections_bytes.",
      ),
    ];
    this.#forgetCollector = metrics.onCollect(() => this.#collect());
    if (!leads) return;
    this.#pressure = metrics
      .counter({
        name: "portolan_memory_pressure_total",
        help: "Times that memory became tight, so that fewer queries could wait and less could be left unread.",
      })
      .slot();
    if (limit === undefined) return;
    metrics
      .gauge({
        name: "portolan_memory_limit_bytes",
        help: "Memory that the control group of the process allows.",
      })
      .slot()
      .set(limit);
  }

  /**
   * To be called when the server has what it needs at rest.
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

  /** Whether little is left. */
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

  /** Looks at once: for who knows that much has come. */
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
      `memory is low: ${inMebibytes(octets)} of ${inMebibytes(this.#budget.limit ?? 0)} are in use, so fewer queries may wait (portolan_memory_pressure_total counts how often)`,
    );
  }

  #collect(): void {
    const { listeners } = this.#options;
    this.#gauges[0].set(listeners.waiting * WAITING_OCTETS);
    this.#gauges[1].set(listeners.unsent + listeners.connections);
    this.#gauges[2].set(listeners.unsent);
  }
}

/** What answering takes beside what lies at rest, in each thread: young garbage, queries that wait, buffers. */
const WORKING_OCTETS = 16 * 1024 * 1024;

function inMebibytes(octets: number): string {
  return `${Math.round(octets / (1024 * 1024))} MiB`;
}
