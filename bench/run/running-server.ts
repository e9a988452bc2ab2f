/** A server process on the core of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Deployment, LaunchPlan, ServerKind } from "../servers/server.ts";
import { onLoadCore, onServerCore } from "./cores.ts";
import { cpuSeconds, residentMegabytes } from "./process-usage.ts";

/** Milliseconds from the polite signal to the other one. */
const STOP_PATIENCE = 5_000;
const OUTPUT_LIMIT = 256 * 1024;

export class RunningServer implements AsyncDisposable {
  readonly kind: Pick<ServerKind, "name" | "isEcho">;
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #folder: string;
  #output = "";
  /** Characters printed so far, those included that `#output` has dropped. */
  #printed = 0;
  #ending: string | undefined;

  /** Starts a server that is to be measured. Whether it answers, it has to show by itself. */
  static start(kind: ServerKind, deployment: Deployment): RunningServer {
    return new RunningServer(kind, deployment, kind.launch(deployment), onServerCore);
  }

  /** Starts a command on the core of the servers. */
  static startMeasured(
    name: string,
    plan: LaunchPlan,
    place: Pick<Deployment, "folder" | "port">,
  ): RunningServer {
    return new RunningServer({ name, isEcho: false }, place, plan, onServerCore);
  }

  /** Starts a server that the measured ones ask. */
  static startUpstream(plan: LaunchPlan, place: Pick<Deployment, "folder" | "port">): RunningServer {
    return new RunningServer({ name: "upstream", isEcho: false }, place, plan, onLoadCore);
  }

  private constructor(
    kind: Pick<ServerKind, "name" | "isEcho">,
    { folder, port }: Pick<Deployment, "folder" | "port">,
    plan: LaunchPlan,
    pin: typeof onServerCore,
  ) {
    this.kind = kind;
    this.port = port;
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
    for (const [name, text] of Object.entries(plan.files)) writeFileSync(join(folder, name), text);
    const [command, ...args] = pin(plan.command, plan.args);
    const child = spawn(command, args, {
      cwd: folder,
      env: { ...process.env, ...plan.env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.#output = (this.#output + text).slice(-OUTPUT_LIMIT);
        this.#printed += text.length;
      });
    child.once("exit", (code, signal) => {
      this.#ending = `${signal ?? `exit code ${code}`}`;
    });
    child.once("error", (error) => {
      this.#ending = error.message;
    });
    process.once("exit", this.#kill);
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error(`${this.kind.name} did not start: ${this.#ending}`);
    return this.#child.pid;
  }

  /** Its latest output. */
  get output(): string {
    return this.#output;
  }

  /** Characters printed so far: a place for `outputSince`. */
  get printed(): number {
    return this.#printed;
  }

  /** Its output after `place`, or the end of it if it is too long to keep. */
  outputSince(place: number): string {
    const fresh = this.#printed - place;
    return fresh >= this.#output.length ? this.#output : this.#output.slice(this.#output.length - fresh);
  }

  /** CPU time so far, in seconds, its children's included. */
  cpuSeconds(ticksPerSecond: number): number {
    return cpuSeconds(this.pid, ticksPerSecond);
  }

  get residentMegabytes(): number {
    return residentMegabytes(this.pid);
  }

  /** @throws Error with what it printed, when it has ended */
  assertRunning(): void {
    if (this.#ending === undefined) return;
    throw new Error(`${this.kind.name} ended (${this.#ending}):\n${this.#output}`);
  }

  async stop(): Promise<void> {
    if (this.#ending === undefined) {
      // Not "exit": what it printed last may come behind it.
      const ended = once(this.#child, "close");
      this.#child.kill("SIGTERM");
      const timer = setTimeout(this.#kill, STOP_PATIENCE);
      await ended;
      clearTimeout(timer);
    }
    process.removeListener("exit", this.#kill);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  readonly #kill = (): void => {
    this.#child.kill("SIGKILL");
  };
}
