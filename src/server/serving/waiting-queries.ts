/**
 * Queries that wait for something, oldest first. There is a bound: past it the oldest go without an answer, since their
 * clients are the first to have given up.
 */
import type { Query } from "../../plugin/query.ts";
import type { ReplyPort } from "../../transports/transport.ts";

/** One query that waits, a link of the list. */
export class WaitingQuery {
  readonly query: Query;
  readonly port: ReplyPort;
  older: WaitingQuery | undefined;
  newer: WaitingQuery | undefined;
  /** False once it was answered or given up. */
  waits = true;

  constructor(query: Query, port: ReplyPort) {
    this.query = query;
    this.port = port;
  }
}

export class WaitingQueries {
  /** May change at any time: the next query that comes makes room then. */
  limit: number;
  readonly #onGivenUp: (waiting: WaitingQuery) => void;
  #oldest: WaitingQuery | undefined;
  #newest: WaitingQuery | undefined;
  #size = 0;

  /** @param onGivenUp called for each query that has to make room */
  constructor(limit: number, onGivenUp: (waiting: WaitingQuery) => void) {
    this.limit = limit;
    this.#onGivenUp = onGivenUp;
  }

  get size(): number {
    return this.#size;
  }

  add(query: Query, port: ReplyPort): WaitingQuery {
    while (this.#size >= this.limit && this.#oldest !== undefined) {
      const given = this.#oldest;
      this.remove(given);
      this.#onGivenUp(given);
    }
    const waiting = new WaitingQuery(query, port);
    waiting.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = waiting;
    else this.#newest.newer = waiting;
    this.#newest = waiting;
    this.#size++;
    return waiting;
  }

  /** @returns false when it was removed already */
  remove(waiting: WaitingQuery): boolean {
    if (!waiting.waits) return false;
    waiting.waits = false;
    const { older, newer } = waiting;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    waiting.older = undefined;
    waiting.newer = undefined;
    this.#size--;
    return true;
  }
}
