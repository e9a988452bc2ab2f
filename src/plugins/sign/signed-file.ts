/** The file of a signed zone: reads the state of its signatures, and replaces it. */
import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { stampOf } from "../../lib/time/time-stamp.ts";
import { readSignatureTime } from "./signature-time.ts";

const DAY = 86_400;
/** Seconds, as in CoreDNS. */
const OLDEST_INCEPTION = 6 * DAY;
const LEAST_LEFT = 7 * DAY;

/** Bytes at the start of a file that are searched for the signature of the SOA record: enough for a hundred records. */
const HEAD = 64 * 1024;
/** Size of the pieces in which text is written. */
const CHUNK = 64 * 1024;

/** The files of a zone, and whether it has to be signed. */
export interface SigningState {
  /** Fingerprint of the source file. */
  readonly stamp: string;
  /** Serial of the signed zone. */
  readonly serial: number | undefined;
  /** Why the zone has to be signed; `undefined` if the signatures are still valid for long enough. */
  readonly why: string | undefined;
}

export interface SigningQuestion {
  readonly source: string;
  readonly target: string;
  /** Key tags. */
  readonly tags: readonly number[];
  /** Seconds since the epoch. */
  readonly now: number;
  /** Fingerprint of the source when it was signed last, or was found to be older than the target. */
  readonly stamp: string | undefined;
}

/** Examines the files of a zone. @throws the error of the file system for the source */
export async function signingState(question: SigningQuestion): Promise<SigningState> {
  const { source, target } = question;
  const from = await stat(source, { bigint: true });
  const stamp = stampOf(from);
  let head: string;
  let signedAt: bigint;
  try {
    signedAt = (await stat(target, { bigint: true })).mtimeNs;
    head = await readHead(target);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    return { stamp, serial: undefined, why: `open ${target}: no such file or directory` };
  }
  // A known source has changed if its fingerprint has: comparing the times of the files would fail if the clock was
  // set in between.
  const isChanged = question.stamp === undefined ? from.mtimeNs > signedAt : stamp !== question.stamp;
  const why = isChanged ? `${source} has changed since` : reasonInHead(head, question);
  const serial = /\sSOA\s+\S+\s+\S+\s+(\d{1,10})\s/.exec(head)?.[1];
  return { stamp, serial: serial === undefined ? undefined : Number(serial), why };
}

function reasonInHead(head: string, { tags, now }: SigningQuestion): string | undefined {
  const signature = /\sRRSIG\s+SOA\s+\d+\s+\d+\s+\d+\s+(\d{14})\s+(\d{14})\s+(\d+)\s/.exec(head);
  const expiration = readSignatureTime(signature?.[1] ?? "");
  const inception = readSignatureTime(signature?.[2] ?? "");
  if (expiration === undefined || inception === undefined) return "no signature of the SOA record was found";
  if (!tags.includes(Number(signature?.[3])))
    return `the key with tag ${signature?.[3]} is not one of the signing keys`;
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

/** Replaces a file in one step; after an error the old file stays. */
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
