/** How long the machine itself holds up whatever runs on the server's core: a control for turns of a server's event loop. */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { capture } from "../../scripts/lib/captured-process.ts";
import { onServerCore } from "../run/cores.ts";
import type { StolenTime } from "./memory-results.ts";

const SOURCE = join(dirname(fileURLToPath(import.meta.url)), "stolen-time.c");
/** Milliseconds on the processor, each time. */
const LENGTH = 3_000;
/** Milliseconds until it must have had them. */
const PATIENCE = 120_000;

/** Looked for now and then, while the server that is measured rests. */
export class StolenTimeControl {
  readonly #program: string;
  #sum: StolenTime = { seconds: 0, long: 0, longest: 0 };

  private constructor(program: string) {
    this.#program = program;
  }

  /** @returns `undefined` where there is no compiler */
  static async compile(folder: string): Promise<StolenTimeControl | undefined> {
    const program = join(folder, "stolen-time");
    try {
      const { code } = await capture("cc", ["-O2", "-o", program, SOURCE], { cwd: "/", timeout: 60_000 });
      return code === 0 ? new StolenTimeControl(program) : undefined;
    } catch {
      return undefined;
    }
  }

  /** Of all times so far. */
  get sum(): StolenTime {
    return this.#sum;
  }

  /** @throws Error where it does not end as it should */
  async look(): Promise<void> {
    const [command, ...args] = onServerCore(this.#program, [`${LENGTH}`]);
    const { code, output } = await capture(command, args, { cwd: "/", timeout: PATIENCE });
    const numbers = /^(\d+) (\d+) (\d+\.\d+)$/m.exec(output);
    if (code !== 0 || numbers === null) throw new Error(`stolen-time ended with ${code}: ${output}`);
    const [milliseconds = 0, long = 0, longest = 0] = numbers.slice(1).map(Number);
    this.#sum = {
      seconds: this.#sum.seconds + milliseconds / 1000,
      long: this.#sum.long + long,
      longest: Math.max(this.#sum.longest, longest),
    };
  }
}
