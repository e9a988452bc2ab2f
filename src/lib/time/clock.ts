/** The result of {@link Clock.after} and {@link Clock.every}. */
export interface Timer {
  /** Stops the timer. Once it returns, the callback is not called again. Any further call does nothing. */
  cancel(): void;
}

/** Time as a parameter: the process runs on `SystemClock`, a test on {@link FakeClock}. */
export interface Clock {
  /** Milliseconds from an arbitrary origin, with fractions. Never goes back. */
  now(): number;
  /**
   * {@link now} as it was last read in this turn of the event loop; reads it at the first call. For work on single
   * queries: reading the system clock is slow on many virtual machines.
   */
  turnTime(): number;
  /** Milliseconds since the Unix epoch. May jump when the machine's clock is set. */
  wallTime(): number;
  /** Calls back once, `delayMs` from now. A negative delay counts as 0, `Infinity` never fires. */
  after(delayMs: number, callback: () => void): Timer;
  /** Calls back every `intervalMs` (at least 1) until cancelled, the first time one interval from now. */
  every(intervalMs: number, callback: () => void): Timer;
}

export interface SystemClockOptions {
  /** Whether a pending timer keeps the process alive. Default false. */
  readonly keepAlive?: boolean;
}

/** The system clock, with timers that reach further than the 24.8 days of `setTimeout`. */
export class SystemClock implements Clock {
  readonly #keepAlive: boolean;
  #turnTime = 0;
  #isTurnTimed = false;

  constructor(options: SystemClockOptions = {}) {
    this.#keepAlive = options.keepAlive ?? false;
  }

