/**
 * The stream of finished queries of one data plane: written while there is a listener; otherwise it costs one check.
 */
import type { Clock } from "../../lib/time/clock.ts";
import { QueryReader } from "./query-reader.ts";
import { makeRingBuffer, QueryRing } from "./query-ring.ts";

/** Room for thousands of typical queries. */
export const RING_OCTETS: number = 1024 * 1024;

export interface QueryListening {
  readonly reader: QueryReader;
  /** A second reader of the same queries, from the oldest on. */
  again(): QueryReader;
  /** Ends listening. The ring is freed with its last listener. */
  stop(): void;
}

/** Finished queries, for plugins that show or count them. */
export class QueryStream {
  /** The ring of this data plane's listeners; `undefined` without any. */
  ring: QueryRing | undefined = undefined;
  readonly #clock: Clock;
  #listening = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts writing queries to a ring that all listeners share. */
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
   * Writes to the memory of a listener on another thread.
   * @returns a function that ends it
   */
  writeTo(buffer: SharedArrayBuffer): () => void {
    const ring = new QueryRing(buffer, this.#clock);
    this.ring = ring;
    return () => {
      if (this.ring === ring) this.ring = undefined;
    };
  }
}
