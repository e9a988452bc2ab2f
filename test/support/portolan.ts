/** The program under test, started as its users start it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeTree } from "../../scripts/lib/test-tree.ts";
import { waitForServer } from "./dns-client.ts";
import { namedPorts, type PortOf } from "./free-ports.ts";
import { type Ending, Program, type ProgramOptions, run } from "./program.ts";

export const projectRoot = fileURLToPath(new URL("../..", import.meta.url));
const launcher = join(projectRoot, "bin", "portolan");

/** Writes a Corefile with free ports; the one named `dns` is where the tests ask. */
export type CorefileWriter = (port: PortOf) => string;

export interface PortolanOptions {
  /** Further files beside the Corefile, by relative path. */
  readonly files?: Readonly<Record<string, string>>;
  /** Further arguments of the command line. */
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

export class Portolan implements AsyncDisposable {
  readonly address = "127.0.0.1";
  /** The port called `dns`. */
  readonly port: number;
  readonly portOf: PortOf;
  /** Its working directory, which holds the Corefile; removed at the end. */
  readonly folder: string;
  readonly program: Program;

  private constructor(folder: string, portOf: PortOf, args: readonly string[], options: ProgramOptions) {
    this.folder = folder;
    this.portOf = portOf;
    this.port = portOf("dns");
    this.program = portolan(args, { ...options, cwd: folder });
  }

  /**
   * Starts the program with a Corefile and waits until it answers.
   * @throws where it ends instead
   */
  static async start(corefile: CorefileWriter, options: PortolanOptions = {}): Promise<Portolan> {
    for (let attempt = 1; ; attempt++) {
      const server = await Portolan.#launch(corefile, options);
      try {
        await server.#untilItAnswers(options.args?.includes("-quiet") ?? false);
        return server;
      } catch (error) {
        await server[Symbol.asyncDispose]();
        const portWasTaken = server.program.errors.includes("in use");
        if (!portWasTaken || attempt === 3) throw error;
      }
    }
  }

  static async #launch(corefile: CorefileWriter, options: PortolanOptions): Promise<Portolan> {
    const folder = mkdtempSync(join(tmpdir(), "portolan-"));
    const portOf = await namedPorts();
    writeTree(folder, { ...options.files, Corefile: corefile(portOf) });
    const { args = [], env = {} } = options;
    return new Portolan(folder, portOf, ["-conf", "Corefile", ...args], { env });
  }

  /** Its log so far. */
  get log(): string {
    return this.program.output;
  }

  /** Octets of the process that are in memory, without the pages of its program: they come and go. */
  get residentMemory(): number {
    const status = readFileSync(`/proc/${this.program.pid}/status`, "latin1");
    const kibibytes = (field: string): number =>
      Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]);
    return 1024 * (kibibytes("VmRSS") - kibibytes("RssFile"));
  }

  waitForLog(pattern: RegExp, start = 0): Promise<RegExpExecArray> {
    return this.program.waitForOutput(pattern, start);
  }

  writeCorefile(text: string): void {
    writeFileSync(join(this.folder, "Corefile"), text);
  }

  /** Puts another Corefile into force, or the same again, by SIGUSR1. @returns what was logged */
  async reload(corefile?: CorefileWriter): Promise<string> {
    if (corefile !== undefined) this.writeCorefile(corefile(this.portOf));
    const start = this.log.length;
    this.program.kill("SIGUSR1");
    await this.waitForLog(/\[INFO\] Reloading complete|\[ERROR\] Restart failed/, start);
    return this.log.slice(start);
  }

  /** The body of a page of one of its HTTP endpoints. */
  async page(portName: string, path: string): Promise<{ readonly status: number; readonly body: string }> {
    const response = await fetch(`http://127.0.0.1:${this.portOf(portName)}${path}`);
    return { status: response.status, body: await response.text() };
  }

  stop(signal?: NodeJS.Signals): Promise<Ending> {
    return this.program.stop(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.program[Symbol.asyncDispose]();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #untilItAnswers(quiet: boolean): Promise<void> {
    const signal = AbortSignal.timeout(30_000);
    const answers = await waitForServer(this, () => this.program.hasEnded || signal.aborted);
    // The last lines of the start come behind the sockets.
    if (answers && !quiet) await this.waitForLog(/(?:^|\\n)\w+\/\w+, node\d/m);
    if (answers) return;
    throw new Error(`does not answer:\n${this.program.describe()}`);
  }
}

/** Starts the program with arguments as given. */
export function portolan(args: readonly string[], options: ProgramOptions = {}): Program {
  return new Program(process.execPath, [launcher, ...args], options);
}

/** The command line that starts the program, for those who run it through another one. */
export function portolanWords(...args: readonly string[]): string[] {
  return [process.execPath, launcher, ...args];
}

/** Runs the program to its end with arguments as given. */
export function runPortolan(args: readonly string[], options: ProgramOptions = {}): ReturnType<typeof run> {
  return run(process.execPath, [launcher, ...args], options);
}
