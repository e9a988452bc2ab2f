/**
 * `portolan exechealthz`: serves the results of commands as health pages, with the flags of exechealthz
 * (docs/spec/kube-dns.md#exechealthz).
 */
import { SystemClock } from "../../lib/time/clock.ts";
import { parseGoDuration } from "../../lib/time/duration.ts";
import { Exechealthz } from "../../predecessors/exechealthz/exechealthz.ts";
import { FlagError, type FlagRow, parsePort, switchRow, valueRow } from "../flag-table.ts";
import {
  type CommonFlags,
  commonRows,
  type DaemonCommand,
  daemonCommand,
  daemonLog,
  FatalError,
  runDaemon,
} from "./daemon.ts";

interface ExechealthzFlags extends CommonFlags {
  commands: string[];
  paths: string[];
  port: number;
  period: number;
  latency: number;
  quiet: boolean;
  output: boolean;
}

export const EXECHEALTHZ_FLAGS: readonly FlagRow<ExechealthzFlags>[] = [
  valueRow(
    "cmd",
    "COMMAND",
    "command to run with sh; can be repeated (default echo healthz)",
    (flags, value) => void flags.commands.push(value),
  ),
  valueRow(
    "url",
    "PATH",
    "path of the result, in the order of the commands (default /healthz)",
    (flags, value) => void flags.paths.push(value),
  ),
  valueRow("port", "PORT", "port for HTTP (default 8080)", (flags, value) => {
    flags.port = parsePort("port", value);
  }),
  valueRow("period", "DURATION", "interval between runs of a command (default 2s)", (flags, value) => {
    flags.period = readDuration("period", value);
  }),
  valueRow("latency", "DURATION", "older results count as failures (default 30s)", (flags, value) => {
    flags.latency = readDuration("latency", value);
  }),
  switchRow(["quiet"], "log only errors", (flags, on) => {
    flags.quiet = on;
  }),
  switchRow(["output"], "answer with the output of the command instead of ok", (flags, on) => {
    flags.output = on;
  }),
  ...commonRows<ExechealthzFlags>(),
];

const COMMAND: DaemonCommand<ExechealthzFlags> = {
  name: "exechealthz",
  about: [
    "portolan exechealthz runs commands and says over HTTP whether they succeeded, as exechealthz did.",
  ],
  rows: EXECHEALTHZ_FLAGS,
  defaults: () => ({
    commands: [],
    paths: [],
    port: 8080,
    period: 2_000,
    latency: 30_000,
    quiet: false,
    output: false,
    version: false,
    help: false,
    logFormat: "text",
  }),
};

/** @returns the exit code */
export function exechealthz(argv: readonly string[]): Promise<number> {
  return daemonCommand(COMMAND, argv, async (flags) => {
    const commands = flags.commands.length === 0 ? ["echo healthz"] : flags.commands;
    const paths = flags.paths.length === 0 ? ["/healthz"] : flags.paths;
    if (commands.length !== paths.length)
      throw new FatalError(
        `there are ${commands.length} commands (-cmd) and ${paths.length} paths (-url): each command needs a path`,
      );
    const repeated = paths.find((path, index) => paths.indexOf(path) !== index);
    if (repeated !== undefined) throw new FatalError(`the path ${repeated} is listed twice`);
    const clock = new SystemClock({ keepAlive: true });
    const log = daemonLog(flags.logFormat, clock);
    const { promise, resolve } = Promise.withResolvers<number>();
    const daemon = new Exechealthz({
      probes: commands.map((command, index) => ({ command, path: paths[index] ?? "/healthz" })),
      port: flags.port,
      period: flags.period,
      latency: flags.latency,
      showsOutput: flags.output,
      clock,
      finished: (path, error) => {
        if (error !== "") log.error(`Healthz probe error on ${path}: ${error}`);
        else if (!flags.quiet) log.info(`Healthz probe ok: ${path}`);
      },
      quit: () => resolve(0),
    });
    const start = async (): Promise<void> => {
      const port = await daemon.start();
      if (!flags.quiet) log.info(`Listening on 0.0.0.0:${port}`);
    };
    return runDaemon({ start, stop: () => daemon.stop() }, log, promise);
  });
}

function readDuration(name: string, value: string): number {
  const milliseconds = parseGoDuration(value);
  if (milliseconds !== undefined && milliseconds > 0) return milliseconds;
  throw new FlagError(`invalid value "${value}" for flag -${name}: not a duration such as 2s`, 2, true);
}
