/** `portolan kube-dns`: the DNS server of a cluster with kube-dns's flags (docs/spec/kube-dns.md#kube-dns). */

import { resolve } from "node:path";
import { Name } from "../../dns/name.ts";
import { ClusterAccessError } from "../../kubernetes/api/access/access.ts";
import type { ApiClient } from "../../kubernetes/api/client/api-client.ts";
import { findNodePlace } from "../../kubernetes/api/client/node-place.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { version } from "../../lib/text/version.ts";
import { SystemClock } from "../../lib/time/clock.ts";
import { parseGoDuration } from "../../lib/time/duration.ts";
import { findCluster, makeClusterClient } from "../../predecessors/cluster-client.ts";
import { ConfigDirectory } from "../../predecessors/kube-dns/config-directory.ts";
import {
  type KubeDnsConfig,
  KubeDnsConfigError,
  readKubeDnsConfig,
} from "../../predecessors/kube-dns/config-map.ts";
import { ConfigMapWatch } from "../../predecessors/kube-dns/config-map-watch.ts";
import { type ConfigSource, ConfigUpdates } from "../../predecessors/kube-dns/config-updates.ts";
import { KubeDns } from "../../predecessors/kube-dns/kube-dns.ts";
import { quoted } from "../../predecessors/kube-dns/kube-dns-corefile.ts";
import { splitServer, systemResolver } from "../../predecessors/server-addresses.ts";
import { systemRandom } from "../../server/configuration/machine.ts";
import { FlagError, type FlagRow, parsePort, switchRow, valueRow } from "../flag-table.ts";
import {
  type CommonFlags,
  commonRows,
  type DaemonCommand,
  daemonCommand,
  daemonLog,
  FatalError,
  GLOG_FATAL,
  manifestsRow,
  runDaemon,
  startSmall,
} from "./daemon.ts";

interface KubeDnsFlags extends CommonFlags {
  domain: Name;
  nameservers: string[];
  kubeconfig: string;
  server: string;
  healthPort: number;
  bind: string;
  port: number;
  federations: string;
  configMap: string;
  configMapNamespace: string;
  configDir: string;
  configPeriod: number;
  initialSyncTimeout: number;
  profiling: boolean;
  manifests: string[];
}

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

function invalid(name: string, value: string, reason: string): FlagError {
  return new FlagError(`invalid argument "${value}" for "--${name}" flag: ${reason}`, 2, true);
}

function readDuration(name: string, value: string): number {
  const milliseconds = parseGoDuration(value);
  if (milliseconds === undefined || milliseconds <= 0) throw invalid(name, value, "not a duration above 0");
  return milliseconds;
}

export const KUBE_DNS_FLAGS: readonly FlagRow<KubeDnsFlags>[] = [
  valueRow("domain", "ZONE", "zone of the cluster (default cluster.local.)", (flags, value) => {
    const labels = value.replace(/\.$/, "").split(".");
    if (!labels.every((label) => LABEL.test(label)))
      throw invalid("domain", value, "each label has to be lower-case letters, digits and hyphens");
    flags.domain = Name.fromLabels(labels);
  }),
  valueRow(
    "nameservers",
    "SERVERS",
    "upstreams for other names, ADDRESS[:PORT] separated by commas; not with a ConfigMap or directory",
    (flags, value) => {
      flags.nameservers = value
        .split(",")
        .map((each) => each.trim())
        .filter((each) => each !== "");
      const bad = flags.nameservers.find((each) => splitServer(each) === undefined);
      if (bad !== undefined) throw invalid("nameservers", value, `'${bad}' is not an address`);
    },
  ),
  valueRow("kubecfg-file", "FILE", "kubeconfig (default: in-cluster)", (flags, value) => {
    flags.kubeconfig = value;
  }),
  valueRow("kube-master-url", "URL", "URL of the API; environment variables are expanded", (flags, value) => {
    const filled = value.replaceAll(/\$\{?(\w+)\}?/g, (_all, name: string) => process.env[name] ?? "");
    const url = URL.parse(filled);
    if (url === null || !/^https?:$/.test(url.protocol) || url.host === "")
      throw invalid("kube-master-url", value, "a URL with scheme and host was expected");
    flags.server = filled.replace(/\/$/, "");
  }),
  valueRow("healthz-port", "PORT", "port of /readiness and /cache (default 8081)", (flags, value) => {
    flags.healthPort = parsePort("healthz-port", value);
  }),
  valueRow("dns-bind-address", "ADDRESS", "address to listen on (default 0.0.0.0)", (flags, value) => {
    if (splitServer(value)?.port !== "") throw invalid("dns-bind-address", value, "not an address");
    flags.bind = value;
  }),
  valueRow("dns-port", "PORT", "port to listen on (default 53)", (flags, value) => {
    flags.port = parsePort("dns-port", value);
  }),
  valueRow(
    "federations",
    "NAME=DOMAIN,...",
    "federations of clusters; not with a ConfigMap or directory",
    (flags, value) => {
      try {
        readKubeDnsConfig({ federations: value });
      } catch (error) {
        if (!(error instanceof KubeDnsConfigError)) throw error;
        throw invalid("federations", value, error.message);
      }
      flags.federations = value;
    },
  ),
  valueRow(
    "config-map",
    "NAME",
    "ConfigMap with federations, stubDomains, upstreamNameservers",
    (flags, value) => {
      flags.configMap = value;
    },
  ),
  valueRow(
    "config-map-namespace",
    "NAMESPACE",
    "namespace of that ConfigMap (default kube-system)",
    (flags, value) => {
      flags.configMapNamespace = value;
    },
  ),
  valueRow("config-dir", "FOLDER", "the same as a directory, one file per key", (flags, value) => {
    flags.configDir = value;
  }),
  valueRow(
    "config-period",
    "DURATION",
    "interval between checks of the directory (default 10s)",
    (flags, value) => {
      flags.configPeriod = readDuration("config-period", value);
    },
  ),
  valueRow(
    "initial-sync-timeout",
    "DURATION",
    "time to wait for the cluster (default 60s)",
    (flags, value) => {
      flags.initialSyncTimeout = readDuration("initial-sync-timeout", value);
    },
  ),
  switchRow(["profiling"], "serve profiles on localhost:6060", (flags, on) => {
    flags.profiling = on;
  }),
  manifestsRow(),
  ...commonRows<KubeDnsFlags>(),
];

