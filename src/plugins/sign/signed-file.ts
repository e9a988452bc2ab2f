/** The file of a signed zone: what its signatures say, and how it is replaced. */
import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { readSignatureTime } from "./signature-time.ts";

const DAY = 86_400;
/** Seconds. CoreDNS has the same (facts 2.58). */
const OLDEST_INCEPTION = 6 * DAY;
const LEAST_LEFT = 7 * DAY;

/** Octets at the head of a file in which the signature of the SOA record is looked for: a hundred records and more. */
const HEAD = 64 * 1024;
/** Text is written in pieces of this size. */
const CHUNK = 64 * 1024;

/**
 * Why a zone has to be signed.
 * @param now seconds since the epoch
 * @returns `undefined` where the signatures are good for a while
 */
export async function reasonToSign(
  source: string,
  target: string,
  tags: readonly number[],
  now: number,
): Promise<string | undefined> {
  let head: string;
  try {
    const [from, to] = await Promise.all([stat(source), stat(target)]);
    if (from.mtimeMs > to.mtimeMs) return `${source} has changed since`;
    head = await readHead(target);
  } catch (error) {
    if (
      error instanceof Error &&
      "code" in error &&
      error.code === "ENOENT" &&
      "path" in error &&
      error.path === target
    )
      return `open ${target}: no such file or directory`;
    throw error;
  }
  const signature = /\sRRSIG\s+SOA\s+\d+\s+\d+\s+\d+\s+(\d{14})\s+(\d{14})\s+(\d+)\s/.exec(head);
  const expiration = readSignatureTime(signature?.[1] ?? "");
  const inception = readSignatureTime(signature?.[2] ?? "");
  if (expiration === undefined || inception === undefined) return "no signature of the SOA record was found";
  if (!tags.includes(Number(signature?.[3])))
    return `the key with tag ${signature?.[3]} is none of those that sign`;
  if (inception > now) return "the signatures begin in the future";
  if (now - inception > OLDEST_INCEPTION) return "the signatures are older than 6 days";
  if (expiration - now < LEAST_LEFT) return "the signatures end in less than 7 days";
  return undefined;
}

async function readHead(path: string): Promise<string> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD), 0, HEAD, 0);
    return buffer.toString("latin1", 0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Puts a file in place of what was there before, in one step; a fault leaves that as it was. */
export async function replaceFile(path: string, unique: string, lines: AsyncIterable<string>): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true });
  const temporary = join(folder, `signed-${unique}`);
  const file = await open(temporary, "w", 0o644);
  try {
    let text = "";
    for await (const line of lines) {
      text += line;
      if (text.length < CHUNK) continue;
      await file.write(text);
      text = "";
    }
    await file.write(text);
    await file.sync();
    await file.close();
    await rename(temporary, path);
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(temporary, { force: true });
    throw error;
  }
}
