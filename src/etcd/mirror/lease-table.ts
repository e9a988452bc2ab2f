/**
 * The remaining time of the leases of etcd's keys. A renewal does not change the key, so a watch does not report it: leases are
 * polled as they age.
 */
import type { Clock, Timer } from "../../lib/time/clock.ts";
import type { LeaseTimeToLiveResponse } from "../client/etcd-pb.ts";

/** The place of a lease in the table; -1 for none. */
export type LeaseNumber = number;

export interface LeaseTableOptions {
  readonly clock: Clock;
  /** Rejects if etcd cannot be asked. */
  ask(id: bigint): Promise<LeaseTimeToLiveResponse>;
}

/** Milliseconds between two checks of all leases. */
const ROUND = 5_000;
/** Requests in flight. */
const WIDTH = 8;
/** An unknown lease counts as this long, so that its key is not taken for expired before the first poll. */
const UNKNOWN = Number.POSITIVE_INFINITY;

export class LeaseTable {
  readonly #options: LeaseTableOptions;
  readonly #numbers = new Map<bigint, LeaseNumber>();
  #ids = new BigInt64Array(16);
  /** `Clock.now()` at the end of each lease. */
  #ends = new Float64Array(16);
  /** Granted milliseconds, 0 if unknown. */
  #granted = new Float64Array(16);
  /** Keys that have it. */
  #users = new Int32Array(16);
  readonly #free: LeaseNumber[] = [];
  #count = 0;
  readonly #waiting: LeaseNumber[] = [];
  #underWay = 0;
  #timer: Timer | undefined;

  constructor(options: LeaseTableOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#numbers.size;
  }

  start(): void {
    this.#timer ??= this.#options.clock.every(ROUND, () => this.#askForOld());
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#waiting.length = 0;
  }

  /** One more key has the lease; 0n is no lease. */
  use(id: bigint): LeaseNumber {
    if (id === 0n) return -1;
    const known = this.#numbers.get(id);
    const lease = known ?? this.#add(id);
    this.#users[lease] = (this.#users[lease] ?? 0) + 1;
    if (known === undefined) {
      this.#waiting.push(lease);
      this.#askNext();
    }
    return lease;
  }

  /** One key less has it. */
  release(lease: LeaseNumber): void {
    if (lease < 0) return;
    const users = (this.#users[lease] ?? 0) - 1;
    this.#users[lease] = users;
    if (users > 0) return;
    this.#numbers.delete(this.#ids[lease] ?? 0n);
    this.#free.push(lease);
  }

  /** Milliseconds left; negative after the end, `Infinity` without a lease or if it is unknown. */
  remaining(lease: LeaseNumber): number {
    return lease < 0 ? UNKNOWN : (this.#ends[lease] ?? UNKNOWN) - this.#options.clock.now();
  }

  #add(id: bigint): LeaseNumber {
    const lease = this.#free.pop() ?? this.#count++;
    if (lease >= this.#ids.length) this.#grow();
    this.#ids[lease] = id;
    this.#ends[lease] = UNKNOWN;
    this.#granted[lease] = 0;
    this.#users[lease] = 0;
    this.#numbers.set(id, lease);
    return lease;
  }

  #grow(): void {
    const length = this.#ids.length * 2;
    const ids = new BigInt64Array(length);
    ids.set(this.#ids);
    this.#ids = ids;
    this.#ends = widened(this.#ends, length);
    this.#granted = widened(this.#granted, length);
    const users = new Int32Array(length);
    users.set(this.#users);
    this.#users = users;
  }

  #askForOld(): void {
    const leases = this.#waiting.length === 0 ? this.#numbers.values() : [];
    for (const lease of leases) {
      const left = this.remaining(lease);
      if (left === UNKNOWN || left < (this.#granted[lease] ?? 0) / 2) this.#waiting.push(lease);
    }
    this.#askNext();
  }

  #askNext(): void {
    while (this.#timer !== undefined && this.#underWay < WIDTH) {
      const lease = this.#waiting.shift();
      if (lease === undefined) return;
      if ((this.#users[lease] ?? 0) === 0) continue;
      this.#underWay++;
      void this.#ask(lease).finally(() => {
        this.#underWay--;
        this.#askNext();
      });
    }
  }

  async #ask(lease: LeaseNumber): Promise<void> {
    const id = this.#ids[lease] ?? 0n;
    try {
      const { TTL: left, grantedTTL: granted } = await this.#options.ask(id);
      if (this.#ids[lease] !== id) return;
      this.#ends[lease] = this.#options.clock.now() + Math.max(Number(left), 0) * 1000;
      this.#granted[lease] = Number(granted) * 1000;
    } catch {
      // etcd is unreachable: the known times stay. The next round asks again.
    }
  }
}

function widened(column: Float64Array, length: number): Float64Array<ArrayBuffer> {
  const wider = new Float64Array(length);
  wider.set(column);
  return wider;
}
