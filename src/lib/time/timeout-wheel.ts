import type { Clock, Timer } from "./clock.ts";

/** Called by a {@link TimeoutWheel} when the time is up. */
export interface TimeoutTarget {
  expired(): void;
}

/**
 * Very many short time-outs on one timer, such as one for each query sent to an upstream.
 *
 * `schedule` and `cancel` take constant time and allocate only the handle, a node of the wheel's own lists. In return
 * time is coarse: a time-out is never early, and up to two granules late. It may be later if so many are due together
 * that their calls exceed the share of a turn: the rest then run in later turns.
 *
 * The wheel holds a timer only while a time-out is scheduled, and for one granule after.
 */
export class TimeoutWheel {
  readonly #clock: Clock;
  readonly #granularityMs: number;
  readonly #slots: TimeoutHandle[] = [];
  readonly #due = new TimeoutHandle();
  #origin = 0;
  #tick = 0;
  #size = 0;
  #timer: Timer | undefined;
  /** Runs while due time-outs wait for a later turn of the event loop. */
  #rest: Timer | undefined;

  constructor(clock: Clock, granularityMs: number) {
    if (!(granularityMs > 0)) throw new RangeError("the granularity of a timeout wheel must be above 0 ms");
    this.#clock = clock;
    this.#granularityMs = granularityMs;
    for (let index = 0; index < SLOT_COUNT; index++) this.#slots.push(new TimeoutHandle());
  }

  /** The number of scheduled time-outs. */
  get size(): number {
    return this.#size;
  }

  /** Calls `target.expired()` once, not before `delayMs` have passed since {@link Clock.turnTime}. */
  schedule(delayMs: number, target: TimeoutTarget): TimeoutHandle {
    const now = this.#clock.turnTime();
    if (this.#timer === undefined) this.#start(now);
    return this.#place(new TimeoutHandle(), now, delayMs, target);
  }

  /**
   * The same for a target that is its own handle, which saves memory. It must not be scheduled already, in this wheel
   * or another.
   */
  scheduleItself(delayMs: number, target: TimeoutHandle & TimeoutTarget): void {
    const now = this.#clock.turnTime();
    if (this.#timer === undefined) this.#start(now);
    this.#place(target, now, delayMs, target);
  }

  #place(handle: TimeoutHandle, now: number, delayMs: number, target: TimeoutTarget): TimeoutHandle {
    const tick = Math.ceil((now - this.#origin + delayMs) / this.#granularityMs);
    handle.target = target;
    handle.tick = tick > this.#tick ? tick : this.#tick + 1;
    handle.linkBefore(this.#slotOf(handle.tick));
    this.#size++;
    return handle;
  }

  /** Cancels a time-out. Does nothing if it has expired or was cancelled before. */
  cancel(handle: TimeoutHandle): void {
    if (handle.target === undefined) return;
    handle.target = undefined;
    handle.unlink();
    this.#size--;
  }

  /** Drops all time-outs, without calling them, and stops the timer. The wheel may be used again. */
  clear(): void {
    for (const slot of this.#slots) this.#drop(slot);
    this.#drop(this.#due);
    this.#stop();
  }

  #start(now: number): void {
    this.#origin = now;
    this.#tick = 0;
    this.#timer = this.#clock.every(this.#granularityMs, () => this.#turn());
  }

  #stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#rest?.cancel();
    this.#rest = undefined;
  }

  #turn(): void {
    if (this.#size === 0) {
      this.#stop();
      return;
    }
    const current = Math.floor((this.#clock.now() - this.#origin) / this.#granularityMs);
    // After a pause of the whole process a full turn of the wheel visits every slot.
    const first = Math.max(this.#tick + 1, current - SLOT_COUNT + 1);
    this.#tick = Math.max(this.#tick, current);
    for (let tick = first; tick <= current; tick++) this.#collect(this.#slotOf(tick), current);

    this.#callDue();
  }

  #callDue(): void {
    const began = this.#clock.now();
    let called = 0;
    // One at a time from the list's head: a target may cancel its neighbours or schedule anew. If one throws,
    // the others are still in the list and get their call with the next tick.
    for (let handle = this.#due.next; handle !== this.#due; handle = this.#due.next) {
      const target = handle.target;
      this.cancel(handle);
      target?.expired();
      if (++called % CALLS_A_LOOK !== 0 || this.#clock.now() - began < SHARE) continue;
      // Thousands may be due together if an upstream has died: other work gets its turn in between.
      this.#rest ??= this.#clock.after(0, this.#goOn);
      return;
    }
  }

  readonly #goOn = (): void => {
    this.#rest = undefined;
    this.#callDue();
  };

  #collect(slot: TimeoutHandle, current: number): void {
    for (let handle = slot.next; handle !== slot; ) {
      const next = handle.next;
      if (handle.tick <= current) {
        handle.unlink();
        handle.linkBefore(this.#due);
      }
      handle = next;
    }
  }

  #drop(list: TimeoutHandle): void {
    while (list.next !== list) this.cancel(list.next);
  }

  #slotOf(tick: number): TimeoutHandle {
    return this.#slots[tick & (SLOT_COUNT - 1)] ?? this.#due;
  }
}

/** One time-out: opaque to all code but the wheel that made it. */
export class TimeoutHandle {
  /** Undefined once expired or cancelled, so that a retained handle keeps nothing else alive. */
  target: TimeoutTarget | undefined = undefined;
  tick = 0;
  next: TimeoutHandle = this;
  previous: TimeoutHandle = this;

  linkBefore(list: TimeoutHandle): void {
    this.previous = list.previous;
    this.next = list;
    list.previous.next = this;
    list.previous = this;
  }

  unlink(): void {
    this.previous.next = this.next;
    this.next.previous = this.previous;
    this.next = this;
    this.previous = this;
  }
}

/** Milliseconds of an event-loop turn that the targets may take. */
const SHARE = 0.5;
/** Calls between two readings of the clock. */
const CALLS_A_LOOK = 16;

/** A power of two. With granules of 100 ms, time-outs up to 25.6 s are visited only once. */
const SLOT_COUNT = 256;
