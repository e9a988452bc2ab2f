/** `portolan tail`: prints the queries of a running server as they are answered. */
import type { QueryRow } from "../../console/api-types.ts";
import { isObject, listMember, member } from "../../kubernetes/objects/json.ts";
import { escapeControls } from "../../lib/logging/log.ts";
import { ConsoleClient, unlessLost } from "./console-client.ts";
import { TAIL_FLAGS } from "./flags.ts";
import { note, runLive } from "./run-live.ts";
import { steadyEvents } from "./steady-events.ts";

/** The range of `Date`, on both sides of the epoch (ECMA-262, section "Time Values and Time Range"). */
const MOST_MILLISECONDS = 8.64e15;
/** Limit for a text in a row: a name has 255 octets, each written as \DDD at most. */
const LONGEST_TEXT = 1_024;
/** Missed queries to fetch after the stream broke. */
const MISSED = 1_000;

/** @returns the exit code: 2 if the server cannot be asked */
export function tail(argv: readonly string[]): Promise<number> {
  return runLive(argv, TAIL_FLAGS, "portolan tail [FLAGS]", async (flags, signal) => {
    const client = new ConsoleClient(flags);
    const filter = new URLSearchParams(flags.filter);
    const path = `/api/v1/events?streams=queries&${filter}`;
    const events = steadyEvents(client, path, { signal, patience: flags.reconnect, note });
    let printed = 0;
    let newest = 0;
    /** Rows up to this time were printed. */
    let known = 0;
    const print = (row: QueryRow): boolean => {
      newest = Math.max(newest, row.time);
      process.stdout.write(`${flags.json ? JSON.stringify(row) : queryLine(row)}\n`);
      return ++printed === flags.count;
    };
    for await (const event of events) {
      if (event === "again") {
        // After a reload the server still has the queries that came during the break.
        known = newest;
        const answer = await client.get(`/api/v1/queries?rows=${MISSED}&${filter}`).catch(unlessLost);
        for (const row of listMember(answer, "queries").filter(isQueryRow).reverse())
          if (row.time > known && known > 0 && print(row)) return;
        known = newest;
        continue;
      }
      const { name, data } = event;
      if (name !== "queries") continue;
      for (const row of listMember(data, "rows")) {
        if (!isQueryRow(row) || row.time <= known) continue;
        if (print(row)) return;
      }
      const leftOut = member(data, "leftOut");
      if (typeof leftOut === "number" && leftOut > 0)
        note(`${leftOut} more were left out: filter more narrowly`);
    }
  });
}

/** Time, name, type, rcode, client, plugin and duration, separated by spaces. */
export function queryLine(row: QueryRow): string {
  const time = new Date(row.time).toISOString().slice(11, 23);
  const by = row.plugin === "" ? "-" : row.plugin;
  const weight = row.weight > 1 ? ` (one of ${row.weight})` : "";
  const client = row.workload === undefined ? row.client : `${row.workload} (${row.client})`;
  return escapeControls(
    `${time} ${row.name} ${row.type} ${row.rcode} from ${client} by ${by} in ${row.duration.toFixed(3)} ms${weight}`,
  );
}

export function isQueryRow(value: unknown): value is QueryRow {
  return (
    isObject(value) &&
    ["name", "type", "rcode", "client", "plugin"].every((key) => isText(value[key])) &&
    ["time", "duration", "weight", "port", "id", "answers"].every((key) => typeof value[key] === "number") &&
    Math.abs(Number(value.time)) <= MOST_MILLISECONDS &&
    Number(value.weight) > 0 &&
    (value.workload === undefined || isText(value.workload))
  );
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value.length <= LONGEST_TEXT;
}
