/** Shared by the commands that replace older programs: flags as in Go's programs, and a run until a signal. */
import { resolve } from "node:path";
import { LogWriter, ProcessLog, writeAllSync } from "../../lib/logging/log.ts";
import { type LogFormat, type LogFormatName, logFormat } from "../../lib/logging/log-format.ts";
import { version } from "../../lib/text/version.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { parseGoDuration } from "../../lib/time/duration.ts";
import { readMemoryLimit } from "../../runtime/memory-limit.ts";
import { beginSmall, staySmall } from "../../runtime/serving-process.ts";
import { exitCodesLine } from "../exit-codes.ts";
import {
  FlagError,
  type FlagRow,
  flagLines,
  type LogFlags,
  logFormatRow,
  parseFlags,
  switchRow,
  valueRow,
} from "../flag-table.ts";
import { lastWords } from "../last-words.ts";
import { fitted } from "../terminal.ts";

const STDERR = 2;

export interface Daemon {
  /** Throws if it cannot start. */
  start(): Promise<unknown>;
  stop(): Promise<void>;
  /** Handlers of further signals. */
  readonly signals?: Readonly<Partial<Record<"SIGHUP" | "SIGUSR1", () => void>>>;
}

/** A daemon cannot start or continue. The message is one line. */
export class FatalError extends Error {
  override readonly name = "FatalError";
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Starts a long-running service with a small heap, as the server does. */
export function startSmall(start: () => Promise<unknown>, clock: Clock): () => Promise<void> {
  return async () => {
    const beginning = await beginSmall();
    await start();
    await staySmall(beginning, readMemoryLimit(), clock);
  };
}

export interface CommonFlags extends LogFlags {
  version: boolean;
  help: boolean;
}

/** Log flags of the old programs. They are accepted and ignored. */
const LOG_FLAGS = [
  ["v", "LEVEL"],
  ["vmodule", "PATTERN=N"],
  ["logtostderr", undefined],
  ["alsologtostderr", undefined],
  ["log-dir", "FOLDER"],
  ["log-file", "FILE"],
  ["log-flush-frequency", "DURATION"],
  ["log-backtrace-at", "PLACE"],
  ["logging-format", "FORMAT"],
  ["stderrthreshold", "LEVEL"],
  ["skip-headers", undefined],
] as const;

export function commonRows<F extends CommonFlags>(): FlagRow<F>[] {
  return [
    switchRow(["version"], "show the version and exit", (flags, on) => {
      flags.version = on;
    }),
    switchRow(["help", "h"], "show this help", (flags, on) => {
      flags.help = on;
    }),
    logFormatRow(),
    ...LOG_FLAGS.map(([name, value]) => ({
      names: [name],
      value,
      about: "accepted without effect",
      apply: () => undefined,
    })),
  ];
}

/** Reads a command line whose flag names may have `_` in place of `-`. @throws FlagError */
export function parseOldFlags<F>(rows: readonly FlagRow<F>[], flags: F, argv: readonly string[]): string[] {
  const words = argv.map((word) =>
    word.startsWith("-")
      ? word.replace(
          /^(--?)([^=]*)/,
          (_all, dashes: string, name: string) => dashes + name.replaceAll("_", "-"),
        )
      : word,
  );
  return parseFlags(rows, flags, words, false);
}

/** A whole number from a flag. @throws FlagError */
export function readCount(name: string, value: string): number {
  if (/^\d{1,9}$/.test(value)) return Number(value);
  throw new FlagError(`invalid value "${value}" for flag -${name}: not a whole number`, 2, true);
}

export function usageOf(name: string, about: readonly string[], rows: readonly FlagRow<never>[]): string {
  const own = rows.filter(({ about: text }) => text !== "accepted without effect");
  const lines = [...about, "", `Usage: portolan ${name} [FLAGS]`, "", ...flagLines(own), "", LOG_WORDS, ""];
  return fitted([...lines, exitCodesLine("daemon"), ""].join("\n"));
}

const LOG_WORDS = "The flags of the log (-v, -logtostderr and so on) are accepted without effect.";

export class DaemonLog extends ProcessLog {
  readonly #writer: LogWriter;

  constructor(writer: LogWriter, format: LogFormat) {
    super(writer, { format });
    this.#writer = writer;
  }

