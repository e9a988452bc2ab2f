/** The benchmark of the console: `--console`. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { capture } from "../../scripts/lib/captured-process.ts";
import { freePort } from "../../test/support/free-ports.ts";
import { describeMachine } from "../machine.ts";
import { type ClusterFiles, writeClusterFiles, writeQueryFiles } from "../material.ts";
import { median } from "../numbers/statistics.ts";
import { moveToLoadCore } from "../run/cores.ts";
import { runCapacityLoad } from "../run/load.ts";
import { RunningServer } from "../run/running-server.ts";
import { answers, startUpstream } from "../run/upstream.ts";
import { PORTOLAN } from "../servers/portolan.ts";
import { WORKLOADS, type Workload } from "../workloads.ts";
import type { ConsoleResults, PageLoads, PageSample, StreamSample } from "./console-results.ts";
import { measurePage } from "./measure-page.ts";
import { measureStream } from "./measure-stream.ts";

export interface ConsoleBenchmarkOptions {
  /** Of the load. */
  readonly seconds: number;
  /** How often the page is loaded. */
  readonly rounds: number;
  readonly say: (line: string) => void;
}

/** Names that do not fit into what the console counts: 100,000. */
const WORKLOAD = "cached-100k";
const WARM_UP = 5;
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** @throws Error where the server cannot be measured */
export async function runConsoleBenchmark(
  root: string,
  folder: string,
  { seconds, rounds, say }: ConsoleBenchmarkOptions,
): Promise<ConsoleResults> {
  const startedAt = new Date().toISOString();
  const machine = await describeMachine(root);
  const workload = WORKLOADS.find(({ name }) => name === WORKLOAD);
  if (workload === undefined) throw new RangeError(`there is no workload ${WORKLOAD}`);
  const cluster = writeClusterFiles(folder);
  const queries = writeQueryFiles(folder, workload, { warmUp: WARM_UP, measured: seconds });
  await using upstream = await startUpstream(folder);
  // Before anything is bound to a core: a browser has all of them, as that of an operator has.
  const place = { folder, cluster, upstreamPort: upstream.port };
  const page = existsSync(CHROMIUM) ? await loadPage(place, workload, rounds) : undefined;
  say(page === undefined ? `Without the page: there is no ${CHROMIUM}` : describePage(page));
  const [command, ...args] = moveToLoadCore(process.pid);
  await capture(command, args, { cwd: "/", timeout: 10_000 });
  const streams: StreamSample[] = [];
  for (const threads of [1, 2]) {
    const options = { ...place, workload, queries, threads, warmUpSeconds: WARM_UP, seconds };
    const sample = await measureStream(options);
    streams.push(sample);
    say(describeStream(sample));
  }
  return { startedAt, machine, streams, page };
}

interface Place {
  readonly folder: string;
  readonly cluster: ClusterFiles;
  readonly upstreamPort: number;
}

/** Seconds of queries before, so that the page has something to show. */
const SHOWN = 12;

async function loadPage(place: Place, workload: Workload, pairs: number): Promise<PageSample> {
  const address = `127.0.0.1:${await freePort()}`;
  const manifests = join(place.folder, "page-manifests");
  writeLargeCluster(manifests);
  await using server = RunningServer.start(PORTOLAN, {
    ...place,
    cluster: { ...place.cluster, manifests },
    folder: join(place.folder, "page-server"),
    port: await freePort(),
    metricsPort: await freePort(),
    cacheEntries: workload.cacheEntries,
    workload: workload.name,
    directives: [`console ${address}`],
  });
  await answers(server);
  const queries = writeQueryFiles(place.folder, workload, { warmUp: 1, measured: 1 });
  await runCapacityLoad(workload.load, server.port, queries["warm-up"], SHOWN);
  await delay(1_000);
  const sample = await measurePage({ url: `http://${address}/`, pairs });
  server.assertRunning();
  return sample;
}

/** The cluster of the page: 10,000 services in all, each with five endpoints. */
const NAMESPACES = 100;
const SERVICES_A_NAMESPACE = 100;
const ENDPOINTS = [1, 2, 3, 4, 5];

function writeLargeCluster(folder: string): void {
  mkdirSync(folder, { recursive: true });
  for (let namespace = 0; namespace < NAMESPACES; namespace++) {
    const objects = Array.from({ length: SERVICES_A_NAMESPACE }, (_, index) =>
      serviceWithEndpoints(`large-${namespace}`, `service-${index}`, `${namespace}.${index}`),
    );
    writeFileSync(join(folder, `large-${namespace}.yaml`), objects.join("---\n"));
  }
}

/** @param place two octets of its addresses */
function serviceWithEndpoints(namespace: string, name: string, place: string): string {
  return `apiVersion: v1
kind: Service
metadata:
  name: ${name}
  namespace: ${namespace}
spec:
  clusterIP: 10.100.${place}
  ports:
    - name: http
      port: 80
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
addressType: IPv4
metadata:
  name: ${name}-1
  namespace: ${namespace}
  labels:
    kubernetes.io/service-name: ${name}
ports:
  - name: http
    port: 80
endpoints:
${ENDPOINTS.map((number) => `  - addresses: [10.${100 + number}.${place}]\n`).join("")}`;
}

function describePage({ fromOtherSite, page, empty }: PageSample): string {
  const other =
    fromOtherSite &&
    `page from a tab with another page: ${describeLoads(fromOtherSite)}; goal 100 ms for load\n`;
  return `${other ?? ""}page from an empty tab: ${describeLoads({ page, empty })}`;
}

function describeLoads({ page, empty }: PageLoads): string {
  const of = (time: "shown" | "loaded" | "live"): string => {
    const taken = median(page.map((each) => each[time] ?? Number.NaN));
    const more = page.map((each, pair) => (each[time] ?? Number.NaN) - (empty[pair]?.[time] ?? Number.NaN));
    return `${taken.toFixed(0)} ms${time === "live" ? "" : ` (${median(more).toFixed(0)} more than an empty one)`}`;
  };
  return `loaded after ${of("loaded")}, shown after ${of("shown")}, live after ${of("live")}; medians of ${page.length}`;
}

function describeStream(sample: StreamSample): string {
  const { threads, queriesPerSecond, megabytes, finished, told, missed, droppedRows } = sample;
  const middle = megabytes[Math.floor(megabytes.length / 2)] ?? Number.NaN;
  const [first = Number.NaN, last = Number.NaN] = [megabytes[0], megabytes.at(-1)];
  return (
    `stream, ${threads} thread${threads === 1 ? "" : "s"}: ${Math.round(queriesPerSecond)}/s; ` +
    `${first.toFixed(1)}, ${middle.toFixed(1)}, ${last.toFixed(1)} MB at the start, in the middle, at the end; ` +
    `${told} told + ${missed} missed of ${finished} finished; ${droppedRows} rows dropped`
  );
}
