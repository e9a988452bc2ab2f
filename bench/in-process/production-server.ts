/** A server in this process with the chain of a production cluster. */
import { join } from "node:path";
import { nodeHost } from "../../src/corefile/node-host.ts";
import { MemoryLog } from "../../src/lib/logging/log.ts";
import { MetricsRegistry } from "../../src/lib/metrics/metrics.ts";
import { SystemClock } from "../../src/lib/time/clock.ts";
import { systemRandom, thisMachine } from "../../src/server/configuration/machine.ts";
import { PluginRegistry } from "../../src/server/configuration/plugin-registry.ts";
import { Server } from "../../src/server/server.ts";
import { portolanCorefile } from "../servers/corefile.ts";
import type { Deployment } from "../servers/server.ts";

/** @param deployment without ports, as the system chooses them */
export async function startProductionServer(
  deployment: Omit<Deployment, "port" | "metricsPort">,
): Promise<{ readonly server: Server; readonly log: MemoryLog }> {
  const log = new MemoryLog();
  const corefile = portolanCorefile({ ...deployment, port: 0, metricsPort: 0 });
  const server = new Server({
    source: () => ({ text: corefile, file: join(deployment.folder, "Corefile") }),
    registry: await PluginRegistry.builtIn(),
    host: nodeHost,
    machine: thisMachine({}),
    clock: new SystemClock(),
    random: systemRandom(),
    log,
    metrics: new MetricsRegistry(),
    version: "0.0.0",
  });
  await server.start();
  return { server, log };
}
