/** The receive window of a connection (RFC 9113 section 5.2). */

/** Octets of bodies. */
export const CONNECTION_WINDOW = 256 * 1024;

export class ReceiveWindow {
  #left = CONNECTION_WINDOW;
  /** Octets processed but not yet returned to the client. */
  #unreturned = 0;

  /** @returns false if the client exceeds the window */
  take(octets: number): boolean {
    this.#left -= octets;
    return this.#left >= 0;
  }

  /** This many octets no longer count. @returns the increment to send now */
  giveBack(octets: number): number {
    this.#unreturned += octets;
    if (this.#unreturned < CONNECTION_WINDOW / 2) return 0;
    const returned = this.#unreturned;
    this.#left += returned;
    this.#unreturned = 0;
    return returned;
  }
}
