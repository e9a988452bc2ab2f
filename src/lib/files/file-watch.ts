import type { Clock, Timer } from "../time/clock.ts";
import { isStampSettled } from "../time/time-stamp.ts";
import { openRegularFile, readOpenFile } from "./bounded-file.ts";
import { nodeCrypto } from "./node-modules.ts";

/** A file whose content has changed. */
export interface FileChange {
  readonly path: string;
  /** The new content; the watch keeps no reference to it. */
  readonly content: Uint8Array;
}

export interface FileWatchOptions {
  readonly paths: readonly string[];
  /** Milliseconds between two checks. */
  readonly intervalMs: number;
  /** Each wait differs from the interval by up to half of this, so that replicas do not act at once. Default 0. */
  readonly jitterMs?: number;
  readonly clock: Clock;
  /** Called with all files that changed between two checks, at once. The next check waits for its promise. */
  readonly onChange: (changes: readonly FileChange[]) => void | Promise<void>;
  /**
   * Called when a file cannot be read, once until the reason changes; its last content stays valid. Without a path it
   * gets an exception of `onChange`. Must not throw.
   */
  readonly onError: (error: unknown, path: string | undefined) => void;
  readonly files?: FileReader;
  /** From 0 up to 1. */
  readonly random?: () => number;
}

/**
 * Watches the content of some files by checking them at intervals.
 *
 * A check takes one `stat` per file. The content is read and compared by hash only if the stamp is new, or so recent
 * that a second write could have left it unchanged. Links are followed at each check, so the swap of directories in a
 * mounted ConfigMap is a change like any other. A vanished file is an error, not a change; neither is the return of
 * the same content.
 */
export class FileWatch {
  readonly #options: FileWatchOptions;
  readonly #files: FileReader;
  readonly #random: () => number;
  readonly #seen = new Map<string, SeenFile>();
  #timer: Timer | undefined;
  #stopped = false;
  #last: Promise<void> = Promise.resolve();

  constructor(options: FileWatchOptions) {
    this.#options = options;
    this.#files = options.files ?? new DiskFileReader();
    this.#random = options.random ?? Math.random;
    for (const path of options.paths) this.#seen.set(path, new SeenFile());
  }

  /**
   * Reads every file once and begins to watch. To miss no change in between, use the content returned here
   * rather than read the files first.
   *
   * @returns the content of each file; those that could not be read are missing, and reported to `onError`.
   */
  async start(): Promise<ReadonlyMap<string, Uint8Array>> {
    let changes: FileChange[] = [];
    this.#last = this.#last.then(async () => {
      changes = await this.#look();
    });
    await this.#last;
    this.#schedule();
    return new Map(changes.map(({ path, content }) => [path, content]));
  }

  /** Checks at once, whatever the interval, and resolves when `onChange` is done. */
  check(): Promise<void> {
    this.#last = this.#last.then(() => this.#checkOnce());
    return this.#last;
  }

  /** Ends the watch: after it returns, neither callback is called again. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #schedule(): void {
    if (this.#stopped) return;
    const { intervalMs, jitterMs = 0, clock } = this.#options;
    const delay = intervalMs + (this.#random() - 0.5) * jitterMs;
    this.#timer = clock.after(delay, () => {
      void this.check().then(() => this.#schedule());
    });
  }

  async #checkOnce(): Promise<void> {
    const changes = await this.#look();
    if (this.#stopped || changes.length === 0) return;
    try {
      await this.#options.onChange(changes);
    } catch (error) {
      this.#report(error, undefined);
    }
  }

  async #look(): Promise<FileChange[]> {
    const changes: FileChange[] = [];
    for (const [path, seen] of this.#seen) {
      try {
        const read = await this.#files.readIfNew(path, seen.stamp);
        seen.error = undefined;
        if (read === undefined) continue;
        // A file system with coarse times gives a second write the stamp of the first.
        seen.stamp = isStampSettled(read.modifiedAt, this.#options.clock) ? read.stamp : undefined;
        const digest = nodeCrypto().hash("sha256", read.content);
        if (digest === seen.digest) continue;
        seen.digest = digest;
        changes.push({ path, content: read.content });
      } catch (error) {
        seen.stamp = undefined;
        const reason = String(error);
        if (reason !== seen.error) this.#report(error, path);
        seen.error = reason;
      }
    }
    return changes;
  }

  #report(error: unknown, path: string | undefined): void {
    if (!this.#stopped) this.#options.onError(error, path);
  }
}

/** File access of a {@link FileWatch}. */
export interface FileReader {
  /**
   * The content, or undefined if the file still has the given stamp.
   *
   * @throws if there is no regular file at that path, it is too large, or it cannot be read.
   */
  readIfNew(path: string, stamp: string | undefined): Promise<ReadFile | undefined>;
}

export interface ReadFile {
  readonly content: Uint8Array;
  /** Differs whenever another file is at the path or the file was written to, as far as the file system shows. */
  readonly stamp: string;
  /** When the file was last written to, in milliseconds since the Unix epoch. */
  readonly modifiedAt: number;
}

/** Several times the size of the largest published blocklists. */
const MAX_WATCHED_OCTETS = 128 * 1024 * 1024;

/** Reads from the disk. Stamp and content belong to the same open file, even if links are swapped during the read. */
export class DiskFileReader implements FileReader {
  async readIfNew(path: string, stamp: string | undefined): Promise<ReadFile | undefined> {
    const opened = await openRegularFile(path, MAX_WATCHED_OCTETS);
    try {
      const { dev, ino, size, mtimeNs, ctimeNs } = opened.status;
      const found = [dev, ino, size, mtimeNs, ctimeNs].join(":");
      if (found === stamp) return undefined;
      const content = await readOpenFile(opened, path, MAX_WATCHED_OCTETS);
      return { content, stamp: found, modifiedAt: Number(mtimeNs / 1_000_000n) };
    } finally {
      await opened.file.close();
    }
  }
}

/** The state of a watched file. */
class SeenFile {
  /** Undefined if the next check has to read the content whatever the stamp. */
  stamp: string | undefined = undefined;
  digest: string | undefined = undefined;
  /** The error of the last check. */
  error: string | undefined = undefined;
}
