/** What {@link Clock.after} and {@link Clock.every} hand back. */
export interface Timer {
  /** Stops the timer. Once it returns, the callback is not called again. Any further call does nothing. */
  cancel(): void;
}

/** Time as a parameter: the process runs on {@link SystemClock}, a test holds {@link FakeClock}. */
export interface Clock {
  /** Milliseconds from an arbitrary origin, with fractions. Never goes back. */
  now(): number;
  /**
   * {@link now} as it was read last in this call out of the event loop; read now where it was not. For work on single queries: reading
   * the machine's clock takes 100 ns on many virtual machines, a tenth of all that an answer costs.
   */
  turnTime(): number;
  /** Milliseconds since the Unix epoch. May jump when somebody sets the machine's clock. */
  wallTime(): number;
  /** Calls back once, `delayMs` from now. A negative delay counts as none, `Infinity` never comes. */
  after(delayMs: number, callback: () => void): Timer;
  /** Calls back each `intervalMs` (1 at the least) until cancelled, the first time one interval from now. */
  every(intervalMs: number, callback: () => void): Timer;
}

export interface SystemClockOptions {
  /** Whether a pending timer keeps the process alive. Default false. */
  readonly keepAlive?: boolean;
}

/** The machine's own clock, with timers that reach further than the 24.8 days of `setTimeout`. */
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
      // An immediate would have the event loop look for events once more.
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

export interface FakeClockOptions {
  /** What {@link Clock.now} gives at first, in milliseconds. Default 0. */
  readonly now?: number;
  /** What {@link Clock.wallTime} gives at first, in milliseconds since the epoch. Default 2026-01-01T00:00:00Z. */
  readonly wallTime?: number;
}

/** A clock that stands still until a test moves it. */
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

  /** How many timers have yet to run: a test of `stop()` asks for 0. */
  get pendingTimers(): number {
    return this.#pending.length;
  }

  /** Moves the wall clock alone, as an administrator or a time daemon does. */
  setWallTime(wallTime: number): void {
    this.#wallTimeOffset = wallTime - this.#now;
  }

  /** Moves time on and runs every timer that falls due, in order, also those set by other timers meanwhile. */
  advance(ms: number): void {
    const target = this.#now + requireAdvance(ms);
    while (this.#runNext(target));
    this.#now = target;
  }

  /**
   * As {@link advance}, and after each timer lets promise callbacks and `setImmediate` run, so that chains of
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
  // NaN would make a timer that fires at once or never, depending on who compares it.
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
