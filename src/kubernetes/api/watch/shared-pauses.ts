/**
 * The pauses of all watches of one API after failures. A pause that grows outlives the fault that made it, so a cheap request asks about once a second
 * whether the API is well again, for all watches together, and ends their pauses.
 */
import type { Clock, Timer } from "../../../lib/time/clock.ts";
import { ApiConnectionError, ApiSilenceError, ApiStatusError, CredentialError } from "../access/api-error.ts";
import type { ApiClient } from "../client/api-client.ts";
import { readWhole } from "../client/frames.ts";
import { SilenceGuard } from "./silence-guard.ts";

export interface SharedPausesOptions {
  readonly client: Pick<ApiClient, "get">;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Whether it costs nothing to look for new credentials, as in a file: a program that hands them out is not to be run each second. */
  readonly areCredentialsCheap?: boolean;
}

/** Between two probes; half as much again comes by chance, so that the servers of a cluster do not ask together. */
const PROBE_MS = 1_000;
/** A probe without an answer is given up after so long. */
const PROBE_SILENCE_MS = 5_000;
/** Every version of Kubernetes lets every user read this, and counts it against no limit of requests. */
const PROBE_PATH = "/readyz";
const MOST_OF_ANSWER = 64 * 1024;
/** The watch that asks for all others waits for so long at most on top of what the server asked for. */
const SCOUT_MS = 800;
/** Between two probes that end pauses although no probe failed in between. */
const TRUSTED_AGAIN_MS = 60_000;

export class SharedPauses {
  readonly #options: SharedPausesOptions;
  /** What ends each pause that a probe may end. */
  readonly #wakes = new Set<() => void>();
  readonly #end = new AbortController();
  #timer: Timer | undefined;
  #isAsking = false;
  /** Whether a good answer to a probe is news: one that contradicts the watches again and again must not make them ask ever faster. */
  #isTrusted = true;
  #trustedAt = Number.NEGATIVE_INFINITY;
  /** The watch that asks for all others whether the server takes requests again. */
  #scout: object | undefined;

  constructor(options: SharedPausesOptions) {
    this.#options = options;
  }

  /**
   * A pause begins.
   * @param wake ends it
   * @returns to be called when it is over, whatever ended it
   */
  begin(error: unknown, wake: () => void): () => void {
    if (!this.#isOverWithProbe(error)) return () => undefined;
    this.#wakes.add(wake);
    this.#plan();
    return () => {
      this.#wakes.delete(wake);
      if (this.#wakes.size === 0) this.#rest();
    };
  }

  /**
   * How long to wait after a failure. A server that has too much to do is asked by one watch alone, at the rate that the server asked for; the others
   * are woken when it takes that one.
   */
  delayOf(watch: object, error: unknown, delayMs: number): number {
    if (!(error instanceof ApiStatusError && error.code === 429)) {
      this.release(watch);
      return delayMs;
    }
    this.#scout ??= watch;
    if (this.#scout !== watch) return delayMs;
    return Math.min(delayMs, (error.retryAfterMs ?? PROBE_MS) + SCOUT_MS * this.#options.random());
  }

  /** The watch has got through, or ends: another may ask for the others. */
  release(watch: object): void {
    if (this.#scout === watch) this.#scout = undefined;
  }

  #plan(): void {
    if (this.#timer !== undefined || this.#isAsking) return;
    const { clock, random } = this.#options;
    this.#timer = clock.after(PROBE_MS * (1 + random() / 2), () => {
      this.#timer = undefined;
      void this.#probe();
    });
  }

  #rest(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  async #probe(): Promise<void> {
    const { clock } = this.#options;
    this.#isAsking = true;
    const failure = await this.#ask();
    this.#isAsking = false;
    const isWell = failure === undefined;
    if (!isWell) {
      this.#isTrusted = true;
      const { areCredentialsCheap = false } = this.#options;
      // The pauses end on their own.
      if (isOfCredentials(failure) && !areCredentialsCheap) return;
    }
    if (isWell && (this.#isTrusted || clock.now() - this.#trustedAt >= TRUSTED_AGAIN_MS)) {
      this.#isTrusted = false;
      this.#trustedAt = clock.now();
      for (const wake of [...this.#wakes]) wake();
      return;
    }
    if (this.#wakes.size > 0) this.#plan();
  }

  /** @returns why the API is not well */
  async #ask(): Promise<unknown> {
    const { client, clock } = this.#options;
    const guard = new SilenceGuard(clock, PROBE_SILENCE_MS, this.#end.signal);
    try {
      const { body } = await client.get(PROBE_PATH, "*/*", guard.signal, true);
      await readWhole(body, MOST_OF_ANSWER);
      return undefined;
    } catch (error) {
      // A proxy may not let it through: the API is reachable and accepts the credentials.
      const isThere = error instanceof ApiStatusError && (error.code === 403 || error.code === 404);
      return isThere ? undefined : error;
    } finally {
      guard.stop();
    }
  }

  /** Whether a failure is one of the API as a whole. */
  #isOverWithProbe(error: unknown): boolean {
    const { areCredentialsCheap = false } = this.#options;
    if (isOfCredentials(error)) return areCredentialsCheap;
    if (error instanceof ApiStatusError)
      return error.retryAfterMs === undefined && GATEWAY_CODES.includes(error.code);
    return error instanceof ApiConnectionError || error instanceof ApiSilenceError;
  }

  /** No probe goes on, or begins. */
  stop(): void {
    this.#wakes.clear();
    this.#rest();
    this.#end.abort(new Error("stopped"));
  }
}

function isOfCredentials(error: unknown): boolean {
  return error instanceof CredentialError || (error instanceof ApiStatusError && error.code === 401);
}

/** What a gateway answers that has no server. */
const GATEWAY_CODES: readonly number[] = [502, 503];
