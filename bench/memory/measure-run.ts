/** Portolan with the usual Corefile beside a live cluster, through one load after the other: what it takes at most, and how long it pauses. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { ClusterSize } from "../cluster/cluster-shape.ts";
import { LiveServer, startApi } from "../cluster/live-server.ts";
import { forgetPeak, processMemory } from "../cluster/process-memory.ts";
import type { RunningApi } from "../cluster/running-api.ts";
import type { LoadCounts } from "../load/load-result.ts";
import { ticksPerSecond } from "../machine.ts";
import { type DnsperfOptions, runDnsperf } from "../run/dnsperf.ts";
import { runOpenLoop } from "../run/load.ts";
import type { RunningServer } from "../run/running-server.ts";
import { startUpstream } from "../run/upstream.ts";
import type { ControlGroup } from "./control-group.ts";
import { EchoControl } from "./echo-control.ts";
import { describeLongTurn, Symbols } from "./long-turn-text.ts";
import { takeLongTurns } from "./long-turns.ts";
import type { EchoTurns, PauseSample, RunSample, StepSample } from "./memory-results.ts";
import { compileProcessorClock, PauseLog, pauseEnvironment } from "./pauses.ts";
import { externalNames, newNames, searchPaths, serviceNames, writeQueries } from "./query-lists.ts";

export interface RunOptions {
  readonly name: string;
  readonly about: string;
  readonly size: ClusterSize;
  readonly folder: string;
  /** Of each load. */
  readonly seconds: number;
  /** How often the whole row of loads is gone through. */
  readonly times: number;
  readonly threads: number;
  /** A folder for the samples of the longest turns of each load; undefined samples nothing. */
  readonly turns: string | undefined;
  readonly say: (line: string) => void;
}

const NEW_NAMES = 300_000;
/** Queries per second for an upstream that says nothing. */
const UNANSWERED_RATE = 2_000;
/** Services, EndpointSlices, namespaces. */
const KINDS = 3;
/** Seconds after a list or a reload until memory is read. */
const REST = 5;
/** Turns of a load that are described and not only counted. */
const MOST_LONG_TURNS = 4;
/** With more rows of loads than this, the echo server gets its turn behind each row, and not behind each load. */
const FEW = 3;
/** Milliseconds that a step may take to show itself in what the server prints. */
const PATIENCE = 60_000;

export async function measureRun(options: RunOptions): Promise<RunSample> {
  const { name, about, times } = options;
  await using loaded = await LoadedServer.start(options);
  const steps: StepSample[] = [await loaded.note("start", { answered: 0, lost: 0, seconds: 1 })];
  const control = await EchoControl.compile(options.folder);
  for (let time = 1; time <= times; time++) {
    for (const load of loaded.loads(time)) {
      steps.push(await loaded.measure(load));
      if (times <= FEW) await control?.look();
    }
    if (times > FEW) await control?.look();
  }
  const { restMegabytes } = loaded;
  const peakMegabytes = Math.max(restMegabytes, ...steps.map((step) => step.peakMegabytes));
  const echo = control?.sum;
  if (echo !== undefined) options.say(`    ${describeEcho(echo)}`);
  return { name, about, restMegabytes, peakMegabytes, steps, echo };
}

type Load = Pick<DnsperfOptions, "queries"> & Partial<DnsperfOptions>;

interface Scene {
  readonly server: RunningServer;
  readonly upstream: RunningServer;
  readonly api: RunningApi;
  readonly corefile: string;
  readonly pauses: PauseLog;
  readonly ticksPerSecond: number;
  /** Where the server writes down its longest turns, where they are to be explained. */
  readonly turns: string | undefined;
}

export interface RunLoad {
  readonly step: string;
  readonly run: () => Promise<LoadCounts>;
}

export type LoadedServerOptions = Omit<RunOptions, "about" | "times"> & {
  /** Where the server runs, if not beside everything else. */
  readonly group?: ControlGroup | undefined;
};

/** Portolan beside an API and an upstream of its own. */
export class LoadedServer implements AsyncDisposable {
  /** Before the first load. */
  readonly restMegabytes: number;
  readonly #options: LoadedServerOptions;
  readonly #scene: Scene;
  readonly #resources: AsyncDisposableStack;
  #symbols: Symbols | undefined;
  #steps = 0;
  /** When the load began: milliseconds since the epoch. */
  #began: number;

