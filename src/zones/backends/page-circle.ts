/** Lists that come page by page, and whose next page is one that was read before: they would never end. */

/** Finds circles of any length with one mark in memory, which moves on at pages 1, 2, 4, 8 … (Brent's method). */
export class PageCircle {
  #mark: string | undefined;
  #pages = 0;
  #nextMove = 1;

  /** @param next what the next page is asked for by. @returns whether it is a page of before: known after three rounds at the latest */
  closes(next: string): boolean {
    if (next === this.#mark) return true;
    if (++this.#pages === this.#nextMove) {
      this.#mark = next;
      this.#nextMove *= 2;
    }
    return false;
  }
}
