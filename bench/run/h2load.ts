/** h2load: DNS over HTTPS as fast as the server answers. dnsperf takes one reply of each record of TLS (its issue 240) and would lose most. */
import { readFileSync, writeFileSync } from "node:fs";
import { capture } from "../../scripts/lib/captured-process.ts";
import type { LoadCounts } from "../load/load-result.ts";
import { QueryPool } from "../load/query-pool.ts";
import { onLoadCore } from "./cores.ts";

export interface H2loadOptions {
  readonly port: number;
  /** A file with lines of name and type. */
  readonly queries: string;
  readonly seconds: number;
  readonly connections: number;
  /** Requests under way on each. */
  readonly streams: number;
}

/** Requests that are asked for in turn: h2load makes the header of each beforehand. */
const MOST_URIS = 20_000;

/** @throws Error where h2load fails or says something that cannot be read */
export async function runH2load(options: H2loadOptions): Promise<LoadCounts> {
  const { port, queries, seconds, connections, streams } = options;
  const uris = `${queries}.uris`;
  writeFileSync(uris, urisOf(queries, port));
  const args = [
    ...["-i", uris, "-c", `${connections}`, "-m", `${streams}`, "-t", "1", "-D", `${seconds}`],
    ...["-H", "accept: application/dns-message"],
  ];
  const [command, ...pinned] = onLoadCore("h2load", args);
  const { code, signal, output } = await capture(command, pinned, {
    cwd: "/",
    timeout: (seconds + 30) * 1000,
  });
  if (code !== 0) throw new Error(`h2load ended with ${signal ?? code}:\n${output}`);
  return { ...parseH2load(output), seconds };
}

/** @param output what h2load prints, its statistics at the end */
export function parseH2load(output: string): Omit<LoadCounts, "seconds"> {
  const requests =
    /^requests: (\d+) total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored/m.exec(
      output,
    );
  const others = /^status codes: \d+ 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx/m.exec(output);
  if (requests === null || others === null) throw new Error(`h2load did not say what came back:\n${output}`);
  const [, , done = "0", succeeded = "0", failed = "0", errored = "0"] = requests;
  const refused = others.slice(1).reduce((sum, count) => sum + Number(count), 0);
  return {
    sent: Number(done),
    answered: Number(succeeded),
    lost: Number(failed) + Number(errored),
    // It knows status codes alone: what is answered is looked at before the load.
    rcodes: refused > 0 ? { REFUSED: refused } : {},
  };
}

function urisOf(path: string, port: number): string {
  const lines = readFileSync(path, "latin1").split("\n").slice(0, MOST_URIS).join("\n");
  const pool = QueryPool.parse(lines);
  const uris: string[] = [];
  for (let index = 0; index < pool.size; index++) {
    const text = Buffer.from(pool.query(index)).toString("base64url");
    uris.push(`https://127.0.0.1:${port}/dns-query?dns=${text}`);
  }
  return `${uris.join("\n")}\n`;
}
