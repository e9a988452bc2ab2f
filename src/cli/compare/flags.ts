import { type UpstreamAddress, upstreamAddress } from "../../upstream/config/address.ts";
import { DNS_PORT } from "../../upstream/config/resolv-conf.ts";
import { choiceRow, FlagError, type FlagRow, helpRow, switchRow, valueRow } from "../flag-table.ts";
import { parseTime } from "../live/server-flags.ts";

export const FORMATS = ["human", "json"] as const;
export type CompareFormat = (typeof FORMATS)[number];

export interface CompareFlags {
  /** The two servers, if they are not the first two words. */
  servers: string[];
  /** Files with questions; `-` is standard input. */
  queries: string[];
  /** Zones whose names are asked for; the old server transfers them. */
  zones: string[];
  /** Whether order, TTLs, letter case, EDNS and truncation count. */
  strict: boolean;
  /** Questions in flight. */
  concurrency: number;
  /** Milliseconds for each reply. */
  timeout: number;
  format: CompareFormat;
  help: boolean;
}

export function defaultCompareFlags(): CompareFlags {
  return {
    servers: [],
    queries: [],
    zones: [],
    strict: false,
    concurrency: 32,
    timeout: 2_000,
    format: "human",
    help: false,
  };
}

/** More would measure how the servers shed load, not what they answer. */
const MOST_IN_FLIGHT = 256;

export const COMPARE_FLAGS: readonly FlagRow<CompareFlags>[] = [
  valueRow("server", "ADDR", "a server, twice, in place of the words OLD and NEW", (flags, value) => {
    flags.servers.push(value);
  }),
  valueRow(
    "queries",
    "FILE",
    "questions: lines of NAME TYPE, a query log of CoreDNS, or what portolan tail -json prints; - is standard input",
    (flags, value) => {
      flags.queries.push(value);
    },
  ),
  valueRow("zone", "ZONE", "ask for every name of the zone; OLD must allow its transfer", (flags, value) => {
    flags.zones.push(value);
  }),
  switchRow(["strict"], "order, TTLs, letter case, EDNS and truncation are differences, too", (flags, on) => {
    flags.strict = on;
  }),
  valueRow("concurrency", "N", "questions in flight, 1 to 256 (default 32)", (flags, value) => {
    const number = /^\d{1,3}$/.test(value) ? Number(value) : 0;
    if (number < 1 || number > MOST_IN_FLIGHT)
      throw new FlagError(`-concurrency ${value}: not a number from 1 to ${MOST_IN_FLIGHT}`, 2, true);
    flags.concurrency = number;
  }),
  valueRow(
    "timeout",
    "TIME",
    "time to wait for a reply; each question is sent twice (default 2s)",
    (flags, value) => {
      flags.timeout = parseTime("timeout", value);
      if (flags.timeout === 0) throw new FlagError(`-timeout ${value}: must be more than 0`, 2, true);
    },
  ),
  choiceRow("format", FORMATS, "human or json (default human)", (flags, value) => {
    flags.format = value;
  }),
  helpRow(),
];

/**
 * `10.96.0.10`, `10.96.0.10:1053`, `::1`, `[::1]:1053`.
 * @throws FlagError
 */
export function serverAddress(text: string): UpstreamAddress {
  const [, bracketed, host = bracketed, digits] =
    /^(?:\[([^\]]+)\]|([^:]+|[^:]*:[^:]*:.*?))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const port = digits === undefined ? DNS_PORT : Number(digits);
  const whole = upstreamAddress(text, DNS_PORT);
  const address = whole ?? upstreamAddress(host ?? "", port);
  if (address === undefined || address.port < 1 || address.port > 65_535)
    throw new FlagError(
      `${text}: not an IP address, such as 10.96.0.10, 127.0.0.1:1053 or [::1]:1053`,
      2,
      false,
    );
  return address;
}
