/** `portolan`: the server for embedding in other programs and tests. */
import { nodeHost } from "./corefile/node-host.ts";
import { SystemClock } from "./lib/clock.ts";
import { MemoryLog, type ProcessLog } from "./lib/log.ts";
import { MetricsRegistry } from "./lib/metrics.ts";
import { version } from "./lib/version.ts";
import { systemRandom, thisMachine } from "./server/machine.ts";
import { PluginRegistry } from "./server/plugin-registry.ts";
import { Server } from "./server/server.ts";

export { version } from "./lib/version.ts";
export { ConfigurationError } from "./server/configuration.ts";
export type { Server } from "./server/server.ts";
export { ListenError } from "./transports/transport.ts";

export interface CreateServerOptions {
  /** Text of the Corefile. */
  readonly corefile: string;
  /** Name for messages, and the place that imports are relative to. */
  readonly file?: string;
  readonly log?: ProcessLog;
}

/** A server of one's own; call `start()`, and `stop()` at the end. Use port 0 in tests and read `addresses`. */
export async function createServer(options: CreateServerOptions): Promise<Server> {
  return new Server({
    source: () => ({ text: options.corefile, file: options.file ?? "Corefile" }),
    registry: await PluginRegistry.builtIn(),
    host: nodeHost,
    machine: thisMachine(process.env),
    clock: new SystemClock(),
    random: systemRandom(),
    log: options.log ?? new MemoryLog(),
    metrics: new MetricsRegistry(),
    version,
  });
}
