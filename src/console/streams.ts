/** The finished queries of all threads as one stream, with a bound on how many are looked at in a second. */
import { type FinishedQuery, QueryReader } from "../plugin/stream/query-reader.ts";
import { makeRingBuffer } from "../plugin/stream/query-ring.ts";
import { type QueryListening, type QueryStream, RING_OCTETS } from "../plugin/stream/query-stream.ts";

/** Queries a second that are written, of each thread; the rest is sampled. To write and to count one takes some 4 us: 0.8 % of a thread. */
const WANTED_RATE = 2_000;
/** The same for a busy thread while nobody looks at single queries: for counts and lists of hours, as many are enough. */
const UNWATCHED_RATE = 400;
/** Queries a second from which on a thread is busy. */
const BUSY_RATE = 20_000;
/** Entries that one call looks at, of each thread: a few milliseconds. */
const PORTION = 2_000;
/** The same where there is time. */
const SMALL_PORTION = 250;
/** Rings of other threads that are kept; more threads than that are not watched. */
const MAX_RINGS = 64;

interface Source {
  readonly reader: QueryReader;
  again(): QueryReader;
  finished: number;
  /** Queries a second when that was last worked out. */
  rate: number;
  /** What {@link finished} was at the beginning. */
  readonly first: number;
}

export class QuerySources {
  readonly #own: QueryListening;
  readonly #sources: Source[] = [];
  /** Queries a second of all threads, smoothed over some seconds. */
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

  /** Memory for one more thread to write to. */
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

  /** Visits what has come since the last call. */
  read(visit: (query: FinishedQuery) => void): void {
    const visitor = (query: FinishedQuery): void => {
      this.#seen += query.weight;
      visit(query);
    };
    for (const { reader } of this.#sources) {
      // Who cannot follow looks at what comes now, and does not run after what was.
      if (!reader.read(visitor, PORTION)) reader.skip();
    }
  }

  /**
   * Works out the rate, and how many of the queries are wanted.
   * @param now milliseconds that never go back
   * @param watched whether anybody looks at single queries
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

  /** Queries that have finished since somebody began to listen, in the configuration before as well. */
  get finished(): number {
    return this.#sources.reduce((sum, { reader }) => sum + reader.finished, 0);
  }

  /** Those of them that other threads have answered: their rings go with the configuration. */
  get finishedElsewhere(): number {
    return this.#sources.slice(1).reduce((sum, { reader }) => sum + reader.finished, 0);
  }

  /** One of so many queries is looked at now. */
  get interval(): number {
    // A writer finds out that few come when one comes.
    return Math.max(
      ...this.#sources.map(({ reader, rate }) => (rate < WANTED_RATE / 2 ? 1 : reader.interval)),
    );
  }

  /** About how many queries nobody looked at, besides those that sampling stands for. */
  get missed(): number {
    const finished = this.#sources.reduce((sum, { finished, first }) => sum + finished - first, 0);
    // Those that came after the last that was written are told with the next.
    const untold = this.#sources.reduce((sum, { reader }) => sum + reader.interval, 0);
    return Math.max(0, Math.round(finished - this.#seen - untold));
  }

  /**
   * Visits all that is still there, in portions that leave the event loop to others in between.
   */
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
