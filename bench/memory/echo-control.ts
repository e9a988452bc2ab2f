/**
 * The echo server under load: a control for turns of a server's event loop. Its long turns are the kernel's, or the
 * machine's.
 */
import { join } from "node:path";
import { freePort } from "../../test/support/free-ports.ts";
import { runDnsperf } from "../run/dnsperf.ts";
import { RunningServer } from "../run/running-server.ts";
import { compileFloor } from "../servers/floor.ts";
import { ServerUnavailable } from "../servers/server.ts";
import type { EchoTurns } from "./memory-results.ts";
import { externalNames, writeQueries } from "./query-lists.ts";

/** Seconds, each time. */
const LENGTH = 6;
const NAMES = 1_000;

/** Looked at now and then, while the server that is measured rests. */
export class EchoControl {
  readonly #program: string;
  readonly #folder: string;
  readonly #queries: string;
  #sum: EchoTurns = { seconds: 0, long: 0, longest: 0 };

  private constructor(program: string, folder: string) {
    this.#program = program;
    this.#folder = folder;
    this.#queries = writeQueries(folder, "echo", externalNames(NAMES));
  }

  /** @returns `undefined` where there is no compiler */
  static async compile(folder: string): Promise<EchoControl | undefined> {
    const program = join(folder, "echo-control");
    try {
      await compileFloor(program);
      return new EchoControl(program, folder);
    } catch (error) {
      if (error instanceof ServerUnavailable) return undefined;
      throw error;
    }
  }

  /** Of all times so far. */
  get sum(): EchoTurns {
    return this.#sum;
  }

  /** @throws Error where it does not say what it should at its end */
  async look(): Promise<void> {
    const port = await freePort();
    const plan = { command: this.#program, args: [`${port}`, "turns"], files: {} };
    await using server = RunningServer.startMeasured("echo", plan, {
      folder: join(this.#folder, "echo"),
      port,
    });
    const shape = { transport: "udp", length: LENGTH, clients: 128, outstanding: 128 } as const;
    await runDnsperf({ port, queries: this.#queries, ...shape });
    await server.stop();
    const numbers = /^(\d+) (\d+) (\d+\.\d+)$/m.exec(server.output);
    if (numbers === null)
      throw new Error(`the echo server did not say how long its turns were: ${server.output}`);
    const [milliseconds = 0, long = 0, longest = 0] = numbers.slice(1).map(Number);
    this.#sum = {
      seconds: this.#sum.seconds + milliseconds / 1000,
      long: this.#sum.long + long,
      longest: Math.max(this.#sum.longest, longest),
    };
  }
}
