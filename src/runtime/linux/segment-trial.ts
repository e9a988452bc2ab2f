/**
 * Tests whether datagrams that the kernel cuts into segments reach a peer. A device that cannot cut reports an error
 * at once. Others drop uncut datagrams silently, such as BPF programs that encapsulate packets: the helper that makes
 * room for another header refuses segmented datagrams by default (Linux, `bpf_skb_net_grow` in net/core/filter.c).
 * Single queries would still be answered, so such an upstream would not count as down, and yet each pair of queries
 * would be lost. So segments have to prove themselves: two datagrams are risked, and only when the peer has replied
 * to one of them are all cut. From then on, one message at a time is watched for its replies.
 */

/** Milliseconds to wait for a reply. */
const PATIENCE = 2_000;
/** Milliseconds until two datagrams are risked again, doubled after each failure. */
const FIRST_WAIT = 5_000;
const LONGEST_WAIT = 10 * 60_000;

/** Shared by all sockets to one peer. */
export class SegmentTrial {
  readonly #now: () => number;
  #isProved = false;
  /** When the watched message was sent, -1 for none, and the first two octets of two of its datagrams. */
  #sentAt = -1;
  #first = 0;
  #second = 0;
  #nextAt = Number.NEGATIVE_INFINITY;
  #wait = FIRST_WAIT;

  /** @param now milliseconds, from any origin */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** How many datagrams may be sent as segments now: all, two as a trial, or none. */
  get allowance(): number {
    const now = this.#now();
    if (this.#sentAt >= 0) {
      if (now - this.#sentAt < PATIENCE) return this.#isProved ? Number.POSITIVE_INFINITY : 0;
      // A peer with past successes is tried again at once: the reply may have been lost, and not the query.
      if (!this.#isProved) this.refused();
      this.#isProved = false;
      this.#sentAt = -1;
    }
    if (this.#isProved) return Number.POSITIVE_INFINITY;
    return now >= this.#nextAt ? 2 : 0;
  }

  /**
   * A message of several segments is sent.
   * @param first the first two octets of a datagram in it, which identify its reply
   * @param second the first two octets of another one
   */
  sent(first: number, second: number): void {
    if (this.#sentAt >= 0) return;
    this.#sentAt = this.#now();
    this.#first = first;
    this.#second = second;
  }

  /** @param start the first two octets of a message from the peer */
  arrived(start: number): void {
    if (this.#sentAt < 0 || (start !== this.#first && start !== this.#second)) return;
    this.#sentAt = -1;
    this.#isProved = true;
    this.#wait = FIRST_WAIT;
  }

  /** Segments cannot be sent on this path. */
  refused(): void {
    this.#isProved = false;
    this.#sentAt = -1;
    this.#nextAt = this.#now() + this.#wait;
    this.#wait = Math.min(2 * this.#wait, LONGEST_WAIT);
  }
}
