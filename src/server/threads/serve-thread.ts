/** Serves on a thread of its own. */
import type { MessagePort } from "node:worker_threads";
import { nodeHost } from "../../corefile/node-host.ts";
import { SystemClock } from "../../lib/time/clock.ts";
import { udpOf } from "../../transports/fastest-udp.ts";
import { systemRandom, thisMachine } from "../configuration/machine.ts";
import { PluginRegistry } from "../configuration/plugin-registry.ts";
import { runFollower } from "./follower.ts";
import type { FollowerSettings } from "./protocol.ts";

export function serveThread(port: MessagePort, settings: FollowerSettings): void {
  const { plane, plugins, pluginBudget, version, defaultPort, logFormat } = settings;
  runFollower(port, {
    plane,
    registry: new PluginRegistry(plugins, { budget: pluginBudget }),
    host: nodeHost,
    machine: thisMachine(process.env),
    clock: new SystemClock(),
    random: systemRandom(),
    version,
    defaultPort,
    logFormat,
    listenUdp: () => udpOf(process.env),
    faults: process,
  });
}
