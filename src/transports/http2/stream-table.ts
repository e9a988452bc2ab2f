/** The open streams of one connection, found by number. They come and go by the thousand, so there is no `Map` to hold them. */
import type { Http2Stream } from "./http2-stream.ts";

/** Clients count their streams up by two: as many chains as usually have one stream. */
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

  /** @param stream one whose number is not there */
  add(stream: Http2Stream): void {
    const chain = (stream.id >>> 1) % CHAINS;
    stream.next = this.#chains[chain];
    this.#chains[chain] = stream;
    this.#size++;
  }

  /** @returns false where it was not there */
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

  /** Those that meet a condition, in a list of its own: each may be removed. */
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