const COMMAND: DaemonCommand<KubeDnsFlags> = {
  name: "kube-dns",
  about: ["portolan kube-dns serves the names of a cluster as kube-dns did."],
  rows: KUBE_DNS_FLAGS,
  versionText: `Kube-DNS ${version}`,
  defaults: () => ({
    domain: Name.parse("cluster.local."),
    nameservers: [],
    kubeconfig: "",
    server: "",
    healthPort: 8081,
    bind: "0.0.0.0",
    port: 53,
    federations: "",
    configMap: "",
    configMapNamespace: "kube-system",
    configDir: "",
    configPeriod: 10_000,
    initialSyncTimeout: 60_000,
    profiling: false,
    manifests: [],
    version: false,
    help: false,
    logFormat: "text",
  }),
};

/** @returns the exit code */
export function kubeDns(argv: readonly string[]): Promise<number> {
  // Go's only switch that also takes a word.
  const words = argv.map((word) => word.replace(/^(--?version)=raw$/, "$1"));
  return daemonCommand(COMMAND, words, async (flags) => {
    if (flags.configMap !== "" && flags.configDir !== "")
      throw new FatalError("cannot use both ConfigMap and ConfigDir", GLOG_FATAL);
    return await run(flags);
  });
}

async function run(flags: KubeDnsFlags): Promise<number> {
  const clock = new SystemClock({ keepAlive: true });
  const log = daemonLog(flags.logFormat, clock);
  const random = systemRandom();
  const ended = Promise.withResolvers<number>();
  const stopped = new AbortController();
  const environment = process.env;
  let made: Promise<ApiClient> | undefined;
  const client = (): Promise<ApiClient> => {
    made ??= makeClusterClient({ ...flags, clock, environment });
    return made;
  };
  const server = new KubeDns({
    ...flags,
    cluster: clusterLines(flags),
    metrics: metricsOf(environment),
    clock,
    random,
    log,
    resolveHost: systemResolver,
    resolvConf: "/etc/resolv.conf",
    findPlace: async () =>
      flags.manifests.length > 0 ? undefined : await findNodePlace(await client(), stopped.signal),
    failed: (reason) => ended.reject(new FatalError(reason, GLOG_FATAL)),
  });
  const start = async (): Promise<void> => {
    try {
      // Checked here, where the flags are known: the server only sees a Corefile.
      if (flags.manifests.length === 0) await findCluster({ ...flags, environment });
      await server.start(await makeSource());
    } catch (error) {
      throw new FatalError(messageOf(error), GLOG_FATAL);
    }
  };
  const makeSource = async (): Promise<ConfigSource> => {
    const updates = new ConfigUpdates((config) => server.take(config), log);
    const { configMap: name, configMapNamespace: namespace, configDir: path, configPeriod: period } = flags;
    if (path !== "") return new ConfigDirectory({ path, period, clock, updates });
    if (name === "") return fixedSource(flags, (config) => server.take(config));
    const fraction = () => random.fraction();
    return new ConfigMapWatch({ client: await client(), namespace, name, updates, clock, random: fraction });
  };
  const stop = async (): Promise<void> => {
    stopped.abort();
    await server.stop();
    await (await made?.catch(() => undefined))?.stop();
  };
  return await runDaemon({ start: startSmall(start, clock), stop }, log, ended.promise).catch(
    (error: unknown) => {
      throw error instanceof ClusterAccessError ? new FatalError(error.message, GLOG_FATAL) : error;
    },
  );
}

function clusterLines({ manifests, kubeconfig, server }: KubeDnsFlags): string[] {
  if (manifests.length > 0) return [`manifests ${manifests.map(quoted).join(" ")}`];
  return [
    ...(kubeconfig === "" ? [] : [`kubeconfig ${quoted(resolve(kubeconfig))}`]),
    ...(server === "" ? [] : [`endpoint ${quoted(server)}`]),
  ];
}

/** The flags as a configuration that never changes. */
function fixedSource(flags: KubeDnsFlags, take: (config: KubeDnsConfig) => Promise<void>): ConfigSource {
  const { federations } = readKubeDnsConfig({ federations: flags.federations });
  return {
    start: () => take({ federations, stubDomains: new Map(), upstreamNameservers: flags.nameservers }),
    stop: async () => undefined,
  };
}

function metricsOf(environment: NodeJS.ProcessEnv) {
  const port = environment.PROMETHEUS_PORT ?? "";
  if (port === "") return undefined;
  const {
    PROMETHEUS_PATH = "/metrics",
    PROMETHEUS_NAMESPACE = "skydns",
    PROMETHEUS_SUBSYSTEM = "skydns",
  } = environment;
  return {
    host: "",
    port: parsePort("PROMETHEUS_PORT", port),
    path: PROMETHEUS_PATH,
    prefix: `${PROMETHEUS_NAMESPACE}_${PROMETHEUS_SUBSYSTEM}`,
  };
}
