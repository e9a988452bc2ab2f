/**
 * Keeps little of the program itself in memory. Node's code and constants are 100 MB of a file, of which start-up and compilation touch
 * half, and answering queries a fifth. The system takes pages away only when memory is short, and until then each counts as this
 * process's own. They are unchanged, so giving them back loses nothing: those that are touched again come from the page cache, 16 at a
 * time, at a microsecond or two.
 */
import { readFile } from "node:fs/promises";
import type { Clock } from "./clock.ts";
import { DONT_NEED, loadMemoryAdvice } from "./memory-release.ts";
import { residentMemory } from "./resident-memory.ts";

export interface ProgramPages {
  /** Octets of mapped files that are in memory. */
  resident(): number;
  /** Gives back those that nobody has written to: a millisecond or two. */
  release(): Promise<void>;
}

/** @returns `undefined` where the system has no such call */
export async function loadProgramPages(): Promise<ProgramPages | undefined> {
  const advise = await loadMemoryAdvice();
  if (advise === undefined) return undefined;
  return {
    resident: () => residentMemory().files,
    async release() {
      const text = await readFile("/proc/self/smaps", "latin1");
      for (const { start, octets } of unchangedMappings(text)) advise(start, octets, DONT_NEED);
    },
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

/** Milliseconds until the first release: what the start needed. Each pause is twice the one before: what is touched becomes less. */
const FIRST_PAUSE = 3_000;
const LONGEST_PAUSE = 60_000;
/** Octets. Fewer that have come since the last release are not worth another one. */
const MUCH = 4 * 1024 * 1024;

/** Releases the pages of the program now and then, for as long as the process runs. */
export function watchProgramPages(pages: ProgramPages, clock: Clock): void {
  let pause = FIRST_PAUSE;
  let left = 0;
  const look = async (): Promise<void> => {
    if (pages.resident() > left + MUCH) {
      // A process that may not read its own mappings keeps its pages.
      await pages.release().catch(() => undefined);
      left = pages.resident();
    }
    pause = Math.min(2 * pause, LONGEST_PAUSE);
    wait();
  };
  const wait = (): void => void clock.after(pause, () => void look());
  wait();
}
