/**
 * `portolan dnsmasq-nanny`: replaces dnsmasq in the kube-dns pod, with the flags of its nanny
 * (docs/spec/kube-dns.md#dnsmasq-nanny).
 */

import { networkInterfaces } from "node:os";
import { messageOf } from "../../lib/text/message-of.ts";
import { SystemClock } from "../../lib/time/clock.ts";
import { DnsmasqArgumentError } from "../../predecessors/dnsmasq-nanny/dnsmasq-arguments.ts";
import { DnsmasqNanny } from "../../predecessors/dnsmasq-nanny/dnsmasq-nanny.ts";
import { resolverThrough, splitServer, systemResolver } from "../../predecessors/server-addresses.ts";
import { systemRandom } from "../../server/configuration/machine.ts";
import { FlagError, type FlagRow, switchRow, valueRow } from "../flag-table.ts";
import {
  type CommonFlags,
  commonRows,
  type DaemonCommand,
  daemonCommand,
  daemonLog,
  durationRow,
  FatalError,
  GLOG_FATAL,
  refuseWords,
  runDaemon,
  startSmall,
} from "./daemon.ts";

interface NannyFlags extends CommonFlags {
  dnsmasq: string | undefined;
  restarts: boolean;
  configFolder: string;
  syncInterval: number;
  logInterval: number;
  kubeDnsServer: string;
}

export const DNSMASQ_NANNY_FLAGS: readonly FlagRow<NannyFlags>[] = [
  valueRow("dnsmasq", "PATH", "supervise this dnsmasq instead of answering queries", (flags, value) => {
    flags.dnsmasq = value;
  }),
  valueRow("dnsmasqExec", "PATH", "accepted without effect: see -dnsmasq", () => undefined),
  switchRow(["restartDnsmasq"], "apply configuration changes", (flags, on) => {
    flags.restarts = on;
  }),
  valueRow(
    "configDir",
    "FOLDER",
    "kube-dns's ConfigMap (default /etc/k8s/dns/dnsmasq-nanny)",
    (flags, value) => {
      flags.configFolder = value;
    },
  ),
  durationRow("syncInterval", "interval between checks for changes (default 10s)", (flags, milliseconds) => {
    flags.syncInterval = milliseconds;
  }),
  durationRow(
    "logInterval",
    "interval between statistics in the log (default 0s, never)",
    (flags, milliseconds) => {
      flags.logInterval = milliseconds;
    },
  ),
  valueRow(
    "kubednsServer",
    "SERVER",
    "server for names below cluster.local (default 127.0.0.1:10053)",
    (flags, value) => {
      if (splitServer(value) === undefined)
        throw new FlagError(`invalid value "${value}" for flag -kubednsServer: not an address`, 2, true);
      flags.kubeDnsServer = value;
    },
  ),
  ...commonRows<NannyFlags>(),
];

const COMMAND: DaemonCommand<NannyFlags> = {
  name: "dnsmasq-nanny",
  about: [
    "portolan dnsmasq-nanny answers as dnsmasq does with the options after -- and kube-dns's ConfigMap.",
    "With -dnsmasq it runs a real dnsmasq.",
  ],
  rows: DNSMASQ_NANNY_FLAGS,
  defaults: () => ({
    dnsmasq: undefined,
    restarts: false,
    configFolder: "/etc/k8s/dns/dnsmasq-nanny",
    syncInterval: 10_000,
    logInterval: 0,
    kubeDnsServer: "127.0.0.1:10053",
    version: false,
    help: false,
    logFormat: "text",
  }),
};

/** @returns the exit code */
export function dnsmasqNanny(argv: readonly string[]): Promise<number> {
  const end = argv.indexOf("--");
  const own = end === -1 ? argv : argv.slice(0, end);
  return daemonCommand(COMMAND, own, async (flags, extra) => {
    refuseWords(extra);
    const clock = new SystemClock({ keepAlive: true });
    const log = daemonLog(flags.logFormat, clock);
    const ended = Promise.withResolvers<number>();
    const throughKubeDns = resolverThrough(flags.kubeDnsServer, clock);
    const nanny = new DnsmasqNanny({
      ...flags,
      words: end === -1 ? [] : argv.slice(end + 1),
      resolveHost: (host) =>
        /(^|\.)cluster\.local\.?$/.test(host) ? throughKubeDns(host) : systemResolver(host),
      ownAddresses: () =>
        Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address)),
      clock,
      random: systemRandom(),
      log,
      failed: (reason) => ended.reject(new FatalError(reason, GLOG_FATAL)),
    });
    const start = async (): Promise<void> => {
      try {
        await nanny.start();
      } catch (error) {
        const code = error instanceof DnsmasqArgumentError ? 1 : GLOG_FATAL;
        throw new FatalError(messageOf(error), code);
      }
    };
    const signals = { SIGHUP: () => void nanny.refresh(), SIGUSR1: () => nanny.report() };
    const stop = (): Promise<void> => nanny.stop();
    // With -dnsmasq, another program answers.
    const daemon = { start: flags.dnsmasq === undefined ? startSmall(start, clock) : start, stop, signals };
    return await runDaemon(daemon, log, ended.promise);
  });
}
