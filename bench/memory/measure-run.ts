/** Portolan with the usual Corefile beside a live cluster, through one load after the other: what it takes at most, and how long it pauses. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { ClusterSize } from "../cluster/cluster-shape.ts";
import { LiveServer, startApi } from "../cluster/live-server.ts";
import { forgetPeak, processMemory } from "../cluster/process-memory.ts";
import type { RunningApi } from "../cluster/running-api.ts";
import type { LoadCounts } from "../load/load-result.ts";
import { type DnsperfOptions, runDnsperf } from "../run/dnsperf.ts";
import { runOpenLoop } from "../run/load.ts";
import type { RunningServer } from "../run/running-server.ts";
import { startUpstream } from "../run/upstream.ts";
import { takeLongTurns } from "./long-turns.ts";
import type { PauseSample, RunSample, StepSample } from "./memory-results.ts";
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
  /** A folder for what ran in the longest turns of each load. It is sampled only where somebody wants to know. */
  readonly turns: string | undefined;
  readonly say: (line: string) => void;
}

const NEW_NAMES = 300_000;
/** Queries a second for an upstream that says nothing. */
const UNANSWERED_RATE = 2_000;
/** Services, EndpointSlices, namespaces. */
const KINDS = 3;
/** Seconds after a list or a reload until memory is read. */
const REST = 5;
/** Milliseconds that a step may take to show itself in what the server prints. */
const PATIENCE = 60_000;

export async function measureRun(options: RunOptions): Promise<RunSample> {
  const { name, about, size, folder, threads } = options;
  await using upstream = await startUpstream(folder);
  await using liveApi = await startApi(size, true);
  const pauses = join(folder, `${name}.pauses`);
  const turns = options.turns === undefined ? undefined : join(folder, `${name}.turns`);
  const processorClock = await compileProcessorClock(folder);
  const live = await LiveServer.prepare(join(folder, name), liveApi, {
    upstreamPort: upstream.port,
    cache: true,
    pods: false,
    env: pauseEnvironment({ pauses, processorClock, turns }),
    directives: threads > 1 ? [`multisocket ${threads}`] : [],
  });
  const listed = liveApi.api.listed(KINDS);
  await using server = live.start();
  await live.becomesReady(server);
  await listed;
  await delay(REST * 1000);
  const restMegabytes = processMemory(server.pid).resident;
  const run = new Run(options, {
    server,
    upstream,
    api: liveApi.api,
    corefile: live.corefile,
    pauses: new PauseLog(pauses),
    turns,
  });
  await run.start();
  for (let time = 1; time <= options.times; time++) await run.loads(time);
  server.assertRunning();
  const peakMegabytes = Math.max(restMegabytes, ...run.steps.map((step) => step.peakMegabytes));
  return { name, about, restMegabytes, peakMegabytes, steps: run.steps };
}

type Load = Pick<DnsperfOptions, "queries"> & Partial<DnsperfOptions>;

interface Scene {
  readonly server: RunningServer;
  readonly upstream: RunningServer;
  readonly api: RunningApi;
  readonly corefile: string;
  readonly pauses: PauseLog;
  /** Where the server writes down its longest turns, where they are to be explained. */
  readonly turns: string | undefined;
}

class Run {
  readonly steps: StepSample[] = [];
  readonly #options: RunOptions;
  readonly #scene: Scene;

  constructor(options: RunOptions, scene: Scene) {
    this.#options = options;
    this.#scene = scene;
  }

  /** Notes what the start took. */
  start(): Promise<void> {
    return this.#note("start", { answered: 0, lost: 0, seconds: 1 });
  }

