import { FlagError, type FlagRow, parsePort, switchRow } from "../flag-table.ts";
import { defaultPluginFlags, PLUGIN_FLAGS, type PluginFlags } from "../plugin-list.ts";
import { LIBCS, type Libc } from "./pod-resolver.ts";

export interface ExplainFlags extends PluginFlags {
  conf: string;
  /** An IP address, `NAMESPACE/POD`, or empty. */
  from: string;
  libc: Libc;
  listener: string;
  manifests: string[];
  port: number;
  tcp: boolean;
  again: boolean;
  json: boolean;
  /** The address of a running server's endpoint, or empty. */
  server: string;
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
    help: false,
  };
}

/** The names of those flags given that mean nothing to a server that runs. */
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
  {
    names: ["conf"],
    value: "FILE",
    about: 'Corefile; "stdin" reads it from standard input (default: ./Corefile, else a built-in one)',
    apply: (flags, value) => {
      flags.conf = value;
    },
  },
  {
    names: ["server"],
    value: "ADDR",
    about:
      "trace through the running server whose explain directive has this address, such as 127.0.0.1:8183",
    apply: (flags, value) => {
      if (value === "") throw new FlagError("-server needs an address, such as 127.0.0.1:8183", 2, false);
      flags.server = value;
    },
  },
  {
    names: ["from"],
    value: "CLIENT",
    about: "client: an IP address, or NAMESPACE/POD to follow the search path of a pod (default 127.0.0.1)",
    apply: (flags, value) => {
      flags.from = value;
    },
  },
  {
    names: ["libc"],
    value: "LIBC",
    about: "libc of that pod: glibc or musl (default glibc)",
    apply: (flags, value) => {
      const libc = LIBCS.find((known) => known === value);
      if (libc === undefined) throw new FlagError(`unknown libc "${value}": ${LIBCS.join(", ")}`, 2, true);
      flags.libc = libc;
    },
  },
  {
    names: ["manifests"],
    value: "PATH",
    about: "files or directory that replace the cluster of the Corefile; can be repeated",
    apply: (flags, value) => {
      flags.manifests.push(value);
    },
  },
  {
    names: ["listener"],
    value: "LABEL",
    about: "listener to query, such as dns://:53 (default: the first with a server block for the name)",
    apply: (flags, value) => {
      flags.listener = value;
    },
  },
  {
    names: ["dns.port", "p"],
    value: "PORT",
    about: "port for server blocks without a port (default 53)",
    apply: (flags, value) => {
      flags.port = parsePort("dns.port", value);
    },
  },
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
  switchRow(["help", "h"], "show this help", (flags, on) => {
    flags.help = on;
  }),
];
