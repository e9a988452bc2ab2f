import {
  choiceRow,
  FlagError,
  type FlagRow,
  helpRow,
  parsePort,
  switchRow,
  valueRow,
} from "../flag-table.ts";
import { defaultPluginFlags, PLUGIN_FLAGS, type PluginFlags } from "../plugin-list.ts";
import { LIBCS, type LibcName } from "./pod-resolver.ts";

export interface ExplainFlags extends PluginFlags {
  conf: string;
  /** An IP address, `NAMESPACE/POD`, or empty. */
  from: string;
  libc: LibcName;
  listener: string;
  manifests: string[];
  port: number;
  tcp: boolean;
  again: boolean;
  json: boolean;
  /** Address of a running server's endpoint, or empty. */
  server: string;
  /** Token file of the console to ask, or empty. */
  tokenFile: string;
  help: boolean;
}

export function defaultExplainFlags(): ExplainFlags {
  return {
    ...defaultPluginFlags(),
    conf: "",
    from: "",
    libc: "glibc",
    listener: "",
    manifests: [],
    port: 53,
    tcp: false,
    again: false,
    json: false,
    server: "",
    tokenFile: "",
    help: false,
  };
}

/** The names of the given flags that have no meaning for a running server. */
export function flagsWithoutServer(flags: ExplainFlags): string[] {
  const given = {
    conf: flags.conf !== "",
    manifests: flags.manifests.length > 0,
    again: flags.again,
    "plugin-cfg": flags.pluginCfg !== "",
    plugin: flags.plugins.length > 0,
  };
  return Object.entries(given).flatMap(([name, isGiven]) => (isGiven ? name : []));
}

export const EXPLAIN_FLAGS: readonly FlagRow<ExplainFlags>[] = [
  valueRow(
    "conf",
    "FILE",
    'Corefile; "stdin" reads it from standard input (default: ./Corefile, else a built-in one)',
    (flags, value) => {
      flags.conf = value;
    },
  ),
  valueRow(
    "server",
    "ADDR",
    "trace through the running server whose explain or console directive has this address, such as 127.0.0.1:8183",
    (flags, value) => {
      if (value === "") throw new FlagError("-server needs an address, such as 127.0.0.1:8183", 2, false);
      flags.server = value;
    },
  ),
  valueRow(
    "token-file",
    "FILE",
    "file with the token, if -server is a console that needs one",
    (flags, value) => {
      flags.tokenFile = value;
    },
  ),
  valueRow(
    "from",
    "CLIENT",
    "client: an IP address, or NAMESPACE/POD to follow the search path of a pod (default 127.0.0.1)",
    (flags, value) => {
      flags.from = value;
    },
  ),
  choiceRow("libc", LIBCS, "libc of that pod: glibc or musl (default glibc)", (flags, value) => {
    flags.libc = value;
  }),
  valueRow(
    "manifests",
    "PATH",
    "files or directory that replace the cluster of the Corefile; can be repeated",
    (flags, value) => {
      flags.manifests.push(value);
    },
  ),
  valueRow(
    "listener",
    "LABEL",
    "listener to query, such as dns://:53 (default: the one that a client would use: plain DNS first, then the longest zone)",
    (flags, value) => {
      flags.listener = value;
    },
  ),
  valueRow(
    ["dns.port", "p"],
    "PORT",
    "port for server blocks without a port (default 53)",
    (flags, value) => {
      flags.port = parsePort("dns.port", value);
    },
  ),
  ...PLUGIN_FLAGS,
  switchRow(["tcp"], "query over TCP", (flags, on) => {
    flags.tcp = on;
  }),
  switchRow(["again"], "query twice and show the second query, to see the cache at work", (flags, on) => {
    flags.again = on;
  }),
  switchRow(["json"], "print JSON", (flags, on) => {
    flags.json = on;
  }),
  helpRow(),
];
