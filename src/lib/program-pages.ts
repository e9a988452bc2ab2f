/**
 * Keeps little of the program itself in memory. Node's code and constants are 100 MB of a file, of which start-up and compilation touch
 * half, and answering queries a fifth. The system takes pages away only when memory is short, and until then each counts as this
 * process's own. They are unchanged, so giving them back loses nothing: those that are touched again come from the page cache, 16 at a
 * time, at a microsecond or two.
 */
import { readFile } from "node:fs/promises";
import { DONT_NEED, loadMemoryAdvice } from "./memory-release.ts";

/**
 * Gives back the pages that nobody has written to: a millisecond or two.
 * @throws NodeJS.ErrnoException where the process may not read its own mappings
 */
export type ReleaseProgramPages = () => Promise<void>;

/** @returns `undefined` where the system has no such call */
export async function loadProgramPages(): Promise<ReleaseProgramPages | undefined> {
  const advise = await loadMemoryAdvice();
  if (advise === undefined) return undefined;
  return async () => {
    const text = await readFile("/proc/self/smaps", "latin1");
    for (const { start, octets } of unchangedMappings(text)) advise(start, octets, DONT_NEED);
  };
}

export interface Mapping {
  readonly start: bigint;
  readonly octets: bigint;
}

/**
 * Private mappings of files that may be read only, and of which no page differs from the file. What the dynamic linker wrote to and
 * protected afterwards, or a debugger's break point, would be lost.
 * @param smaps the text of /proc/PID/smaps (proc(5))
 */
export function* unchangedMappings(smaps: string): Generator<Mapping> {
  for (const [, from, to] of smaps.matchAll(UNCHANGED)) {
    const start = BigInt(`0x${from}`);
    yield { start, octets: BigInt(`0x${to}`) - start };
  }
}

/** A line with the addresses, then lines with a field each. */
const UNCHANGED = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p [^/\n]*\/.*\n(?:[A-Z].*\n)*?Anonymous: +0 kB$/gm;
