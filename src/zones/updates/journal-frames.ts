/**
 * The format of a journal of updates: a head with the serial of the zone file that the updates are based on, then frames of length,
 * hash and text of the removed and added records. Anything between two complete frames is damage.
 */
import { SOA } from "../../dns/record-table.ts";
import { formatRecord, parseRecord } from "../../dns/resource-record.ts";
import { nodeCrypto } from "../../lib/files/node-modules.ts";
import type { ZoneStep } from "./edited-zone.ts";

const MAGIC = "portolan zone journal 1\n";
const MOST_HEAD = MAGIC.length + 16;
/** Of a frame: length of its text, and the beginning of its hash. */
const FRAME_HEAD = 4 + 16;
/** A longer frame is invalid. */
const MAX_FRAME = 256 * 1024 * 1024;
/** Steps of a frame. */
const FRAME = 500;
/** Steps that are read in one turn of the event loop. */
const PORTION = 100;

const PLUS = 0x2b;
const MINUS = 0x2d;
const NEWLINE = 0x0a;

/** Bytes of a journal that belong to no frame. */
export interface JournalDamage {
  readonly at: number;
  readonly length: number;
}

export interface JournalContents {
  /** Serial of the zone file; `undefined` if the head is damaged and the steps do not reveal it. */
  readonly base: number | undefined;
  /** Everything readable, also after damage. */
  readonly steps: readonly ZoneStep[];
  readonly damage: readonly JournalDamage[];
  /** Bytes at the end that a crash left incomplete: they were never acknowledged. */
  readonly torn: number;
}

export function journalHead(base: number): Buffer {
  return Buffer.from(`${MAGIC}base ${base}\n`, "latin1");
}

/** Steps as frames, in portions. Reading them gives the same steps. */
export async function journalFrames(
  steps: readonly ZoneStep[],
  pause: () => Promise<void>,
): Promise<Buffer[]> {
  const frames: Buffer[] = [];
  for (let at = 0; at < steps.length; at += FRAME) {
    if (at > 0) await pause();
    frames.push(journalFrame(steps.slice(at, at + FRAME)));
  }
  return frames;
}

/** The steps of one update, which are read together or not at all. */
export function journalFrame(steps: readonly ZoneStep[]): Buffer {
  const text = Buffer.from(
    steps.map(({ sign, record }) => `${sign}${formatRecord(record)}\n`).join(""),
    "latin1",
  );
  const head = Buffer.alloc(FRAME_HEAD);
  head.writeUInt32BE(text.length);
  hashOf(text).copy(head, 4, 0, FRAME_HEAD - 4);
  return Buffer.concat([head, text]);
}

/**
 * Reads a journal.
 * @returns `undefined` if nothing was ever written to it, and "none" for a file that is not a journal
 */
export async function readJournal(
  octets: Buffer,
  pause: () => Promise<void>,
): Promise<JournalContents | "none" | undefined> {
  const head = readHead(octets);
  // A crash in the very first write leaves a part of the head.
  if (head === undefined && octets.length < MOST_HEAD && isBeginningOfHead(octets)) return undefined;
  let at = head?.length ?? 0;
  let goodEnd = at;
  const steps: ZoneStep[] = [];
  const damage: JournalDamage[] = [];
  while (at < octets.length) {
    const end = frameEnd(octets, at);
    if (end !== undefined) {
      await readSteps(octets.subarray(at + FRAME_HEAD, end), steps, pause);
      at = end;
      goodEnd = end;
      continue;
    }
    at = nextFrame(octets, at + 1);
    if (at < octets.length) damage.push({ at: goodEnd, length: at - goodEnd });
  }
  if (head === undefined && steps.length === 0)
    // A file system that lost the data may leave a file of the same size.
    return octets.every((octet) => octet === 0)
      ? { base: undefined, steps, damage: [{ at: 0, length: octets.length }], torn: 0 }
      : "none";
  const left = octets.length - goodEnd;
  const isTorn = left > 0 && looksTorn(octets, goodEnd);
  if (left > 0 && !isTorn) damage.push({ at: goodEnd, length: left });
  return { base: head?.base ?? baseOf(steps), steps, damage, torn: isTorn ? left : 0 };
}

function readHead(octets: Buffer): { readonly length: number; readonly base: number } | undefined {
  const beginning = octets.toString("latin1", 0, MOST_HEAD);
  const [head, base] = /^portolan zone journal 1\nbase (\d+)\n/.exec(beginning) ?? [];
  return head === undefined ? undefined : { length: head.length, base: Number(base) };
}

function isBeginningOfHead(octets: Buffer): boolean {
  const text = octets.toString("latin1");
  return MAGIC.startsWith(text.slice(0, MAGIC.length)) && /^[a-z\d \n]*$/.test(text);
}

/** The first change of the serial shows the previous one. */
function baseOf(steps: readonly ZoneStep[]): number | undefined {
  for (const { sign, record } of steps) {
    if (!SOA.is(record)) continue;
    return sign === "-" ? record.data.serial : undefined;
  }
  return undefined;
}

/** End of the frame at `at`; `undefined` if there is no complete one. */
function frameEnd(octets: Buffer, at: number): number | undefined {
  if (at + FRAME_HEAD >= octets.length) return undefined;
  const first = octets[at + FRAME_HEAD];
  if (first !== PLUS && first !== MINUS) return undefined;
  const length = octets.readUInt32BE(at);
  const end = at + FRAME_HEAD + length;
  const isPlausible =
    length > 0 && length <= MAX_FRAME && end <= octets.length && octets[end - 1] === NEWLINE;
  if (isPlausible && hasHash(octets, at, end)) return end;
  return undefined;
}

function hasHash(octets: Buffer, at: number, end: number): boolean {
  const text = octets.subarray(at + FRAME_HEAD, end);
  return hashOf(text).compare(octets, at + 4, at + FRAME_HEAD, 0, FRAME_HEAD - 4) === 0;
}

/** No text of a record contains the first bytes of a frame's length, so a client cannot write a frame into another. */
function nextFrame(octets: Buffer, from: number): number {
  for (let at = from; at < octets.length; at++) if (frameEnd(octets, at) !== undefined) return at;
  return octets.length;
}

/** Whether an interrupted write can have left this at the end: a part of a frame, or space that was never filled. */
function looksTorn(octets: Buffer, at: number): boolean {
  const left = octets.subarray(at);
  if (left.every((octet) => octet === 0)) return true;
  if (left.length < 4) return true;
  const length = left.readUInt32BE(0);
  if (length === 0 || length > MAX_FRAME || FRAME_HEAD + length <= left.length) return false;
  // If the hash matches all remaining bytes, nothing is missing and the length is wrong.
  return left.length <= FRAME_HEAD || !hasHash(octets, at, octets.length);
}

async function readSteps(text: Buffer, steps: ZoneStep[], pause: () => Promise<void>): Promise<void> {
  for (const line of text.toString("utf8").split("\n")) {
    if (line === "") continue;
    // Most frames are smaller than a portion.
    if (steps.length % PORTION === PORTION - 1) await pause();
    steps.push({ sign: line.startsWith("+") ? "+" : "-", record: parseRecord(line.slice(1)) });
  }
}

function hashOf(text: Buffer): Buffer {
  return nodeCrypto().createHash("sha256").update(text).digest();
}
