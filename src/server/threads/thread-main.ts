/** What a follower's thread runs. */
import { parentPort, workerData } from "node:worker_threads";
import { nodeHost } from "../../corefile/node-host.ts";
import { SystemClock } from "../../lib/clock.ts";
import { udpOf } from "../../transports/fastest-udp.ts";
import { systemRandom, thisMachine } from "../configuration/machine.ts";
import { PluginRegistry } from "../configuration/plugin-registry.ts";
import { runFollower } from "./follower.ts";
import type { FollowerSettings } from "./protocol.ts";

if (parentPort !== null) {
  const { plane, plugins, pluginBudget, version, defaultPort }: FollowerSettings = workerData;
  runFollower(parentPort, {
    plane,
    registry: new PluginRegistry(plugins, { budget: pluginBudget }),
    host: nodeHost,
    machine: thisMachine(process.env),
    clock: new SystemClock(),
    random: systemRandom(),
    version,
    defaultPort,
    listenUdp: () => udpOf(process.env),
    faults: process,
  });
}
