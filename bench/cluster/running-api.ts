/** The API of the benchmark, in a process of its own on the core of the load. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { ApiCommand, ApiReport, ApiStart, ChangeOptions } from "./api-commands.ts";

const program = fileURLToPath(new URL("api-process.ts", import.meta.url));

/**
 * Room for what young objects leave behind until then, and a way to collect at a moment of our choice: see `churn` in api-process.ts. By itself the API collects
 * the whole heap 1.2 times a second, for the octets of events, and the young objects 20 times.
 */
const COLLECTED_ON_REQUEST = ["--expose-gc", "--min-semi-space-size=64"];

type About<T extends ApiReport["about"]> = Extract<ApiReport, { about: T }>;

export class RunningApi implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly port: number;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
  }

  static async start(options: ApiStart): Promise<RunningApi> {
    const child = fork(program, [JSON.stringify(options)], {
      stdio: "inherit",
      execArgv: [...process.execArgv, ...COLLECTED_ON_REQUEST],
    });
    process.once("exit", () => child.kill());
    const { port } = await reported(child, "listening");
    return new RunningApi(child, port);
  }

  /**
   * Resolves when this many kinds have been listed and are watched, from the start or since the last {@link forget}.
   */
  listed(kinds: number): Promise<About<"listed">> {
    return this.#ask({ to: "awaitLists", kinds }, "listed");
  }

  /** Ends every watch with 410: everything has to be listed again. */
  forget(): void {
    this.#send({ to: "forget" });
  }

  churn(options: Omit<Extract<ApiCommand, { to: "churn" }>, "to">): Promise<About<"churned">> {
    return this.#ask({ to: "churn", ...options }, "churned");
  }

  /** Creates and deletes a Service. */
  appear(times: number, everyMs: number): Promise<About<"appeared">> {
    return this.#ask({ to: "appear", times, everyMs }, "appeared");
  }

  /** Has Services and slices come, change and go. */
  change(options: ChangeOptions): Promise<About<"changed">> {
    return this.#ask({ to: "change", ...options }, "changed");
  }

  stopChanges(): void {
    this.#send({ to: "stopChanges" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill();
    await ended;
  }

  #ask<T extends ApiReport["about"]>(command: ApiCommand, about: T): Promise<About<T>> {
    const answer = reported(this.#child, about);
    // A caller that fails before it waits for the answer ends the API, and reports its own failure rather than the
    // missing answer.
    answer.catch(() => undefined);
    this.#send(command);
    return answer;
  }

  #send(command: ApiCommand): void {
    this.#child.send(command);
  }
}

function reported<T extends ApiReport["about"]>(child: ChildProcess, about: T): Promise<About<T>> {
  const { promise, resolve, reject } = Promise.withResolvers<About<T>>();
  const listen = (message: unknown): void => {
    const report = message as ApiReport;
    if (isAbout(report, about)) finish(() => resolve(report));
  };
  const ended = (): void => finish(() => reject(new Error("the API of the benchmark ended")));
  const finish = (settle: () => void): void => {
    child.off("message", listen).off("exit", ended);
    settle();
  };
  child.on("message", listen).on("exit", ended);
  return promise;
}

function isAbout<T extends ApiReport["about"]>(report: ApiReport, about: T): report is About<T> {
  return report.about === about;
}