  /** Resolves when every line is written: the last one says why the program ends. */
  flush(): Promise<void> {
    return this.#writer.flush();
  }
}

export function daemonLog(formatName: LogFormatName, clock: Clock): DaemonLog {
  const format = logFormat(formatName, () => clock.wallTime());
  const writeSync = (text: string): void => writeAllSync(STDERR, text);
  return new DaemonLog(new LogWriter(process.stderr, { writeSync, format }), format);
}

/**
 * Runs until a signal arrives or `ended` settles.
 * @param ended resolves with an exit code, or rejects with a fatal error
 */
export async function runDaemon(daemon: Daemon, log: DaemonLog, ended: Promise<number>): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const onSignal = (signal: NodeJS.Signals): void => {
    log.info(`${signal}: shutting down`);
    resolve(0);
  };
  // Without a listener, SIGUSR1 makes Node open its debugger port.
  const others = Object.entries({ SIGUSR1: () => undefined, ...daemon.signals });
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  for (const [signal, listener] of others) process.on(signal, listener);
  // The start may wait for something that never arrives, so signals end it as well.
  const running = daemon.start().then(() => ended);
  running.catch(() => undefined);
  try {
    return await Promise.race([promise, ended, running]);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    log.write("fatal", error.message);
    return error instanceof FatalError ? error.exitCode : 1;
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
    for (const [signal, listener] of others) process.off(signal, listener);
    await daemon.stop();
    await log.flush();
  }
}

/** Runs a command and reports errors of its command line in one line. */
export async function withFlagErrors(
  usage: () => string,
  flags: LogFlags,
  run: () => Promise<number>,
): Promise<number> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof FlagError) {
      process.stderr.write(`${error.message}\n${error.showUsage ? usage() : ""}`);
      return error.exitCode;
    }
    if (!(error instanceof FatalError)) throw error;
    process.stderr.write(lastWords(error.message, flags.logFormat));
    return error.exitCode;
  }
}

/** Exit code of glog's Fatal. */
export const GLOG_FATAL = 255;

/** A command that runs until it is told to stop. */
export interface DaemonCommand<F extends CommonFlags> {
  readonly name: string;
  /** Description, one line per element. */
  readonly about: readonly string[];
  readonly rows: readonly FlagRow<F>[];
  /** The flags without any on the command line; a new object each time. */
  readonly defaults: () => F;
  /** The output of `-version`; without it, the version alone. */
  readonly versionText?: string;
}

/**
 * Reads the command line, handles `-help` and `-version`, and reports errors in one line.
 * @param run receives the words after the flags
 * @returns the exit code
 */
export function daemonCommand<F extends CommonFlags>(
  { name, about, rows, defaults, versionText = version }: DaemonCommand<F>,
  argv: readonly string[],
  run: (flags: F, words: readonly string[]) => Promise<number>,
): Promise<number> {
  const usage = () => usageOf(name, about, rows);
  const flags = defaults();
  return withFlagErrors(usage, flags, async () => {
    const words = parseOldFlags(rows, flags, argv);
    if (flags.help || flags.version) {
      process.stdout.write(flags.help ? usage() : `${versionText}\n`);
      return 0;
    }
    return await run(flags, words);
  });
}

/** @throws FlagError if words follow the flags of a command that takes none */
export function refuseWords(words: readonly string[]): void {
  if (words.length > 0) throw new FlagError(`extra command line arguments: [${words.join(" ")}]`, 2, true);
}

/** A flag with a Go duration, 0 or more. */
export function durationRow<F>(
  name: string,
  about: string,
  set: (flags: F, milliseconds: number) => void,
): FlagRow<F> {
  return valueRow(name, "DURATION", about, (flags, value) => {
    const milliseconds = parseGoDuration(value);
    if (milliseconds === undefined || milliseconds < 0)
      throw new FlagError(`invalid value "${value}" for flag -${name}: not a duration`, 2, true);
    set(flags, milliseconds);
  });
}

/** The flag `-manifests` of commands that watch a cluster. */
export function manifestsRow<F extends { readonly manifests: string[] }>(): FlagRow<F> {
  return valueRow(
    "manifests",
    "PATH",
    "file or directory with the objects, instead of the API; can be repeated",
    (flags, value) => void flags.manifests.push(resolve(value)),
  );
}