  now(): number {
    const now = performance.now();
    if (this.#isTurnTimed) this.#turnTime = now;
    return now;
  }

  turnTime(): number {
    if (!this.#isTurnTimed) {
      this.#turnTime = performance.now();
      this.#isTurnTimed = true;
      // An immediate would cost another poll of the event loop.
      process.nextTick(this.#endTurn);
    }
    return this.#turnTime;
  }

  readonly #endTurn = (): void => {
    this.#isTurnTimed = false;
  };

  wallTime(): number {
    return Date.now();
  }

  after(delayMs: number, callback: () => void): Timer {
    return new SystemTimer(requireDuration(delayMs, 0), undefined, callback, this.#keepAlive);
  }

  every(intervalMs: number, callback: () => void): Timer {
    const interval = requireDuration(intervalMs, 1);
    return new SystemTimer(interval, interval, callback, this.#keepAlive);
  }
}

/** Where a clock for tests begins. */
export interface FakeClockOptions {
  /** The initial {@link Clock.now} in milliseconds. Default 0. */
  readonly now?: number;
  /** The initial {@link Clock.wallTime} in milliseconds since the epoch. Default 2026-01-01T00:00:00Z. */
  readonly wallTime?: number;
}

/** A clock that stands still until a test advances it. */
export class FakeClock implements Clock {
  #now: number;
  #wallTimeOffset: number;
  #pending: FakeTimer[] = [];
  #sequence = 0;

  constructor(options: FakeClockOptions = {}) {
    this.#now = options.now ?? 0;
    this.#wallTimeOffset = (options.wallTime ?? Date.UTC(2026, 0, 1)) - this.#now;
  }

  now(): number {
    return this.#now;
  }

  turnTime(): number {
    return this.#now;
  }

  wallTime(): number {
    return this.#now + this.#wallTimeOffset;
  }

  after(delayMs: number, callback: () => void): Timer {
    return this.#set(requireDuration(delayMs, 0), undefined, callback);
  }

  every(intervalMs: number, callback: () => void): Timer {
    const interval = requireDuration(intervalMs, 1);
    return this.#set(interval, interval, callback);
  }

  /** Pending timers: a test of `stop()` expects 0. */
  get pendingTimers(): number {
    return this.#pending.length;
  }

  /** Sets the wall clock alone, as an administrator or a time daemon does. */
  setWallTime(wallTime: number): void {
    this.#wallTimeOffset = wallTime - this.#now;
  }

  /** Advances time and runs every timer that falls due, in order, including timers that other timers set. */
  advance(ms: number): void {
    const target = this.#now + requireAdvance(ms);
    while (this.#runNext(target));
    this.#now = target;
  }

  /**
   * Like {@link advance}, and lets promise callbacks and `setImmediate` run after each timer, so that chains of
   * `await` between timers make progress. It does not wait for sockets or files.
   */
  async settle(ms = 0): Promise<void> {
    const target = this.#now + requireAdvance(ms);
    await eventLoopTurn();
    while (this.#runNext(target)) await eventLoopTurn();
    this.#now = target;
    await eventLoopTurn();
  }

  #set(delayMs: number, intervalMs: number | undefined, callback: () => void): Timer {
    const timer: FakeTimer = { due: this.#now + delayMs, sequence: this.#sequence++, intervalMs, callback };
    this.#pending.push(timer);
    return {
      cancel: () => {
        this.#pending = this.#pending.filter((other) => other !== timer);
      },
    };
  }

  #runNext(target: number): boolean {
    let next: FakeTimer | undefined;
    for (const timer of this.#pending) {
      if (timer.due > target) continue;
      if (
        next === undefined ||
        timer.due < next.due ||
        (timer.due === next.due && timer.sequence < next.sequence)
      ) {
        next = timer;
      }
    }
    if (next === undefined) return false;

    this.#now = Math.max(this.#now, next.due);
    if (next.intervalMs === undefined) {
      this.#pending = this.#pending.filter((other) => other !== next);
    } else {
      next.due += next.intervalMs;
      next.sequence = this.#sequence++;
    }
    next.callback();
    return true;
  }
}

interface FakeTimer {
  due: number;
  sequence: number;
  readonly intervalMs: number | undefined;
  readonly callback: () => void;
}

/** `setTimeout` takes a longer delay than this for 1 ms. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

class SystemTimer implements Timer {
  readonly #intervalMs: number | undefined;
  readonly #callback: () => void;
  readonly #keepAlive: boolean;
  #remainingMs: number;
  #timeout: NodeJS.Timeout | undefined;

  constructor(delayMs: number, intervalMs: number | undefined, callback: () => void, keepAlive: boolean) {
    this.#intervalMs = intervalMs;
    this.#callback = callback;
    this.#keepAlive = keepAlive;
    this.#remainingMs = delayMs;
    if (intervalMs !== undefined && intervalMs <= LONGEST_TIMEOUT_MS) {
      this.#timeout = setInterval(callback, intervalMs);
      if (!keepAlive) this.#timeout.unref();
    } else {
      this.#arm();
    }
  }

  cancel(): void {
    clearTimeout(this.#timeout);
    this.#timeout = undefined;
  }

  #arm(): void {
    const step = Math.min(this.#remainingMs, LONGEST_TIMEOUT_MS);
    this.#remainingMs -= step;
    this.#timeout = setTimeout(() => this.#elapsed(), step);
    if (!this.#keepAlive) this.#timeout.unref();
  }

  #elapsed(): void {
    if (this.#remainingMs > 0) {
      this.#arm();
      return;
    }
    this.#timeout = undefined;
    if (this.#intervalMs !== undefined) {
      this.#remainingMs = this.#intervalMs;
      this.#arm();
    }
    this.#callback();
  }
}

function requireDuration(ms: number, least: number): number {
  // NaN would make a timer that fires at once or never, depending on the comparison.
  if (Number.isNaN(ms)) throw new RangeError("a timer's delay must be a number of milliseconds");
  return Math.max(ms, least);
}

function requireAdvance(ms: number): number {
  if (!(ms >= 0 && ms < Infinity)) throw new RangeError(`a fake clock cannot advance by ${ms} ms`);
  return ms;
}

function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
