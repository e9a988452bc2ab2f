/** The CPU time of a change in the cluster, and the effect of changes on queries. */
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { serviceNames, writeQueries } from "../memory/query-lists.ts";
import { CLUSTER_ZONE } from "../names.ts";
import { runDnsperf } from "../run/dnsperf.ts";
import type { RunningServer } from "../run/running-server.ts";
import { startUpstream } from "../run/upstream.ts";
import { changingServices } from "./api-changes.ts";
import type { ChangeLoad, ChangeSample, QueriesAmidChanges, QueryTurn } from "./cluster-results.ts";
import type { ClusterSize } from "./cluster-shape.ts";
import { LiveServer, startApi } from "./live-server.ts";
import type { RunningApi } from "./running-api.ts";

export interface ChangeScenario {
  readonly name: string;
  readonly size: ClusterSize;
}

export interface ChangeOptions {
  /** For everything that is needed meanwhile. */
  readonly folder: string;
  readonly ticksPerSecond: number;
  readonly durations: ChangeDurations;
}

/** Seconds, but for the turns. */
export interface ChangeDurations {
  /** From the last list until anything is measured. */
  readonly rest: number;
  readonly idle: number;
  /** Of changes in quick succession. */
  readonly quick: number;
  /** Of changes one by one. */
  readonly steady: number;
  /** Of queries, in peace or amid changes, and how many of each there are. */
  readonly turn: number;
  readonly turns: number;
}

/** The number of changes of a {@link ChangeSample}: as in a report about a real cluster, with no change before them. */
const FIRST_CHANGES = 7_830;
const STEADY_RATE = 200;
const QUICK_RATE = 1_500;
const TOGETHER = 15;
/** Queries per second. */
const QUERY_RATE = 10_000;
/** Services, EndpointSlices, namespaces. */
const KINDS = 3;

/** Changes alone, without queries. */
export async function measureChanges(
  { name, size }: ChangeScenario,
  options: ChangeOptions,
): Promise<ChangeSample> {
  await using live = await Live.start(`changes-${name}`, size, true, options);
  const { rest, quick, steady } = options.durations;
  await delay(rest * 1000);
  const load = (rate: number, changes: number, together: number): Promise<ChangeUsage> =>
    live.changes({ rate, changes, together });
  const loads = [
    await load(STEADY_RATE, FIRST_CHANGES, 1),
    await load(QUICK_RATE, QUICK_RATE * quick, 1),
    await load(QUICK_RATE, QUICK_RATE * quick, TOGETHER),
    // Once more: code that runs often has been compiled by now.
    await load(STEADY_RATE, STEADY_RATE * steady, 1),
  ];
  // At the end, because a process that has just started goes on with that for a while.
  await delay(rest * 1000);
  const idleShare = await live.idleShare();
  live.server.assertRunning();
  return {
    name,
    services: size.services,
    endpoints: size.endpoints,
    idleShare,
    loads: loads.map((usage) => withoutIdle(usage, idleShare)),
  };
}

/** Cluster names without cache at a fixed rate, in turns in peace and amid changes. */
export async function measureQueriesAmidChanges(
  { size }: ChangeScenario,
  options: ChangeOptions,
): Promise<QueriesAmidChanges> {
  await using live = await Live.start("queries-amid-changes", size, false, options);
  const { rest, steady, turns } = options.durations;
  const queries = writeQueries(options.folder, "queries-amid-changes", names(size));
  await delay(rest * 1000);
  // Half of the changing names are there at any time, and all code has run.
  await live.api.change({ rate: QUICK_RATE, changes: FIRST_CHANGES, together: 1 });
  await live.ask(queries);
  const usage = await live.changes({ rate: STEADY_RATE, changes: STEADY_RATE * steady, together: 1 });
  const alone = withoutIdle(usage, await live.idleShare());
  const peace: QueryTurn[] = [];
  const amid: QueryTurn[] = [];
  for (let turn = 0; turn < turns; turn++) {
    peace.push(await live.ask(queries));
    const changing = live.api.change({ rate: STEADY_RATE, changes: Number.MAX_SAFE_INTEGER, together: 1 });
    amid.push(await live.ask(queries));
    live.api.stopChanges();
    await changing;
  }
  live.server.assertRunning();
  return { rate: QUERY_RATE, changeRate: STEADY_RATE, changeMicroseconds: alone.microseconds, peace, amid };
}

