/** Pauses of a measured server, as its probe writes them down. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { PauseSample } from "./memory-results.ts";

const PROBE = fileURLToPath(new URL("pause-probe.mjs", import.meta.url));

/** For the environment of a server under Node: it writes its pauses to a file. */
export function pauseEnvironment(file: string): Readonly<Record<string, string>> {
  return { NODE_OPTIONS: `--import=${pathToFileURL(PROBE).href}`, BENCH_PAUSES: file };
}

/** Reads the longest pauses from one call to the next. */
export class PauseLog {
  readonly #file: string;
  #read = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** Since the last call, up to half a second ago. `undefined` where nothing was written. */
  take(): PauseSample | undefined {
    const text = existsSync(this.#file) ? readFileSync(this.#file, "latin1") : "";
    const lines = text.slice(this.#read).split("\n");
    const whole = lines.slice(0, -1);
    this.#read += whole.reduce((sum, line) => sum + line.length + 1, 0);
    if (whole.length === 0) return undefined;
    const samples: PauseSample[] = whole.map((line) => JSON.parse(line));
    return {
      turn: Math.max(...samples.map(({ turn }) => turn)),
      processor: Math.max(...samples.map(({ processor }) => processor)),
      collection: Math.max(...samples.map(({ collection }) => collection)),
    };
  }
}
