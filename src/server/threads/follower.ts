/** The follower's side: a data plane on a thread of its own that obeys the leader. */
import type { MessagePort } from "node:worker_threads";
import { type LogSink, LogWriter, ProcessLog } from "../../lib/logging/log.ts";
import { type LogFormatName, logFormat } from "../../lib/logging/log-format.ts";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import type { ServerControl } from "../../plugin/contract/site.ts";
import type { Configuration, CorefileSource } from "../configuration/configuration.ts";
import { catchStrayFaults, type FaultSource } from "../configuration/stray-faults.ts";
import {
  configurationMessage,
  DataPlane,
  type DataPlaneOptions,
  type PreparedGeneration,
} from "../run/data-plane.ts";
import { ReceivingFeeds } from "./feed.ts";
import type { FollowerRequest, FromFollower, LastWords, ToFollower } from "./protocol.ts";

export interface FollowerOptions extends Omit<DataPlaneOptions, "log" | "metrics" | "control"> {
  /** The source of errors of added plugins outside any query: the thread. */
  readonly faults?: FaultSource;
  /** The format of its log lines, the same as the leader's. */
  readonly logFormat: LogFormatName;
}

/** A message between threads that is malformed or unexpected. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

/** Serves until the leader requests the stop; after that it no longer keeps the thread alive. */
export function runFollower(port: MessagePort, options: FollowerOptions): void {
  const follower = new Follower(port, options);
  port.on("message", (message: ToFollower) => follower.take(message));
}

interface Prepared {
  readonly serial: number;
  readonly generation: PreparedGeneration;
}

class Follower {
  readonly #port: MessagePort;
  readonly #plane: DataPlane;
  readonly #metrics = new MetricsRegistry({ processMetrics: false });
  readonly #log: ProcessLog;
  readonly #writer: LogWriter;
  /** Feeds of the generation in force and of the next one, by number. */
  readonly #feeds = new Map<number, ReceivingFeeds>();
  /** Pending questions of plugins to the leader, by number. */
  readonly #questions = new Map<number, PromiseWithResolvers<unknown>>();
  #lastQuestion = 0;
  #prepared: Prepared | undefined;
  #logged: (() => void) | undefined;
  /** Requests run one after the other. */
  #turn: Promise<void> = Promise.resolve();
  /** Resolves when the latest configuration to be committed is in force. */
  #committed: Promise<void> = Promise.resolve();

