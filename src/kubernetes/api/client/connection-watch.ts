/**
 * Closes HTTP/2 connections that died without a word, as when a node is gone or a firewall has forgotten them. Each is pinged all the
 * time, so a connection that brings no byte has no living peer.
 */
import type { Clock, Timer } from "../../../lib/time/clock.ts";
import { DeadConnectionError } from "../access/api-error.ts";

/** What is asked of a socket: `net.Socket` and `tls.TLSSocket` have it. */
export interface WatchedSocket {
  readonly bytesRead: number;
  readonly destroyed: boolean;
  /** `h2` where TLS chose HTTP/2. */
  readonly alpnProtocol?: string | false | null;
  destroy(error?: Error): unknown;
}

interface Connection {
  readonly socket: WatchedSocket;
  readonly origin: string;
  octets: number;
  heardAt: number;
}

/** How often it looks, in parts of the silence that is borne. */
const LOOKS = 10;

export class ConnectionWatch {
  readonly #clock: Clock;
  readonly #silenceMs: number;
  readonly #connections = new Set<Connection>();
  #timer: Timer | undefined;

  /** @param silenceMs how long a connection may bring nothing; more than two pings are apart */
  constructor(clock: Clock, silenceMs: number) {
    this.#clock = clock;
    this.#silenceMs = silenceMs;
  }

  /** A connection was made. One without pings, of HTTP/1.1, is not watched. */
  add(socket: WatchedSocket, origin: string): void {
    if (socket.alpnProtocol !== "h2") return;
    const { bytesRead: octets } = socket;
    this.#connections.add({ socket, origin, octets, heardAt: this.#clock.now() });
    this.#timer ??= this.#clock.every(this.#silenceMs / LOOKS, () => this.#look());
  }

  /**
   * When the connections to a server all had been heard of last, by the clock's `now`: that one alone which carries a watch is not known
   * here, and those that stay behind are closed. Undefined where there is none that is pinged.
   */
  heardAt(origin: string): number | undefined {
    let earliest: number | undefined;
    for (const connection of this.#connections) {
      if (connection.origin !== origin) continue;
      this.#listen(connection);
      earliest = Math.min(earliest ?? Infinity, connection.heardAt);
    }
    return earliest;
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#connections.clear();
  }

  #look(): void {
    const now = this.#clock.now();
    for (const connection of this.#connections) {
      this.#listen(connection);
      const { socket, heardAt } = connection;
      const silence = now - heardAt;
      if (!socket.destroyed && silence < this.#silenceMs) continue;
      this.#connections.delete(connection);
      if (!socket.destroyed) socket.destroy(new DeadConnectionError(silence));
    }
    if (this.#connections.size === 0) this.stop();
  }

  #listen(connection: Connection): void {
    const { bytesRead } = connection.socket;
    if (bytesRead === connection.octets) return;
    connection.octets = bytesRead;
    connection.heardAt = this.#clock.now();
  }
}
