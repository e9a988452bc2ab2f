/** Bounds for what a back end, or who signs in to it, takes to answer: a library may wait for ever. */
import type { Clock } from "../../lib/time/clock.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import { ZoneSourceError } from "../backed/zone-source.ts";

export interface Deadline {
  readonly clock: Clock;
  readonly milliseconds: number;
  /** For the message: what there is no answer to. */
  readonly what: string;
  /** Ends the work early. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs `work`, and gives up when the time is over, whether or not the work heeds its signal.
 * @throws ZoneSourceError when the time is over, else what `work` throws
 */
export async function within<T>(
  { clock, milliseconds, what, signal }: Deadline,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  const over = Promise.withResolvers<never>();
  const end = (reason: unknown): void => {
    over.reject(reason);
    abort.abort(reason);
  };
  const timer = clock.after(milliseconds, () => {
    const message = `${what}: no answer within ${formatGoDuration(milliseconds)}`;
    end(new ZoneSourceError(message, { isTransient: true }));
  });
  const stop = (): void => end(signal?.reason);
  signal?.addEventListener("abort", stop);
  try {
    signal?.throwIfAborted();
    const working = work(abort.signal);
    // What it says after the time is over is of no interest.
    working.catch(() => undefined);
    return await Promise.race([working, over.promise]);
  } finally {
    timer.cancel();
    signal?.removeEventListener("abort", stop);
    over.promise.catch(() => undefined);
  }
}
