import type { Endpoint } from "../../plugin/message/endpoint.ts";

interface Session {
  readonly client: Endpoint;
  /** Milliseconds of the clock. */
  expiresAt: number;
}

/** The clients behind each address of a proxy; a new session replaces the one that was idle longest. */
export class ProxySessions {
  readonly #lifetime: number;
  readonly #most: number;
  /** In the order of the last datagram. */
  readonly #byPeer = new Map<string, Session>();

  /** @param lifetime milliseconds after the last datagram */
  constructor(lifetime: number, most: number) {
    this.#lifetime = lifetime;
    this.#most = most;
  }

  get size(): number {
    return this.#byPeer.size;
  }

  remember(peer: Endpoint, client: Endpoint, now: number): void {
    const key = keyOf(peer);
    this.#byPeer.delete(key);
    if (this.#byPeer.size >= this.#most) {
      const [oldest] = this.#byPeer.keys();
      if (oldest !== undefined) this.#byPeer.delete(oldest);
    }
    this.#byPeer.set(key, { client, expiresAt: now + this.#lifetime });
  }

  /** The client of a session that has not expired; a lookup renews the session. */
  find(peer: Endpoint, now: number): Endpoint | undefined {
    const key = keyOf(peer);
    const session = this.#byPeer.get(key);
    if (session === undefined) return undefined;
    this.#byPeer.delete(key);
    if (now >= session.expiresAt) return undefined;
    session.expiresAt = now + this.#lifetime;
    this.#byPeer.set(key, session);
    return session.client;
  }
}

function keyOf({ address, port }: Endpoint): string {
  return `${address} ${port}`;
}
