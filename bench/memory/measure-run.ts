/** Portolan with the usual Corefile beside a live cluster, through one load after the other: what it takes at most, and how long it pauses. */
import { readFileSync, writeFileSync } from "node:fs";
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
import type { RunSample, StepSample } from "./memory-results.ts";
import { PauseLog, pauseEnvironment } from "./pauses.ts";
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
  const live = await LiveServer.prepare(join(folder, name), liveApi, {
    upstreamPort: upstream.port,
    cache: true,
    pods: false,
    env: pauseEnvironment(pauses),
    directives: threads > 1 ? [`multisocket ${threads}`] : [],
  });
  const listed = liveApi.api.listed(KINDS);
  await using server = live.start();
  await live.becomesReady(server);
  await listed;
  await delay(REST * 1000);
  const restMegabytes = processMemory(server.pid).resident;
  const run = new Run(options, server, upstream, liveApi.api, live.corefile, new PauseLog(pauses));
  for (let time = 1; time <= options.times; time++) await run.loads(time);
  server.assertRunning();
  const peakMegabytes = Math.max(restMegabytes, ...run.steps.map((step) => step.peakMegabytes));
  return { name, about, restMegabytes, peakMegabytes, steps: run.steps };
}

type Load = Pick<DnsperfOptions, "queries"> & Partial<DnsperfOptions>;

class Run {
  readonly steps: StepSample[] = [];
  readonly #options: RunOptions;
  readonly #server: RunningServer;
  readonly #upstream: RunningServer;
  readonly #api: RunningApi;
  readonly #corefile: string;
  readonly #pauses: PauseLog;

  constructor(
    options: RunOptions,
    server: RunningServer,
    upstream: RunningServer,
    api: RunningApi,
    corefile: string,
    pauses: PauseLog,
  ) {
    this.#options = options;
    this.#server = server;
    this.#upstream = upstream;
    this.#api = api;
    this.#corefile = corefile;
    this.#pauses = pauses;
    // What the start took is told of by itself.
    this.#pauses.take();
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
      process.kill(this.#upstream.pid, "SIGSTOP");
      try {
        // dnsperf may not come to its end where nothing is answered.
        const { result } = await runOpenLoop(
          { load: "udp", usesUpstream: true },
          this.#server.port,
          { path: unanswered, lines: NEW_NAMES },
          this.#options.seconds,
          UNANSWERED_RATE,
        );
        return result;
      } finally {
        process.kill(this.#upstream.pid, "SIGCONT");
      }
    });
    await this.#step("reload under load", () =>
      Promise.all([this.#load({ queries: mixed }), this.#reload(time)]).then(([counts]) => counts),
    );
  }

  async #step(step: string, run: () => Promise<LoadCounts>): Promise<void> {
    const { pid } = this.#server;
    forgetPeak(pid);
    const counts = await run();
    // The probe writes each half second.
    await delay(1_000);
    this.#server.assertRunning();
    const { resident, peak } = processMemory(pid);
    const pauses = this.#pauses.take();
    this.steps.push({
      step,
      queriesPerSecond: counts.answered / counts.seconds,
      lost: counts.lost,
      peakMegabytes: peak,
      endMegabytes: resident,
      pauses,
    });
    this.#options.say(
      `    ${step}: ${peak.toFixed(0)} MB at most, ${resident.toFixed(0)} MB after; longest turn ` +
        `${pauses?.turn.toFixed(1) ?? "-"} ms (${pauses?.processor.toFixed(1) ?? "-"} on the processor), ` +
        `collection ${pauses?.collection.toFixed(1) ?? "-"} ms; ` +
        `${Math.round(counts.answered / counts.seconds)}/s, ${counts.lost} lost`,
    );
  }

  async #load(load: Load): Promise<LoadCounts> {
    return await runDnsperf({
      port: this.#server.port,
      transport: "udp",
      length: this.#options.seconds,
      clients: 128,
      outstanding: 128,
      ...load,
    });
  }

  async #relist(): Promise<void> {
    const listed = this.#api.listed(KINDS);
    this.#api.forget();
    await listed;
  }

  async #reload(time: number): Promise<void> {
    const text = readFileSync(this.#corefile, "utf8").replace(/\n {4}nsid .*/, "");
    writeFileSync(
      this.#corefile,
      text.replace("    loadbalance\n", `    loadbalance\n    nsid bench-${time}\n`),
    );
    process.kill(this.#server.pid, "SIGUSR1");
    const deadline = performance.now() + PATIENCE;
    // The end of what it prints is kept: the errors of the silent upstream have driven out what it said of the reload before.
    while (!this.#server.output.includes("Reloading complete")) {
      if (performance.now() > deadline) throw new Error(`the reload does not end:\n${this.#server.output}`);
      await delay(10);
    }
  }
}
