/**
 * Frees the octets of lists that were read. They lie outside of V8's heap, in buffers of 16 KiB, and are freed with the small objects that stand for them: where
 * little else is made of them, as of pods, V8 by itself does so far too late.
 */
import type { MemoryRelease } from "../../../runtime/memory-release.ts";

/** Octets that buffers may grow by between two looks. With twice as many, memory while everything is listed is 10 MB more. */
const MUCH = 384 * 1024;
/** Looks until what was freed is given back to the system, too: 8 MiB of lists. That takes a millisecond or two of another thread. */
const TRIMMED_EVERY = 16;
/** The first time comes sooner: what a connection needs for its first octets is freed by then. Without that, the peak is 1 MB higher. */
const FIRST_TRIM = 4;

/**
 * To be called now and then while lists come in. It leaves to V8 what V8 does: two collections of young objects in a row move all that waits to be read to
 * the old generation, where it stays until the next collection of the whole heap. That was a tenth of the list.
 */
export function freeingOctets(memory: Pick<MemoryRelease, "buffers" | "young" | "trim">): () => void {
  /** After the last collection, as far as is known. */
  let left = Number.POSITIVE_INFINITY;
  let looks = 0;
  return () => {
    if (++looks % TRIMMED_EVERY === FIRST_TRIM) void memory.trim().catch(() => undefined);
    const buffers = memory.buffers();
    if (buffers < left + MUCH) {
      left = Math.min(left, buffers);
      return;
    }
    memory.young();
    left = Number.POSITIVE_INFINITY;
  };
}
