/** `portolan node-cache`: the DNS cache of a node, with the flags of NodeLocal DNSCache (docs/spec/kube-dns.md#node-cache). */

import { existsSync } from "node:fs";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { SystemClock } from "../../lib/time/clock.ts";
import { parseGoDuration } from "../../lib/time/duration.ts";
import { NodeCache } from "../../predecessors/node-cache/node-cache.ts";
import { NodeNetwork } from "../../predecessors/node-cache/node-network.ts";
import { runCommand } from "../../predecessors/node-cache/run-command.ts";
import { PluginListError } from "../../server/configuration/plugin-registry.ts";
import { ListenError } from "../../transports/transport.ts";
import { banner } from "../banner.ts";
import { FlagError, type FlagRow, parseFlags, parsePort, switchRow, valueRow } from "../flag-table.ts";
import { SERVER_FLAGS, type ServerFlags } from "../flags.ts";
import { defaultPluginFlags, pluginLines, pluginRegistry } from "../plugin-list.ts";
import { serve } from "../serve.ts";
import { daemonLog, FatalError, usageOf, withFlagErrors } from "./daemon.ts";

interface NodeCacheFlags extends ServerFlags {
  localAddresses: string[];
  setupInterface: boolean;
  interfaceName: string;
  setupRules: boolean;
  syncInterval: number;
  metricsAddress: { host: string; port: number };
  baseCorefile: string;
  corefile: string;
  kubeDnsFolder: string | undefined;
  upstreamService: string;
  healthPort: number;
  skipTeardown: boolean;
  reloadWithSignal: boolean;
}

/** Milliseconds between two checks of the template and the ConfigMap. */
const CONFIG_PERIOD = 10_000;
const KUBE_DNS_FOLDER = "/etc/kube-dns";
/** Retry interval while a program that does not share the port holds it. */
const AGAIN_MS = 100;
/** Rules and addresses are renewed at least this often. They last for several such intervals. */
const MAX_SYNC_INTERVAL = 10_000;
const LEASE_INTERVALS = 3;
const PATIENCE_MS = 300_000;

export const NODE_CACHE_FLAGS: readonly FlagRow<NodeCacheFlags>[] = [
  valueRow(
    "localip",
    "ADDRESSES",
    "addresses to answer on, separated by commas, all of one family",
    (flags, value) => {
      flags.localAddresses = value.split(",").map((each) => each.trim());
      const bad = flags.localAddresses.find((each) => parseIpAddress(each) === undefined);
      if (bad !== undefined) throw new FlagError(`invalid localip specified - "${bad}"`, 1, false);
      if (new Set(flags.localAddresses.map((each) => each.includes(":"))).size > 1)
        throw new FlagError(`unexpected mix of IPv4 and IPv6 addresses in localip - "${value}"`, 1, false);
    },
  ),
  switchRow(["setupinterface"], "create the interface with these addresses (default true)", (flags, on) => {
    flags.setupInterface = on;
  }),
  valueRow(
    ["interfacename", "intfname"],
    "NAME",
    "name of that interface (default nodelocaldns)",
    (flags, value) => {
      if (!/^[^\s/]{1,15}$/.test(value))
        throw new FlagError(`invalid interfacename specified - "${value}"`, 1, false);
      flags.interfaceName = value;
    },
  ),
  switchRow(["setupiptables"], "create the rules that redirect queries (default true)", (flags, on) => {
    flags.setupRules = on;
  }),
  switchRow(["setupebtables"], "accepted without effect", () => undefined),
  valueRow(
    "syncinterval",
    "SECONDS",
    "interval between checks of the network (default 60)",
    (flags, value) => {
      flags.syncInterval = readSyncInterval(value);
    },
  ),
  valueRow(
    "metrics-listen-address",
    "ADDRESS",
    "address of the setup metrics (default 0.0.0.0:9353)",
    (flags, value) => {
      const at = value.lastIndexOf(":");
      const port = parsePort("metrics-listen-address", value.slice(at + 1));
      flags.metricsAddress = { host: value.slice(0, Math.max(0, at)).replace(/^\[(.*)\]$/, "$1"), port };
    },
  ),
  valueRow(
    "basecorefile",
    "FILE",
    "template of the Corefile (default /etc/coredns/Corefile.base)",
    (flags, value) => {
      flags.baseCorefile = value;
    },
  ),
  valueRow(
    "corefile",
    "FILE",
    "Corefile made from the template (default /etc/Corefile); -conf takes precedence",
    (flags, value) => {
      flags.corefile = value;
    },
  ),
  valueRow(
    "kubednscm",
    "FOLDER",
    "kube-dns's ConfigMap (default /etc/kube-dns, if it exists)",
    (flags, value) => {
      flags.kubeDnsFolder = value;
    },
  ),
  valueRow(
    "upstreamsvc",
    "NAME",
    "service in front of the cluster's DNS servers (default kube-dns)",
    (flags, value) => {
      flags.upstreamService = value;
    },
  ),
  valueRow("health-port", "PORT", "port of health, for the rules (default 8080)", (flags, value) => {
    flags.healthPort = parsePort("health-port", value);
  }),
  switchRow(["skipteardown"], "keep the interface and the rules at exit", (flags, on) => {
    flags.skipTeardown = on;
  }),
  switchRow(
    ["reloadwithsignal"],
    "reload as soon as the Corefile is written, without the plugin reload",
    (flags, on) => {
      flags.reloadWithSignal = on;
    },
  ),
  ...SERVER_FLAGS,
];

