/** Pauses of a measured server, as its probe writes them down. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { capture } from "../../scripts/lib/captured-process.ts";
import type { PauseSample } from "./memory-results.ts";

const HERE = dirname(fileURLToPath(import.meta.url));
const PROBE = join(HERE, "pause-probe.mjs");
const PROCESSOR_CLOCK = join(HERE, "processor-clock.c");

export interface PauseFiles {
  /** Where the server writes its pauses. */
  readonly pauses: string;
  /** The library that {@link compileProcessorClock} made. */
  readonly processorClock: string | undefined;
  /** Where it writes down its longest turns when asked to. */
  readonly turns: string | undefined;
}

/** For the environment of a server under Node: it writes its pauses to a file. */
export function pauseEnvironment({
  pauses,
  processorClock,
  turns,
}: PauseFiles): Readonly<Record<string, string>> {
  return {
    NODE_OPTIONS: `--import=${pathToFileURL(PROBE).href}`,
    BENCH_PAUSES: pauses,
    ...(processorClock !== undefined && { BENCH_PROCESSOR_CLOCK: processorClock }),
    ...(turns !== undefined && { BENCH_TURNS: turns }),
  };
}

/**
 * @returns the path of a library, or `undefined` where there is no compiler: collections are then taken by the clock alone, and turns by the
 * kernel's ticks
 */
export async function compileProcessorClock(folder: string): Promise<string | undefined> {
  const library = join(folder, "processor-clock.so");
  const args = ["-O2", "-shared", "-fPIC", "-o", library, PROCESSOR_CLOCK];
  try {
    const { code } = await capture("cc", args, { cwd: "/", timeout: 60_000 });
    return code === 0 ? library : undefined;
  } catch {
    return undefined;
  }
}

interface Line extends Omit<PauseSample, "p999"> {
  readonly thread: number;
  /** Turns by the eighths of powers of two of microseconds on the processor. */
  readonly counts: readonly (readonly [bucket: number, turns: number])[];
}

/** Reads the longest pauses from one call to the next. */
export class PauseLog {
  readonly #file: string;
  #read = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** Since the last call, up to half a second ago. `undefined` where nothing was written. */
  take(): { readonly main: PauseSample; readonly others: PauseSample | undefined } | undefined {
    const text = existsSync(this.#file) ? readFileSync(this.#file, "latin1") : "";
    const lines = text.slice(this.#read).split("\n");
    const whole = lines.slice(0, -1);
    this.#read += whole.reduce((sum, line) => sum + line.length + 1, 0);
    const all = whole.map((line): Line => JSON.parse(line));
    const main = longestOf(all.filter(({ thread }) => thread === 0));
    return main && { main, others: longestOf(all.filter(({ thread }) => thread !== 0)) };
  }
}

function longestOf(lines: readonly Line[]): PauseSample | undefined {
  if (lines.length === 0) return undefined;
  const collections = lines.flatMap(({ collectionProcessor }) => collectionProcessor ?? []);
  return {
    turn: Math.max(...lines.map(({ turn }) => turn)),
    processor: Math.max(...lines.map(({ processor }) => processor)),
    long: lines.reduce((sum, { long }) => sum + (long ?? 0), 0),
    longTurns: lines.flatMap(({ longTurns }) => longTurns ?? []),
    p999: percentile(lines, 0.999),
    collection: Math.max(...lines.map(({ collection }) => collection)),
    ...(collections.length > 0 && { collectionProcessor: Math.max(...collections) }),
  };
}

/** @returns the upper end of the bucket, milliseconds */
function percentile(lines: readonly Line[], share: number): number {
  const turns = new Map<number, number>();
  let all = 0;
  for (const [bucket, count] of lines.flatMap(({ counts }) => counts)) {
    turns.set(bucket, (turns.get(bucket) ?? 0) + count);
    all += count;
  }
  let below = 0;
  for (const [bucket, count] of [...turns].sort(([one], [other]) => one - other)) {
    below += count;
    if (below >= share * all) return 2 ** (bucket / 8) / 1000;
  }
  return 0;
}
