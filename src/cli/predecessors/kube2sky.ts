/** `portolan kube2sky`: writes SkyDNS records for a cluster to etcd, with kube2sky's flags (kube-dns facts 4). */
import { resolve } from "node:path";
import { Name } from "../../dns/name.ts";
import { ClusterAccessError } from "../../kubernetes/api/access.ts";
import { ClusterStore } from "../../kubernetes/store/store.ts";
import { SystemClock } from "../../lib/clock.ts";
import { parseGoDuration } from "../../lib/duration.ts";
import { version } from "../../lib/version.ts";
import { makeClusterSource } from "../../predecessors/cluster-source.ts";
import { Kube2sky } from "../../predecessors/kube2sky/kube2sky.ts";
import { systemRandom } from "../../server/configuration/machine.ts";
import { FlagError, type FlagRow, parsePort } from "../flag-table.ts";
import {
  type CommonFlags,
  commonRows,
  daemonLog,
  FatalError,
  parseOldFlags,
  runDaemon,
  usageOf,
  withFlagErrors,
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

/** What glog ended with. */
const FATAL = 255;

export const KUBE2SKY_FLAGS: readonly FlagRow<Kube2skyFlags>[] = [
  {
    names: ["domain"],
    value: "ZONE",
    about: "zone of the cluster (default cluster.local)",
    apply: (flags, value) => {
      const name = Name.tryParse(value);
      if (name === undefined || name.isRoot)
        throw new FlagError(`invalid value "${value}" for flag -domain: not a domain`, 2, true);
      flags.domain = name.toLowerCase();
    },
  },
  {
    names: ["etcd-server"],
    value: "URL",
    about: "etcd; can be repeated (default http://127.0.0.1:4001)",
    apply: (flags, value) => {
      const url = URL.parse(value);
      if (url === null || !/^https?:$/.test(url.protocol))
        throw new FlagError(`invalid value "${value}" for flag -etcd-server: not a URL`, 2, true);
      flags.etcd.push(`${url.protocol}//${url.host}`);
    },
  },
  {
    names: ["etcd-mutation-timeout"],
    value: "DURATION",
    about: "time to retry a write before exiting (default 10s)",
    apply: (flags, value) => {
      const milliseconds = parseGoDuration(value);
      if (milliseconds === undefined || milliseconds < 0)
        throw new FlagError(
          `invalid value "${value}" for flag -etcd-mutation-timeout: not a duration`,
          2,
          true,
        );
      flags.mutationTimeout = milliseconds;
    },
  },
  {
    names: ["kubecfg-file"],
    value: "FILE",
    about: "kubeconfig (default: in-cluster)",
    apply: (flags, value) => {
      flags.kubeconfig = value;
    },
  },
  {
    names: ["kube-master-url"],
    value: "URL",
    about: "URL of the API, instead of that of the kubeconfig; environment variables are expanded",
    apply: (flags, value) => {
      flags.server = value
        .replaceAll(/\$\{?(\w+)\}?/g, (_all, name: string) => process.env[name] ?? "")
        .replace(/\/$/, "");
    },
  },
  {
    names: ["healthz-port"],
    value: "PORT",
    about: "port of /readiness (default 8081)",
    apply: (flags, value) => {
      flags.healthPort = parsePort("healthz-port", value);
    },
  },
  {
    names: ["manifests"],
    value: "PATH",
    about: "file or directory with the objects, instead of the API; can be repeated",
    apply: (flags, value) => void flags.manifests.push(resolve(value)),
  },
  ...commonRows<Kube2skyFlags>(),
];

const usage = () =>
  usageOf(
    "kube2sky",
    ["portolan kube2sky writes SkyDNS's records for the services of a cluster into etcd, as kube2sky did."],
    KUBE2SKY_FLAGS,
  );

/** @returns the exit code */
export function kube2sky(argv: readonly string[]): Promise<number> {
  return withFlagErrors(usage, async () => {
    const flags: Kube2skyFlags = {
      domain: Name.parse("cluster.local."),
      etcd: [],
      mutationTimeout: 10_000,
      kubeconfig: "",
      server: "",
      healthPort: 8081,
      manifests: [],
      version: false,
      help: false,
    };
    parseOldFlags(KUBE2SKY_FLAGS, flags, argv);
    if (flags.help || flags.version) {
      process.stdout.write(flags.help ? usage() : `${version}\n`);
      return 0;
    }
    const log = daemonLog();
    const clock = new SystemClock({ keepAlive: true });
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
      throw error instanceof ClusterAccessError ? new FatalError(error.message, FATAL) : error;
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
      givenUp: (error) => ended.reject(new FatalError(`etcd takes no changes: ${error.message}`, FATAL)),
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
