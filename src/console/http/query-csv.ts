/** Finished queries as CSV (RFC 4180), for spreadsheets. */
import type { QueryRow } from "../api-types.ts";

const COLUMNS = [
  "time",
  "name",
  "type",
  "rcode",
  "client",
  "workload",
  "duration",
  "plugin",
  "transport",
  "port",
  "id",
  "listener",
  "answers",
  "ttl",
  "size",
  "weight",
  "shed",
] as const satisfies readonly (keyof QueryRow)[];

export function queriesAsCsv(rows: readonly QueryRow[]): string {
  const lines = [
    COLUMNS.join(","),
    ...rows.map((row) =>
      COLUMNS.map((column) =>
        column === "time" ? new Date(row.time).toISOString() : cell(`${row[column] ?? ""}`),
      ).join(","),
    ),
  ];
  return `${lines.join("\r\n")}\r\n`;
}

/** Clients choose names, and a spreadsheet computes what begins as a formula. */
function cell(text: string): string {
  const harmless = /^[=+\-@\t\r]./.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
