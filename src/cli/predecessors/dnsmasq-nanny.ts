/** `portolan dnsmasq-nanny`: dnsmasq's part of the kube-dns pod, with the flags of its nanny (kube-dns facts 6.2). */
import { SystemClock } from "../../lib/clock.ts";
import { parseGoDuration } from "../../lib/duration.ts";
import { version } from "../../lib/version.ts";
import { DnsmasqArgumentError } from "../../predecessors/dnsmasq-nanny/dnsmasq-arguments.ts";
import { DnsmasqNanny } from "../../predecessors/dnsmasq-nanny/dnsmasq-nanny.ts";
import { resolverThrough, splitServer, systemResolver } from "../../predecessors/server-addresses.ts";
import { systemRandom } from "../../server/configuration/machine.ts";
import { FlagError, type FlagRow, switchRow } from "../flag-table.ts";
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

interface NannyFlags extends CommonFlags {
  dnsmasq: string | undefined;
  restarts: boolean;
  configFolder: string;
  syncInterval: number;
  logInterval: number;
  kubeDnsServer: string;
}

/** What glog ended with. */
const FATAL = 255;

function duration(name: string, value: string): number {
  const milliseconds = parseGoDuration(value);
  if (milliseconds !== undefined && milliseconds >= 0) return milliseconds;
  throw new FlagError(`invalid value "${value}" for flag -${name}: not a duration`, 2, true);
}

export const DNSMASQ_NANNY_FLAGS: readonly FlagRow<NannyFlags>[] = [
  {
    names: ["dnsmasq"],
    value: "PATH",
    about: "supervise this dnsmasq instead of answering queries",
    apply: (flags, value) => {
      flags.dnsmasq = value;
    },
  },
  {
    names: ["dnsmasqExec"],
    value: "PATH",
    about: "accepted without effect: see -dnsmasq",
    apply: () => undefined,
  },
  switchRow(["restartDnsmasq"], "apply configuration changes", (flags, on) => {
    flags.restarts = on;
  }),
  {
    names: ["configDir"],
    value: "FOLDER",
    about: "kube-dns's ConfigMap (default /etc/k8s/dns/dnsmasq-nanny)",
    apply: (flags, value) => {
      flags.configFolder = value;
    },
  },
  {
    names: ["syncInterval"],
    value: "DURATION",
    about: "interval between checks for changes (default 10s)",
    apply: (flags, value) => {
      flags.syncInterval = duration("syncInterval", value);
    },
  },
  {
    names: ["logInterval"],
    value: "DURATION",
    about: "interval between statistics in the log (default 0s, never)",
    apply: (flags, value) => {
      flags.logInterval = duration("logInterval", value);
    },
  },
  {
    names: ["kubednsServer"],
    value: "SERVER",
    about: "server for names below cluster.local (default 127.0.0.1:10053)",
    apply: (flags, value) => {
      if (splitServer(value) === undefined)
        throw new FlagError(`invalid value "${value}" for flag -kubednsServer: not an address`, 2, true);
      flags.kubeDnsServer = value;
    },
  },
  ...commonRows<NannyFlags>(),
];

const usage = () =>
  usageOf(
    "dnsmasq-nanny",
    [
      "portolan dnsmasq-nanny answers as dnsmasq would by the words behind --, and by kube-dns's ConfigMap.",
      "With -dnsmasq it runs a real dnsmasq.",
    ],
    DNSMASQ_NANNY_FLAGS,
  );

/** @returns the exit code */
export function dnsmasqNanny(argv: readonly string[]): Promise<number> {
  return withFlagErrors(usage, async () => {
    const end = argv.indexOf("--");
    const flags: NannyFlags = {
      dnsmasq: undefined,
      restarts: false,
      configFolder: "/etc/k8s/dns/dnsmasq-nanny",
      syncInterval: 10_000,
      logInterval: 0,
      kubeDnsServer: "127.0.0.1:10053",
      version: false,
      help: false,
    };
    const own = parseOldFlags(DNSMASQ_NANNY_FLAGS, flags, end === -1 ? argv : argv.slice(0, end));
    if (own.length > 0) throw new FlagError(`extra command line arguments: [${own.join(" ")}]`, 2, true);
    if (flags.help || flags.version) {
      process.stdout.write(flags.help ? usage() : `${version}\n`);
      return 0;
    }
    const log = daemonLog();
    const clock = new SystemClock({ keepAlive: true });
    const ended = Promise.withResolvers<number>();
    const throughKubeDns = resolverThrough(flags.kubeDnsServer, clock);
    const nanny = new DnsmasqNanny({
      ...flags,
      words: end === -1 ? [] : argv.slice(end + 1),
      resolveHost: (host) =>
        /(^|\.)cluster\.local\.?$/.test(host) ? throughKubeDns(host) : systemResolver(host),
      clock,
      random: systemRandom(),
      log,
      failed: (reason) => ended.reject(new FatalError(reason, FATAL)),
    });
    const start = async (): Promise<void> => {
      try {
        await nanny.start();
      } catch (error) {
        const code = error instanceof DnsmasqArgumentError ? 1 : FATAL;
        throw new FatalError(error instanceof Error ? error.message : String(error), code);
      }
    };
    return await runDaemon({ start, stop: () => nanny.stop() }, log, ended.promise);
  });
}
