/**
 * The file that updates are written to before they are acknowledged. An incomplete end after a crash was never acknowledged, and is
 * cut off. If other bytes are damaged, a copy of the file is kept, and the journal continues with everything readable.
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

/** Number of damaged files that are kept; beyond it the last one is replaced. */
const MOST_KEPT_ASIDE = 10;

/** The file was not written by this program, or was written by a later version. */
export class JournalError extends Error {
  override readonly name = "JournalError";
}

/** Result of {@link UpdateJournal.read}. */
export interface ReadUpdates extends JournalContents {
  /** Path of the copy of a damaged file. */
  readonly keptAside?: string | undefined;
}

/** Stores updates: {@link UpdateJournal} on disk, {@link NoJournal} nowhere. */
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

/** For a zone whose updates are kept in memory only. */
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
    // Nothing is stored.
  }

  async compact(): Promise<void> {
    // Nothing is stored.
  }

  async retire(): Promise<void> {
    // Nothing is stored.
  }

  async close(): Promise<void> {
    // Nothing is open.
  }
}

/**
 * The pages of a bbolt database, in which CoreDNS keeps updates, begin with a head of 16 bytes; on the first page this magic number
 * follows.
 */
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

  /** Bytes of the file. */
  get size(): number {
    return this.#end;
  }

  /**
   * Opens and reads the file, and cuts off an incomplete end. A damaged file is copied, and written again without the damage.
   * @returns `undefined` if it is empty
   * @throws JournalError, or the error of the file system
   */
  async read(): Promise<ReadUpdates | undefined> {
    await this.close();
    const file = await this.#open();
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

  /** @throws JournalError for a path that can never be a journal: the caller would take the error of the file system for one about the zone file. */
  async #open(): Promise<FileHandle> {
    try {
      return await open(this.path, "a+", this.#mode);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : "";
      if (code === "ENOENT")
        throw new JournalError(`${this.path} cannot be created: its directory does not exist`);
      if (code === "EISDIR") throw new JournalError(`${this.path} is a directory: name a file`);
      throw error;
    }
  }

  /** Reads the file, which another process may be writing to. */
  async peek(): Promise<JournalContents | undefined> {
    try {
      return await this.#parse(await readFile(this.path));
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
      throw error;
    }
  }

  /**
   * Appends steps; when the promise resolves they are on disk.
   * @param base serial of the zone file, for an empty journal
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
      // Unacknowledged data must not come back at the next start.
      await file.truncate(this.#end).catch(() => this.close());
      throw error;
    }
    if (this.#base === undefined) await syncFolder(this.path);
    this.#base ??= base;
    this.#end += octets.length;
  }

  /** Replaces the content with these steps, atomically. */
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
        `${this.path} is a bbolt database of CoreDNS: let CoreDNS serve it, write the output of "dig ZONE AXFR" to the zone file, and name another file`,
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
        // A hard link is enough, because the new file only takes over the name.
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
   * The open file, if it is still at its path with the written data. A deleted file can still be read, and is put back:
   * acknowledged updates must be found at the next start.
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

  /** Replaces the journal with a file of these bytes, atomically. */
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

  /** The zone file has moved on: the updates based on the old one are kept in another file. */
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

/** A new name is on disk once its folder is. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(dirname(path));
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
