/** `portolan kube2sky`: writes SkyDNS records for a cluster to etcd, with kube2sky's flags (docs/spec/kube-dns.md#kube2sky). */
import { Name } from "../../dns/name.ts";
import { ClusterAccessError } from "../../kubernetes/api/access/access.ts";
import { ClusterStore } from "../../kubernetes/store/store.ts";
import { SystemClock } from "../../lib/time/clock.ts";
import { makeClusterSource } from "../../predecessors/cluster-source.ts";
import { Kube2sky } from "../../predecessors/kube2sky/kube2sky.ts";
import { systemRandom } from "../../server/configuration/machine.ts";
import { FlagError, type FlagRow, parsePort, valueRow } from "../flag-table.ts";
import {
  type CommonFlags,
  commonRows,
  type DaemonCommand,
  daemonCommand,
  daemonLog,
  durationRow,
  FatalError,
  GLOG_FATAL,
  manifestsRow,
  runDaemon,
} from "./daemon.ts";

interface Kube2skyFlags extends CommonFlags {
  domain: Name;
  etcd: string[];
  mutationTimeout: number;
  kubeconfig: string;
  server: string;
  healthPort: number;
  manifests: string[];
}

export const KUBE2SKY_FLAGS: readonly FlagRow<Kube2skyFlags>[] = [
  valueRow("domain", "ZONE", "zone of the cluster (default cluster.local)", (flags, value) => {
    const name = Name.tryParse(value);
    if (name === undefined || name.isRoot)
      throw new FlagError(`invalid value "${value}" for flag -domain: not a domain`, 2, true);
    flags.domain = name.toLowerCase();
  }),
  valueRow("etcd-server", "URL", "etcd; can be repeated (default http://127.0.0.1:4001)", (flags, value) => {
    const url = URL.parse(value);
    if (url === null || !/^https?:$/.test(url.protocol))
      throw new FlagError(`invalid value "${value}" for flag -etcd-server: not a URL`, 2, true);
    flags.etcd.push(`${url.protocol}//${url.host}`);
  }),
  durationRow(
    "etcd-mutation-timeout",
    "time to retry a write before exiting (default 10s)",
    (flags, milliseconds) => {
      flags.mutationTimeout = milliseconds;
    },
  ),
  valueRow("kubecfg-file", "FILE", "kubeconfig (default: in-cluster)", (flags, value) => {
    flags.kubeconfig = value;
  }),
  valueRow(
    "kube-master-url",
    "URL",
    "URL of the API, instead of that of the kubeconfig; environment variables are expanded",
    (flags, value) => {
      flags.server = value
        .replaceAll(/\$\{?(\w+)\}?/g, (_all, name: string) => process.env[name] ?? "")
        .replace(/\/$/, "");
    },
  ),
  valueRow("healthz-port", "PORT", "port of /readiness (default 8081)", (flags, value) => {
    flags.healthPort = parsePort("healthz-port", value);
  }),
  manifestsRow(),
  ...commonRows<Kube2skyFlags>(),
];

const COMMAND: DaemonCommand<Kube2skyFlags> = {
  name: "kube2sky",
  about: [
    "portolan kube2sky writes SkyDNS's records for the services of a cluster into etcd, as kube2sky did.",
  ],
  rows: KUBE2SKY_FLAGS,
  defaults: () => ({
    domain: Name.parse("cluster.local."),
    etcd: [],
    mutationTimeout: 10_000,
    kubeconfig: "",
    server: "",
    healthPort: 8081,
    manifests: [],
    version: false,
    help: false,
    logFormat: "text",
  }),
};

/** @returns the exit code */
export function kube2sky(argv: readonly string[]): Promise<number> {
  return daemonCommand(COMMAND, argv, async (flags) => {
    const clock = new SystemClock({ keepAlive: true });
    const log = daemonLog(flags.logFormat, clock);
    const random = systemRandom();
    const store = new ClusterStore({ clock, kinds: ["services", "endpoints", "pods"] });
    const ended = Promise.withResolvers<number>();
    const source = await makeClusterSource({
      ...flags,
      store,
      clock,
      log,
      random,
      environment: process.env,
    }).catch((error: unknown) => {
      throw error instanceof ClusterAccessError ? new FatalError(error.message, GLOG_FATAL) : error;
    });
    const writer = new Kube2sky({
      store,
      domain: flags.domain,
      endpoints: flags.etcd.length === 0 ? ["http://127.0.0.1:4001"] : flags.etcd,
      mutationTimeout: flags.mutationTimeout,
      healthPort: flags.healthPort,
      clock,
      log,
      random,
      givenUp: (error) =>
        ended.reject(new FatalError(`etcd accepts no changes: ${error.message}`, GLOG_FATAL)),
    });
    const start = async (): Promise<void> => {
      await source.start();
      const port = await writer.start();
      log.info(`ready: records are written, /readiness on port ${port}`);
    };
    const stop = async (): Promise<void> => {
      await writer.stop();
      await source.stop();
    };
    return runDaemon({ start, stop }, log, ended.promise);
  });
}