  private constructor(
    options: LoadedServerOptions,
    scene: Scene,
    began: number,
    resources: AsyncDisposableStack,
  ) {
    this.#began = began;
    this.#options = options;
    this.#scene = scene;
    this.#resources = resources;
    this.restMegabytes = processMemory(scene.server.pid).resident;
  }

  /** Resolves some seconds after the cluster was listed. */
  static async start(options: LoadedServerOptions): Promise<LoadedServer> {
    const { name, size, folder, threads, group } = options;
    await using resources = new AsyncDisposableStack();
    const upstream = resources.use(await startUpstream(join(folder, `${name}-upstream`)));
    const liveApi = resources.use(await startApi(size, true));
    const pauses = join(folder, `${name}.pauses`);
    const turns = options.turns === undefined ? undefined : join(folder, `${name}.turns`);
    const processorClock = await compileProcessorClock(folder);
    const live = await LiveServer.prepare(join(folder, name), liveApi, {
      upstreamPort: upstream.port,
      cache: true,
      pods: false,
      env: pauseEnvironment({ pauses, processorClock, turns }),
      directives: threads > 1 ? [`multisocket ${threads}`] : [],
      group,
    });
    const { api } = liveApi;
    const listed = api.listed(KINDS);
    const began = Date.now();
    const server = resources.use(live.start());
    await live.becomesReady(server);
    await listed;
    await delay(REST * 1000);
    const scene = {
      server,
      upstream,
      api,
      corefile: live.corefile,
      pauses: new PauseLog(pauses),
      ticksPerSecond: await ticksPerSecond(),
      turns,
    };
    return new LoadedServer(options, scene, began, resources.move());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }

