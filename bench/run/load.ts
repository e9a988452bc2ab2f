/** The two loads of each measurement: as much as the server answers, and half of that at random times. */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { capture } from "../../scripts/lib/captured-process.ts";
import type { LoadCounts, TimedLoad } from "../load/load-result.ts";
import type { QueryFile } from "../material.ts";
import type { LoadShape, Workload } from "../workloads.ts";
import { onLoadCore } from "./cores.ts";
import { runDnsperf } from "./dnsperf.ts";
import { runH2load } from "./h2load.ts";

/** Sockets and queries under way. 128 UDP sockets, so that a server that spreads flows over threads can do so. */
const DNSPERF_LOAD = {
  udp: { clients: 128, outstanding: 128 },
  "tcp-pipelined": { clients: 16, outstanding: 256 },
  "tls-pipelined": { clients: 16, outstanding: 256 },
} as const;
const DNSPERF_MODE = { udp: "udp", "tcp-pipelined": "tcp", "tls-pipelined": "dot" } as const;
const HTTP2_LOAD = { connections: 16, streams: 16 };
const PIPELINED_CONNECTIONS = 16;
const QUIC_CONNECTIONS = 8;
const CONNECTIONS_AT_A_TIME = 32;

const generator = join(dirname(dirname(fileURLToPath(import.meta.url))), "load", "generate.ts");

export interface Load<T extends LoadCounts> {
  readonly result: T;
  /** Answers that the server gave in all, those to the generator's own warm-up included. */
  readonly answered: number;
}

/**
 * Queries as fast as the server answers.
 * @param authority the certificate file of the authority that issued the server's certificate, for QUIC
 */
export async function runCapacityLoad(
  shape: LoadShape,
  port: number,
  queries: QueryFile,
  seconds: number,
  authority = "",
): Promise<Load<LoadCounts>> {
  if (shape === "quic") return generate(port, queries, seconds, quicOptions(authority));
  // dnsperf looks at new connections every 100 ms only.
  if (shape === "tcp-one-query" || shape === "tls-one-query") {
    return generate(port, queries, seconds, [
      "--one-query-a-connection",
      ...["--transport", shape === "tls-one-query" ? "tls" : "tcp"],
      ...["--connections", `${CONNECTIONS_AT_A_TIME}`],
    ]);
  }
  if (shape === "https") {
    const result = await runH2load({ ...HTTP2_LOAD, port, queries: queries.path, seconds });
    return { result, answered: result.answered };
  }
  const result = await runDnsperf({
    ...DNSPERF_LOAD[shape],
    port,
    queries: queries.path,
    transport: DNSPERF_MODE[shape],
    length: seconds,
  });
  return { result, answered: result.answered };
}

/** Asks each query of a file once, over UDP, so slowly that no server loses any. */
export async function runFill(port: number, queries: QueryFile): Promise<void> {
  if (queries.lines === 0) return;
  const fill = {
    port,
    queries: queries.path,
    transport: "udp",
    length: "once",
    clients: 1,
    outstanding: 64,
  } as const;
  for (let attempt = 1; ; attempt++) {
    const { lost } = await runDnsperf(fill);
    if (lost === 0) return;
    if (attempt === 3)
      throw new Error(`${lost} of ${queries.lines} names were lost while the cache was filled`);
  }
}

/** Asks at a rate, at random times, and takes the time of each answer. */
export async function runOpenLoop(
  workload: Pick<Workload, "load" | "usesUpstream">,
  port: number,
  queries: QueryFile,
  seconds: number,
  rate: number,
  authority = "",
): Promise<Load<TimedLoad>> {
  const options = {
    udp: workload.usesUpstream ? ["--sleep"] : [],
    "tcp-pipelined": ["--transport", "tcp", "--connections", `${PIPELINED_CONNECTIONS}`],
    "tcp-one-query": ["--one-query-a-connection", "--transport", "tcp"],
    "tls-pipelined": ["--transport", "tls", "--connections", `${PIPELINED_CONNECTIONS}`],
    "tls-one-query": ["--one-query-a-connection", "--transport", "tls"],
    https: ["--transport", "https", "--connections", `${HTTP2_LOAD.connections}`],
    quic: quicOptions(authority),
  }[workload.load];
  return generate(port, queries, seconds, ["--rate", `${rate}`, ...options]);
}

function quicOptions(authority: string): string[] {
  return ["--transport", "quic", "--connections", `${QUIC_CONNECTIONS}`, "--authority", authority];
}

async function generate(
  port: number,
  queries: QueryFile,
  seconds: number,
  options: readonly string[],
): Promise<Load<TimedLoad>> {
  const common = ["--port", `${port}`, "--queries", queries.path, "--seconds", `${seconds}`];
  const [command, ...args] = onLoadCore(process.execPath, [generator, ...common, ...options]);
  const { code, signal, output } = await capture(command, args, { cwd: "/", timeout: (seconds + 60) * 1000 });
  if (code !== 0) throw new Error(`the load generator ended with ${signal ?? code}:\n${output}`);
  const { warmUp, measured }: { warmUp: TimedLoad; measured: TimedLoad } = JSON.parse(output);
  return { result: measured, answered: warmUp.answered + measured.answered };
}
