/** `dnsperf`: many queries, and none forgotten. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Server } from "./dns-client.ts";
import { run } from "./program.ts";

export interface LoadOptions {
  /** Lines of `name type`, asked in turn. */
  readonly questions: readonly string[];
  readonly seconds: number;
  readonly queriesPerSecond?: number;
  readonly transport?: "udp" | "tcp" | "dot" | "doh";
  /** Of DNS over HTTPS. Default GET. */
  readonly method?: "GET" | "POST";
  /** How many sockets or connections send. */
  readonly clients?: number;
  /** How many queries of all clients may wait for their replies. Default 100. */
  readonly outstanding?: number;
}

export interface LoadReport {
  readonly sent: number;
  readonly completed: number;
  readonly lost: number;
  /** How many replies had each rcode. */
  readonly rcodes: ReadonlyMap<string, number>;
  /** Seconds. */
  readonly averageLatency: number;
  readonly maxLatency: number;
  /** All of the output. */
  readonly text: string;
}

export async function dnsperf({ address, port }: Server, options: LoadOptions): Promise<LoadReport> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-dnsperf-"));
  try {
    const questions = join(folder, "questions");
    writeFileSync(questions, `${options.questions.join("\n")}\n`);
    const rate = options.queriesPerSecond;
    const args = [
      ...["-s", address, "-p", String(port), "-d", questions, "-l", String(options.seconds)],
      ...["-m", options.transport ?? "udp", "-c", String(options.clients ?? 1)],
      ...(rate === undefined ? [] : ["-Q", String(rate)]),
      ...(options.outstanding === undefined ? [] : ["-q", String(options.outstanding)]),
      ...(options.transport === "doh"
        ? ["-O", `doh-uri=https://${address}/dns-query`, "-O", `doh-method=${options.method ?? "GET"}`]
        : []),
    ];
    const patience = 1_000 * options.seconds + 30_000;
    const { output, errors } = await run("dnsperf", args, { patience });
    return parseLoadReport(`${output}${errors}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export function parseLoadReport(text: string): LoadReport {
  const number = (pattern: RegExp): number => {
    const value = pattern.exec(text)?.[1];
    if (value === undefined) throw new Error(`not what dnsperf prints:\n${text}`);
    return Number(value);
  };
  const rcodes = /Response codes: (.*)$/m.exec(text)?.[1] ?? "";
  return {
    sent: number(/Queries sent: +(\d+)/),
    completed: number(/Queries completed: +(\d+)/),
    lost: number(/Queries lost: +(\d+)/),
    rcodes: new Map(
      Array.from(rcodes.matchAll(/(\w+) (\d+) \(/g), ([, name = "", count]) => [name, Number(count)]),
    ),
    averageLatency: number(/Average Latency \(s\): +([\d.]+)/),
    maxLatency: number(/Average Latency \(s\): .*max ([\d.]+)\)/),
    text,
  };
}
