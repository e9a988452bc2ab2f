/** `portolan sidecar`: kube-dns's sidecar, with its flags (kube-dns facts 7.1). */
import { SystemClock } from "../../lib/clock.ts";
import { version } from "../../lib/version.ts";
import { ProbeError, type ProbeSpec, parseProbe } from "../../predecessors/sidecar/probe-spec.ts";
import { Sidecar } from "../../predecessors/sidecar/sidecar.ts";
import { systemRandom } from "../../server/configuration/machine.ts";
import { FlagError, type FlagRow, parsePort } from "../flag-table.ts";
import {
  type CommonFlags,
  commonRows,
  daemonLog,
  parseOldFlags,
  readCount,
  runDaemon,
  usageOf,
  withFlagErrors,
} from "./daemon.ts";

interface SidecarFlags extends CommonFlags {
  dnsmasqHost: string;
  dnsmasqPort: number;
  pollInterval: number;
  probes: ProbeSpec[];
  host: string;
  port: number;
  path: string;
  namespace: string;
}

export const SIDECAR_FLAGS: readonly FlagRow<SidecarFlags>[] = [
  {
    names: ["dnsmasq-addr"],
    value: "ADDRESS",
    about: "address of dnsmasq, or of another server with its statistics (default 127.0.0.1)",
    apply: (flags, value) => {
      flags.dnsmasqHost = value;
    },
  },
  {
    names: ["dnsmasq-port"],
    value: "PORT",
    about: "its port (default 53)",
    apply: (flags, value) => {
      flags.dnsmasqPort = parsePort("dnsmasq-port", value);
    },
  },
  {
    names: ["dnsmasq-poll-interval-ms"],
    value: "MILLISECONDS",
    about: "interval between reads of its statistics (default 5000)",
    apply: (flags, value) => {
      flags.pollInterval = readCount("dnsmasq-poll-interval-ms", value);
    },
  },
  {
    names: ["probe"],
    value: "PROBE",
    about:
      "LABEL,SERVER,NAME[,SECONDS][,TYPE]: queries the server for the name periodically; can be repeated",
    apply: (flags, value) => {
      try {
        flags.probes.push(parseProbe(value));
      } catch (error) {
        if (!(error instanceof ProbeError)) throw error;
        throw new FlagError(`invalid argument "${value}" for "--probe" flag: ${error.message}`, 2, true);
      }
    },
  },
  {
    names: ["prometheus-addr"],
    value: "ADDRESS",
    about: "address to listen on for HTTP (default 0.0.0.0)",
    apply: (flags, value) => {
      flags.host = value;
    },
  },
  {
    names: ["prometheus-port"],
    value: "PORT",
    about: "the port for HTTP (default 10054)",
    apply: (flags, value) => {
      flags.port = parsePort("prometheus-port", value);
    },
  },
  {
    names: ["prometheus-path"],
    value: "PATH",
    about: "path of the metrics (default /metrics)",
    apply: (flags, value) => {
      flags.path = value;
    },
  },
  {
    names: ["prometheus-namespace"],
    value: "NAME",
    about: "prefix of metric names (default kubedns)",
    apply: (flags, value) => {
      flags.namespace = value;
    },
  },
  ...commonRows<SidecarFlags>(),
];

const usage = () =>
  usageOf(
    "sidecar",
    ["portolan sidecar probes DNS servers and shows the statistics of dnsmasq, as kube-dns's sidecar did."],
    SIDECAR_FLAGS,
  );

/** @returns the exit code */
export function sidecar(argv: readonly string[]): Promise<number> {
  return withFlagErrors(usage, async () => {
    const flags: SidecarFlags = {
      dnsmasqHost: "127.0.0.1",
      dnsmasqPort: 53,
      pollInterval: 5_000,
      probes: [],
      host: "0.0.0.0",
      port: 10_054,
      path: "/metrics",
      namespace: "kubedns",
      version: false,
      help: false,
    };
    parseOldFlags(SIDECAR_FLAGS, flags, argv);
    if (flags.help || flags.version) {
      process.stdout.write(flags.help ? usage() : `${version}\n`);
      return 0;
    }
    const log = daemonLog();
    const { dnsmasqHost, dnsmasqPort, host, ...rest } = flags;
    const daemon = new Sidecar({
      ...rest,
      host,
      dnsmasq: { host: dnsmasqHost, port: dnsmasqPort },
      clock: new SystemClock({ keepAlive: true }),
      random: systemRandom(),
    });
    const start = async (): Promise<void> => {
      const port = await daemon.start();
      log.info(`Listening on ${host}:${port}`);
    };
    return runDaemon({ start, stop: () => daemon.stop() }, log, new Promise(() => undefined));
  });
}
