/**
 * Gives memory back that the start, a compilation or a burst needed for a moment. Compilers run on threads of their own, each with a heap
 * of the C library that keeps what was freed: some 10 MB after the first queries.
 */
import type { Clock, Timer } from "../lib/time/clock.ts";
import { loadTrimBeside } from "./memory-release.ts";
import { loadProgramPages, type MemoryMapping } from "./program-pages.ts";
import { type ResidentMemory, residentMemory } from "./resident-memory.ts";

export interface SpareMemory {
  resident(): ResidentMemory;
  /** Gives back pages of files. */
  releaseFiles(): Promise<void>;
  /** Gives back what is free of the process's own. */
  trim(): Promise<void>;
}

/** @param lasting see `readLastingMappings` */
export async function loadSpareMemory(lasting: readonly MemoryMapping[]): Promise<SpareMemory> {
  const releaseFiles = await loadProgramPages(lasting);
  const trim = await loadTrimBeside();
  return {
    resident: residentMemory,
    // A process that may not read its own mappings keeps its pages.
    releaseFiles: async () => releaseFiles?.().catch(() => undefined),
    trim: async () => trim?.(),
  };
}

/** Milliseconds from the first look, when the start or a reload is over, to the second. Each pause is twice the one before: what is touched becomes less. */
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 15_000;
/** Looks behind a reload with {@link FIRST_PAUSE} in between: V8 goes on to compile what the new configuration calls. */
const EAGER_LOOKS = 8;
/** Octets. Fewer that have come since the last look are not worth the trouble. */
const MUCH = 4 * 1024 * 1024;

export interface SpareMemoryWatch {
  /** Something is over that needed memory for a moment, and may go on to: looks at once, and then each second for some time. */
  soon(): void;
}

/** Looks at once, and then now and then for as long as the process runs, and gives back where memory has grown. */
export function watchSpareMemory(memory: SpareMemory, clock: Clock): SpareMemoryWatch {
  let pause = 0;
  /** Further looks before pauses grow. */
  let eager = 0;
  let timer: Timer | undefined;
  const left = { files: 0, own: 0 };
  const look = async (): Promise<void> => {
    pause = eager-- > 0 ? FIRST_PAUSE : Math.min(Math.max(FIRST_PAUSE, 2 * pause), LONGEST_PAUSE);
    const { files, own } = memory.resident();
    const hasMore = { files: files > left.files + MUCH, own: own > left.own + MUCH };
    if (hasMore.own) await memory.trim();
    if (hasMore.files) await memory.releaseFiles();
    const after = memory.resident();
    // What has gone by itself may come again.
    left.files = hasMore.files ? after.files : Math.min(left.files, files);
    left.own = hasMore.own ? after.own : Math.min(left.own, own);
  };
  const begin = (): void => {
    timer = undefined;
    // Where no more files can be opened, the system does not say how much memory there is.
    void look().then(wait, wait);
  };
  const wait = (): void => {
    timer = clock.after(pause, begin);
  };
  wait();
  return {
    soon: () => {
      pause = 0;
      eager = EAGER_LOOKS;
      // A look that is under way waits for no more than that.
      if (timer === undefined) return;
      timer.cancel();
      wait();
    },
  };
}
