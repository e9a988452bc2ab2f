/**
 * DNS over UDP on Linux, by the batch. Node is asked only to tell that something has arrived: it reads the first datagram of a
 * burst itself, the rest is taken with `recvmmsg` and answered with `sendmmsg`.
 */
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { BATCH, NAME_STRIDE, ReceiveBatch, SendBatch } from "../lib/linux/datagram-batch.ts";
import { SocketAddress4, SocketAddress6 } from "../lib/linux/layouts.ts";
import type { Libc } from "../lib/linux/libc.ts";
import {
  parseHost,
  readAddress,
  readAddressOctets,
  readFamily,
  readPort,
  SOCKET_ADDRESS_OCTETS,
  writeSocketAddress,
} from "../lib/linux/socket-address.ts";
import { TurnBudget } from "../lib/turn-budget.ts";
import type { Endpoint } from "../plugin/endpoint.ts";
import { ReportedEndpoint, unspecifiedEndpoint } from "./endpoint.ts";
import type { ListenTarget, MessageReceiver, ReplyPort, Transport } from "./transport.ts";
import type { UdpOptions } from "./udp.ts";
import { openUdpSocket, setReusePort, type UdpSocketOptions } from "./udp-socket.ts";

/** Queries are small: what is longer than this is cut, and rejected as malformed. */
const RECEIVE_SLOT = 4096;
/** Replies up to this size are sent by the batch, larger ones one by one. */
const SEND_SLOT = 4096;
/**
 * Datagrams taken before the event loop goes on: a flood of UDP must not starve TCP, health and timers. Past them a turn only takes the
 * few datagrams that Node reads by itself, which cost more; hence not fewer.
 */
const DATAGRAMS_A_TURN = 16 * BATCH;
/** Datagrams taken from a socket that is about to close. */
const LAST_DATAGRAMS = 64 * BATCH;

/**
 * Opens a UDP socket and hands every datagram to `receiver`.
 * @throws ListenError
 */
export async function listenUdpBatched(
  libc: Libc,
  target: ListenTarget,
  receiver: MessageReceiver,
  options: UdpOptions & UdpSocketOptions = {},
): Promise<BatchedUdpTransport> {
  const { fd, family } = openUdpSocket(libc, target, options);
  const socket = createSocket({ type: family === 4 ? "udp4" : "udp6" });
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.bind({ fd, exclusive: true }, () => {
      socket.removeListener("error", reject);
      resolve();
    });
  });
  return new BatchedUdpTransport(libc, fd, family, socket, receiver, options);
}

export class BatchedUdpTransport implements Transport {
  readonly name = "udp";
  readonly host: string;
  readonly port: number;
  readonly local: Endpoint;
  readonly family: 4 | 6;
  readonly received: ReceiveBatch;
  readonly sending: SendBatch;
  readonly fd: number;
  readonly #libc: Libc;
  readonly #socket: Socket;
  readonly #receiver: MessageReceiver;
  readonly #options: UdpOptions;
  readonly #ports: readonly SlotPort[];
  readonly #budget = new TurnBudget(DATAGRAMS_A_TURN);
  #draining = false;
  #flushScheduled = false;
  #closed = false;

