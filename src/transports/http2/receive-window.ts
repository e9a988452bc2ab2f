/** What a client may still send on a connection before it is heard (RFC 9113 section 5.2). */

/** Octets of bodies. */
export const CONNECTION_WINDOW = 256 * 1024;

export class ReceiveWindow {
  #left = CONNECTION_WINDOW;
  /** Octets taken that the client has not been told of. */
  #unreturned = 0;

  /** @returns false where the client sends more than it may */
  take(octets: number): boolean {
    this.#left -= octets;
    return this.#left >= 0;
  }

  /** So many octets do not count any more. @returns by how much the client is to widen the window now */
  giveBack(octets: number): number {
    this.#unreturned += octets;
    if (this.#unreturned < CONNECTION_WINDOW / 2) return 0;
    const returned = this.#unreturned;
    this.#left += returned;
    this.#unreturned = 0;
    return returned;
  }
}
