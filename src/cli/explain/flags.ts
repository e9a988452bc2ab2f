import { FlagError, type FlagRow, parsePort, switchRow } from "../flag-table.ts";
import { PLUGIN_FLAGS, type PluginFlags } from "../plugin-list.ts";
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
  help: boolean;
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
    names: ["from"],
    value: "CLIENT",
    about: "who asks: an IP address, or NAMESPACE/POD, whose search path is then walked (default 127.0.0.1)",
    apply: (flags, value) => {
      flags.from = value;
    },
  },
  {
    names: ["libc"],
    value: "LIBC",
    about: "how that pod searches: glibc or musl (default glibc)",
    apply: (flags, value) => {
      const libc = LIBCS.find((known) => known === value);
      if (libc === undefined) throw new FlagError(`unknown libc "${value}": ${LIBCS.join(", ")}`, 2, true);
      flags.libc = libc;
    },
  },
  {
    names: ["manifests"],
    value: "PATH",
    about:
      "files or a folder that stand for the cluster, whatever the Corefile says; may be given several times",
    apply: (flags, value) => {
      flags.manifests.push(value);
    },
  },
  {
    names: ["listener"],
    value: "LABEL",
    about:
      "which listen address is asked, as in dns://:53 (default: the first that has a block for the name)",
    apply: (flags, value) => {
      flags.listener = value;
    },
  },
  {
    names: ["dns.port", "p"],
    value: "PORT",
    about: "port for server blocks that name none (default 53)",
    apply: (flags, value) => {
      flags.port = parsePort("dns.port", value);
    },
  },
  ...PLUGIN_FLAGS,
  switchRow(["tcp"], "ask over TCP", (flags, on) => {
    flags.tcp = on;
  }),
  switchRow(["again"], "ask twice, and show the second time: what the cache does", (flags, on) => {
    flags.again = on;
  }),
  switchRow(["json"], "print JSON", (flags, on) => {
    flags.json = on;
  }),
  switchRow(["help", "h"], "show this help", (flags, on) => {
    flags.help = on;
  }),
];
