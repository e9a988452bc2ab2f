/** The state of the console: reads the stream of finished queries, counts, and serves its clients. */
import { rcodeName } from "../dns/numbers.ts";
import { recordTypeName } from "../dns/type-names.ts";
import type { CounterSlot } from "../lib/metrics/metric-slots.ts";
import type { MetricsRegistry } from "../lib/metrics/metrics.ts";
import type { Clock, Timer } from "../lib/time/clock.ts";
import type { Machine, ServerControl } from "../plugin/contract/site.ts";
import type { FinishedQuery } from "../plugin/stream/query-reader.ts";
import type { QueryStream } from "../plugin/stream/query-stream.ts";
import type { HistoryPoint, MachineView, NowView, QueryRow, WhoView } from "./api-types.ts";
import { clusterRows } from "./cluster-facts.ts";
import { COUNTED_TYPES, History, STEP } from "./history.ts";
import type { EventStream } from "./http/event-stream.ts";
import { RequestError } from "./http/request-error.ts";
import { percentile } from "./latency.ts";
import { machineFacts } from "./machine-facts.ts";
import { shedQueries, staleAnswers, upstreamRows } from "./metric-facts.ts";
import { ProcessFacts } from "./process-facts.ts";
import { QueryFilter, queryRow } from "./query-row.ts";
import { QuerySources } from "./streams.ts";
import { TopLists } from "./top-lists.ts";
import { troubleFacts } from "./trouble-facts.ts";
import { Workloads } from "./workloads.ts";

export interface ConsoleSite {
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
  readonly queries: QueryStream;
  readonly control: ServerControl;
  readonly machine: Machine;
  readonly version: string;
}

/** Milliseconds. */
const TICK = 250;
const TICKS_OF_SECOND = 4;
/** Clients reconnect after 30 seconds of silence. */
const SECONDS_OF_BEAT = 5;
const MAX_STREAMS = 24;
/** Rows for one client in a tick: more than a person can read. */
const ROWS_OF_TICK = 100;

export interface Wish {
  /** Absent for clients without single queries. */
  readonly filter: QueryFilter | undefined;
  /** Whether the client wants the numbers of each second. */
  readonly wantsNow: boolean;
  /** Time of the newest history point that the client has: 0 without any. */
  readonly since: number;
  /** Whether the client still has read access: its session can end. */
  readonly mayRead: () => boolean;
}

interface Viewer extends Wish {
  readonly events: EventStream;
  rows: QueryRow[];
  leftOut: number;
}

/** Passed from a console to its successor in the next configuration. */
export interface ConsoleMemory {
  readonly history: History;
  readonly lists: TopLists;
  readonly retired: RetiredQueries;
}

/** Finished queries of other threads in earlier configurations. */
interface RetiredQueries {
  finished: number;
}

export class Console {
  readonly workloads: Workloads;
  readonly #site: ConsoleSite;
  readonly #process = new ProcessFacts();
  readonly #viewers = new Set<Viewer>();
  #history = new History();
  #lists: TopLists;
  #retired: RetiredQueries = { finished: 0 };
  #hasStopped = false;
  #sources: QuerySources | undefined;
  #timer: Timer | undefined;
  readonly #droppedRows: CounterSlot;
  readonly #missedQueries: CounterSlot;
  /** The part of {@link #missedQueries} that belongs to the present sources. */
  #missed = 0;
  #ticks = 0;
  /** The end of the queue of full reads: one after another, so that each turn has time for DNS. */
  #reading: Promise<void> = Promise.resolve();

  constructor(site: ConsoleSite) {
    this.#site = site;
    this.workloads = new Workloads(
      () => site.control.view,
      () => site.clock.now(),
    );
    this.#lists = new TopLists(this.workloads);
    this.#droppedRows = site.metrics
      .counter({
        name: "portolan_console_dropped_rows_total",
        help: "Queries not sent to a client of the console's event stream, because it was behind or the stream was full.",
        labels: [],
      })
      .slot();
    this.#missedQueries = site.metrics
      .counter({
        name: "portolan_console_missed_queries_total",
        help: "Approximate number of queries the console skipped because they arrived too fast.",
        labels: [],
      })
      .slot();
  }

