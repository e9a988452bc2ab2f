/** `portolan istio-coredns`: the plugin of Istio's CoreDNS, with its flags (docs/spec/kube-dns.md#istio). */
import { resolve } from "node:path";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { SystemClock } from "../../lib/time/clock.ts";
import { IstioCoreDns } from "../../predecessors/istio-coredns/istio-coredns.ts";
import { systemRandom } from "../../server/configuration/machine.ts";
import { FlagError, type FlagRow, parsePort, switchRow, valueRow } from "../flag-table.ts";
import {
  type CommonFlags,
  commonRows,
  daemonCommand,
  daemonLog,
  FatalError,
  manifestsRow,
  refuseWords,
  runDaemon,
  startSmall,
} from "./daemon.ts";

interface IstioFlags extends CommonFlags {
  kubeconfig: string;
  context: string;
  manifests: string[];
  defaultAddresses: string[];
  automaticAddresses: boolean;
  bind: string;
  port: number;
}

function address(name: string, value: string): string {
  if (parseIpAddress(value) !== undefined) return value;
  throw new FlagError(`invalid value "${value}" for flag -${name}: not an IP address`, 2, true);
}

export const ISTIO_COREDNS_FLAGS: readonly FlagRow<IstioFlags>[] = [
  valueRow("kubeconfig", "FILE", "kubeconfig (default: in-cluster)", (flags, value) => {
    flags.kubeconfig = value === "" ? "" : resolve(value);
  }),
  valueRow("context", "NAME", "its context (default: the current one)", (flags, value) => {
    flags.context = value;
  }),
  manifestsRow(),
  valueRow(
    "default-address",
    "ADDRESS",
    "answer for entries without addresses; can be repeated",
    (flags, value) => {
      if (value !== "") flags.defaultAddresses.push(address("default-address", value));
    },
  ),
  switchRow(
    ["automatic-addresses"],
    "give hosts without addresses some of 240.240.0.0/16, as Istio's proxies did",
    (flags, on) => {
      flags.automaticAddresses = on;
    },
  ),
  valueRow("bind-address", "ADDRESS", "address to listen on (default all addresses)", (flags, value) => {
    flags.bind = address("bind-address", value);
  }),
  valueRow("port", "PORT", "port for gRPC (default 8053)", (flags, value) => {
    flags.port = parsePort("port", value);
  }),
  ...commonRows<IstioFlags>(),
];

/** @returns the exit code */
export function istioCoreDns(argv: readonly string[]): Promise<number> {
  const command = {
    name: "istio-coredns",
    about: [
      "portolan istio-coredns answers for Istio's ServiceEntries over gRPC, for a CoreDNS that forwards to it.",
    ],
    rows: ISTIO_COREDNS_FLAGS,
    defaults: () => ({
      kubeconfig: "",
      context: "",
      manifests: [],
      defaultAddresses: [],
      automaticAddresses: false,
      bind: "",
      port: 8053,
      version: false,
      help: false,
      logFormat: "text" as const,
    }),
  };
  return daemonCommand<IstioFlags>(command, argv, async (flags, words) => {
    refuseWords(words);
    const clock = new SystemClock({ keepAlive: true });
    const log = daemonLog(flags.logFormat, clock);
    const ended = Promise.withResolvers<number>();
    const server = new IstioCoreDns({
      ...flags,
      clock,
      random: systemRandom(),
      log,
      failed: (reason) => ended.reject(new FatalError(reason)),
    });
    const start = async (): Promise<void> => {
      await server.start();
      log.info(`Listening on ${flags.bind}:${flags.port}`);
    };
    const daemon = { start: startSmall(start, clock), stop: () => server.stop() };
    return await runDaemon(daemon, log, ended.promise);
  });
}
