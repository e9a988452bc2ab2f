/** The benchmark of a large zone: `--zones`. */
import { join } from "node:path";
import { capture } from "../../scripts/lib/captured-process.ts";
import { decodeMessage } from "../../src/dns/index.ts";
import { freePort } from "../../test/support/free-ports.ts";
import { describeMachine, ticksPerSecond } from "../machine.ts";
import { ask } from "../run/ask.ts";
import { moveToLoadCore } from "../run/cores.ts";
import { runDnsperf } from "../run/dnsperf.ts";
import { RunningServer } from "../run/running-server.ts";
import { ServerUnavailable } from "../servers/server.ts";
import { ZONE_SERVERS, type ZoneServerKind } from "../servers/zone-servers.ts";
import { lastName, writeQuestions, writeZone, ZONE } from "./large-zone.ts";
import type { ZoneResults, ZoneSample } from "./zone-results.ts";

const RECORDS = 1_000_000;
/** Seconds of load before the measured one, so that Portolan's code is compiled. */
const LONGEST_WARM_UP = 3;
/** Milliseconds. */
const LOAD_PATIENCE = 120_000;
const ATTEMPT = 100;

export interface ZoneBenchmarkOptions {
  readonly seconds: number;
  readonly rounds: number;
  /** Fewer in a test. */
  readonly records?: number;
  readonly say: (line: string) => void;
}

/** @throws Error where a server ends, answers wrongly or does not load the zone in two minutes */
export async function runZoneBenchmark(
  root: string,
  folder: string,
  { seconds, rounds, records = RECORDS, say }: ZoneBenchmarkOptions,
): Promise<ZoneResults> {
  const startedAt = new Date().toISOString();
  const [command, ...args] = moveToLoadCore(process.pid);
  await capture(command, args, { cwd: "/", timeout: 10_000 });
  const machine = await describeMachine(root);
  const ticks = await ticksPerSecond();
  say(`Writing a zone of ${records} records`);
  const [zoneFile, questions] = [join(folder, "zone"), join(folder, "questions")];
  writeZone(zoneFile, records);
  writeQuestions(questions, records);
  const { kinds, servers, missingServers } = await available();
  for (const { name, reason } of missingServers) say(`Without ${name}: ${reason}`);
  const samples: ZoneSample[] = [];
  for (let round = 1; round <= rounds; round++) {
    for (let turn = 0; turn < kinds.length; turn++) {
      // Each round begins with another server.
      const kind = kinds[(turn + round - 1) % kinds.length];
      if (kind === undefined) continue;
      const place = { folder: join(folder, "server"), port: await freePort(), zone: ZONE, zoneFile };
      const sample = await measure({ kind, place, round, records, questions, seconds, ticks });
      samples.push(sample);
      say(
        `round ${round}  ${kind.name}: loaded in ${sample.loadSeconds.toFixed(1)} s, ${sample.restMegabytes.toFixed(0)} MB, ${sample.cpuMicroseconds.toFixed(2)} µs/query`,
      );
    }
  }
  return { startedAt, machine, records, seconds, servers, missingServers, samples };
}

async function available() {
  const kinds: ZoneServerKind[] = [];
  const servers: { name: string; version: string }[] = [];
  const missingServers: { name: string; reason: string }[] = [];
  for (const kind of ZONE_SERVERS) {
    try {
      servers.push({ name: kind.name, version: await kind.version() });
      kinds.push(kind);
    } catch (error) {
      if (!(error instanceof ServerUnavailable)) throw error;
      missingServers.push({ name: kind.name, reason: error.message });
    }
  }
  return { kinds, servers, missingServers };
}

interface Measurement {
  readonly kind: ZoneServerKind;
  readonly place: Parameters<ZoneServerKind["launch"]>[0];
  readonly round: number;
  readonly records: number;
  readonly questions: string;
  readonly seconds: number;
  readonly ticks: number;
}

async function measure(measurement: Measurement): Promise<ZoneSample> {
  const { kind, place, round, records, questions, seconds, ticks } = measurement;
  const begun = performance.now();
  await using server = RunningServer.startMeasured(kind.name, kind.launch(place), place);
  await untilLoaded(server, lastName(records));
  const loadSeconds = (performance.now() - begun) / 1_000;
  const loadCpuSeconds = server.cpuSeconds(ticks);
  const restMegabytes = server.residentMegabytes;
  const load = {
    port: place.port,
    queries: questions,
    transport: "udp",
    clients: 20,
    outstanding: 200,
  } as const;
  await runDnsperf({ ...load, length: Math.min(LONGEST_WARM_UP, seconds) });
  const before = server.cpuSeconds(ticks);
  const counts = await runDnsperf({ ...load, length: seconds });
  const cpu = server.cpuSeconds(ticks) - before;
  server.assertRunning();
  const strange = Object.keys(counts.rcodes).filter((rcode) => rcode !== "NOERROR" && rcode !== "NXDOMAIN");
  if (strange.length > 0) throw new Error(`${kind.name} answered ${strange.join(", ")}`);
  return {
    round,
    server: kind.name,
    loadSeconds,
    loadCpuSeconds,
    restMegabytes,
    endMegabytes: server.residentMegabytes,
    queriesPerSecond: counts.answered / counts.seconds,
    cpuMicroseconds: (cpu / counts.answered) * 1e6,
    lost: counts.lost,
  };
}

async function untilLoaded(server: RunningServer, name: string): Promise<void> {
  const deadline = performance.now() + LOAD_PATIENCE;
  while (performance.now() < deadline) {
    server.assertRunning();
    const begun = performance.now();
    const octets = await ask({ port: server.port, transport: "udp", name, type: "A", patience: ATTEMPT });
    if (octets !== undefined && decodeMessage(octets).answer.length > 0) return;
    // A closed port refuses at once.
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, 20 - (performance.now() - begun))));
  }
  throw new Error(
    `${server.kind.name} has not loaded the zone in ${LOAD_PATIENCE / 1_000} s:\n${server.output}`,
  );
}
