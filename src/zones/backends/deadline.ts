/** Limits the time for answers of a back end and of sign-ins: a library may wait forever. */
import type { Clock } from "../../lib/time/clock.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import { ZoneSourceError } from "../backed/zone-source.ts";

export interface Deadline {
  readonly clock: Clock;
  readonly milliseconds: number;
  /** The operation, for the message. */
  readonly what: string;
  /** Ends the work early. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs `work`, and gives up after the timeout, whether or not the work obeys its signal.
 * @throws ZoneSourceError after the timeout, else the errors of `work`
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
    // Later errors are ignored.
    working.catch(() => undefined);
    return await Promise.race([working, over.promise]);
  } finally {
    timer.cancel();
    signal?.removeEventListener("abort", stop);
    over.promise.catch(() => undefined);
  }
}
