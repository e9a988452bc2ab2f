/**
 * The file in which updates stand before they are acknowledged. What a crash left half written at its end was never acknowledged, and is cut off;
 * where other octets are damaged, the file is kept aside as it is, and goes on with all that can be read.
 */

import { constants } from "node:fs";
import { copyFile, type FileHandle, link, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { messageOf } from "../../lib/text/message-of.ts";
import type { ZoneStep } from "./edited-zone.ts";
import {
  type JournalContents,
  journalFrame,
  journalFrames,
  journalHead,
  readJournal,
} from "./journal-frames.ts";

/** Damaged files that are kept aside; then the last of them is replaced. */
const MOST_KEPT_ASIDE = 10;

/** The file is none of this program's, or of a later version. */
export class JournalError extends Error {
  override readonly name = "JournalError";
}

/** What {@link UpdateJournal.read} found. */
export interface ReadUpdates extends JournalContents {
  /** Where the file is kept as it was, where it is damaged. */
  readonly keptAside?: string | undefined;
}

/** Where updates stand; {@link UpdateJournal} is on the disk, {@link NoJournal} nowhere. */
export interface Journal {
  readonly path: string;
  readonly size: number;
  read(): Promise<ReadUpdates | undefined>;
  peek(): Promise<JournalContents | undefined>;
  append(base: number, steps: readonly ZoneStep[]): Promise<void>;
  compact(base: number, steps: readonly ZoneStep[]): Promise<void>;
  retire(): Promise<void>;
  close(): Promise<void>;
}

/** For a zone whose updates live in memory only. */
export class NoJournal implements Journal {
  readonly path = "";
  readonly size = 0;

  async read(): Promise<undefined> {
    return undefined;
  }

  async peek(): Promise<undefined> {
    return undefined;
  }

  async append(): Promise<void> {
    // Nothing is kept.
  }

  async compact(): Promise<void> {
    // Nothing is kept.
  }

  async retire(): Promise<void> {
    // Nothing is kept.
  }

  async close(): Promise<void> {
    // Nothing is open.
  }
}

/** The pages of a bbolt database, which CoreDNS keeps updates in, begin with a head of 16 octets; this follows in the first. */
const BBOLT_MAGIC = 0xed0cdaed;

function isBbolt(octets: Buffer): boolean {
  return (
    octets.length >= 20 &&
    (octets.readUInt32LE(16) === BBOLT_MAGIC || octets.readUInt32BE(16) === BBOLT_MAGIC)
  );
}

export class UpdateJournal implements Journal {
  readonly path: string;
  readonly #mode: number;
  readonly #pause: () => Promise<void>;
  #file: FileHandle | undefined;
  #end = 0;
  #base: number | undefined;

  /** @param mode permissions of the file */
  constructor(path: string, pause: () => Promise<void>, mode = 0o644) {
    this.path = path;
    this.#mode = mode;
    this.#pause = pause;
  }

  /** Octets of the file. */
  get size(): number {
    return this.#end;
  }

  /**
   * Opens the file, reads what stands in it, and cuts off what is incomplete. A damaged file is kept aside and written anew without the damage.
   * @returns `undefined` where there is nothing
   * @throws JournalError, or the error of the file system
   */
  async read(): Promise<ReadUpdates | undefined> {
    await this.close();
    const file = await open(this.path, "a+", this.#mode);
    try {
      const octets = await file.readFile();
      const contents = await this.#parse(octets);
      if (contents !== undefined && contents.damage.length > 0) {
        const keptAside = await this.#keepAside();
        const { base, steps } = contents;
        if (base === undefined) await rm(this.path);
        else await this.#write([journalHead(base), ...(await journalFrames(steps, this.#pause))]);
        await file.close();
        await this.read();
        return { ...contents, keptAside };
      }
      this.#end = contents === undefined ? 0 : octets.length - contents.torn;
      if (this.#end < octets.length) await file.truncate(this.#end);
      this.#base = contents?.base;
      this.#file = file;
      return contents;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** What stands in the file, which somebody else may be writing to. */
  async peek(): Promise<JournalContents | undefined> {
    try {
      return await this.#parse(await readFile(this.path));
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
      throw error;
    }
  }

  /**
   * Writes steps down; when the promise resolves they are on the disk.
   * @param base serial of the zone file, for a journal that is empty
   */
  async append(base: number, steps: readonly ZoneStep[]): Promise<void> {
    const file = await this.#present();
    const parts: Buffer[] = [];
    if (this.#base === undefined) parts.push(journalHead(base));
    parts.push(journalFrame(steps));
    const octets = Buffer.concat(parts);
    try {
      await file.appendFile(octets);
      await file.datasync();
    } catch (error) {
      // What was not acknowledged must not come back at the next start.
      await file.truncate(this.#end).catch(() => this.close());
      throw error;
    }
    if (this.#base === undefined) await syncFolder(this.path);
    this.#base ??= base;
    this.#end += octets.length;
  }

  /** Writes steps in place of all that was there, in one step. */
  async compact(base: number, steps: readonly ZoneStep[]): Promise<void> {
    await this.#write([journalHead(base), ...(await journalFrames(steps, this.#pause))]);
    await this.read();
  }

  async #parse(octets: Buffer): Promise<JournalContents | undefined> {
    let contents: JournalContents | "none" | undefined;
    try {
      contents = await readJournal(octets, this.#pause);
    } catch (error) {
      const reason = messageOf(error);
      throw new JournalError(`${this.path} has a record that this version cannot read: ${reason}`);
    }
    if (contents === "none" && isBbolt(octets))
      throw new JournalError(
        `${this.path} is a bbolt database of CoreDNS: let CoreDNS serve it, write what "dig ZONE AXFR" says to the zone file, and name another file`,
      );
    if (contents === "none")
      throw new JournalError(`${this.path} is not a journal of updates: move it away, or name another file`);
    return contents;
  }

  /** @returns where the file can be found as it is now */
  async #keepAside(): Promise<string> {
    for (let index = 1; ; index++) {
      const aside = `${this.path}.damaged${index === 1 ? "" : `-${index}`}`;
      if (index === MOST_KEPT_ASIDE) await rm(aside, { force: true });
      try {
        // The file itself, as the next one takes its name alone.
        await link(this.path, aside);
        return aside;
      } catch (error) {
        const code = error instanceof Error && "code" in error ? error.code : "";
        if (code === "EEXIST") continue;
        await copyFile(this.path, aside, constants.COPYFILE_EXCL);
        return aside;
      }
    }
  }

  /**
   * The file, where it stands at its path with what was written to it. One that somebody deleted can still be read, and is put there again:
   * what is acknowledged has to be found at the next start.
   */
  async #present(): Promise<FileHandle> {
    const file = this.#file;
    if (file === undefined) throw new JournalError(`${this.path} is not open`);
    const { nlink, size } = await file.stat();
    if (size !== this.#end)
      throw new JournalError(`${this.path} was changed by another process: restart the server`);
    if (nlink > 0) return file;
    const octets = Buffer.alloc(size);
    for (let at = 0; at < size; ) {
      const { bytesRead } = await file.read(octets, at, size - at, at);
      if (bytesRead === 0) throw new JournalError(`${this.path} is gone`);
      at += bytesRead;
    }
    await this.#write([octets]);
    await file.close();
    const again = await open(this.path, "a+", this.#mode);
    this.#file = again;
    return again;
  }

  /** Puts a file of these octets in the place of the journal, in one step. */
  async #write(parts: readonly Buffer[]): Promise<void> {
    const temporary = `${this.path}.new`;
    const file = await open(temporary, "w+", this.#mode);
    try {
      for (const part of parts) await file.appendFile(part);
      await file.sync();
      await rename(temporary, this.path);
      await syncFolder(this.path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    } finally {
      await file.close();
    }
  }

  /** The zone file has moved on: what was based on it is kept aside. */
  async retire(): Promise<void> {
    await this.close();
    await rename(this.path, `${this.path}.old`);
    await this.read();
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }
}

/** A new name is on the disk once its folder is. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(dirname(path));
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
