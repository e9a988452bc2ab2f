/**
 * The open streams of one connection by number. Intrusive chains instead of a `Map`, because streams come and go by the thousand.
 */
import type { Http2Stream } from "./http2-stream.ts";

/** Clients count stream numbers up by two, so this many chains usually have one stream each. */
const CHAINS = 32;

export class StreamTable {
  readonly #chains: (Http2Stream | undefined)[] = new Array(CHAINS).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  find(id: number): Http2Stream | undefined {
    let stream = this.#chains[(id >>> 1) % CHAINS];
    while (stream !== undefined && stream.id !== id) stream = stream.next;
    return stream;
  }

  /** @param stream whose number is not in the table */
  add(stream: Http2Stream): void {
    const chain = (stream.id >>> 1) % CHAINS;
    stream.next = this.#chains[chain];
    this.#chains[chain] = stream;
    this.#size++;
  }

  /** @returns false if it was not in the table */
  remove(stream: Http2Stream): boolean {
    const chain = (stream.id >>> 1) % CHAINS;
    let before: Http2Stream | undefined;
    let found = this.#chains[chain];
    while (found !== undefined && found !== stream) {
      before = found;
      found = found.next;
    }
    if (found === undefined) return false;
    if (before === undefined) this.#chains[chain] = stream.next;
    else before.next = stream.next;
    stream.next = undefined;
    this.#size--;
    return true;
  }

  /** Matching streams in a new array, so that each may be removed. */
  those(meets: (stream: Http2Stream) => boolean): Http2Stream[] {
    const found: Http2Stream[] = [];
    if (this.#size === 0) return found;
    for (const first of this.#chains)
      for (let stream = first; stream !== undefined; stream = stream.next)
        if (meets(stream)) found.push(stream);
    return found;
  }
}

export const isAny = (): boolean => true;
export const hasUnsent = ({ unsent }: Http2Stream): boolean => unsent !== undefined;
export const isUnfinished = ({ isWhole }: Http2Stream): boolean => !isWhole;
