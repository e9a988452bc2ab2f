/**
 * Keeps little of the program itself in memory. Node's code and constants are 100 MB of a file, of which start-up and compilation touch
 * half, and answering queries a fifth. The system takes pages away only when memory is short, and until then each counts as this
 * process's own. They are unchanged, so giving them back loses nothing: those that are touched again come from the page cache, 16 at a
 * time, at a microsecond or two.
 */
import { readFile } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { DONT_NEED, loadMemoryAdvice, type MemoryAdvice } from "./memory-release.ts";

/**
 * Octets that go in one turn of the event loop. What is in use comes back at once, by a fault for each 64 KiB, and with all of the program gone the
 * next turn had to wait for 200 to 400 of these: 3 to 5 ms where page tables are the hypervisor's, too.
 */
const PORTION = 2n * 1024n * 1024n;

/**
 * Gives back the pages that nobody has written to, in portions: a millisecond or two in all.
 * @throws NodeJS.ErrnoException where the process may not read its own mappings
 */
export type ReleaseProgramPages = () => Promise<void>;

/**
 * The mappings of files that stay where they are until the process ends: those that it has before it starts a thread with a heap. V8 maps a part of the
 * program once more for each such thread, and that mapping goes when the thread ends. The next buffer may then lie at the same addresses.
 * @throws NodeJS.ErrnoException where the process may not read its own mappings
 */
export async function readLastingMappings(): Promise<readonly MemoryMapping[]> {
  return [...mappingsOf(await readFile("/proc/self/maps", "latin1"), READ_ONLY)];
}

/**
 * @param lasting see {@link readLastingMappings}
 * @returns `undefined` where the system has no such call
 */
export async function loadProgramPages(
  lasting: readonly MemoryMapping[],
): Promise<ReleaseProgramPages | undefined> {
  const advise = await loadMemoryAdvice();
  if (advise === undefined) return undefined;
  return () => releaseUnchanged(lasting, advise);
}

/**
 * Gives back what is unchanged now and lasts. Anything else in the list may be gone by the time that it has been read, for threads end meanwhile: the call would then fill
 * with zeros whatever lies there instead.
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

/** No more than {@link PORTION} octets go in a turn of the event loop. The mappings must last. */
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
 * Private mappings of files that may be read only, and of which no page differs from the file. What the dynamic linker wrote to and
 * protected afterwards, or a debugger's break point, would be lost.
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
