/**
 * Returns memory that the start, a compilation or a burst needed temporarily. Compilers run on threads of their own,
 * each with a heap of the C library that keeps freed memory.
 */
import type { Clock, Timer } from "../lib/time/clock.ts";
import { loadTrimBeside } from "./memory-release.ts";
import { loadProgramPages, type MemoryMapping } from "./program-pages.ts";
import { type ResidentMemory, residentMemory } from "./resident-memory.ts";

export interface SpareMemory {
  resident(): ResidentMemory;
  /** Releases pages of files. */
  releaseFiles(): Promise<void>;
  /** Releases free memory of the process's own. */
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

/**
 * Milliseconds from the first check, after the start or a reload, to the second. Each pause is twice the previous
 * one, as less and less is touched.
 */
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 15_000;
/**
 * Checks after a reload with {@link FIRST_PAUSE} in between: V8 is still compiling the functions that the new
 * configuration calls.
 */
const EAGER_LOOKS = 8;
/**
 * Checks at the longest pause for which pages of files stay after a release, whatever came back. To release them takes
 * some 10 ms of CPU, and a process that has little to do touches the same pages again a moment later: with a release
 * at each check, that was half of what a change in the cluster cost.
 */
const FILES_STAY = 4;
/** Growth in bytes since the last check that is worth a release. */
const MUCH = 4 * 1024 * 1024;

export interface SpareMemoryWatch {
  /**
   * Work that needed memory temporarily is over, and may have after-effects: checks at once, and then each second for
   * some time.
   */
  soon(): void;
}

/** Checks at once, and then at growing intervals as long as the process runs, and returns memory that has grown. */
export function watchSpareMemory(memory: SpareMemory, clock: Clock): SpareMemoryWatch {
  let pause = 0;
  /** Further checks before pauses grow. */
  let eager = 0;
  let timer: Timer | undefined;
  const left = { files: 0, own: 0 };
  /** Checks until files may be released. */
  let filesStay = 0;
  const look = async (): Promise<void> => {
    filesStay--;
    pause = eager-- > 0 ? FIRST_PAUSE : Math.min(Math.max(FIRST_PAUSE, 2 * pause), LONGEST_PAUSE);
    const { files, own } = memory.resident();
    const hasMore = { files: filesStay <= 0 && files > left.files + MUCH, own: own > left.own + MUCH };
    if (hasMore.own) await memory.trim();
    if (hasMore.files) {
      await memory.releaseFiles();
      if (pause === LONGEST_PAUSE) filesStay = FILES_STAY;
    }
    const after = memory.resident();
    // Memory that shrank by itself may grow again.
    left.files = hasMore.files ? after.files : Math.min(left.files, files);
    left.own = hasMore.own ? after.own : Math.min(left.own, own);
  };
  const begin = (): void => {
    timer = undefined;
    // If no more files can be opened, the size of memory is unknown.
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
      filesStay = 0;
      // A check in progress waits for nothing else.
      if (timer === undefined) return;
      timer.cancel();
      wait();
    },
  };
}
