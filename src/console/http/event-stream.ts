/**
 * Server-sent events to one client (HTML standard, section 9.2). A slow client loses events, and is sent their
 * number.
 */
import type { ServerResponse } from "node:http";
import { SECURITY_HEADERS } from "./answer.ts";

/** Bytes that may be queued for a client. */
const MAX_WAITING = 256 * 1024;
/** Consecutive events that a client may lose before its stream is closed to free the place. */
const MAX_LOST = 120;

export class EventStream {
  readonly #response: ServerResponse;
  /** Consecutive lost events. */
  #lost = 0;
  /** Whether something was sent since the last {@link beat}. */
  #isFresh = true;

  constructor(response: ServerResponse) {
    this.#response = response;
    response.writeHead(200, {
      ...SECURITY_HEADERS,
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    });
    // Milliseconds until the browser reconnects.
    response.write("retry: 2000\n\n");
  }

  /** @returns false if the client is behind, and got nothing */
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

  /** Keeps an idle connection alive for the client and for proxies in between. */
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
