/** The memory of a cache with this many names, beside the same names in another server. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../../test/support/free-ports.ts";
import type { ClusterFiles } from "../material.ts";
import { runDnsperf } from "../run/dnsperf.ts";
import { RunningServer } from "../run/running-server.ts";
import { answers } from "../run/upstream.ts";
import type { ServerKind } from "../servers/server.ts";
import type { NamesSample } from "./memory-results.ts";

export interface NamesOptions {
  readonly kind: ServerKind;
  readonly names: number;
  /** A file with as many queries. */
  readonly queries: string;
  readonly folder: string;
  readonly cluster: ClusterFiles;
  readonly upstreamPort: number;
}

/** Milliseconds. */
const LATER = 30_000;
/** Lost queries are repeated this many times. */
const ATTEMPTS = 3;

/** @throws Error where names are lost again and again */
export async function measureNames(options: NamesOptions): Promise<NamesSample> {
  const { kind, names, queries, cluster, upstreamPort } = options;
  const folder = join(options.folder, `${kind.name}-${names}`);
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  await using server = RunningServer.start(kind, {
    folder,
    port,
    metricsPort: await freePort(),
    upstreamPort,
    // And room for what is asked to see whether it answers.
    cacheEntries: names + 100,
    cluster,
    workload: "memory",
  });
  const fill = { port, queries, transport: "udp", length: "once", clients: 1, outstanding: 64 } as const;
  await answers(server);
  for (let attempt = 1; (await runDnsperf(fill)).lost > 0; attempt++)
    if (attempt === ATTEMPTS)
      throw new Error(`${kind.name} loses queries while ${names} names are asked for`);
  server.assertRunning();
  const megabytes = server.residentMegabytes;
  await delay(LATER);
  server.assertRunning();
  return { server: kind.name, names, megabytes, laterMegabytes: server.residentMegabytes };
}
