/** A run of the benchmark: every workload against every server, in several rounds. */
import { join } from "node:path";
import { capture } from "../scripts/lib/captured-process.ts";
import { freePort } from "../test/support/free-ports.ts";
import { describeMachine, ticksPerSecond } from "./machine.ts";
import {
  type CertificateFiles,
  type ClusterFiles,
  type QueryFiles,
  writeCertificate,
  writeClusterFiles,
  writeQueryFiles,
} from "./material.ts";
import { median } from "./numbers/statistics.ts";
import type { BenchmarkOptions } from "./options.ts";
import type { AtRestSample, Configuration, Failure, PairSample, Results, Sample } from "./results.ts";
import { measureAtRest } from "./run/at-rest.ts";
import { WrongAnswer } from "./run/check-answers.ts";
import { moveToLoadCore } from "./run/cores.ts";
import { measure } from "./run/measure.ts";
import { measurePair, type Side } from "./run/measure-pair.ts";
import type { RunningServer } from "./run/running-server.ts";
import { startUpstream } from "./run/upstream.ts";
import { DNSMASQ } from "./servers/dnsmasq.ts";
import { floorServer } from "./servers/floor.ts";
import { otherServer } from "./servers/other.ts";
import { PORTOLAN, PORTOLAN_DGRAM } from "./servers/portolan.ts";
import { type Deployment, type ServerKind, ServerUnavailable } from "./servers/server.ts";
import { UNBOUND } from "./servers/unbound.ts";
import { encryptionOf } from "./workload.ts";
import { type Beside, WORKLOADS, type Workload } from "./workloads.ts";

/** Seconds of load before each measurement, so that Portolan's code is compiled. */
const LONGEST_WARM_UP = 3;

export interface Progress {
  say(line: string): void;
}

/**
 * @param root the project's folder
 * @param folder for everything that is needed meanwhile
 * @throws WrongAnswer; Error where the upstream or the quickstart does not start
 */
export async function runBenchmark(
  options: BenchmarkOptions,
  root: string,
  folder: string,
  progress: Progress,
): Promise<Results> {
  const startedAt = new Date().toISOString();
  const [command, ...args] = moveToLoadCore(process.pid);
  await capture(command, args, { cwd: "/", timeout: 10_000 });
  const machine = await describeMachine(root);
  const { available, missing } = await prepareServers(options, folder);
  for (const { name, reason } of missing) progress.say(`Without ${name}: ${reason}`);

  const workloads = WORKLOADS.filter(({ name }) => options.workloads?.includes(name) ?? true);
  const warmUpSeconds = Math.min(LONGEST_WARM_UP, options.seconds);
  progress.say(`Writing names and queries of ${workloads.length} workloads`);
  const cluster = writeClusterFiles(folder);
  const seconds = { warmUp: warmUpSeconds, measured: options.seconds };
  const queries = new Map(
    workloads.map((workload) => [workload, writeQueryFiles(folder, workload, seconds)]),
  );

  await using upstream = await startUpstream(folder);
  const run = new Run(
    {
      ...options,
      warmUpSeconds,
      ticksPerSecond: await ticksPerSecond(),
      root,
      folder,
      cluster,
      certificate: writeCertificate(folder),
      upstream,
      progress,
    },
    available.map(({ kind }) => kind),
    queries,
  );
  progress.say(`${run.steps} measurements of some ${2 * options.seconds + warmUpSeconds + 5} s each`);
  for (let round = 1; round <= options.rounds; round++) await run.round(round);
  return {
    startedAt,
    machine,
    seconds: options.seconds,
    warmUpSeconds,
    rounds: options.rounds,
    servers: available.map(({ kind, version }) => ({ name: kind.name, about: kind.about, version })),
    missingServers: missing,
    workloads: workloads.map(({ name, title, about }) => ({ name, title, about })),
    samples: run.samples,
    pairs: run.pairs,
    atRest: run.atRest,
    failures: run.failures,
    configurations: [...run.configurations.values()],
  };
}

interface RunContext extends BenchmarkOptions {
  readonly warmUpSeconds: number;
  readonly ticksPerSecond: number;
  readonly root: string;
  readonly folder: string;
  readonly cluster: ClusterFiles;
  readonly certificate: CertificateFiles;
  readonly upstream: RunningServer;
  readonly progress: Progress;
}

