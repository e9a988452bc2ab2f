/** Applies each state of kube-dns's configuration, from any source (docs/spec/kube-dns.md#configuration). */
import type { Logger } from "../../lib/logging/log.ts";
import {
  EMPTY_KUBE_DNS_CONFIG,
  type KubeDnsConfig,
  KubeDnsConfigError,
  readKubeDnsConfig,
} from "./config-map.ts";

/** Text by key; `undefined` if there is no configuration. */
export type ConfigData = Readonly<Record<string, string>> | undefined;

/** A source of configurations. */
export interface ConfigSource {
  /** Resolves when the first state has been handed on, or is known to be unavailable. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Takes a configuration; throws a one-line reason if it cannot be applied. */
export type ConfigTaker = (config: KubeDnsConfig) => void | Promise<void>;

export class ConfigUpdates {
  readonly #take: ConfigTaker;
  readonly #log: Logger;
  #version: string | undefined;
  #problem = "";
  #turn: Promise<void> = Promise.resolve();

  constructor(take: ConfigTaker, log: Logger) {
    this.#take = take;
    this.#log = log;
  }

  /**
   * Applies a state, one after the other. An invalid state leaves the previous one in force and is reported once.
   * @param version equal for equal states
   */
  offer(version: string, data: ConfigData): Promise<void> {
    this.#turn = this.#turn.then(() => this.#apply(version, data));
    return this.#turn;
  }

  /** The source cannot be read; the configuration in force stays. Logged once until the reason changes. */
  unreadable(reason: string): void {
    if (reason === this.#problem) return;
    this.#problem = reason;
    this.#log.error(`configuration: ${reason}`);
  }

  /** The source can be read again. */
  readable(): void {
    this.#problem = "";
  }

  async #apply(version: string, data: ConfigData): Promise<void> {
    if (version === this.#version) return;
    this.#version = version;
    try {
      const config = data === undefined ? EMPTY_KUBE_DNS_CONFIG : readKubeDnsConfig(data);
      await this.#take(config);
    } catch (error) {
      const reason = error instanceof Error ? error.message.replaceAll(/\s*\n\s*/g, " ") : String(error);
      const what = error instanceof KubeDnsConfigError ? "it is not valid" : "it cannot be put into force";
      this.#log.error(`configuration: ${what}, keeping the previous one: ${reason}`);
    }
  }
}
