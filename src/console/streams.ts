/** The finished queries of all threads as one stream, with a bound on the queries per second. */
import { type FinishedQuery, QueryReader } from "../plugin/stream/query-reader.ts";
import { makeRingBuffer } from "../plugin/stream/query-ring.ts";
import { type QueryListening, type QueryStream, RING_OCTETS } from "../plugin/stream/query-stream.ts";

/** Queries per second that each thread writes; above that they are sampled, to limit the CPU time for the console. */
const WANTED_RATE = 2_000;
/** The same for a busy thread while no client follows single queries: enough for counts and lists of hours. */
const UNWATCHED_RATE = 400;
/** Queries per second above which a thread is busy. */
const BUSY_RATE = 20_000;
/** Entries of each thread that one call reads: a few milliseconds. */
const PORTION = 2_000;
/** The smaller portion of a read that is not urgent. */
const SMALL_PORTION = 250;
/** The most rings of other threads; further threads are not read. */
const MAX_RINGS = 64;

interface Source {
  readonly reader: QueryReader;
  again(): QueryReader;
  finished: number;
  /** Queries per second at the last measurement. */
  rate: number;
  /** The initial value of {@link finished}. */
  readonly first: number;
}

export class QuerySources {
  readonly #own: QueryListening;
  readonly #sources: Source[] = [];
  /** Queries per second of all threads, smoothed over some seconds. */
  rate = 0;
  #ratedAt = Number.NaN;
  #seen = 0;

  constructor(stream: QueryStream) {
    this.#own = stream.listen();
    const first = this.#own.reader.finished;
    this.#own.reader.wantedRate = WANTED_RATE;
    this.#sources.push({
      reader: this.#own.reader,
      again: () => this.#own.again(),
      finished: first,
      rate: 0,
      first,
    });
  }

  /** Memory for the queries of one more thread. */
  addThread(): SharedArrayBuffer {
    const buffer = makeRingBuffer(RING_OCTETS);
    const reader = new QueryReader(buffer);
    reader.wantedRate = WANTED_RATE;
    if (this.#sources.length < MAX_RINGS)
      this.#sources.push({
        reader,
        again: () => new QueryReader(buffer, true),
        finished: 0,
        rate: 0,
        first: 0,
      });
    return buffer;
  }

  /** Visits the queries since the last call. */
  read(visit: (query: FinishedQuery) => void): void {
    const visitor = (query: FinishedQuery): void => {
      this.#seen += query.weight;
      visit(query);
    };
    for (const { reader } of this.#sources) {
      // A reader that falls behind skips to the present.
      if (!reader.read(visitor, PORTION)) reader.skip();
    }
  }

  /**
   * Updates the rate and the sampling.
   * @param now milliseconds that never go back
   * @param watched whether a client follows single queries
   */
  measure(now: number, watched: boolean): void {
    const seconds = (now - this.#ratedAt) / 1000;
    if (!(seconds < 0.9)) this.#ratedAt = now;
    if (Number.isNaN(seconds) || seconds < 0.9) return;
    let total = 0;
    for (const source of this.#sources) {
      const { finished } = source.reader;
      const rate = (finished - source.finished) / seconds;
      source.finished = finished;
      source.rate = rate;
      source.reader.wantedRate = watched || rate < BUSY_RATE ? WANTED_RATE : UNWATCHED_RATE;
      total += rate;
    }
    this.rate =
      total > this.rate * 4 || total < this.rate / 4 ? total : this.rate + 0.5 * (total - this.rate);
    if (this.rate < 0.05) this.rate = 0;
  }

  /** Finished queries since a console first listened, earlier configurations included. */
  get finished(): number {
    return this.#sources.reduce((sum, { reader }) => sum + reader.finished, 0);
  }

  /** The finished queries of other threads: their rings end with the configuration. */
  get finishedElsewhere(): number {
    return this.#sources.slice(1).reduce((sum, { reader }) => sum + reader.finished, 0);
  }

  /** One query in this many is read now. */
  get interval(): number {
    // A writer notices a low rate at its next query.
    return Math.max(
      ...this.#sources.map(({ reader, rate }) => (rate < WANTED_RATE / 2 ? 1 : reader.interval)),
    );
  }

  /** Approximate number of queries that were not read, besides those that sampling represents. */
  get missed(): number {
    const finished = this.#sources.reduce((sum, { finished, first }) => sum + finished - first, 0);
    // Queries after the last written one are reported with the next.
    const untold = this.#sources.reduce((sum, { reader }) => sum + reader.interval, 0);
    return Math.max(0, Math.round(finished - this.#seen - untold));
  }

  /** Visits everything present, in portions, and lets the event loop run in between. */
  async readAll(visit: (query: FinishedQuery) => void): Promise<void> {
    for (const source of [...this.#sources]) {
      const reader = source.again();
      while (!reader.read(visit, SMALL_PORTION)) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  stop(): void {
    this.#own.stop();
  }
}