class Run {
  readonly samples: Sample[] = [];
  readonly pairs: PairSample[] = [];
  readonly atRest: AtRestSample[] = [];
  readonly failures: Failure[] = [];
  /** By workload and server. */
  readonly configurations: Map<string, Configuration> = new Map();
  readonly #context: RunContext;
  readonly #pairs: readonly { readonly workload: Workload; readonly kinds: readonly ServerKind[] }[];
  readonly #queries: ReadonlyMap<Workload, QueryFiles>;
  #done = 0;

  constructor(context: RunContext, kinds: readonly ServerKind[], queries: ReadonlyMap<Workload, QueryFiles>) {
    this.#context = context;
    this.#queries = queries;
    this.#pairs = [...queries.keys()].map((workload) => ({
      workload,
      kinds: kinds.filter((kind) => takesPart(kind, workload)),
    }));
  }

  get steps(): number {
    return this.#context.rounds * this.#pairs.reduce((sum, { kinds }) => sum + kinds.length, 0);
  }

  /** Each round begins with another server, so that none is always the first, or behind the same one. */
  async round(round: number): Promise<void> {
    const { folder, servers, progress } = this.#context;
    if (servers?.includes("portolan") ?? true) {
      const sample = await measureAtRest(round, join(folder, "quickstart"));
      this.atRest.push(sample);
      progress.say(`round ${round}  quickstart at rest: ${sample.residentMegabytes.toFixed(1)} MB`);
    }
    for (const { workload, kinds } of this.#pairs) {
      const first = (round - 1) % Math.max(1, kinds.length);
      for (const kind of [...kinds.slice(first), ...kinds.slice(0, first)])
        await this.#measure(round, workload, kind);
      for (const beside of kinds.includes(PORTOLAN) ? (workload.besides ?? []) : [])
        await this.#measurePair(round, workload, beside);
    }
  }

  async #measurePair(round: number, workload: Workload, beside: Beside): Promise<void> {
    const one = await this.#side(PORTOLAN, workload, "server");
    const other =
      "server" in beside
        ? await this.#side(this.#kindNamed(beside.server), workload, "server-beside")
        : await this.#side(PORTOLAN, workloadNamed(beside.workload), "server-beside");
    // A program that does not run here, or was not selected.
    if (one === undefined || other === undefined) return;
    const { progress } = this.#context;
    const line = `round ${round}  ${workload.name} beside ${"server" in beside ? beside.server : beside.workload}`;
    try {
      const sample = await measurePair({ ...this.#context, round }, one, other);
      this.pairs.push(sample);
      progress.say(`${line}: ${median(sample.ratios).toFixed(3)} × CPU/query`);
    } catch (error) {
      this.#noteFailure(round, workload, PORTOLAN, line, error);
    }
  }

  async #side(
    kind: ServerKind | undefined,
    workload: Workload | undefined,
    folder: string,
  ): Promise<Side | undefined> {
    if (kind === undefined || workload === undefined) return undefined;
    const { folder: ofRun, warmUpSeconds: warmUp, seconds: measured } = this.#context;
    const queries = this.#queries.get(workload) ?? writeQueryFiles(ofRun, workload, { warmUp, measured });
    return { kind, workload, queries, deployment: await this.#deployment(workload, folder) };
  }

  #kindNamed(server: string): ServerKind | undefined {
    return this.#pairs.flatMap(({ kinds }) => kinds).find(({ name }) => name === server);
  }

  async #measure(round: number, workload: Workload, kind: ServerKind): Promise<void> {
    const { progress } = this.#context;
    const queries = this.#queries.get(workload);
    if (queries === undefined) return;
    const deployment = await this.#deployment(workload, "server");
    this.#noteConfiguration(workload, kind, deployment);
    const line = `${++this.#done}/${this.steps}  round ${round}`;
    try {
      const sample = await measure({ ...this.#context, round, kind, workload, deployment, queries });
      this.samples.push(sample);
      progress.say(`${line}  ${describeSample(sample)}`);
    } catch (error) {
      this.#noteFailure(round, workload, kind, `${line}  ${workload.name}  ${kind.name}`, error);
    }
  }

  /** A wrong answer ends the run. A server that dies has no figures here; the others have. */
  #noteFailure(round: number, workload: Workload, kind: ServerKind, line: string, error: unknown): void {
    if (error instanceof WrongAnswer) throw error;
    const reason = anonymous(error instanceof Error ? error.message : String(error), this.#context);
    this.failures.push({ round, workload: workload.name, server: kind.name, reason });
    this.#context.progress.say(`${line}: FAILED\n${reason}`);
  }

  async #deployment(workload: Workload, name: string): Promise<Deployment> {
    const { folder, upstream, cluster } = this.#context;
    return {
      folder: join(folder, name),
      port: await freePort(),
      metricsPort: await freePort(),
      upstreamPort: upstream.port,
      cacheEntries: workload.cacheEntries,
      directives: workload.directives ?? [],
      workload: workload.name,
      cluster,
      encrypted: await this.#encryptedListener(workload),
    };
  }

  async #encryptedListener(workload: Workload): Promise<Deployment["encrypted"]> {
    const scheme = encryptionOf(workload.load);
    const { certificate } = this.#context;
    return scheme === undefined ? undefined : { scheme, port: await freePort(), ...certificate };
  }

  #noteConfiguration(workload: Workload, kind: ServerKind, deployment: Deployment): void {
    const key = `${workload.name} ${kind.name}`;
    if (this.configurations.has(key)) return;
    const { command, args, env, files } = kind.launch(deployment);
    const variables = Object.entries(env ?? {}).flatMap(([name, value]) =>
      value === undefined ? [] : [`${name}=${value}`],
    );
    const anonymousFiles = Object.entries(files).map(([name, text]) => [
      name,
      beginning(anonymous(text, this.#context)),
    ]);
    this.configurations.set(key, {
      workload: workload.name,
      server: kind.name,
      commandLine: anonymous([...variables, command, ...args].join(" "), this.#context),
      files: Object.fromEntries(anonymousFiles),
    });
  }
}

/** Enough of a configuration to see what it says; names by the thousand are left out. */
function beginning(text: string): string {
  const lines = text.split("\n");
  const rest = lines.length - MOST_LINES;
  return rest <= 0 ? text : [...lines.slice(0, MOST_LINES), `(${rest} lines more)`].join("\n");
}

const MOST_LINES = 60;

/** Removes paths of this machine, which do not belong in a published report. */
function anonymous(text: string, { root, folder }: Pick<RunContext, "root" | "folder">): string {
  return text.replaceAll(folder, "$WORK").replaceAll(process.execPath, "node").replaceAll(root, "$PORTOLAN");
}

function workloadNamed(workload: string): Workload | undefined {
  return WORKLOADS.find(({ name }) => name === workload);
}

function takesPart(kind: ServerKind, workload: Workload): boolean {
  if (kind.isEcho) return workload.hasFloor;
  if (workload.load === "quic") return kind.speaksQuic;
  if (encryptionOf(workload.load) !== undefined) return kind.speaksTls;
  return kind.speaksTcp || workload.load === "udp";
}

function describeSample(sample: Sample): string {
  const { workload, server, queriesPerSecond, cpuMicroseconds, openLoop, doubts } = sample;
  const p99 = openLoop.latency === undefined ? "-" : Math.round(openLoop.latency.p99);
  const figures = `${Math.round(queriesPerSecond)}/s  ${cpuMicroseconds.toFixed(2)} µs/query  p99 ${p99} µs`;
  return [`${workload}  ${server}: ${figures}`, ...doubts.map((doubt) => `    ! ${doubt}`)].join("\n");
}

async function prepareServers(options: BenchmarkOptions, folder: string) {
  const kinds = [
    PORTOLAN,
    PORTOLAN_DGRAM,
    UNBOUND,
    DNSMASQ,
    ...options.others.map(otherServer),
    floorServer(),
  ].filter(({ name }) => options.servers?.includes(name) ?? true);
  const available: { kind: ServerKind; version: string }[] = [];
  const missing: { name: string; reason: string }[] = [];
  for (const kind of kinds) {
    try {
      available.push({ kind, version: await kind.prepare(folder) });
    } catch (error) {
      if (!(error instanceof ServerUnavailable)) throw error;
      missing.push({ name: kind.name, reason: error.message });
    }
  }
  return { available, missing };
}
