/** Flags of the commands that show what a running server does. */
import { FILTER_PARAMETERS, type FilterParameter } from "../../console/query-row.ts";
import { FlagError, type FlagRow, switchRow } from "../flag-table.ts";

export interface LiveFlags {
  server: string;
  tokenFile: string;
  filter: Partial<Record<FilterParameter, string>>;
  json: boolean;
  /** Ends after so many lines or pictures; 0 for never. */
  count: number;
  help: boolean;
}

export function defaultLiveFlags(): LiveFlags {
  return { server: "127.0.0.1:8184", tokenFile: "", filter: {}, json: false, count: 0, help: false };
}

const COMMON: readonly FlagRow<LiveFlags>[] = [
  {
    names: ["server"],
    value: "ADDR",
    about: "address of the server's directive console (default: 127.0.0.1:8184)",
    apply: (flags, value) => {
      flags.server = value;
    },
  },
  {
    names: ["token-file"],
    value: "FILE",
    about: "file with the token, if the console needs one",
    apply: (flags, value) => {
      flags.tokenFile = value;
    },
  },
  {
    names: ["count", "n"],
    value: "N",
    about: "exit after this many",
    apply: (flags, value) => {
      if (!/^[1-9]\d{0,8}$/.test(value))
        throw new FlagError(`-count ${value}: not a whole number of 1 or more`, 2, true);
      flags.count = Number(value);
    },
  },
  switchRow(["json"], "print JSON, one object per line", (flags, on) => {
    flags.json = on;
  }),
  switchRow(["help", "h"], "show this help", (flags, on) => {
    flags.help = on;
  }),
];

const FILTER_WORDS: Readonly<Record<FilterParameter, readonly [string, string]>> = {
  name: ["NAME", "part of the name, or with a final dot the name and all below it"],
  namespace: ["NS", "namespace of the client"],
  workload: ["NS/NAME", "pod or service that the client is, or the beginning of it"],
  client: ["IP", "address or prefix of the client"],
  type: ["TYPE", "type of the question"],
  rcode: ["RCODE", "rcode of the reply, error for all failures, - for none"],
  slower: ["TIME", "took at least so long, such as 20ms"],
  by: ["PLUGIN", "plugin that answered"],
};

export const TOP_FLAGS: readonly FlagRow<LiveFlags>[] = COMMON;

export const TAIL_FLAGS: readonly FlagRow<LiveFlags>[] = [
  ...FILTER_PARAMETERS.map((name): FlagRow<LiveFlags> => {
    const [value, about] = FILTER_WORDS[name];
    return {
      names: [name],
      value,
      about,
      apply: (flags, word) => {
        flags.filter[name] = word;
      },
    };
  }),
  ...COMMON,
];