  constructor(
    libc: Libc,
    fd: number,
    family: 4 | 6,
    socket: Socket,
    receiver: MessageReceiver,
    options: UdpOptions,
  ) {
    const { address, port } = socket.address();
    this.host = address;
    this.port = port;
    this.family = family;
    this.local =
      address === "::" || address === "0.0.0.0"
        ? unspecifiedEndpoint(port)
        : new ReportedEndpoint(address, port);
    this.#libc = libc;
    this.#socket = socket;
    this.#receiver = receiver;
    this.#options = options;
    this.fd = fd;
    this.received = new ReceiveBatch(libc, RECEIVE_SLOT, true);
    this.sending = new SendBatch(libc, fd, SEND_SLOT, true, {
      full: (count) =>
        options.onSendError?.(new Error(`${count} replies given up: the socket's send buffer is full`)),
      refused: (errno) =>
        options.onSendError?.(new Error(`the system refused to send a reply (errno ${errno})`)),
    });
    this.#ports = Array.from({ length: BATCH }, (_, slot) => new SlotPort(this, slot));
    socket.on("error", (error) => options.onSendError?.(error));
    socket.on("message", this.#onMessage);
  }

  share(): boolean {
    return setReusePort(this.#libc, this.fd);
  }

  pause(): void {
    this.#socket.removeListener("message", this.#onMessage);
    // What has arrived is taken: nobody else will.
    if (!this.#closed) this.#takeBatches(LAST_DATAGRAMS);
  }

  close(): Promise<void> {
    this.flush();
    this.#closed = true;
    return new Promise((resolve) => {
      this.#socket.close(() => resolve());
    });
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** For replies that come between batches: they leave together at the end of the turn. */
  scheduleFlush(): void {
    if (this.#draining || this.#flushScheduled) return;
    this.#flushScheduled = true;
    setImmediate(this.#scheduledFlush);
  }

  flush(): void {
    if (!this.sending.isEmpty && !this.#closed) this.sending.flush();
  }

  /** A reply too large for a slot. */
  sendAlone(bytes: Uint8Array, length: number, port: number, address: string): void {
    if (this.#closed) return;
    // On a dual-stack socket IPv4 clients have mapped addresses.
    const target = this.family === 6 && !address.includes(":") ? `::ffff:${address}` : address;
    this.#socket.send(bytes, 0, length, port, target, this.#onSentAlone);
  }

  readonly #onSentAlone = (error: Error | null): void => {
    if (error !== null) this.#options.onSendError?.(error);
  };

  readonly #scheduledFlush = (): void => {
    this.#flushScheduled = false;
    this.flush();
  };

  readonly #onMessage = (bytes: Buffer, remote: RemoteInfo): void => {
    // Where no batch follows, the reply leaves with others at the end of the turn.
    this.#draining = this.#budget.left > 0;
    this.#receiver.receive(bytes, bytes.length, keptPort(this, remote.address, remote.port));
    if (this.#draining) this.#budget.spend(this.#takeBatches(this.#budget.left));
  };

  /**
   * Takes what has arrived, and what arrives while it is answered: under load the next queries are there when the replies to these are
   * sent, and Node's way to the first of them costs more than three answers.
   * @param limit datagrams after which no further batch is taken
   * @returns how many datagrams were taken
   */
  #takeBatches(limit: number): number {
    this.#draining = true;
    let taken = 0;
    let count: number;
    do {
      count = this.received.receive(this.fd);
      for (let slot = 0; slot < count; slot++) this.#take(slot, slot > 0);
      this.flush();
      if (count > 0) taken += count;
    } while (count > 0 && taken < limit);
    this.#draining = false;
    return taken;
  }

  #take(slot: number, together: boolean): void {
    const bytes = this.received.slots[slot] as Uint8Array;
    const port = this.#ports[slot] as SlotPort;
    if (this.received.cutOff(slot)) this.#options.onCutOff?.();
    // A message cut off no longer parses: the server answers FORMERR and counts it.
    this.#receiver.receive(bytes, this.received.length(slot), port, together);
  }
}

/** The sender of the datagram in one slot, and the way back to it: good until the next batch. */
class SlotPort implements ReplyPort, Endpoint {
  readonly #transport: BatchedUdpTransport;
  readonly #nameAt: number;
  #large: Uint8Array | undefined;

  constructor(transport: BatchedUdpTransport, slot: number) {
    this.#transport = transport;
    this.#nameAt = slot * NAME_STRIDE;
  }

  get client(): Endpoint {
    return this;
  }

  get local(): Endpoint {
    return this.#transport.local;
  }

  get address(): string {
    return readAddress(this.#transport.received.names, this.#nameAt);
  }

  get port(): number {
    return readPort(this.#transport.received.names, this.#nameAt);
  }

  get family(): 4 | 6 {
    return readFamily(this.#transport.received.names, this.#nameAt);
  }

  get octets(): Uint8Array {
    return readAddressOctets(this.#transport.received.names, this.#nameAt);
  }

  snapshot(): Endpoint {
    return this.#copy();
  }

  keep(): ReplyPort {
    const client = this.#copy();
    return new KeptPort(this.#transport, client, client.name);
  }

  #copy(): SocketEndpoint {
    const { names } = this.#transport.received;
    return new SocketEndpoint(names.slice(this.#nameAt, this.#nameAt + SOCKET_ADDRESS_OCTETS));
  }

  buffer(size: number): Uint8Array {
    if (size > SEND_SLOT) {
      this.#large = Buffer.allocUnsafe(size);
      return this.#large;
    }
    this.#large = undefined;
    return this.#transport.sending.buffer();
  }

  send(length: number): void {
    const transport = this.#transport;
    if (this.#large !== undefined) transport.sendAlone(this.#large, length, this.port, this.address);
    else
      transport.sending.commitTo(
        length,
        transport.received.names,
        this.#nameAt,
        nameLength(transport.family),
      );
  }

  drop(): void {
    this.#large = undefined;
  }
}

/** A sender's socket address, kept; its text is made for who asks. */
class SocketEndpoint implements Endpoint {
  readonly name: Uint8Array;

  constructor(name: Uint8Array) {
    this.name = name;
  }

  get address(): string {
    return readAddress(this.name, 0);
  }

  get port(): number {
    return readPort(this.name, 0);
  }

  get family(): 4 | 6 {
    return readFamily(this.name, 0);
  }

  get octets(): Uint8Array {
    return readAddressOctets(this.name, 0);
  }

  snapshot(): Endpoint {
    return this;
  }
}

/** The way back for a reply that comes later. */
class KeptPort implements ReplyPort {
  readonly client: Endpoint;
  readonly #transport: BatchedUdpTransport;
  readonly #name: Uint8Array;
  #large: Uint8Array | undefined;

  constructor(transport: BatchedUdpTransport, client: Endpoint, name: Uint8Array) {
    this.#transport = transport;
    this.client = client;
    this.#name = name;
  }

  get local(): Endpoint {
    return this.#transport.local;
  }

  keep(): ReplyPort {
    return this;
  }

  buffer(size: number): Uint8Array {
    this.#large = size > SEND_SLOT || this.#transport.closed ? Buffer.allocUnsafe(size) : undefined;
    return this.#large ?? this.#transport.sending.buffer();
  }

  send(length: number): void {
    const transport = this.#transport;
    if (this.#large !== undefined) {
      transport.sendAlone(this.#large, length, this.client.port, this.client.address);
      return;
    }
    transport.sending.commitTo(length, this.#name, 0, nameLength(transport.family));
    transport.scheduleFlush();
  }

  drop(): void {
    this.#large = undefined;
  }
}

function keptPort(transport: BatchedUdpTransport, address: string, port: number): KeptPort {
  const client = new ReportedEndpoint(address, port);
  const name = new Uint8Array(SOCKET_ADDRESS_OCTETS);
  const parsed = parseHost(address);
  writeSocketAddress(name, 0, transport.family, parsed?.octets ?? client.octets, port, parsed?.scope ?? 0);
  return new KeptPort(transport, client, name);
}

function nameLength(family: 4 | 6): number {
  return family === 4 ? SocketAddress4.OCTETS : SocketAddress6.OCTETS;
}
