/** Detects paginated lists whose next page was read before: they would never end. */

/** Finds loops of any length with one page in memory, which moves on at pages 1, 2, 4, 8 … (Brent's method). */
export class PageCircle {
  #mark: string | undefined;
  #pages = 0;
  #nextMove = 1;

  /** @param next token of the next page. @returns whether the page is a repeated one: detected after at most three rounds */
  closes(next: string): boolean {
    if (next === this.#mark) return true;
    if (++this.#pages === this.#nextMove) {
      this.#mark = next;
      this.#nextMove *= 2;
    }
    return false;
  }
}