  constructor(port: MessagePort, options: FollowerOptions) {
    this.#port = port;
    const { clock } = options;
    const format = logFormat(options.logFormat, () => clock.wallTime());
    // Only one portion of lines is in transit: a leader that does not keep up costs lines, not memory.
    const sink: LogSink = {
      write: (text, callback) => {
        this.#logged = callback;
        this.#send({ kind: "log", text });
      },
    };
    this.#writer = new LogWriter(sink, { format });
    this.#log = new ProcessLog(this.#writer, { format });
    if (options.faults !== undefined)
      catchStrayFaults(options.faults, {
        loaded: () => options.registry.loadedFiles,
        log: this.#log,
        metrics: this.#metrics,
        // Ends the thread; the leader logs the reason.
        end(error) {
          throw error;
        },
      });
    this.#plane = new DataPlane({
      ...options,
      log: this.#log,
      metrics: this.#metrics,
      control: (configuration) => this.#control(configuration),
    });
  }

  take(message: ToFollower): void {
    switch (message.kind) {
      case "logged":
        this.#logged?.();
        return;
      case "feed":
        this.#deliver(message);
        return;
      case "reply": {
        const question = this.#questions.get(message.id);
        this.#questions.delete(message.id);
        if (message.problem === undefined) question?.resolve(message.value);
        else question?.reject(new ProtocolError(message.problem));
        return;
      }
      case "end":
        this.#port.close();
        return;
      case "request":
        this.#obey(message.id, message.request);
    }
  }

  #obey(id: number, request: FollowerRequest): void {
    const answer = (value: unknown, problem?: string): void =>
      this.#send({ kind: "answer", id, value, problem });
    // Reporting counters must not wait for a slow start of a plugin.
    if (request.kind === "measure") {
      answer(
        this.#metrics.snapshot((error) =>
          this.#log.error(`metrics are incomplete: ${configurationMessage(error)}`),
        ),
      );
      return;
    }
    if (request.kind === "echo") {
      const acted = [...this.#feeds.values()].map((feeds) => feeds.acted());
      // A configuration acts on its messages once it is in force.
      void Promise.all([this.#committed, ...acted]).then(() => answer(undefined));
      return;
    }
    this.#turn = this.#turn.then(() =>
      this.#do(request).then(
        (value) => answer(value),
        (error: unknown) => answer(undefined, configurationMessage(error)),
      ),
    );
    if (request.kind === "commit") this.#committed = this.#turn;
  }

  #do(request: Exclude<FollowerRequest, { kind: "echo" | "measure" }>): Promise<unknown> {
    switch (request.kind) {
      case "prepare":
        return this.#prepare(request.generation, request.source, request.sha512);
      case "listen":
        return this.#requirePrepared().generation.listen(request.places);
      case "commit":
        return this.#commit();
      case "rollBack":
        return this.#rollBack();
      case "stop":
        return this.#stop(request.othersStay);
    }
  }

  async #prepare(serial: number, source: CorefileSource, sha512: string): Promise<void> {
    await this.#rollBack();
    const configuration = await this.#plane.read(source);
    if (configuration.sha512 !== sha512) {
      throw new ProtocolError(
        "the files that the Corefile imports changed while it was being read: reload once more",
      );
    }
    const feeds = new ReceivingFeeds((key, question) => this.#ask(serial, key, question));
    this.#feeds.set(serial, feeds);
    try {
      const generation = await this.#plane.prepare(configuration, (key) => feeds.feed(key));
      this.#prepared = { serial, generation };
    } catch (error) {
      this.#feeds.delete(serial);
      throw error;
    }
  }

  async #commit(): Promise<void> {
    const { serial, generation } = this.#requirePrepared();
    this.#prepared = undefined;
    await generation.commit();
    for (const other of this.#feeds.keys()) if (other !== serial) this.#feeds.delete(other);
  }

  async #rollBack(): Promise<void> {
    if (this.#prepared === undefined) return;
    const { serial, generation } = this.#prepared;
    this.#prepared = undefined;
    this.#feeds.delete(serial);
    await generation.rollBack();
  }

  async #stop(othersStay: boolean): Promise<LastWords> {
    await this.#rollBack();
    const failedHooks = (await this.#plane.drain()) + (await this.#plane.retire(othersStay));
    await this.#writer.flush();
    return { failedHooks, metrics: this.#metrics.snapshot() };
  }

  #ask(generation: number, key: string, question: unknown): Promise<unknown> {
    const id = ++this.#lastQuestion;
    const waiting = Promise.withResolvers<unknown>();
    this.#questions.set(id, waiting);
    this.#send({ kind: "ask", id, generation, key, question });
    return waiting.promise;
  }

  #requirePrepared(): Prepared {
    if (this.#prepared === undefined) throw new ProtocolError("no configuration is prepared");
    return this.#prepared;
  }

  /** An error of a plugin about a message costs that message only. */
  #deliver({ generation, messages }: Extract<ToFollower, { kind: "feed" }>): void {
    try {
      this.#feeds.get(generation)?.deliver(messages);
    } catch (error) {
      this.#log.error(configurationMessage(error));
    }
  }

  #control({ sha512 }: Configuration): ServerControl {
    const refuse = (): Promise<never> =>
      Promise.reject(
        new ProtocolError("only the plugins of the first data plane can read the Corefile anew"),
      );
    return {
      sha512,
      readConfiguration: refuse,
      reload: refuse,
      fatal: (message) => this.#send({ kind: "fatal", message }),
      explain: refuse,
      clusters: () => [],
      log: this.#log,
    };
  }

  #send(message: FromFollower): void {
    this.#port.postMessage(message);
  }
}
