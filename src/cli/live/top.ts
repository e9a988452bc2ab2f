/** `portolan top`: shows rates and the most frequent names and clients, updated every second. */

import type { NowView, TopRow, WhoView } from "../../console/api-types.ts";
import { isObject } from "../../kubernetes/objects/json.ts";
import { escapeControls } from "../../lib/logging/log.ts";
import { countOf } from "../../lib/text/count-of.ts";
import { FlagError } from "../flag-table.ts";
import { ConsoleClient, unlessLost } from "./console-client.ts";
import { TOP_FLAGS } from "./flags.ts";
import { note, runLive } from "./run-live.ts";
import { steadyEvents } from "./steady-events.ts";

/** @returns the exit code: 2 if the server cannot be asked */
export function top(argv: readonly string[]): Promise<number> {
  return runLive(argv, TOP_FLAGS, "portolan top [FLAGS]", async (flags, signal) => {
    const client = new ConsoleClient(flags);
    let printed = 0;
    const path = "/api/v1/events?streams=now";
    for await (const event of steadyEvents(client, path, { signal, patience: flags.reconnect, note })) {
      if (event === "again" || event.name !== "now") continue;
      const now = event.data;
      const rows = Math.max(5, Math.floor(((process.stdout.rows ?? 40) - 10) / 2));
      const who = await client.get(`/api/v1/who?rows=${Math.min(rows, 100)}`).catch(unlessLost);
      if (who === undefined) continue;
      if (!isNow(now) || !isWho(who))
        throw new FlagError(
          `-server ${flags.server}: answers in the format of another version of Portolan`,
          2,
          false,
        );
      const { isTTY, columns } = process.stdout;
      const text = isTTY ? `\u001b[H\u001b[2J${cut(topText(now, who), columns)}` : topText(now, who);
      process.stdout.write(`${flags.json ? JSON.stringify({ now, who }) : text}\n`);
      if (++printed === flags.count) return;
    }
  });
}

/** Wrapped lines would push others off the screen. */
function cut(text: string, columns: number): string {
  // The terminal has not reported its width.
  if (columns < 20) return text;
  return text.replace(/[^\n]+/g, (line) => (line.length > columns ? `${line.slice(0, columns - 1)}…` : line));
}

export function topText(now: NowView, who: WhoView): string {
  const { minute, memory, sampling } = now;
  const rcodes = Object.entries(minute.rcodes).map(
    ([rcode, count]) => `${rcode} ${percent(count / minute.queries)}`,
  );
  return [
    `${now.hostname}  Portolan-${now.version}  ${now.rate.toFixed(0)} queries/s  ${Math.round(memory.resident / 2 ** 20)} MiB`,
    `last minute: ${countOf(minute.queries, "query", "queries")}, ${minute.hitRatio === null ? "-" : percent(minute.hitRatio)} from the cache, ` +
      `half within ${time(minute.p50)}, 99 % within ${time(minute.p99)}`,
    `             ${rcodes.join(", ") || "no queries"}${sampling.interval > 1 ? ` (one of ${sampling.interval} looked at)` : ""}`,
    "",
    ...table("NAME", who.names, who.others.names),
    "",
    ...table("CLIENT", who.clients, who.others.clients),
  ].join("\n");
}

function table(title: string, rows: readonly TopRow[], others: number): string[] {
  return [
    tableLine("QUERIES", "NXDOMAIN", "SERVFAIL", title),
    ...rows.map(({ key, workload, queries, more, nxdomain, servfail }) =>
      tableLine(
        `${queries}${more > 0 ? "+" : ""}`,
        String(nxdomain),
        String(servfail),
        escapeControls(workload === undefined ? key : `${workload} (${key})`),
      ),
    ),
    ...(others > 0 ? [tableLine(String(others), "", "", "(all others)")] : []),
  ];
}

function tableLine(queries: string, nxdomain: string, servfail: string, title: string): string {
  return `${queries.padStart(9)} ${nxdomain.padStart(9)} ${servfail.padStart(9)}  ${title}`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

function time(milliseconds: number | null): string {
  if (milliseconds === null) return "-";
  return milliseconds < 1 ? `${Math.round(milliseconds * 1000)} us` : `${milliseconds.toFixed(1)} ms`;
}

function isNow(value: unknown): value is NowView {
  return (
    isObject(value) && typeof value.rate === "number" && isObject(value.minute) && isObject(value.sampling)
  );
}

function isWho(value: unknown): value is WhoView {
  return (
    isObject(value) && Array.isArray(value.names) && Array.isArray(value.clients) && isObject(value.others)
  );
}
