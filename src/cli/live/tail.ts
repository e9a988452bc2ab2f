/** `portolan tail`: the queries of a running server as they are answered. */
import type { QueryRow } from "../../console/api-types.ts";
import { isObject, listMember, member } from "../../kubernetes/objects/json.ts";
import { escapeControls } from "../../lib/log.ts";
import { ConsoleClient } from "./console-client.ts";
import { TAIL_FLAGS } from "./flags.ts";
import { runLive } from "./run-live.ts";

/** What a `Date` can hold, on both sides of the epoch (ECMA-262, section "Time Values and Time Range"). */
const MOST_MILLISECONDS = 8.64e15;

/** @returns the exit code: 2 where no server can be asked */
export function tail(argv: readonly string[]): Promise<number> {
  return runLive(argv, TAIL_FLAGS, "portolan tail [FLAGS]", async (flags, signal) => {
    const client = new ConsoleClient(flags);
    const parameters = new URLSearchParams({ streams: "queries", ...flags.filter });
    let printed = 0;
    for await (const { name, data } of client.events(`/api/v1/events?${parameters}`, signal)) {
      if (name !== "queries") continue;
      for (const row of listMember(data, "rows")) {
        if (!isQueryRow(row)) continue;
        process.stdout.write(`${flags.json ? JSON.stringify(row) : queryLine(row)}\n`);
        if (++printed === flags.count) return;
      }
      const leftOut = member(data, "leftOut");
      if (typeof leftOut === "number" && leftOut > 0)
        process.stderr.write(`${leftOut} more were left out: filter more narrowly\n`);
    }
  });
}

/** Time, name, type, rcode, client, plugin and duration, parted by spaces. */
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
    ["name", "type", "rcode", "client", "plugin"].every((key) => typeof value[key] === "string") &&
    ["time", "duration", "weight", "port", "id", "answers"].every((key) => typeof value[key] === "number") &&
    Math.abs(Number(value.time)) <= MOST_MILLISECONDS &&
    Number(value.weight) > 0 &&
    ["string", "undefined"].includes(typeof value.workload)
  );
}
