/** Flags of the commands that show the activity of a running server. */
import { FILTER_PARAMETERS, type FilterParameter } from "../../console/query-row.ts";
import { FlagError, type FlagRow, helpRow, switchRow, valueRow } from "../flag-table.ts";
import { defaultServerFlags, type LiveServerFlags, serverRows } from "./server-flags.ts";

export interface LiveFlags extends LiveServerFlags {
  filter: Partial<Record<FilterParameter, string>>;
  json: boolean;
  /** Lines or pictures after which the command exits; 0 for no limit. */
  count: number;
  help: boolean;
}

export function defaultLiveFlags(): LiveFlags {
  return { ...defaultServerFlags(), filter: {}, json: false, count: 0, help: false };
}

const COMMON: readonly FlagRow<LiveFlags>[] = [
  ...serverRows<LiveFlags>(),
  valueRow(["count", "n"], "N", "exit after this many", (flags, value) => {
    if (!/^[1-9]\d{0,8}$/.test(value))
      throw new FlagError(`-count ${value}: not a whole number of 1 or more`, 2, true);
    flags.count = Number(value);
  }),
  switchRow(["json"], "print JSON, one object per line", (flags, on) => {
    flags.json = on;
  }),
  helpRow(),
];

const FILTER_WORDS: Readonly<Record<FilterParameter, readonly [string, string]>> = {
  name: ["NAME", "part of the name, or with a final dot the name and all names below it"],
  namespace: ["NS", "namespace of the client"],
  workload: ["NS/NAME", "pod or service of the client, or the beginning of its name"],
  client: ["IP", "address or prefix of the client"],
  type: ["TYPE", "type of the question"],
  rcode: ["RCODE", "rcode of the reply, error for all failures, - for none"],
  slower: ["TIME", "took at least this long, such as 20ms"],
  by: ["PLUGIN", "plugin that answered"],
};

export const TOP_FLAGS: readonly FlagRow<LiveFlags>[] = COMMON;

export const TAIL_FLAGS: readonly FlagRow<LiveFlags>[] = [
  ...FILTER_PARAMETERS.map((name): FlagRow<LiveFlags> => {
    const [value, about] = FILTER_WORDS[name];
    return valueRow(name, value, about, (flags, word) => {
      flags.filter[name] = word;
    });
  }),
  ...COMMON,
];
