/**
 * The file in which updates stand before they are acknowledged. It begins with the serial of the zone file that they are based on, and goes on with frames:
 * length, hash, text of the records that went and came. What a crash left half written at its end was never acknowledged, and is cut off.
 */
import { type FileHandle, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { formatRecord, parseRecord } from "../../dns/resource-record.ts";
import { nodeCrypto } from "../../lib/node-modules.ts";
import type { ZoneStep } from "./edited-zone.ts";

const MAGIC = "portolan zone journal 1\n";
/** Of a frame: octets of its text, and the beginning of their hash. */
const HEAD = 4 + 16;
/** No frame is larger; what claims to be is none. */
const MAX_FRAME = 256 * 1024 * 1024;

/** The file is none of this program's, or of a later version. */
export class JournalError extends Error {
  override readonly name = "JournalError";
}

export interface JournalContents {
  /** Serial of the zone file. */
  readonly base: number;
  readonly steps: readonly ZoneStep[];
}

export class UpdateJournal {
  readonly path: string;
  #file: FileHandle | undefined;
  #end = 0;
  #base: number | undefined;

  constructor(path: string) {
    this.path = path;
  }

  /** Octets of the file. */
  get size(): number {
    return this.#end;
  }

  /**
   * Opens the file, reads what stands in it, and cuts off what is incomplete.
   * @returns `undefined` where there is nothing
   * @throws JournalError, or the error of the file system
   */
  async read(): Promise<JournalContents | undefined> {
    await this.close();
    const file = await open(this.path, "a+", 0o644);
    try {
      const octets = await file.readFile();
      const contents = parse(this.path, octets);
      if (contents !== undefined && contents.end < octets.length) await file.truncate(contents.end);
      this.#end = contents?.end ?? 0;
      if (contents === undefined && octets.length > 0) await file.truncate(0);
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
      return parse(this.path, await readFile(this.path));
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
    if (this.#base === undefined) parts.push(headOf(base));
    parts.push(frameOf(steps));
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

  /** Writes all steps anew as one, in place of what was there, in one step. */
  async compact(base: number, steps: readonly ZoneStep[]): Promise<void> {
    await this.#write(Buffer.concat([headOf(base), frameOf(steps)]));
    await this.read();
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
      throw new JournalError(`${this.path} was changed by somebody else: restart the server`);
    if (nlink > 0) return file;
    const octets = Buffer.alloc(size);
    for (let at = 0; at < size; ) {
      const { bytesRead } = await file.read(octets, at, size - at, at);
      if (bytesRead === 0) throw new JournalError(`${this.path} is gone`);
      at += bytesRead;
    }
    await this.#write(octets);
    await file.close();
    const again = await open(this.path, "a+", 0o644);
    this.#file = again;
    return again;
  }

  /** Puts a file of these octets in the place of the journal, in one step. */
  async #write(octets: Buffer): Promise<void> {
    const temporary = `${this.path}.new`;
    const file = await open(temporary, "w+", 0o644);
    try {
      await file.writeFile(octets);
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

function headOf(base: number): Buffer {
  return Buffer.from(`${MAGIC}base ${base}\n`, "latin1");
}

function frameOf(steps: readonly ZoneStep[]): Buffer {
  const text = Buffer.from(
    steps.map(({ sign, record }) => `${sign}${formatRecord(record)}\n`).join(""),
    "utf8",
  );
  const head = Buffer.alloc(HEAD);
  head.writeUInt32BE(text.length);
  hashOf(text).copy(head, 4, 0, HEAD - 4);
  return Buffer.concat([head, text]);
}

function hashOf(text: Buffer): Buffer {
  return nodeCrypto().createHash("sha256").update(text).digest();
}

function parse(path: string, octets: Buffer): (JournalContents & { readonly end: number }) | undefined {
  const beginning = octets.toString("latin1", 0, MAGIC.length + 16);
  const [head, base] = /^portolan zone journal 1\nbase (\d+)\n/.exec(beginning) ?? [];
  if (head === undefined) {
    // A crash in the very first write leaves a part of the head.
    if (MAGIC.startsWith(beginning.slice(0, MAGIC.length)) && octets.length < MAGIC.length + 16)
      return undefined;
    throw new JournalError(`${path} is no journal of updates: move it away, or name another with 'journal'`);
  }
  const steps: ZoneStep[] = [];
  let at = head.length;
  while (at + HEAD <= octets.length) {
    const length = octets.readUInt32BE(at);
    const end = at + HEAD + length;
    if (length > MAX_FRAME || end > octets.length) break;
    const text = octets.subarray(at + HEAD, end);
    if (hashOf(text).compare(octets, at + 4, at + HEAD, 0, HEAD - 4) !== 0) break;
    for (const line of text.toString("utf8").split("\n")) {
      if (line === "") continue;
      steps.push({ sign: line.startsWith("+") ? "+" : "-", record: parseRecord(line.slice(1)) });
    }
    at = end;
  }
  return { base: Number(base), steps, end: at };
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
