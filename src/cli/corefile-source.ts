/** Reads the text of a Corefile, or reports why it cannot be read. */

import { existsSync, readSync } from "node:fs";
import { isatty } from "node:tty";
import { describeNoText } from "../corefile/host.ts";
import { NO_FILE, nodeHost } from "../corefile/node-host.ts";
import { messageOf } from "../lib/text/message-of.ts";
import { type CorefileSource, defaultCorefile } from "../server/configuration/configuration.ts";

/** The usual names of standard input in shells and scripts. */
const STANDARD_INPUT: ReadonlySet<string> = new Set(["stdin", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"]);

export function isStandardInput(name: string): boolean {
  return STANDARD_INPUT.has(name);
}

/** A Corefile that cannot be read. The message is one line. */
export class UnreadableCorefile extends Error {
  override readonly name = "UnreadableCorefile";
  readonly file: string;
  readonly reason: string;

  constructor(file: string, reason: string) {
    super(`cannot read the Corefile ${JSON.stringify(file).slice(1, -1)}: ${reason}`);
    this.file = file;
    this.reason = reason;
  }
}

/**
 * Reads the named file. Without a name, reads `./Corefile`, or else uses the built-in one.
 * @param conf a name of standard input reads that; empty is no name
 * @throws UnreadableCorefile
 */
export function readSource(conf: string, port: number): CorefileSource {
  if (isStandardInput(conf)) {
    // At a terminal no text is piped in; CoreDNS treats that as "no configuration". The file descriptor is used because
    // `process.stdin` would make a pipe non-blocking.
    return isatty(STDIN) ? defaultCorefile(port) : readStandardInput();
  }
  if (conf !== "") return readCorefile(conf);
  return existsSync("Corefile") ? readCorefile("Corefile") : defaultCorefile(port);
}

/** Returns the file that {@link readSource} reads, `undefined` if it reads none. */
export function corefilePath(conf: string): string | undefined {
  if (conf === "") return existsSync("Corefile") ? "Corefile" : undefined;
  return isStandardInput(conf) ? undefined : conf;
}

/** @throws UnreadableCorefile */
export function readCorefile(file: string): CorefileSource {
  const content = nodeHost.readFile(file);
  if (content.kind !== "text") {
    const reason = describeNoText(content);
    throw new UnreadableCorefile(
      file,
      reason === NO_FILE ? `${reason}; name "stdin" to read a pipe` : reason,
    );
  }
  return { text: content.text, file };
}

const STDIN = 0;
/** Milliseconds. */
const AGAIN_AFTER = 20;
/** The same limit as for files. */
const MAX_OCTETS = 16 * 1024 * 1024;

/** @throws UnreadableCorefile */
export function readStandardInput(): CorefileSource {
  const chunks: Buffer[] = [];
  let total = 0;
  for (;;) {
    const chunk = Buffer.alloc(64 * 1024);
    const length = readChunk(chunk);
    if (length === 0) return fromStandardInput(Buffer.concat(chunks).toString("utf8"));
    total += length;
    if (total > MAX_OCTETS)
      throw new UnreadableCorefile("stdin", `larger than ${MAX_OCTETS / 1024 / 1024} MiB`);
    chunks.push(chunk.subarray(0, length));
  }
}

function readChunk(chunk: Buffer): number {
  const sleep = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    try {
      return readSync(STDIN, chunk);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      // Windows reports the end of a pipe like this.
      if (code === "EOF") return 0;
      if (code !== "EAGAIN") throw new UnreadableCorefile("stdin", messageOf(error));
      // Another process made the pipe non-blocking. Nothing else can be done until the text arrives.
      Atomics.wait(sleep, 0, 0, AGAIN_AFTER);
    }
  }
}

function fromStandardInput(text: string): CorefileSource {
  if (text.includes("\0")) throw new UnreadableCorefile("stdin", "is not a text file");
  return { text, file: "stdin" };
}
