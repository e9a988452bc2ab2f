/** Watches one ConfigMap of the cluster through the API (docs/spec/kube-dns.md#configuration). */

import { ApiSilenceError } from "../../kubernetes/api/access/api-error.ts";
import type { ApiClient } from "../../kubernetes/api/client/api-client.ts";
import { FrameSplitter, readWhole } from "../../kubernetes/api/client/frames.ts";
import { Backoff } from "../../kubernetes/api/watch/backoff.ts";
import { SilenceGuard } from "../../kubernetes/api/watch/silence-guard.ts";
import { listMember, member, textEntries, textMember } from "../../kubernetes/objects/json.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { ConfigSource, ConfigUpdates } from "./config-updates.ts";

export interface ConfigMapWatchOptions {
  readonly client: Pick<ApiClient, "get" | "abandonConnections">;
  readonly namespace: string;
  readonly name: string;
  readonly updates: ConfigUpdates;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

const MAX_LIST = 4 * 1024 * 1024;
/** A watch gets a bookmark every minute; a watch that is silent for longer is dead. */
const SILENCE_MS = 150_000;
const WATCH_SECONDS = 300;
const JSON_TYPE = "application/json";

export class ConfigMapWatch implements ConfigSource {
  readonly #options: ConfigMapWatchOptions;
  readonly #stop = new AbortController();
  readonly #backoff: Backoff;
  #running: Promise<void> | undefined;

  constructor(options: ConfigMapWatchOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.random);
  }

  async start(): Promise<void> {
    let revision: string | undefined;
    try {
      revision = await this.#read();
    } catch (error) {
      this.#failed(error);
    }
    this.#running = this.#follow(revision);
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error("stopped"));
    await this.#running;
  }

  /** Reads the ConfigMap, watches it from that revision, and starts again when the watch ends. */
  async #follow(first: string | undefined): Promise<void> {
    let revision = first;
    while (!this.#stop.signal.aborted) {
      try {
        revision ??= await this.#read();
        this.#backoff.recovered();
        this.#options.updates.readable();
        await this.#watch(revision);
        revision = undefined;
      } catch (error) {
        revision = undefined;
        if (this.#stop.signal.aborted) return;
        if (error instanceof ApiSilenceError) this.#options.client.abandonConnections();
        this.#failed(error);
        await this.#sleep(this.#backoff.failed());
      }
    }
  }

  /** @returns the revision to watch from */
  async #read(): Promise<string> {
    const guard = new SilenceGuard(this.#options.clock, SILENCE_MS, this.#stop.signal);
    try {
      const { body } = await this.#options.client.get(this.#path({}), JSON_TYPE, guard.signal);
      const list: unknown = JSON.parse(Buffer.from(await readWhole(body, MAX_LIST)).toString());
      await this.#found(listMember(list, "items").find((item) => this.#isIt(item)));
      return textMember(member(list, "metadata"), "resourceVersion");
    } finally {
      guard.stop();
    }
  }

  async #watch(resourceVersion: string): Promise<void> {
    const { client, clock } = this.#options;
    const guard = new SilenceGuard(clock, SILENCE_MS, this.#stop.signal);
    try {
      const path = this.#path({
        resourceVersion,
        watch: "true",
        allowWatchBookmarks: "true",
        timeoutSeconds: String(WATCH_SECONDS),
      });
      const { body, connectionHeardAt } = await client.get(path, JSON_TYPE, guard.signal);
      guard.wait(SILENCE_MS, connectionHeardAt);
      const splitter = new FrameSplitter("json");
      for await (const chunk of body) {
        guard.heard();
        for (const frame of splitter.push(chunk))
          await this.#event(JSON.parse(Buffer.from(frame).toString()));
      }
    } finally {
      guard.stop();
    }
  }

  async #event(event: unknown): Promise<void> {
    const object = member(event, "object");
    const type = textMember(event, "type");
    if (type === "ERROR") throw new Error(textMember(object, "message") || "the watch ended in an error");
    // The server filters by name, but a proxy in between may not.
    if (!this.#isIt(object)) return;
    if (type === "DELETED") await this.#found(undefined);
    else if (type === "ADDED" || type === "MODIFIED") await this.#found(object);
  }

  async #found(object: unknown): Promise<void> {
    const { updates } = this.#options;
    if (object === undefined) await updates.offer("", undefined);
    else {
      const version = textMember(member(object, "metadata"), "resourceVersion");
      const data =
        member(object, "data") === undefined ? {} : Object.fromEntries(textEntries(object, "data"));
      await updates.offer(version, data);
    }
  }

  #isIt(object: unknown): boolean {
    return textMember(member(object, "metadata"), "name") === this.#options.name;
  }

  #path(parameters: Readonly<Record<string, string>>): string {
    const { namespace, name } = this.#options;
    const query = new URLSearchParams({ fieldSelector: `metadata.name=${name}`, ...parameters });
    return `/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps?${query}`;
  }

  #failed(error: unknown): void {
    const { namespace, name, updates } = this.#options;
    const reason = messageOf(error);
    updates.unreadable(`ConfigMap ${namespace}/${name}: ${reason}`);
  }

  async #sleep(milliseconds: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#options.clock.after(milliseconds, resolve);
    this.#stop.signal.addEventListener("abort", () => resolve(), { once: true });
    await promise;
    timer.cancel();
  }
}
