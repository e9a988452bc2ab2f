/**
 * Keeps little of the program itself in memory. Node's code and constants are a large file; start-up and compilation
 * touch half of it, and answering queries a fifth. The system reclaims pages only when memory is short, and until
 * then each counts as this process's own. They are unchanged, so releasing them loses nothing: pages that are touched
 * again come from the page cache.
 */
import { readFile } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { DONT_NEED, loadMemoryAdvice, type MemoryAdvice } from "./memory-release.ts";

/**
 * Bytes released in one turn of the event loop. Pages in use come back by page faults; after releasing the whole
 * program at once, the next turn would have to wait for hundreds of them.
 */
const PORTION = 2n * 1024n * 1024n;

/**
 * Releases unmodified pages, in portions.
 * @throws NodeJS.ErrnoException if the process may not read its own mappings
 */
export type ReleaseProgramPages = () => Promise<void>;

/**
 * The file mappings that last until the process ends: those that exist before it starts a thread with a heap. V8 maps
 * a part of the program again for each such thread, and unmaps it when the thread ends. The next buffer may then have
 * the same addresses.
 * @throws NodeJS.ErrnoException if the process may not read its own mappings
 */
export async function readLastingMappings(): Promise<readonly MemoryMapping[]> {
  return [...mappingsOf(await readFile("/proc/self/maps", "latin1"), READ_ONLY)];
}

/**
 * @param lasting see {@link readLastingMappings}
 * @returns `undefined` if the system has no such call
 */
export async function loadProgramPages(
  lasting: readonly MemoryMapping[],
): Promise<ReleaseProgramPages | undefined> {
  const advise = await loadMemoryAdvice();
  if (advise === undefined) return undefined;
  return () => releaseUnchanged(lasting, advise);
}

/**
 * Releases the mappings that are unmodified now and last. Any other one may be gone after the list was read, because
 * threads end: the call would then zero whatever is at its addresses.
 */
export async function releaseUnchanged(
  lasting: readonly MemoryMapping[],
  advise: MemoryAdvice,
): Promise<void> {
  const text = await readFile("/proc/self/smaps", "latin1");
  const unchanged = [...unchangedMappings(text)];
  await releaseInTurns(
    unchanged.filter((mapping) => lasting.some((whole) => isWithin(mapping, whole))),
    advise,
  );
}

function isWithin(part: MemoryMapping, whole: MemoryMapping): boolean {
  if (part.path !== whole.path || part.start < whole.start) return false;
  return part.start + part.octets <= whole.start + whole.octets;
}

/** Releases at most {@link PORTION} bytes in one turn of the event loop. The mappings must last. */
export async function releaseInTurns(
  mappings: readonly MemoryMapping[],
  advise: MemoryAdvice,
): Promise<void> {
  let left = PORTION;
  for (const { start, octets } of mappings)
    for (let at = 0n; at < octets; ) {
      if (left === 0n) {
        await nextTurn();
        left = PORTION;
      }
      const count = octets - at < left ? octets - at : left;
      advise(start + at, count, DONT_NEED);
      at += count;
      left -= count;
    }
}

export interface MemoryMapping {
  readonly start: bigint;
  readonly octets: bigint;
  /** Of the file. */
  readonly path: string;
}

/**
 * Private read-only mappings of files in which no page differs from the file. Pages that the dynamic linker wrote and
 * protected afterwards, or a debugger's break points, would be lost.
 * @param smaps the text of /proc/PID/smaps (proc(5))
 */
export function unchangedMappings(smaps: string): Generator<MemoryMapping> {
  return mappingsOf(smaps, UNCHANGED);
}

function* mappingsOf(text: string, pattern: RegExp): Generator<MemoryMapping> {
  for (const [, from, to, path = ""] of text.matchAll(pattern)) {
    const start = BigInt(`0x${from}`);
    yield { start, octets: BigInt(`0x${to}`) - start, path };
  }
}

/** A line of /proc/PID/maps. */
const READ_ONLY = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p [^/\n]*(\/.*)$/gm;
/** A line with the addresses, then lines with a field each. */
const UNCHANGED = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p [^/\n]*(\/.*)\n(?:[A-Z].*\n)*?Anonymous: +0 kB$/gm;
