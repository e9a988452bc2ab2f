/** Server-sent events to one client (HTML standard, section 9.2). A client that does not read loses events, and is told how many. */
import type { ServerResponse } from "node:http";
import { SECURITY_HEADERS } from "./answer.ts";

/** Octets that may wait for a client. */
const MAX_WAITING = 256 * 1024;
/** Events in a row that a client may lose: who reads nothing for so long holds a place that others want. */
const MAX_LOST = 120;

export class EventStream {
  readonly #response: ServerResponse;
  /** Events in a row. */
  #lost = 0;
  /** Something was sent since {@link beat} last looked. */
  #isFresh = true;

  constructor(response: ServerResponse) {
    this.#response = response;
    response.writeHead(200, {
      ...SECURITY_HEADERS,
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    });
    // The browser waits so many milliseconds before it asks again.
    response.write("retry: 2000\n\n");
  }

  /** @returns false where the client is behind, and got nothing */
  send(event: string, data: object): boolean {
    if (this.#response.destroyed || this.#response.writableLength > MAX_WAITING) {
      if (++this.#lost > MAX_LOST) this.#response.destroy();
      return false;
    }
    this.#lost = 0;
    this.#isFresh = true;
    this.#response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    return true;
  }

  /** Tells a client that gets nothing that the server is there: so it, and proxies in between, keep the connection. */
  beat(): void {
    const { destroyed, writableLength } = this.#response;
    if (!this.#isFresh && !destroyed && writableLength <= MAX_WAITING) this.#response.write(":\n\n");
    this.#isFresh = false;
  }

  onEnd(callback: () => void): void {
    this.#response.once("close", callback);
  }

  end(): void {
    this.#response.end();
  }
}
