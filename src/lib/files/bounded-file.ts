/** Reads files that an operator names: whatever is at the path, opening it does not block, and reading it ends. */

import type { BigIntStats } from "node:fs";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { messageOf } from "../text/message-of.ts";

/** The path is not a readable file; the message names it. */
export class UnsuitableFile extends Error {
  override readonly name = "UnsuitableFile";
  readonly path: string;

  /** @param problem follows the path, as in "is not a regular file" */
  constructor(path: string, problem: string) {
    super(`${path} ${problem}`);
    this.path = path;
  }
}

export interface OpenFile {
  readonly file: FileHandle;
  readonly status: BigIntStats;
}

/** Far larger than any hand-written file: configurations, certificates, lists of name servers. */
export const MAX_TEXT_OCTETS = 16 * 1024 * 1024;

/**
 * Opens a file of at most `maxOctets`; the checked status is that of the open file.
 * @throws UnsuitableFile for folders, pipes, devices and larger files, or the error of the file system
 */
export async function openRegularFile(path: string, maxOctets: number): Promise<OpenFile> {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer, and hold a thread as long.
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const status = await file.stat({ bigint: true });
    if (!status.isFile()) throw new UnsuitableFile(path, "is not a regular file");
    if (status.size > maxOctets) throw tooLarge(path, maxOctets);
    return { file, status };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * The octets of a file that {@link openRegularFile} opened. Counts what it reads: files in /proc have size 0, and any
 * file may grow while it is read.
 * @throws UnsuitableFile
 */
export async function readOpenFile(
  { file, status }: OpenFile,
  path: string,
  maxOctets: number,
): Promise<Buffer> {
  const chunkOctets = Math.max(Number(status.size), 16 * 1024) + 1;
  const chunks: Buffer[] = [];
  for (let total = 0; ; ) {
    const chunk = Buffer.allocUnsafe(chunkOctets);
    const length = await readChunk(file, chunk, path);
    if (length === 0)
      return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
    total += length;
    if (total > maxOctets) throw tooLarge(path, maxOctets);
    chunks.push(chunk.subarray(0, length));
  }
}

/** @throws UnsuitableFile, or the error of the file system */
export async function readBoundedFile(path: string, maxOctets = MAX_TEXT_OCTETS): Promise<Buffer> {
  const opened = await openRegularFile(path, maxOctets);
  try {
    return await readOpenFile(opened, path, maxOctets);
  } finally {
    await opened.file.close();
  }
}

/**
 * The text of a hand-written file.
 * @throws UnsuitableFile, also if the contents are not text, or the error of the file system
 */
export async function readTextFile(path: string): Promise<string> {
  const content = await readBoundedFile(path);
  if (content.includes(0)) throw new UnsuitableFile(path, "is not a text file");
  return content.toString("utf8");
}

async function readChunk(file: FileHandle, chunk: Buffer, path: string): Promise<number> {
  try {
    return (await file.read(chunk)).bytesRead;
  } catch (error) {
    throw new UnsuitableFile(path, `cannot be read: ${messageOf(error)}`);
  }
}

function tooLarge(path: string, maxOctets: number): UnsuitableFile {
  return new UnsuitableFile(path, `is larger than ${maxOctets / 1024 / 1024} MiB`);
}
