/** Flags of all commands that use the console of a running server. */
import { parseGoDuration } from "../../lib/time/duration.ts";
import { FlagError, type FlagRow, valueRow } from "../flag-table.ts";

export interface LiveServerFlags {
  server: string;
  tokenFile: string;
  /** Milliseconds to wait for a server that went away. */
  reconnect: number;
}

export function defaultServerFlags(): LiveServerFlags {
  return { server: "127.0.0.1:8184", tokenFile: "", reconnect: 30_000 };
}

export function serverRows<F extends LiveServerFlags>(): readonly FlagRow<F>[] {
  return [
    valueRow(
      "server",
      "ADDR",
      "address of the server's directive console (default: 127.0.0.1:8184)",
      (flags, value) => {
        flags.server = value;
      },
    ),
    valueRow("token-file", "FILE", "file with the token, if the console needs one", (flags, value) => {
      flags.tokenFile = value;
    }),
    valueRow(
      "reconnect",
      "TIME",
      "time to wait for a server that went away to come back (default 30s)",
      (flags, value) => {
        flags.reconnect = parseTime("reconnect", value);
      },
    ),
  ];
}

const LONGEST = 3_600_000;

/** @returns milliseconds, an hour at most @throws FlagError */
export function parseTime(flag: string, value: string): number {
  const duration = parseGoDuration(value);
  if (duration !== undefined && duration >= 0 && duration <= LONGEST) return duration;
  throw new FlagError(`-${flag} ${value}: not a duration up to 1h, such as 30s`, 2, true);
}