/** Whole seconds. The flag was once a duration in which `60ns` meant 60 seconds. */
function readSyncInterval(value: string): number {
  if (/^\d{1,9}$/.test(value) && Number(value) > 0) return Number(value) * 1000;
  const milliseconds = parseGoDuration(value);
  if (milliseconds === undefined || milliseconds <= 0)
    throw new FlagError(
      `invalid value "${value}" for flag -syncinterval: a number of seconds was expected`,
      2,
      true,
    );
  return milliseconds < 0.001 ? milliseconds * 1e9 : milliseconds;
}

const usage = () =>
  usageOf(
    "node-cache",
    ["portolan node-cache is the DNS cache of a node, as NodeLocal DNSCache was."],
    NODE_CACHE_FLAGS,
  );

/** @returns the exit code */
export function nodeCache(argv: readonly string[]): Promise<number> {
  const flags: NodeCacheFlags = {
    ...defaultPluginFlags(),
    conf: "",
    port: 53,
    pidfile: "",
    logFormat: "text",
    listPlugins: false,
    version: false,
    quiet: false,
    help: false,
    localAddresses: [],
    setupInterface: true,
    interfaceName: "nodelocaldns",
    setupRules: true,
    syncInterval: 60_000,
    metricsAddress: { host: "0.0.0.0", port: 9353 },
    baseCorefile: "/etc/coredns/Corefile.base",
    corefile: "/etc/Corefile",
    kubeDnsFolder: undefined,
    upstreamService: "kube-dns",
    healthPort: 8080,
    skipTeardown: false,
    reloadWithSignal: false,
  };
  return withFlagErrors(usage, flags, async () => {
    const words = parseFlags(NODE_CACHE_FLAGS, flags, argv, false);
    if (words.length > 0) throw new FlagError(`extra command line arguments: [${words.join(" ")}]`, 1, false);
    if (flags.help || flags.version) {
      process.stdout.write(flags.help ? usage() : banner());
      return 0;
    }
    const registry = await pluginRegistry(flags, undefined).catch((error: unknown) => {
      throw error instanceof PluginListError ? new FatalError(error.message) : error;
    });
    if (flags.listPlugins) {
      process.stdout.write(`${pluginLines(registry).join("\n")}\n`);
      return 0;
    }
    if (flags.localAddresses.length === 0) throw new FlagError('invalid localip specified - ""', 1, false);
    return await run(flags, registry);
  });
}

async function run(
  flags: NodeCacheFlags,
  registry: Awaited<ReturnType<typeof pluginRegistry>>,
): Promise<number> {
  const clock = new SystemClock({ keepAlive: true });
  const log = daemonLog(flags.logFormat, clock);
  const corefile = flags.conf === "" ? flags.corefile : flags.conf;
  const { localAddresses, interfaceName, healthPort, port } = flags;
  const syncInterval = Math.min(flags.syncInterval, MAX_SYNC_INTERVAL);
  const network = new NodeNetwork({
    lease: Math.max(1, Math.ceil((LEASE_INTERVALS * syncInterval) / 1000)),
    ...{ localAddresses, interfaceName, healthPort, port },
    run: runCommand,
    owner: `portolan-node-cache-${process.pid}-${Math.floor(clock.wallTime())}`,
  });
  const cache = new NodeCache({
    ...{ localAddresses, network, corefile, port, clock, log },
    setsUpInterface: flags.setupInterface,
    setsUpRules: flags.setupRules,
    tearsDown: !flags.skipTeardown,
    syncInterval,
    baseCorefile: flags.baseCorefile,
    kubeDnsFolder: flags.kubeDnsFolder ?? (existsSync(KUBE_DNS_FOLDER) ? KUBE_DNS_FOLDER : ""),
    configPeriod: CONFIG_PERIOD,
    clusterDns: clusterAddress(flags.upstreamService),
    metrics: flags.metricsAddress,
    changed: () => {
      if (flags.reloadWithSignal) process.kill(process.pid, "SIGUSR1");
    },
  });
  try {
    await cache.prepare();
  } catch (error) {
    await log.flush();
    throw new FatalError(`node-cache: ${messageOf(error)}`);
  }
  // The log has the reason why there is no Corefile, so it goes first.
  await log.flush();
  let hasWaited = false;
  const start = clock.now();
  return await serve({ ...flags, conf: corefile }, registry, {
    // The next instance answers before this one exits: no other server can answer on a node-local address.
    sharesPorts: true,
    started: () => cache.serve(),
    stopping: () => cache.leave(),
    ended: () => cache.stop(),
    async startAgain(error) {
      if (!(error instanceof Error && isInUse(error))) return false;
      if (clock.now() - start > PATIENCE_MS) return false;
      if (!hasWaited) log.info(`waiting for the previous instance to exit: ${error.message}`);
      hasWaited = true;
      await new Promise<void>((resolve) => clock.after(AGAIN_MS, resolve));
      return true;
    },
  });
}

/** Reads the service variables that kubelet sets in pods. */
function clusterAddress(service: string): string | undefined {
  const address = process.env[`${service.toUpperCase().replaceAll("-", "_")}_SERVICE_HOST`];
  return address === undefined || parseIpAddress(address) === undefined ? undefined : address;
}

/** The layer that bound the address may have put a place or its own name around the reason. */
function isInUse(error: Error): boolean {
  if (error instanceof ListenError && error.code === "EADDRINUSE") return true;
  if (error.cause instanceof Error && isInUse(error.cause)) return true;
  return error.message.includes("the address is in use");
}
