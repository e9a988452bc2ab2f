/** The stream of finished queries of one data plane: written while somebody listens, and nothing but a check otherwise. */
import type { Clock } from "../../lib/time/clock.ts";
import { QueryReader } from "./query-reader.ts";
import { makeRingBuffer, QueryRing } from "./query-ring.ts";

/** Some 14,000 queries in a cluster's usual words. */
export const RING_OCTETS: number = 1024 * 1024;

export interface QueryListening {
  readonly reader: QueryReader;
  /** Another one over the same queries, from the oldest on. */
  again(): QueryReader;
  /** Ends it. The ring goes with the last who listens. */
  stop(): void;
}

export class QueryStream {
  /** Where the listeners of this data plane write; `undefined` while nobody listens. */
  ring: QueryRing | undefined = undefined;
  readonly #clock: Clock;
  #listening = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Has queries written, in a ring that all who listen share. */
  listen(): QueryListening {
    this.#listening++;
    this.ring ??= new QueryRing(makeRingBuffer(RING_OCTETS), this.#clock);
    const { ring } = this;
    const finish = (): void => ring.close();
    let open = true;
    return {
      reader: new QueryReader(ring.buffer, false, finish),
      again: () => new QueryReader(ring.buffer, true, finish),
      stop: () => {
        if (!open) return;
        open = false;
        if (--this.#listening === 0 && this.ring === ring) this.ring = undefined;
      },
    };
  }

  /**
   * Writes to the memory of another thread that listens.
   * @returns ends it
   */
  writeTo(buffer: SharedArrayBuffer): () => void {
    const ring = new QueryRing(buffer, this.#clock);
    this.ring = ring;
    return () => {
      if (this.ring === ring) this.ring = undefined;
    };
  }
}
