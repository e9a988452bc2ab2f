/**
 * The last known state of a cluster on disk, for a start without its API: one object a line, behind a line that says what this is.
 * The file is replaced as a whole, so that whoever reads it finds the old one or the new one.
 */
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { openRegularFile } from "../../lib/files/bounded-file.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import { isObject, textMember } from "../objects/json.ts";
import type { ReduceOptions } from "../objects/reduce.ts";
import type { ClusterStore } from "../store/store.ts";
import { isImported, readSnapshotObject, snapshotObjects } from "./snapshot-objects.ts";

export interface SnapshotOptions {
  readonly file: string;
  readonly store: ClusterStore;
  /** What is imported from other clusters, if that is known too. */
  readonly imports?: ClusterStore | undefined;
  readonly clock: Clock;
  readonly reduce: ReduceOptions;
  /** Told when the file could not be written; told again only after it could. */
  readonly onError: (error: unknown) => void;
}

export interface LoadedSnapshot {
  readonly objects: number;
  /** Lines that could not be used. */
  readonly unusable: number;
  /** When it was written, as its first line says; empty if it does not. */
  readonly written: string;
}

/** What is no snapshot, or too large for one. */
export class SnapshotError extends Error {
  override readonly name = "SnapshotError";
}

/** Changes are written this long after the first of them, in milliseconds. */
const DELAY_MS = 30_000;
const MAX_SIZE = 512 * 1024 * 1024;
const HEADER_KIND = "PortolanSnapshot";
/** Objects read or written in one turn of the event loop. */
const OBJECTS_PER_TURN = 200;

export class SnapshotFile {
  readonly #options: SnapshotOptions;
  #timer: Timer | undefined;
  #isDirty = false;
  #hasFailed = false;
  #unsubscribe: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();
  #loadedFrom: string | undefined;

  constructor(options: SnapshotOptions) {
    this.#options = options;
  }

  /** When the file was written that has been loaded, as it says; undefined where none has. */
  get loadedFrom(): string | undefined {
    return this.#loadedFrom;
  }

  /**
   * Puts what the file holds into the store, which is not synced thereby.
   * @throws SnapshotError, UnsuitableFile, or the error of the file system
   */
  async load(): Promise<LoadedSnapshot> {
    const { file: path, store, imports, reduce } = this.#options;
    const { file } = await openRegularFile(path, MAX_SIZE);
    try {
      await requireObject(file);
      let written: string | undefined;
      let objects = 0;
      let unusable = 0;
      for await (const line of file.readLines()) {
        const value = parseJson(line);
        if (written === undefined) {
          if (textMember(value, "kind") !== HEADER_KIND)
            throw new SnapshotError("not a snapshot of a cluster");
          written = textMember(value, "written");
          continue;
        }
        const read = readSnapshotObject(value, reduce);
        if ("problem" in read) unusable++;
        else {
          const target = isImported(value) ? imports : store;
          if (target?.kinds.has(read.kind)) {
            target.put(read.kind, read.object);
            objects++;
          }
        }
        if ((objects + unusable) % OBJECTS_PER_TURN === 0) await eventLoopTurn();
      }
      if (written === undefined) throw new SnapshotError("empty");
      this.#loadedFrom = written;
      return { objects, unusable, written };
    } finally {
      await file.close();
    }
  }

  /** From now on writes what changes, as soon as the store is synced: before that it knows no better than the file. */
  keep(): void {
    const ends = this.#stores.map((store) => {
      void store.whenSynced().then(() => this.#changed());
      return store.subscribe(() => this.#changed());
    });
    this.#unsubscribe = () => {
      for (const end of ends) end();
    };
  }

  get #stores(): ClusterStore[] {
    const { store, imports } = this.#options;
    return imports === undefined ? [store] : [store, imports];
  }

  /** Writes what has yet to be written, and ends. */
  async stop(): Promise<void> {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#timer?.cancel();
    if (this.#isDirty) this.#write();
    await this.#writing;
  }

  #changed(): void {
    if (!this.#stores.every(({ isSynced }) => isSynced) || this.#unsubscribe === undefined) return;
    this.#isDirty = true;
    this.#timer ??= this.#options.clock.after(DELAY_MS, () => {
      this.#timer = undefined;
      this.#write();
    });
  }

  #write(): void {
    this.#isDirty = false;
    this.#writing = this.#writing.then(async () => {
      try {
        await this.#writeOnce();
        this.#hasFailed = false;
      } catch (error) {
        if (!this.#hasFailed) this.#options.onError(error);
        this.#hasFailed = true;
      }
    });
  }

  async #writeOnce(): Promise<void> {
    const { file: path, store, imports, clock } = this.#options;
    const temporary = `${path}.new`;
    const file = await open(temporary, "w", 0o600);
    try {
      const written = new Date(clock.wallTime()).toISOString();
      let lines = `${JSON.stringify({ kind: HEADER_KIND, version: 1, written })}\n`;
      let count = 0;
      for (const object of snapshotObjects(store, imports)) {
        lines += `${JSON.stringify(object)}\n`;
        if (++count % OBJECTS_PER_TURN > 0) continue;
        await file.appendFile(lines);
        lines = "";
      }
      await file.appendFile(lines);
      await file.sync();
    } catch (error) {
      await file.close();
      await rm(temporary, { force: true });
      throw error;
    }
    await file.close();
    await rename(temporary, path);
  }
}

/** A file without lines would be taken into memory as one, to find that it is something else. */
async function requireObject(file: FileHandle): Promise<void> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(1), { position: 0 });
  if (bytesRead === 1 && buffer.toString("latin1") !== "{")
    throw new SnapshotError("not a snapshot of a cluster");
}

function parseJson(line: string): unknown {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
