/** dnsperf: the load as fast as the server answers. */
import { capture } from "../../scripts/lib/captured-process.ts";
import type { LoadCounts } from "../load/load-result.ts";
import { onLoadCore } from "./cores.ts";

export interface DnsperfOptions {
  readonly port: number;
  /** A file with lines of name and type. */
  readonly queries: string;
  readonly transport: "udp" | "tcp" | "dot";
  /** Seconds, or "once" for one run through the file. */
  readonly length: number | "once";
  /** Sockets that the queries come from. */
  readonly clients: number;
  /** Queries without answer at a time, of all clients together. */
  readonly outstanding: number;
  /** Queries per second, if not as many as are answered. */
  readonly rate?: number;
}

/** Seconds that dnsperf waits for an answer. */
const TIMEOUT = 2;
const LONGEST_FILL = 300;
/** Seconds from the end of a load until dnsperf has ended, where others use the processor. */
const LONGEST_END = 120;

/** @throws Error where dnsperf fails or says something that cannot be read */
export async function runDnsperf(options: DnsperfOptions): Promise<LoadCounts> {
  const { port, queries, transport, length, clients, outstanding, rate } = options;
  const limit = length === "once" ? ["-n", "1"] : ["-l", `${length}`];
  const args = [
    ...["-s", "127.0.0.1", "-p", `${port}`, "-m", transport, "-d", queries, ...limit],
    ...["-c", `${clients}`, "-q", `${outstanding}`, "-T", "1", "-t", `${TIMEOUT}`],
    ...(rate === undefined ? [] : ["-Q", `${rate}`]),
    ...["-O", "suppress=timeouts,unexpected"],
  ];
  const seconds = length === "once" ? LONGEST_FILL : length + LONGEST_END;
  const [command, ...pinned] = onLoadCore("dnsperf", args);
  const { code, signal, output } = await capture(command, pinned, { cwd: "/", timeout: seconds * 1000 });
  if (code !== 0) throw new Error(`dnsperf ended with ${signal ?? code}:\n${output}`);
  return parseDnsperf(output);
}

/** @param output what dnsperf prints, its statistics at the end */
export function parseDnsperf(output: string): LoadCounts {
  const number = (label: string): number => {
    const match = new RegExp(`^ *${label}: +([0-9.]+)`, "m").exec(output);
    if (match === null) throw new Error(`dnsperf did not say "${label}":\n${output}`);
    return Number(match[1]);
  };
  const rcodes = /^ *Response codes: +(.*)$/m.exec(output)?.[1] ?? "";
  return {
    sent: number("Queries sent"),
    answered: number("Queries completed"),
    lost: number("Queries lost"),
    seconds: number("Run time \\(s\\)"),
    rcodes: Object.fromEntries(
      [...rcodes.matchAll(/([A-Z0-9]+) (\d+) \(/g)].map(([, name = "", count]) => [name, Number(count)]),
    ),
  };
}

/** @returns such as "2.10.0" */
export async function dnsperfVersion(): Promise<string> {
  const { output } = await capture("dnsperf", ["-h"], { cwd: "/", timeout: 10_000 });
  return /^Version (\S+)/m.exec(output)?.[1] ?? "unknown";
}