  async loads(time: number): Promise<void> {
    const { folder, size } = this.#options;
    const write = (name: string, queries: Iterable<string>): string => writeQueries(folder, name, queries);
    const services = write("services", serviceNames(size));
    const paths = write("search-paths", searchPaths(size, 3_000));
    const mixed = write("mixed", [...serviceNames(size), ...externalNames(5_000)]);
    await this.#step("cluster names", () => this.#load({ queries: services }));
    await this.#step("search paths", () => this.#load({ queries: paths }));
    const forwarded = write("forwarded", newNames(`new-${time}`, NEW_NAMES));
    await this.#step("300,000 forwarded names", () => this.#load({ queries: forwarded }));
    const overTcp = write("forwarded-tcp", newNames(`tcp-${time}`, NEW_NAMES));
    await this.#step("300,000 forwarded names over TCP", () =>
      this.#load({ queries: overTcp, transport: "tcp", clients: 16, outstanding: 256 }),
    );
    await this.#step("listed anew under load", () =>
      Promise.all([this.#load({ queries: mixed }), this.#relist()]).then(([counts]) => counts),
    );
    const unanswered = write("unanswered", newNames(`dead-${time}`, NEW_NAMES));
    await this.#step("upstream silent", async () => {
      process.kill(this.#scene.upstream.pid, "SIGSTOP");
      try {
        // dnsperf may not come to its end where nothing is answered.
        const { result } = await runOpenLoop(
          { load: "udp", usesUpstream: true },
          this.#scene.server.port,
          { path: unanswered, lines: NEW_NAMES },
          this.#options.seconds,
          UNANSWERED_RATE,
        );
        return result;
      } finally {
        process.kill(this.#scene.upstream.pid, "SIGCONT");
      }
    });
    await this.#step("reload under load", () =>
      Promise.all([this.#load({ queries: mixed }), this.#reload(time)]).then(([counts]) => counts),
    );
  }

  async #step(step: string, run: () => Promise<LoadCounts>): Promise<void> {
    forgetPeak(this.#scene.server.pid);
    const counts = await run();
    // The probe writes each half second.
    await delay(1_000);
    await this.#note(step, counts);
  }

  async #note(step: string, counts: Pick<LoadCounts, "answered" | "lost" | "seconds">): Promise<void> {
    this.#scene.server.assertRunning();
    const { resident, peak } = processMemory(this.#scene.server.pid);
    const pauses = this.#scene.pauses.take();
    this.steps.push({
      step,
      queriesPerSecond: counts.answered / counts.seconds,
      lost: counts.lost,
      peakMegabytes: peak,
      endMegabytes: resident,
      pauses: pauses?.main,
      otherPauses: pauses?.others,
    });
    const { say } = this.#options;
    say(
      `    ${step}: ${peak.toFixed(0)} MB at most, ${resident.toFixed(0)} MB after; ` +
        `${Math.round(counts.answered / counts.seconds)}/s, ${counts.lost} lost`,
    );
    if (pauses !== undefined) say(`      ${describePauses(pauses.main)}`);
    if (pauses?.others !== undefined) say(`      other threads: ${describePauses(pauses.others)}`);
    await this.#explain(step);
  }

  async #explain(step: string): Promise<void> {
    const { turns: folder, name } = this.#options;
    const { turns } = this.#scene;
    if (folder === undefined || turns === undefined) return;
    mkdirSync(folder, { recursive: true });
    const file = `${name}-${this.steps.length}-${step.replaceAll(/[ ,]+/g, "-")}.txt`;
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
    // The end of what it prints is kept: the errors of the silent upstream have driven out what it said of the reload before.
    while (!this.#scene.server.output.includes("Reloading complete")) {
      if (performance.now() > deadline)
        throw new Error(`the reload does not end:\n${this.#scene.server.output}`);
      await delay(10);
    }
  }
}

function describePauses({ turn, processor, p999, collection, collectionProcessor }: PauseSample): string {
  const longest = `longest turn ${processor.toFixed(1)} ms on the processor (${turn.toFixed(1)} by the clock)`;
  const ofCollections = `collection ${collectionProcessor?.toFixed(1) ?? "-"} ms (${collection.toFixed(1)})`;
  return `${longest}, p99.9 ${p999?.toFixed(2) ?? "-"} ms, ${ofCollections}`;
}