/** The constant part, and the changing part. */
function* names(size: ClusterSize): Iterable<string> {
  yield* serviceNames(size);
  for (const { name, namespace } of changingServices(size.namespaces, size.services))
    yield `${name}.${namespace}.svc.${CLUSTER_ZONE} A`;
}

interface ChangeUsage {
  readonly rate: number;
  readonly together: number;
  readonly changes: number;
  /** Of the clock, and of the processor. */
  readonly seconds: number;
  readonly cpu: number;
}

function withoutIdle({ cpu, ...usage }: ChangeUsage, idleShare: number): ChangeLoad {
  const { changes, seconds } = usage;
  return {
    ...usage,
    allMicroseconds: (cpu / changes) * 1e6,
    microseconds: ((cpu - idleShare * seconds) / changes) * 1e6,
  };
}

class Live implements AsyncDisposable {
  readonly server: RunningServer;
  readonly api: RunningApi;
  readonly #options: ChangeOptions;
  readonly #resources: AsyncDisposableStack;

  private constructor(
    server: RunningServer,
    api: RunningApi,
    options: ChangeOptions,
    resources: AsyncDisposableStack,
  ) {
    this.server = server;
    this.api = api;
    this.#options = options;
    this.#resources = resources;
  }

  static async start(name: string, size: ClusterSize, cache: boolean, options: ChangeOptions): Promise<Live> {
    const { folder } = options;
    await using resources = new AsyncDisposableStack();
    const upstream = resources.use(await startUpstream(join(folder, `${name}-upstream`)));
    const liveApi = resources.use(await startApi(size, true));
    const { api } = liveApi;
    const live = await LiveServer.prepare(join(folder, name), liveApi, {
      upstreamPort: upstream.port,
      cache,
      pods: false,
    });
    const listed = api.listed(KINDS);
    const server = resources.use(live.start());
    await live.becomesReady(server);
    await listed;
    return new Live(server, api, options, resources.move());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }

  /** The share of a core that it takes with nothing to do. */
  async idleShare(): Promise<number> {
    const { seconds, cpu } = await this.#watch(() => delay(this.#options.durations.idle * 1000));
    return cpu / seconds;
  }

  async changes(options: Omit<ChangeUsage, "cpu" | "seconds">): Promise<ChangeUsage> {
    const { result, seconds, cpu } = await this.#watch(async () => {
      const { changes } = await this.api.change(options);
      // Events still in transit.
      await delay(100);
      return changes;
    });
    return { ...options, changes: result, seconds, cpu };
  }

  async ask(queries: string): Promise<QueryTurn> {
    const { durations } = this.#options;
    const { result, seconds, cpu } = await this.#watch(() =>
      runDnsperf({
        port: this.server.port,
        queries,
        transport: "udp",
        length: durations.turn,
        clients: 32,
        outstanding: 128,
        rate: QUERY_RATE,
      }),
    );
    const { answered, lost } = result;
    return { answered, lost, seconds, cpuMicroseconds: (cpu / answered) * 1e6 };
  }

  async #watch<T>(run: () => Promise<T>): Promise<{ result: T; seconds: number; cpu: number }> {
    const { ticksPerSecond } = this.#options;
    const begun = performance.now();
    const before = this.server.cpuSeconds(ticksPerSecond);
    const result = await run();
    const cpu = this.server.cpuSeconds(ticksPerSecond) - before;
    return { result, seconds: (performance.now() - begun) / 1000, cpu };
  }
}
