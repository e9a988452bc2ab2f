/**
 * Whether datagrams that the kernel cuts into segments reach a peer. A device that cannot cut is told of at once. Others lose what is still to be cut
 * without a word, such as BPF programs that wrap packets: the helper that makes room for another header refuses segmented datagrams unless it is told otherwise
 * (Linux, `bpf_skb_net_grow` in net/core/filter.c). Queries that come alone would be answered all the same, so that nobody would
 * take such an upstream for one that is down, and yet each pair of queries would be lost. So segments have to prove themselves: two datagrams are risked,
 * and only when the peer has replied to one of them are all cut. From then on, one message at a time is watched for its replies.
 */

/** Milliseconds that a reply may take. */
const PATIENCE = 2_000;
/** Milliseconds until two datagrams are risked again, which doubles from one failure to the next. */
const FIRST_WAIT = 5_000;
const LONGEST_WAIT = 10 * 60_000;

/** For all sockets to one peer. */
export class SegmentTrial {
  readonly #now: () => number;
  #isProved = false;
  /** When the message left whose replies are waited for, -1 for none, and the first two octets of two datagrams of it. */
  #sentAt = -1;
  #first = 0;
  #second = 0;
  #nextAt = Number.NEGATIVE_INFINITY;
  #wait = FIRST_WAIT;

  /** @param now milliseconds, from any origin */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** How many datagrams may leave as segments now: all, two as a trial, or none. */
  get allowance(): number {
    const now = this.#now();
    if (this.#sentAt >= 0) {
      if (now - this.#sentAt < PATIENCE) return this.#isProved ? Number.POSITIVE_INFINITY : 0;
      // Who did well so far is tried anew at once: it may be the reply that was lost, and not the query.
      if (!this.#isProved) this.refused();
      this.#isProved = false;
      this.#sentAt = -1;
    }
    if (this.#isProved) return Number.POSITIVE_INFINITY;
    return now >= this.#nextAt ? 2 : 0;
  }

  /**
   * A message of several segments leaves.
   * @param first the first two octets of a datagram in it, by which a reply to it is known
   * @param second those of another one
   */
  sent(first: number, second: number): void {
    if (this.#sentAt >= 0) return;
    this.#sentAt = this.#now();
    this.#first = first;
    this.#second = second;
  }

  /** @param start the first two octets of what the peer has sent */
  arrived(start: number): void {
    if (this.#sentAt < 0 || (start !== this.#first && start !== this.#second)) return;
    this.#sentAt = -1;
    this.#isProved = true;
    this.#wait = FIRST_WAIT;
  }

  /** Segments cannot be sent this way. */
  refused(): void {
    this.#isProved = false;
    this.#sentAt = -1;
    this.#nextAt = this.#now() + this.#wait;
    this.#wait = Math.min(2 * this.#wait, LONGEST_WAIT);
  }
}
