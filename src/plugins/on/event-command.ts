import { nodeCrypto } from "../../lib/files/node-modules.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Logger, PluginInstance } from "../../plugin/index.ts";
import type { HookCommand } from "./command-line.ts";

export type CommandEvent = "startup" | "shutdown" | "certrenew";

/** The part of `node:child_process` in use. */
export type Spawn = (file: string, args: readonly string[], options: { stdio: "inherit" }) => ChildCommand;

export interface ChildCommand {
  once(event: "spawn", listener: () => void): unknown;
  once(event: "error", listener: (error: Error) => void): unknown;
  once(event: "exit", listener: (status: number | null, signal: string | null) => void): unknown;
  unref(): void;
}

/** Startup commands of one configuration, one after the other; those in the background delay no other. */
export class StartupQueue {
  #last: Promise<void> = Promise.resolve();
  #ended = false;

  add(task: () => Promise<void>): void {
    this.#last = this.#last.then(() => (this.#ended ? undefined : task()));
  }

  /** Drops the commands that have not started. */
  end(): void {
    this.#ended = true;
  }
}

export interface EventCommandParts {
  readonly log: Logger;
  readonly queue: StartupQueue;
  readonly spawn: Spawn;
}

export class EventCommand implements PluginInstance {
  readonly #event: CommandEvent;
  readonly #command: HookCommand;
  readonly #parts: EventCommandParts;
  readonly #id: string = nodeCrypto().randomUUID();

  constructor(event: CommandEvent, command: HookCommand, parts: EventCommandParts) {
    this.#event = event;
    this.#command = command;
    this.#parts = parts;
  }

  started(): void {
    if (this.#event === "startup") this.#parts.queue.add(() => this.#run());
  }

  stop(): void {
    this.#parts.queue.end();
  }

  async shutdown(): Promise<void> {
    if (this.#event === "shutdown") await this.#run();
  }

  /** Resolves when the command has ended, or has started if it runs in the background. Failures are logged. */
  #run(): Promise<void> {
    const { file, args, background } = this.#command;
    const { log, spawn } = this.#parts;
    const text = [file, ...args].join(" ");
    log.info(`${background ? "Nonblocking" : "Blocking"} Command "${text}" with ID ${this.#id}`);
    return new Promise((resolve) => {
      const fail = (reason: string): void => {
        log.error(`error on '${this.#event}' hook: command "${text}" with ID ${this.#id} ${reason}`);
        resolve();
      };
      let child: ChildCommand;
      try {
        child = spawn(file, args, { stdio: "inherit" });
      } catch (error) {
        fail(`cannot be run: ${messageOf(error)}`);
        return;
      }
      child.once("error", (error) => fail(`cannot be run: ${error.message}`));
      if (background) {
        child.unref();
        child.once("spawn", resolve);
        return;
      }
      child.once("exit", (status, signal) => {
        if (status === 0) resolve();
        else fail(signal === null ? `ended with status ${status}` : `was killed by ${signal}`);
      });
    });
  }
}
