/** Zone text from any source of a shell: files, pipes, standard input. */
import { open } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import { isatty } from "node:tty";
import type { ZoneTextFile, ZoneTextFiles } from "../../dns/zone-text/read.ts";
import { openRegularFile, UnsuitableFile } from "../../lib/files/bounded-file.ts";
import { MAX_ZONE_FILE_OCTETS } from "../../zones/files/file-source.ts";

/** The name of standard input. */
export const STANDARD_INPUT = "-";

export const SHELL_FILES: ZoneTextFiles = {
  async open(file, includedFrom) {
    if (includedFrom === undefined && file === STANDARD_INPUT)
      return { file, text: new StreamText(process.stdin) };
    if (includedFrom === undefined) return { file, text: await textAt(file) };
    const path = isAbsolute(file) ? file : join(dirname(includedFrom), file);
    return { file: path, text: await includedText(path) };
  },
};

/** As in the server, an included file must be finite. */
async function includedText(path: string): Promise<ZoneTextFile> {
  const { file } = await openRegularFile(path, MAX_ZONE_FILE_OCTETS);
  return {
    read: async (target) => (await file.read(target, 0, target.length)).bytesRead,
    close: () => file.close(),
  };
}

/** The shell may name a pipe, which the user ends. */
async function textAt(path: string): Promise<ZoneTextFile> {
  const handle = await open(path);
  const status = await handle.stat();
  const isEndless = status.isCharacterDevice() && !isatty(handle.fd);
  if (status.isDirectory() || isEndless) {
    await handle.close();
    throw new UnsuitableFile(path, isEndless ? "is a device" : "is a folder");
  }
  return {
    // Pipes have no offsets: each read continues where the last one stopped.
    read: async (target) => (await handle.read(target, 0, target.length, null)).bytesRead,
    close: () => handle.close(),
  };
}

/** Standard input may be a file, a pipe, a socket or a terminal. A stream can read all of them. */
class StreamText implements ZoneTextFile {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #left: Uint8Array = new Uint8Array(0);

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  async read(target: Uint8Array): Promise<number> {
    while (this.#left.length === 0) {
      const next = await this.#chunks.next();
      if (next.done === true) return 0;
      this.#left = next.value;
    }
    const length = Math.min(target.length, this.#left.length);
    target.set(this.#left.subarray(0, length));
    this.#left = this.#left.subarray(length);
    return length;
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }
}