  get memory(): ConsoleMemory {
    return { history: this.#history, lists: this.#lists, retired: this.#retired };
  }

  /** Takes over the counts of the previous configuration's console. */
  inherit({ history, lists, retired }: ConsoleMemory): void {
    this.#retired = retired;
    this.#history = history;
    this.#lists = lists;
    lists.workloads = this.workloads;
  }

  start(): void {
    this.#process.start();
    this.#timer = this.#site.clock.every(TICK, () => this.#tick());
  }

  stop(): void {
    this.#timer?.cancel();
    this.#process.stop();
    this.#sources?.stop();
    if (!this.#hasStopped) this.#retired.finished += this.#sources?.finishedElsewhere ?? 0;
    this.#hasStopped = true;
    for (const { events } of this.#viewers) events.end();
    this.#viewers.clear();
  }

  /** Memory for the queries of one more thread. */
  addThread(): SharedArrayBuffer {
    return this.#opened().addThread();
  }

  /** Starts reading: from here on queries are written. */
  listen(): void {
    this.#opened();
  }

  /** @throws RequestError */
  filter(parameters: URLSearchParams): QueryFilter {
    return new QueryFilter(parameters, this.workloads);
  }

  /**
   * Sends events from now on.
   * @throws RequestError before anything is sent
   */
  follow(open: () => EventStream, wish: Wish): void {
    if (this.#viewers.size >= MAX_STREAMS)
      throw new RequestError(503, `${MAX_STREAMS} streams are open already: close one`);
    const events = open();
    const viewer: Viewer = { ...wish, events, rows: [], leftOut: 0 };
    this.#viewers.add(viewer);
    events.onEnd(() => this.#viewers.delete(viewer));
    if (wish.wantsNow) events.send("now", this.#with(this.#history.points(wish.since)));
  }

  /** The newest matching queries, newest first. */
  async recent(filter: QueryFilter, most: number): Promise<QueryRow[]> {
    const before = this.#reading;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#reading = promise;
    await before;
    try {
      return await this.#readRecent(filter, most);
    } finally {
      resolve();
    }
  }

  async #readRecent(filter: QueryFilter, most: number): Promise<QueryRow[]> {
    const rows: QueryRow[] = [];
    await this.#opened().readAll((query) => {
      if (!filter.wants(query)) return;
      rows.push(queryRow(query, this.workloads));
      if (rows.length >= 2 * most) rows.splice(0, rows.length - most);
    });
    return rows.sort((one, other) => other.time - one.time).slice(0, most);
  }

  who(most: number): WhoView {
    return this.#lists.view(most);
  }

  machine(): MachineView {
    const { control, machine } = this.#site;
    const ports = new Set<number>();
    for (const { listeners } of control.view?.blocks() ?? [])
      for (const listener of listeners) {
        const [, port] = /^dns:\/\/.*:(\d+)$/.exec(listener) ?? [];
        if (port !== undefined) ports.add(Number(port));
      }
    const finished = (this.#sources?.finished ?? 0) + this.#retired.finished;
    return { finished, ...machineFacts(ports, machine.memoryLimit) };
  }

  now(): NowView {
    return this.#with(this.#history.points());
  }

  #with(points: readonly HistoryPoint[]): NowView {
    const { clock, control, machine, metrics, version } = this.#site;
    const snapshot = metrics.snapshot();
    const minute = this.#history.minute();
    const queries = minute.rcodes.reduce((sum, count) => sum + count, 0) + minute.unanswered;
    const rcodes: Record<string, number> = {};
    for (const [rcode, count] of minute.rcodes.entries()) if (count > 0) rcodes[rcodeName(rcode)] = count;
    if (minute.unanswered > 0) rcodes["no reply"] = minute.unanswered;
    const types: Record<string, number> = {};
    for (const [at, count] of minute.types.entries()) {
      const type = COUNTED_TYPES[at];
      if (count > 0) types[type === undefined ? "other" : recordTypeName(type)] = count;
    }
    const sources = this.#sources;
    return {
      time: clock.wallTime(),
      version,
      hostname: machine.hostname,
      startedAt: control.view?.startedAt ?? 0,
      threads: control.view?.threads ?? 1,
      rate: Math.round((sources?.rate ?? 0) * 10) / 10,
      minute: {
        queries,
        rcodes,
        types,
        hitRatio: queries === 0 ? null : Math.round((minute.hits / queries) * 1e4) / 1e4,
        p50: percentile(minute.latencies, 0.5),
        p90: percentile(minute.latencies, 0.9),
        p99: percentile(minute.latencies, 0.99),
      },
      upstreams: upstreamRows(snapshot),
      clusters: clusterRows(control),
      memory: this.#process.memory(machine.memoryLimit),
      pauses: this.#process.pauses(),
      shed: shedQueries(snapshot),
      ...troubleFacts(control),
      servedStale: staleAnswers(snapshot),
      sampling: { interval: sources?.interval ?? 1, missed: sources?.missed ?? 0 },
      history: { step: STEP, points },
    };
  }

  #opened(): QuerySources {
    this.#sources ??= new QuerySources(this.#site.queries);
    return this.#sources;
  }

  #tick(): void {
    const sources = this.#opened();
    const { clock } = this.#site;
    const now = clock.now();
    this.#history.advance(clock.wallTime(), now);
    this.#lists.advance(now);
    sources.read(this.#visit);
    sources.measure(now, this.#isWatched());
    this.#ticks++;
    if (this.#ticks % TICKS_OF_SECOND === 0 && sources.missed > this.#missed) {
      this.#missedQueries.add(sources.missed - this.#missed);
      this.#missed = sources.missed;
    }
    if (this.#ticks % (60 * TICKS_OF_SECOND) === 0) this.#process.advance();
    if (this.#ticks % TICKS_OF_SECOND === 0) this.#sendAway();
    this.#tell(this.#ticks % TICKS_OF_SECOND === 0);
    if (this.#ticks % (SECONDS_OF_BEAT * TICKS_OF_SECOND) === 0)
      for (const { events } of this.#viewers) events.beat();
  }

  readonly #visit = (query: FinishedQuery): void => {
    this.#history.count(query);
    this.#lists.count(query);
    for (const viewer of this.#viewers) {
      if (viewer.filter?.wants(query) !== true) continue;
      if (viewer.rows.length < ROWS_OF_TICK) viewer.rows.push(queryRow(query, this.workloads));
      else {
        viewer.leftOut++;
        this.#droppedRows.add(1);
      }
    }
  };

  /** Whether a client follows single queries. */
  #isWatched(): boolean {
    for (const { filter } of this.#viewers) if (filter !== undefined) return true;
    return false;
  }

  /** Closes the streams of clients without read access. */
  #sendAway(): void {
    for (const viewer of this.#viewers) {
      if (viewer.mayRead()) continue;
      this.#viewers.delete(viewer);
      viewer.events.end();
    }
  }

  #tell(withNow: boolean): void {
    let now: NowView | undefined;
    for (const viewer of this.#viewers) {
      const { rows, leftOut, events } = viewer;
      if (rows.length > 0) {
        const isSent = events.send("queries", { rows, leftOut });
        viewer.leftOut = isSent ? 0 : leftOut + rows.length;
        if (!isSent) this.#droppedRows.add(rows.length);
        viewer.rows = [];
      }
      if (!withNow || !viewer.wantsNow) continue;
      // The first message has the past hour, later ones only its newest points.
      now ??= this.#with(this.#history.newestPoints());
      events.send("now", now);
    }
  }
}
