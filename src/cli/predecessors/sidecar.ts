/** `portolan sidecar`: kube-dns's sidecar, with its flags (docs/spec/kube-dns.md#sidecar). */
import { SystemClock } from "../../lib/time/clock.ts";
import { ProbeError, type ProbeSpec, parseProbe } from "../../predecessors/sidecar/probe-spec.ts";
import { Sidecar } from "../../predecessors/sidecar/sidecar.ts";
import { systemRandom } from "../../server/configuration/machine.ts";
import { FlagError, type FlagRow, parsePort, valueRow } from "../flag-table.ts";
import {
  type CommonFlags,
  commonRows,
  type DaemonCommand,
  daemonCommand,
  daemonLog,
  readCount,
  runDaemon,
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
  valueRow(
    "dnsmasq-addr",
    "ADDRESS",
    "address of dnsmasq, or of another server with its statistics (default 127.0.0.1)",
    (flags, value) => {
      flags.dnsmasqHost = value;
    },
  ),
  valueRow("dnsmasq-port", "PORT", "its port (default 53)", (flags, value) => {
    flags.dnsmasqPort = parsePort("dnsmasq-port", value);
  }),
  valueRow(
    "dnsmasq-poll-interval-ms",
    "MILLISECONDS",
    "interval between reads of its statistics (default 5000)",
    (flags, value) => {
      flags.pollInterval = readCount("dnsmasq-poll-interval-ms", value);
    },
  ),
  valueRow(
    "probe",
    "PROBE",
    "LABEL,SERVER,NAME[,SECONDS][,TYPE]: queries the server for the name periodically; can be repeated",
    (flags, value) => {
      try {
        flags.probes.push(parseProbe(value));
      } catch (error) {
        if (!(error instanceof ProbeError)) throw error;
        throw new FlagError(`invalid argument "${value}" for "--probe" flag: ${error.message}`, 2, true);
      }
    },
  ),
  valueRow(
    "prometheus-addr",
    "ADDRESS",
    "address to listen on for HTTP (default 0.0.0.0)",
    (flags, value) => {
      flags.host = value;
    },
  ),
  valueRow("prometheus-port", "PORT", "port for HTTP (default 10054)", (flags, value) => {
    flags.port = parsePort("prometheus-port", value);
  }),
  valueRow("prometheus-path", "PATH", "path of the metrics (default /metrics)", (flags, value) => {
    flags.path = value.startsWith("/") ? value : `/${value}`;
  }),
  valueRow("prometheus-namespace", "NAME", "prefix of metric names (default kubedns)", (flags, value) => {
    if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(value))
      throw new FlagError(
        `invalid argument "${value}" for "--prometheus-namespace" flag: metric names are letters, digits and underscores`,
        2,
        true,
      );
    flags.namespace = value;
  }),
  ...commonRows<SidecarFlags>(),
];

const COMMAND: DaemonCommand<SidecarFlags> = {
  name: "sidecar",
  about: [
    "portolan sidecar probes DNS servers and shows the statistics of dnsmasq, as kube-dns's sidecar did.",
  ],
  rows: SIDECAR_FLAGS,
  defaults: () => ({
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
    logFormat: "text",
  }),
};

/** @returns the exit code */
export function sidecar(argv: readonly string[]): Promise<number> {
  return daemonCommand(COMMAND, argv, async (flags) => {
    const clock = new SystemClock({ keepAlive: true });
    const log = daemonLog(flags.logFormat, clock);
    const { dnsmasqHost, dnsmasqPort, host, ...rest } = flags;
    const daemon = new Sidecar({
      ...rest,
      host,
      dnsmasq: { host: dnsmasqHost, port: dnsmasqPort },
      clock,
      random: systemRandom(),
    });
    const start = async (): Promise<void> => {
      const port = await daemon.start();
      log.info(`Listening on ${host}:${port}`);
    };
    return runDaemon({ start, stop: () => daemon.stop() }, log, new Promise(() => undefined));
  });
}
