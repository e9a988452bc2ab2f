/** The validity of an answer from the cache: its entry still exists, and its remaining TTL is unchanged. */
import { UNIT_WORDS } from "../../lib/collections/slab/block-memory.ts";
import { Head } from "../../plugin/packed/entry-layout.ts";
import type { AnswerBasis, AnswerSource, Repetition } from "../../plugin/query/repetition.ts";
import type { AnswerStore } from "./answer-store.ts";
import type { CacheMetrics } from "./counters.ts";
import type { KeptAnswer } from "./kept-answer.ts";

/** A single reused object: callers must read it before the next lookup. */
export class EntryBasis implements AnswerBasis {
  source: AnswerSource;
  until = 0;
  numbers: Int32Array = NO_NUMBERS;
  place = 0;
  value = 0;
  readonly #successes: AnswerSource;
  readonly #denials: AnswerSource;

  constructor(store: AnswerStore, metrics: CacheMetrics) {
    this.#successes = new EntrySource(store, metrics, false);
    this.#denials = new EntrySource(store, metrics, true);
    this.source = this.#successes;
  }

  /** @param entry one that is not expired at `now` */
  of(entry: KeptAnswer, now: number, keepsTtl: boolean): this {
    const { expiresAt } = entry;
    this.source = entry.denial ? this.#denials : this.#successes;
    this.until = keepsTtl ? expiresAt : expiresAt - (entry.remainingTtl(now) - 1) * 1000;
    this.numbers = entry.words;
    this.place = placeOf(entry.unit);
    this.value = entry.serial;
    return this;
  }
}

const NO_NUMBERS = new Int32Array(0);

class EntrySource implements AnswerSource {
  readonly #store: AnswerStore;
  readonly #metrics: CacheMetrics;
  readonly #denial: boolean;

  constructor(store: AnswerStore, metrics: CacheMetrics, denial: boolean) {
    this.#store = store;
    this.#metrics = metrics;
    this.#denial = denial;
  }

  get epoch(): number {
    return this.#store.epoch;
  }

  given(place: number): void {
    const { denial, success } = this.#store;
    (this.#denial ? denial : success).marks.use(unitAt(place));
  }

  repeated({ query, times }: Repetition): void {
    const counters = this.#metrics.of(query);
    counters.requests.add(times);
    (this.#denial ? counters.denialHits : counters.successHits).add(times);
  }
}

/** The index of the word that holds an entry's serial. */
function placeOf(unit: number): number {
  return unit * UNIT_WORDS + Head.SERIAL;
}

function unitAt(place: number): number {
  return ((place - Head.SERIAL) / UNIT_WORDS) | 0;
}
