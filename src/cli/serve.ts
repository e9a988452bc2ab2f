/** Runs the server until a signal ends it. */

import { writeFile } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { inspect } from "node:util";
import { nodeHost } from "../corefile/node-host.ts";
import { fileFault } from "../lib/files/file-fault.ts";
import { LogWriter, ProcessLog, writeAllSync } from "../lib/logging/log.ts";
import { logFormat } from "../lib/logging/log-format.ts";
import { MetricsRegistry } from "../lib/metrics/metrics.ts";
import { messageOf } from "../lib/text/message-of.ts";
import { version } from "../lib/text/version.ts";
import { SystemClock } from "../lib/time/clock.ts";
import { loadMemoryRelease } from "../runtime/memory-release.ts";
import { isPlain, RUNTIME_VARIABLE } from "../runtime/plain.ts";
import { beginSmall, type SmallProcess, staySmall } from "../runtime/serving-process.ts";
import { ConfigurationError, type CorefileSource } from "../server/configuration/configuration.ts";
import { systemRandom, thisMachine } from "../server/configuration/machine.ts";
import type { PluginRegistry } from "../server/configuration/plugin-registry.ts";
import { catchStrayFaults } from "../server/configuration/stray-faults.ts";
import { Server } from "../server/server.ts";
import { listenUdp } from "../transports/udp.ts";
import { banner } from "./banner.ts";
import { isStandardInput, readSource } from "./corefile-source.ts";
import type { ServerFlags } from "./flags.ts";
import { lastWords } from "./last-words.ts";
import { type Ending, obeySignals } from "./signals.ts";
import { zoneLines } from "./zone-list.ts";

const STDOUT = 1;
/** Bytes of heap; more than a small Corefile and the client of a cluster need. */
const MUCH_AT_START = 26 * 1024 * 1024;

/** Hooks of a command that runs a server. */
export interface ServeHooks {
  /** See `ServerOptions`. */
  readonly sharesPorts?: boolean;
  /** Called when the server listens. */
  started?(): Promise<void>;
  /** Called before the server stops, while it still answers. */
  stopping?(): Promise<void>;
  /** Called when the server has stopped listening, before the process exits. */
  ended?(): Promise<void>;
  /** Called when the server cannot start. @returns whether to try again */
  startAgain?(error: unknown): Promise<boolean>;
}

/** @returns the exit code (docs/spec/coredns-behaviour.md#signals) */
export async function serve(
  flags: ServerFlags,
  registry: PluginRegistry,
  hooks: ServeHooks = {},
): Promise<number> {
  const clock = new SystemClock();
  const format = logFormat(flags.logFormat, () => clock.wallTime());
  const writer = new LogWriter(process.stdout, { writeSync: (text) => writeAllSync(STDOUT, text), format });
  const log = new ProcessLog(writer, { format });
  const ended = Promise.withResolvers<Ending>();
  let firstSource: CorefileSource | undefined;
  try {
    firstSource = readSource(flags.conf, flags.port);
  } catch (error) {
    return failStart(error, flags);
  }
  const fromStdin = isStandardInput(flags.conf) ? firstSource : undefined;
  const metrics = new MetricsRegistry();
  const machine = thisMachine(process.env);
  const beginning = await beginSmall();
  await nextTurn();
  let heapAtStart = 0;
  let small: SmallProcess | undefined;
  const server = new Server({
    // Standard input can only be read once.
    source: () => fromStdin ?? readSource(flags.conf, flags.port),
    registry,
    host: nodeHost,
    machine,
    clock,
    random: systemRandom(),
    log,
    metrics,
    version,
    defaultPort: flags.port,
    sharesPorts: hooks.sharesPorts ?? false,
    beforeListening: async () => {
      // The collections block; run them in a turn of their own.
      await nextTurn();
      if (hasMuch(MUCH_AT_START)) await (await loadMemoryRelease()).allInFewTurns();
      heapAtStart = process.memoryUsage().heapTotal;
      await nextTurn();
    },
    // The plain way, for comparison or as a fallback.
    ...(process.env.PORTOLAN_UDP === "dgram" && { listenUdp: async () => listenUdp }),
    onReplaced: () => small?.soon(),
    onFatal: (message) => ended.resolve({ code: 1, fatal: message }),
  });
  process.title = "portolan";
  if (isPlain()) log.write("info", `${RUNTIME_VARIABLE}=plain: only documented features of Node are used`);
  catchStrayFaults(process, {
    loaded: () => registry.loadedFiles,
    log,
    metrics,
    end(error) {
      writer.flushSync();
      process.stderr.write(lastWords(`${inspect(error)}\n\nNode.js ${process.version}`, flags.logFormat));
      process.exit(1);
    },
  });
  let isStopping = false;
  const stoppable = {
    reload: () => server.reload(),
    stop: async () => {
      isStopping = true;
      await hooks.stopping?.();
      return server.stop();
    },
  };
  const release = obeySignals(process, stoppable, log, ended.resolve);
  for (;;) {
    try {
      await server.start();
      break;
    } catch (error) {
      if (isStopping || (await hooks.startAgain?.(error)) === true) {
        if (isStopping) break;
        continue;
      }
      release();
      await hooks.ended?.();
      writer.flushSync();
      process.exit(failStart(error, flags));
    }
  }
  await nextTurn();
  small = await staySmall(beginning, machine.memoryLimit, clock);
  // Garbage since the sockets were opened.
  if (hasMuch(Math.max(MUCH_AT_START, 1.25 * heapAtStart))) void (await loadMemoryRelease()).allInTurns();
  // A signal during the start may have ended the server.
  if (server.configuration !== undefined) {
    if (!flags.quiet) log.plainLines(zoneLines(server.configuration));
    await writePidFile(flags.pidfile, log);
    if (!flags.quiet) log.plainLines(banner().trimEnd().split("\n"));
  }

  if (!isStopping) await hooks.started?.();
  const ending = await ended.promise;
  await hooks.ended?.();
  if (ending.fatal !== undefined) log.write("fatal", ending.fatal);
  release();
  writer.flushSync();
  // After a fatal message or a forced quit, sockets are still open and must not keep the process alive.
  process.exit(ending.code);
}

/** The start reads far more than it keeps, above all YAML documents. */
function hasMuch(much: number): boolean {
  return process.memoryUsage().heapTotal > much;
}

function failStart(error: unknown, { logFormat }: ServerFlags): number {
  const text = messageOf(error);
  const words = error instanceof ConfigurationError ? text : withoutLineBreaks(text);
  process.stderr.write(lastWords(words, logFormat));
  return 1;
}

function withoutLineBreaks(text: string): string {
  return text.replace(/\s*\n\s*/g, " ");
}

async function writePidFile(path: string, log: ProcessLog): Promise<void> {
  if (path === "") return;
  try {
    await writeFile(path, `${process.pid}\n`, { mode: 0o644 });
  } catch (error) {
    log.error(`Could not write pidfile ${path}: ${fileFault(error)}`);
  }
}
