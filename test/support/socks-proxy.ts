/** A SOCKS proxy (RFC 1928) with user and password (RFC 1929) that connects to IPv4 addresses and names. */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

export class SocksProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #signIn: Buffer;
  /** How many connections were made on behalf of clients. */
  tunnels = 0;

  private constructor(user: string, password: string) {
    // Version of the negotiation, then both with their lengths.
    const parts = [user, password].map((text) => [Buffer.from([text.length]), Buffer.from(text)]);
    this.#signIn = Buffer.concat([Buffer.from([1]), ...parts.flat()]);
    this.#server = createServer(
      (socket) => void this.#serve(this.#keep(socket)).catch(() => socket.destroy()),
    );
  }

  static async start(user: string, password: string): Promise<SocksProxy> {
    const proxy = new SocksProxy(user, password);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Each message of a client comes in one piece here: it waits for the answer before it sends the next. */
  async #serve(client: Socket): Promise<void> {
    await read(client);
    client.write(Buffer.from([5, 2]));
    const admitted = (await read(client)).equals(this.#signIn);
    client.write(Buffer.from([1, admitted ? 0 : 1]));
    if (!admitted) throw new Error("not admitted");
    const request = await read(client);
    const port = request.readUInt16BE(request.length - 2);
    const host = request[3] === 1 ? request.subarray(4, 8).join(".") : request.subarray(5, -2).toString();
    const upstream = this.#keep(connect(port, host));
    await once(upstream, "connect");
    this.tunnels++;
    client.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
    upstream.pipe(client).pipe(upstream);
  }

  #keep(socket: Socket): Socket {
    this.#sockets.add(socket);
    return socket.on("error", () => socket.destroy()).once("close", () => this.#sockets.delete(socket));
  }
}

async function read(socket: Socket): Promise<Buffer> {
  const read = once(socket, "data");
  socket.resume();
  const [octets] = await read;
  socket.pause();
  return octets;
}
