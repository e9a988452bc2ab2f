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

/** @returns `undefined` where the system has no such call */
export async function loadProgramPages(): Promise<ReleaseProgramPages | undefined> {
  const advise = await loadMemoryAdvice();
  if (advise === undefined) return undefined;
  return async () => {
    const text = await readFile("/proc/self/smaps", "latin1");
    await releaseInTurns([...unchangedMappings(text)], process.execPath, advise);
  };
}

/**
 * @param program the file that is mapped for as long as the process runs: of it no more than {@link PORTION} octets go in a turn of the event loop. A
 *   library may be gone by the next turn, and something else in its place: all of them go in the first one
 */
export async function releaseInTurns(
  mappings: readonly Mapping[],
  program: string,
  advise: MemoryAdvice,
): Promise<void> {
  for (const { start, octets, path } of mappings) if (path !== program) advise(start, octets, DONT_NEED);
  let left = PORTION;
  for (const { start, octets, path } of mappings)
    for (let at = 0n; path === program && at < octets; ) {
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

export interface Mapping {
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
export function* unchangedMappings(smaps: string): Generator<Mapping> {
  for (const [, from, to, path = ""] of smaps.matchAll(UNCHANGED)) {
    const start = BigInt(`0x${from}`);
    yield { start, octets: BigInt(`0x${to}`) - start, path };
  }
}

/** A line with the addresses, then lines with a field each. */
const UNCHANGED = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p [^/\n]*(\/.*)\n(?:[A-Z].*\n)*?Anonymous: +0 kB$/gm;
