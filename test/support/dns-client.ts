/** A DNS client that sends exactly the given octets, and returns exactly the received ones. */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { type EventEmitter, once } from "node:events";
import { connect, type Socket } from "node:net";
import { decodeMessage, encodeMessage, type Message, makeQuery } from "../../src/dns/message.ts";
import { Name } from "../../src/dns/name.ts";
import { parseRecordType } from "../../src/dns/type-names.ts";

export interface Server {
  readonly address: string;
  readonly port: number;
}

/** Longer than any answer takes, where there is one. */
const PATIENCE = 10_000;

/** The octets of a query with recursion desired. */
export function queryOctets(name: string, type = "A", id = 0x1234): Uint8Array {
  const number = parseRecordType(type);
  if (number === undefined) throw new Error(`unknown type ${type}`);
  return encodeMessage(makeQuery({ name: Name.parse(name), type: number }, { id }));
}

/**
 * Sends one datagram and waits for the answer to it.
 * @returns `undefined` where none comes in time
 */
export async function exchangeUdp(
  server: Server,
  octets: Uint8Array,
  patience: number = PATIENCE,
): Promise<Uint8Array | undefined> {
  await using client = await UdpClient.connect(server);
  client.send(octets);
  return await client.receive(patience);
}

/** Asks over UDP and again every second until there is an answer, as resolvers do. */
export async function ask(server: Server, name: string, type = "A"): Promise<Message> {
  const octets = queryOctets(name, type, Math.floor(Math.random() * 0x10000));
  await using client = await UdpClient.connect(server);
  for (let attempt = 0; attempt < 10; attempt++) {
    client.send(octets);
    const reply = await client.receive(1_000);
    if (reply !== undefined) return decodeMessage(reply);
  }
  throw new Error(`no answer to ${name} ${type} from ${server.address} port ${server.port}`);
}

export class UdpClient implements AsyncDisposable {
  readonly #socket: UdpSocket;
  readonly #arrived: Uint8Array[] = [];

  private constructor(family: "udp4" | "udp6") {
    this.#socket = createSocket(family);
    this.#socket.on("message", (octets) => {
      this.#arrived.push(octets);
      this.#socket.emit("arrived");
    });
    // The kernel reports a closed port. That query is lost; later ones may arrive.
    this.#socket.on("error", () => undefined);
  }

  static async connect({ address, port }: Server): Promise<UdpClient> {
    const client = new UdpClient(address.includes(":") ? "udp6" : "udp4");
    client.#socket.connect(port, address);
    await once(client.#socket, "connect");
    return client;
  }

  send(octets: Uint8Array): void {
    this.#socket.send(octets, () => undefined);
  }

  /** The next datagram, `undefined` without one in this many milliseconds. */
  async receive(patience: number = PATIENCE): Promise<Uint8Array | undefined> {
    const end = performance.now() + patience;
    while (this.#arrived.length === 0 && performance.now() < end) {
      await eventUntil(this.#socket, "arrived", end);
    }
    return this.#arrived.shift();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#socket, "close");
    this.#socket.close();
    await closed;
  }
}

/** A TCP connection on which messages and parts of messages can be sent. */
export class TcpClient implements AsyncDisposable {
  /** Resolves when the connection is over, whoever ended it and however. */
  readonly closed: Promise<void>;
  readonly socket: Socket;
  #pending: Buffer = Buffer.alloc(0);
  #isOver = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (data: Buffer) => {
      this.#pending = Buffer.concat([this.#pending, data]);
      socket.emit("arrived");
    });
    socket.on("error", () => undefined);
    const over = () => {
      this.#isOver = true;
      socket.emit("arrived");
    };
    socket.once("end", over);
    this.closed = new Promise((resolve) => {
      socket.once("close", () => {
        over();
        resolve();
      });
    });
  }

  static async connect({ address, port }: Server): Promise<TcpClient> {
    const socket = connect({ host: address, port, noDelay: true });
    const client = new TcpClient(socket);
    await once(socket, "connect");
    return client;
  }

  /** Sends octets as they are. */
  write(octets: Uint8Array): void {
    this.socket.write(octets);
  }

  /** Sends a message behind its length. */
  send(message: Uint8Array): void {
    this.write(framed(message));
  }

  /** The next message, `undefined` if the connection ends or nothing arrives in this many milliseconds. */
  async receive(patience: number = PATIENCE): Promise<Uint8Array | undefined> {
    const end = performance.now() + patience;
    for (;;) {
      if (this.#pending.length >= 2) {
        const length = 2 + this.#pending.readUInt16BE(0);
        if (this.#pending.length >= length) {
          const message = this.#pending.subarray(2, length);
          this.#pending = this.#pending.subarray(length);
          return message;
        }
      }
      if (this.#isOver || performance.now() >= end) return undefined;
      await eventUntil(this.socket, "arrived", end);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy();
    await this.closed;
  }
}

/** A message behind the two octets of its length (RFC 1035 section 4.2.2). */
export function framed(message: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from([message.length >>> 8, message.length & 0xff]), message]);
}

/** Waits for the event, or until `performance.now()` has reached `end`. */
function eventUntil(emitter: EventEmitter, event: string, end: number): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      clearTimeout(timer);
      emitter.removeListener(event, settle);
      resolve();
    };
    const timer = setTimeout(settle, Math.max(1, Math.ceil(end - performance.now())));
    emitter.once(event, settle);
  });
}

/** The opcode is STATUS: refused with NOTIMP before any plugin sees it, it leaves no trace in logs and caches. */
const PROBE = Buffer.from("706f10000000000000000000", "hex");

/** Asks until something answers. @returns false where `giveUp` says so before */
export async function waitForServer(server: Server, giveUp: () => boolean): Promise<boolean> {
  await using client = await UdpClient.connect(server);
  while (!giveUp()) {
    client.send(PROBE);
    if ((await client.receive(50)) !== undefined) return true;
  }
  return false;
}