  /** All loads once, in their order. The first time is 1. */
  loads(time: number): readonly RunLoad[] {
    const { folder, size, name } = this.#options;
    const write = (file: string, queries: Iterable<string>): string =>
      writeQueries(folder, `${name}-${file}`, queries);
    const services = write("services", serviceNames(size));
    const paths = write("search-paths", searchPaths(size, 3_000));
    const mixed = write("mixed", [...serviceNames(size), ...externalNames(5_000)]);
    const forwarded = write("forwarded", newNames(`new-${time}`, NEW_NAMES));
    const overTcp = write("forwarded-tcp", newNames(`tcp-${time}`, NEW_NAMES));
    const unanswered = write("unanswered", newNames(`dead-${time}`, NEW_NAMES));
    const beside = (event: () => Promise<void>): Promise<LoadCounts> =>
      Promise.all([this.#load({ queries: mixed }), event()]).then(([counts]) => counts);
    return [
      { step: "cluster names", run: () => this.#load({ queries: services }) },
      { step: "search paths", run: () => this.#load({ queries: paths }) },
      { step: "300,000 forwarded names", run: () => this.#load({ queries: forwarded }) },
      {
        step: "300,000 forwarded names over TCP",
        run: () => this.#load({ queries: overTcp, transport: "tcp", clients: 16, outstanding: 256 }),
      },
      { step: "listed anew under load", run: () => beside(() => this.#relist()) },
      { step: "upstream silent", run: () => this.#askInVain(unanswered) },
      { step: "reload under load", run: () => beside(() => this.#reload(time)) },
    ];
  }

  async measure({ step, run }: RunLoad): Promise<StepSample> {
    const { server, ticksPerSecond } = this.#scene;
    forgetPeak(server.pid);
    const before = server.cpuSeconds(ticksPerSecond);
    this.#began = Date.now();
    const counts = await run();
    const microseconds = ((server.cpuSeconds(ticksPerSecond) - before) * 1e6) / counts.sent;
    // The probe writes each half second.
    await delay(1_000);
    return await this.note(step, counts, microseconds);
  }

  async #askInVain(queries: string): Promise<LoadCounts> {
    process.kill(this.#scene.upstream.pid, "SIGSTOP");
    try {
      // dnsperf may not come to its end where nothing is answered.
      const { result } = await runOpenLoop(
        { load: "udp", usesUpstream: true },
        this.#scene.server.port,
        { path: queries, lines: NEW_NAMES },
        this.#options.seconds,
        UNANSWERED_RATE,
      );
      return result;
    } finally {
      process.kill(this.#scene.upstream.pid, "SIGCONT");
    }
  }

  /** Says what there is to say of a load, or of the start. */
  async note(
    step: string,
    counts: Pick<LoadCounts, "answered" | "lost" | "seconds">,
    microseconds?: number,
  ): Promise<StepSample> {
    this.#scene.server.assertRunning();
    const { resident, peak } = processMemory(this.#scene.server.pid);
    const pauses = this.#scene.pauses.take();
    this.#steps++;
    const sample: StepSample = {
      step,
      queriesPerSecond: counts.answered / counts.seconds,
      microseconds,
      lost: counts.lost,
      peakMegabytes: peak,
      endMegabytes: resident,
      pauses: pauses?.main,
      otherPauses: pauses?.others,
    };
    const { say } = this.#options;
    say(
      `    ${step}: ${peak.toFixed(0)} MB at most, ${resident.toFixed(0)} MB after; ` +
        `${Math.round(counts.answered / counts.seconds)}/s, ${counts.lost} lost` +
        (microseconds === undefined ? "" : `, ${microseconds.toFixed(2)} µs of CPU a query`),
    );
    if (pauses !== undefined) this.#sayPauses("", pauses.main);
    if (pauses?.others !== undefined) this.#sayPauses("other threads: ", pauses.others);
    await this.#explain(step);
    return sample;
  }

  #sayPauses(whose: string, pauses: PauseSample): void {
    const { say } = this.#options;
    say(`      ${whose}${describePauses(pauses)}`);
    const longest = [...(pauses.longTurns ?? [])].sort((one, other) => other.processor - one.processor);
    if (longest.length === 0) return;
    this.#symbols ??= Symbols.read();
    for (const turn of longest.slice(0, MOST_LONG_TURNS))
      for (const line of describeLongTurn(turn, this.#began, this.#symbols)) say(`        ${line}`);
  }

  async #explain(step: string): Promise<void> {
    const { turns: folder, name } = this.#options;
    const { turns } = this.#scene;
    if (folder === undefined || turns === undefined) return;
    mkdirSync(folder, { recursive: true });
    const file = `${name}-${this.#steps}-${step.replaceAll(/[ ,]+/g, "-")}.txt`;
    writeFileSync(join(folder, file), await takeLongTurns(turns));
  }

  async #load(load: Load): Promise<LoadCounts> {
    return await runDnsperf({
      port: this.#scene.server.port,
      transport: "udp",
      length: this.#options.seconds,
      clients: 128,
      outstanding: 128,
      ...load,
    });
  }

  async #relist(): Promise<void> {
    const listed = this.#scene.api.listed(KINDS);
    this.#scene.api.forget();
    await listed;
  }

  async #reload(time: number): Promise<void> {
    const text = readFileSync(this.#scene.corefile, "utf8").replace(/\n {4}nsid .*/, "");
    writeFileSync(
      this.#scene.corefile,
      text.replace("    loadbalance\n", `    loadbalance\n    nsid bench-${time}\n`),
    );
    process.kill(this.#scene.server.pid, "SIGUSR1");
    const deadline = performance.now() + PATIENCE;
    // Keeps the end of the output: the errors of the silent upstream have pushed out the lines about the earlier
    // reload.
    while (!this.#scene.server.output.includes("Reloading complete")) {
      if (performance.now() > deadline)
        throw new Error(`the reload does not end:\n${this.#scene.server.output}`);
      await delay(10);
    }
  }
}

/** For people. */
export function describeEcho({ seconds, long, longest }: EchoTurns): string {
  const turns = long === 1 ? "one turn" : `${long} turns`;
  return `the echo server between the loads: in ${seconds.toFixed(0)} s on the processor ${turns} of more than 5 ms, the longest of ${longest.toFixed(1)} ms`;
}

function describePauses({
  turn,
  processor,
  long,
  p999,
  collection,
  collectionProcessor,
}: PauseSample): string {
  const longest = `longest turn ${processor.toFixed(1)} ms on the processor (${turn.toFixed(1)} by the clock)`;
  const ofCollections = `collection ${collectionProcessor?.toFixed(1) ?? "-"} ms (${collection.toFixed(1)})`;
  const longOnes = long === undefined ? "" : `, ${long} of more than 5 ms`;
  return `${longest}${longOnes}, p99.9 ${p999?.toFixed(2) ?? "-"} ms, ${ofCollections}`;
}
