import { exitCodesLine } from "../exit-codes.ts";
import { FlagError, type FlagRow, flagLines, parseFlags } from "../flag-table.ts";
import { fitted } from "../terminal.ts";
import { defaultLiveFlags, type LiveFlags } from "./flags.ts";

/** Reads the flags, runs until done or until the reader of the output goes away, and reports errors. @returns the exit code */
export async function runLive(
  argv: readonly string[],
  rows: readonly FlagRow<LiveFlags>[],
  usageLine: string,
  show: (flags: LiveFlags, signal: AbortSignal) => Promise<void>,
): Promise<number> {
  const usage = fitted(
    [`Usage: ${usageLine}`, "", ...flagLines(rows), "", exitCodesLine("live"), ""].join("\n"),
  );
  try {
    const flags = defaultLiveFlags();
    const [word] = parseFlags(rows, flags, argv, true);
    if (word !== undefined) throw new FlagError(`unexpected word: ${word}`, 2, true);
    if (flags.help) process.stdout.write(usage);
    else await show(flags, endOfReader());
    return 0;
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    process.stderr.write(`${error.message}\n${error.showUsage ? usage : ""}`);
    return error.exitCode;
  }
}

/** Aborts when the reader of the output goes away, as `head` does. */
function endOfReader(): AbortSignal {
  const end = new AbortController();
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => end.abort());
  return end.signal;
}

/** Prints a message that is not part of the requested output. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}
