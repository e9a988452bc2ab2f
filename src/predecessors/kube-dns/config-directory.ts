/** A folder with kube-dns's configuration, one file per key: a mounted ConfigMap (docs/spec/kube-dns.md#configuration). */

import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { lstat, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { readBoundedFile } from "../../lib/files/bounded-file.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import type { ConfigData, ConfigSource, ConfigUpdates } from "./config-updates.ts";

export interface ConfigDirectoryOptions {
  readonly path: string;
  /** Milliseconds between two checks. */
  readonly period: number;
  readonly clock: Clock;
  readonly updates: Pick<ConfigUpdates, "offer" | "readable" | "unreadable">;
}

export class ConfigDirectory implements ConfigSource {
  readonly #options: ConfigDirectoryOptions;
  #timer: Timer | undefined;
  #looking: Promise<void> | undefined;

  constructor(options: ConfigDirectoryOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    await this.#look();
    this.#timer = this.#options.clock.every(this.#options.period, () => {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = undefined;
      });
    });
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { path, updates } = this.#options;
    let state: DirectoryState;
    try {
      state = await readConfigDirectory(path);
    } catch (error) {
      updates.unreadable(messageOf(error));
      return;
    }
    updates.readable();
    await updates.offer(state.version, state.data);
  }
}

export interface DirectoryState {
  /** SHA-256 over names and contents, empty if there is no file. */
  readonly version: string;
  readonly data: ConfigData;
}

/**
 * Reads the files of a folder as texts. Skips folders, and names that begin with a dot.
 * @throws if it is not a folder, or a file is not UTF-8 or cannot be read
 */
export async function readConfigDirectory(path: string): Promise<DirectoryState> {
  if (!(await stat(path)).isDirectory()) throw new Error(`${path} is not a directory`);
  const hash = createHash("sha256");
  const data: Record<string, string> = {};
  let isEmpty = true;
  for (const name of (await readdir(path)).toSorted()) {
    if (name.startsWith(".")) continue;
    const file = join(path, name);
    const found = await lstat(file);
    // The files of a mounted ConfigMap are links, so the target is checked.
    if (found.isSymbolicLink() ? (await stat(file)).isDirectory() : found.isDirectory()) continue;
    const content = await readBoundedFile(file);
    if (!isUtf8(content)) throw new Error(`${file} is not UTF-8`);
    const text = content.toString();
    hash.update(`${name}\0${text}\0`);
    data[name] = text;
    isEmpty = false;
  }
  return isEmpty ? { version: "", data: undefined } : { version: hash.digest("hex"), data };
}
