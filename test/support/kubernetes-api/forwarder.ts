/**
 * A hop between a client and a server that may lose its state, as a firewall does: it drops packets without an error.
 */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

export class Forwarder implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #swallowed = new WeakSet<Socket>();
  /** Octets that went on to clients so far. */
  toClients = 0;

  private constructor(target: number) {
    this.#server = createServer((client) => {
      const upstream = connect(target, "127.0.0.1");
      this.#forward(client, upstream, () => undefined);
      this.#forward(upstream, client, (octets) => {
        this.toClients += octets;
      });
    });
  }

  static async start(target: number): Promise<Forwarder> {
    const forwarder = new Forwarder(target);
    forwarder.#server.listen(0, "127.0.0.1");
    await once(forwarder.#server, "listening");
    return forwarder;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the forwarder does not listen");
    return address.port;
  }

  /** From now on nothing comes through on the connections of now. */
  swallow(): void {
    for (const socket of this.#sockets) this.#swallowed.add(socket);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #forward(from: Socket, to: Socket, count: (octets: number) => void): void {
    this.#sockets.add(from);
    from.on("error", () => undefined);
    from.on("data", (octets: Buffer) => {
      if (this.#swallowed.has(from)) return;
      count(octets.length);
      to.write(octets);
    });
    from.on("close", () => {
      this.#sockets.delete(from);
      if (!this.#swallowed.has(from)) to.destroy();
    });
  }
}
