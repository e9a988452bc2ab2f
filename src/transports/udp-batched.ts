/**
 * DNS over UDP on Linux, by the batch. The socket is ours alone: the event loop tells that something has arrived, and every datagram
 * is taken with `recvmmsg`, together with the address at which it arrived, and answered from there with `sendmmsg`.
 */
import { isMainThread } from "node:worker_threads";
import {
  askForPacketInfo,
  BATCH,
  CONTROL_WORDS,
  NAME_STRIDE,
  ReceiveBatch,
  SendBatch,
  type SendFailures,
} from "../lib/linux/datagram-batch.ts";
import type { Reader } from "../lib/linux/event-loop.ts";
import { Linux, SocketAddress4, SocketAddress6 } from "../lib/linux/layouts.ts";
import type { LinuxSockets } from "../lib/linux/linux-sockets.ts";
import {
  readAddress,
  readAddressOctets,
  readFamily,
  readLocalName,
  readPort,
  SOCKET_ADDRESS_OCTETS,
} from "../lib/linux/socket-address.ts";
import type { Endpoint } from "../plugin/endpoint.ts";
import { ReportedEndpoint, unspecifiedEndpoint } from "./endpoint.ts";
import { type AddressBuffer, addressBuffer, KeptEndpoint } from "./kept-endpoint.ts";
import {
  type ListenTarget,
  MAX_DATAGRAM_OCTETS,
  type MessageReceiver,
  type ReplyPort,
  type Transport,
} from "./transport.ts";
import type { UdpOptions } from "./udp.ts";
import {
  connectToItself,
  listenFailure,
  openUdpSocket,
  openWayOut,
  setReusePort,
  type UdpSocket,
} from "./udp-socket.ts";

/** Queries are small: what stands behind so many octets is not read. */
const RECEIVE_SLOT = 4096;
/** Replies up to this size are sent by the batch, larger ones one by one. */
const SEND_SLOT = 4096;
/** Datagrams taken in a turn of the event loop, where that is not over before: a flood of UDP must not starve TCP, health and timers. */
const DATAGRAMS_A_TURN = 16 * BATCH;
/** Datagrams that come together where queries are many. */
const BUSY_BATCH = 2;
/** Datagrams taken from a socket that is about to close. */
const LAST_DATAGRAMS = 64 * BATCH;

/**
 * Opens a UDP socket and hands every datagram to `receiver`.
 * @throws ListenError
 */
export async function listenUdpBatched(
  sockets: LinuxSockets,
  target: ListenTarget,
  receiver: MessageReceiver,
  options: UdpOptions = {},
): Promise<Transport> {
  const { libc, loop } = sockets;
  const socket = openUdpSocket(libc, target, options);
  const transport = new BatchedUdpTransport(sockets, socket, receiver, options);
  const errno = loop.watch(socket.fd, transport);
  if (errno === 0) {
    if (options.reusePort !== true) transport.openWayOut();
    return transport;
  }
  libc.close(socket.fd);
  throw listenFailure(target, errno);
}

class BatchedUdpTransport implements Transport, Reader {
  readonly name = "udp";
  readonly host: string;
  readonly port: number;
  readonly local: Endpoint;
  readonly received: ReceiveBatch;
  readonly #sockets: LinuxSockets;
  readonly #socket: UdpSocket;
  readonly #fd: number;
  readonly #name = new Uint8Array(SOCKET_ADDRESS_OCTETS);
  readonly #nameLength: number;
  readonly #receiver: MessageReceiver;
  readonly #options: UdpOptions;
  readonly #sending: SendBatch;
  readonly #failures: SendFailures;
  readonly #isWildcard: boolean;
  readonly #informed: boolean;
  readonly #ports: readonly SlotPort[];
  /** `received.names`, by the word. */
  readonly names: Int32Array;
  /** One socket address, where one is needed as octets. */
  readonly scratch: AddressBuffer = addressBuffer();
  /** Of the buffer given last. */
  bufferSize = 0;
  readonly #infos: Uint32Array[] = [];
  #large: SendBatch | undefined;
  /** Replies leave by themselves at the end of a batch. */
  #draining = false;
  #flushScheduled = false;
  #isKept = false;
  /** Others may have the same address: what comes to a socket that nobody reads is lost, and would have reached them. */
  #isShared: boolean;
  /** The error that the socket gave last, 0 for none: one that stays is told once. */
  #lastError = 0;
  #closed = false;

  constructor(sockets: LinuxSockets, socket: UdpSocket, receiver: MessageReceiver, options: UdpOptions) {
    const { libc } = sockets;
    const { fd, family } = socket;
    const name = this.#name;
    readLocalName(libc, fd, name);
    this.host = readAddress(name, 0);
    this.port = readPort(name, 0);
    const wildcard = this.host === "::" || this.host === "0.0.0.0";
    this.#isWildcard = wildcard;
    this.local = wildcard ? unspecifiedEndpoint(this.port) : new ReportedEndpoint(this.host, this.port);
    // A socket that is bound to one address answers from nowhere else.
    this.#informed = wildcard && askForPacketInfo(libc, fd, family) === 0;
    this.#sockets = sockets;
    this.#socket = socket;
    this.#isShared = options.reusePort === true;
    this.#fd = fd;
    this.#nameLength = family === 4 ? SocketAddress4.OCTETS : SocketAddress6.OCTETS;
    this.#receiver = receiver;
    this.#options = options;
    this.#failures = {
      full: (count) =>
        options.onSendError?.(new Error(`${count} replies given up: the socket's send buffer is full`)),
      refused: (errno) =>
        options.onSendError?.(new Error(`the system refused to send a reply (errno ${errno})`)),
    };
    const batch = { named: true, packetInfo: this.#informed };
    this.received = new ReceiveBatch(libc, { slotOctets: RECEIVE_SLOT, ...batch });
    this.#sending = new SendBatch(libc, fd, { slotOctets: SEND_SLOT, ...batch }, this.#failures);
    this.names = new Int32Array(this.received.names.buffer);
    this.#ports = Array.from({ length: BATCH }, (_, slot) => new SlotPort(this, slot));
  }

  share(on = true): boolean {
    // A descriptor that was closed may be somebody else's by now.
    if (this.#closed) return false;
    // Sockets that share a port must all do so: one more would be in the way.
    this.#closeWayOut();
    const isDone = setReusePort(this.#sockets.libc, this.#fd, on);
    this.#isShared = on;
    if (!on) this.openWayOut();
    return isDone;
  }

  /** Has replies leave through a socket that nobody watches, where the system allows it. Not for a port that others share. */
  openWayOut(): void {
    // The thread's end would leave it open.
    if (!isMainThread || this.#sending.wayOut !== this.#fd) return;
    // From the wildcard each reply has to say where it leaves.
    if (this.#isWildcard && !this.#informed) return;
    const { libc } = this.#sockets;
    const wayOut = openWayOut(libc, this.#socket, this.#name);
    if (wayOut < 0) return;
    this.#takeLast(wayOut);
    this.#sending.wayOut = wayOut;
  }

  #closeWayOut(): void {
    const { wayOut } = this.#sending;
    if (wayOut === this.#fd) return;
    this.#flush();
    this.#sending.wayOut = this.#fd;
    this.#sockets.libc.close(wayOut);
  }

  pause(): void {
    if (this.#closed) return;
    this.#sockets.loop.silence(this.#fd);
    if (this.#isShared && (this.#informed || !this.#isWildcard))
      connectToItself(this.#sockets.libc, this.#fd, this.#name, this.#socket.family);
    // What has arrived is taken: nobody else will.
    this.#takeLast(this.#fd);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#flush();
    this.#closeWayOut();
    this.#closed = true;
    this.#sockets.loop.close(this.#fd);
  }

  readable(): boolean {
    this.#isKept = false;
    if (!this.#closed) this.#takeBatches();
    return this.#isKept;
  }

  /** A query is answered later: in this turn still, it may be. */
  noteKept(): void {
    this.#isKept = true;
  }

  /** Where a reply is to be written. */
  buffer(size: number): Uint8Array {
    this.bufferSize = size;
    if (size <= SEND_SLOT) return this.#sending.buffer();
    this.#large ??= new SendBatch(
      this.#sockets.libc,
      this.#fd,
      { slotOctets: MAX_DATAGRAM_OCTETS, named: true, packetInfo: this.#informed, slots: 1 },
      this.#failures,
    );
    this.#large.wayOut = this.#sending.wayOut;
    return this.#large.buffer();
  }

  /** Where the datagram in a slot came in. Few places are known, so that queries which wait need no copy each. */
  infoOf(slot: number): Uint32Array {
    const words = this.received.packetInfoLength(slot) / 4;
    if (words === 0) return NO_INFO;
    const { packetInfo } = this.received;
    const at = slot * CONTROL_WORDS;
    for (const info of this.#infos) if (info.length === words && isAt(packetInfo, at, info)) return info;
    const info = packetInfo.slice(at, at + words);
    if (this.#infos.length < MAX_KNOWN_INFOS) this.#infos.push(info);
    return info;
  }

  /**
   * Sends the reply in the buffer given last.
   * @param size as it was asked for
   * @param info where the query arrived, from the word `infoAt` on
   */
  send(
    size: number,
    length: number,
    names: Uint8Array,
    nameAt: number,
    info: Uint32Array,
    infoAt: number,
    infoLength: number,
  ): void {
    if (this.#closed) return;
    const batch = size <= SEND_SLOT ? this.#sending : (this.#large ?? this.#sending);
    if (this.#informed) batch.leaveFrom(info, infoAt, infoLength);
    batch.commitTo(length, names, nameAt, this.#nameLength);
    if (batch !== this.#sending) batch.flush();
    else if (!this.#draining && !this.#flushScheduled) {
      // Replies that come between batches leave together.
      this.#flushScheduled = true;
      this.#sockets.loop.atTurnEnd(this.#scheduledFlush);
    }
  }

  readonly #scheduledFlush = (): void => {
    this.#flushScheduled = false;
    this.#flush();
  };

  #flush(): void {
    if (!this.#sending.isEmpty && !this.#closed) this.#sending.flush();
  }

  /**
   * Takes what has arrived, and what arrives while it is answered: under load the next queries are there when the replies to these are
   * sent. Behind single queries there is mostly nothing, and looking costs a system call.
   */
  #takeBatches(): void {
    const { loop } = this.#sockets;
    let count = BUSY_BATCH;
    for (let taken = 0; count >= BUSY_BATCH && taken < DATAGRAMS_A_TURN && !this.#closed; taken += count) {
      // The clock is not worth a look for less than a batch.
      if (taken >= BATCH && loop.isTurnOver) break;
      count = this.#takeBatch(this.#fd);
    }
    this.#note(count === -Linux.EAGAIN || count === -Linux.EINTR ? 0 : Math.max(0, -count));
  }

  /** Takes all that has arrived at a socket that nobody will look at again. */
  #takeLast(fd: number): void {
    let count = 1;
    for (let taken = 0; count > 0 && taken < LAST_DATAGRAMS; taken += count) count = this.#takeBatch(fd);
  }

  /** @returns how many, or the error that there was */
  #takeBatch(fd: number): number {
    this.#draining = true;
    try {
      const count = this.received.receive(fd);
      for (let slot = 0; slot < count; slot++) this.#take(slot, slot > 0);
      this.#flush();
      return count;
    } finally {
      this.#draining = false;
    }
  }

  #note(errno: number): void {
    if (errno === this.#lastError) return;
    this.#lastError = errno;
    if (errno !== 0 && !this.#closed)
      this.#options.onSendError?.(new Error(`the system refused to receive queries (errno ${errno})`));
  }

  #take(slot: number, together: boolean): void {
    const bytes = this.received.slots[slot] as Uint8Array;
    const port = this.#ports[slot] as SlotPort;
    port.forget();
    if (port.port === 0) {
      this.#options.onUnanswerable?.();
      return;
    }
    if (this.received.cutOff(slot)) this.#options.onCutOff?.();
    // FORMERR is the answer if a record was cut off.
    this.#receiver.receive(bytes, this.received.length(slot), port, together);
  }
}

function isAt(words: Uint32Array, at: number, wanted: Uint32Array): boolean {
  for (let word = 0; word < wanted.length; word++) if (words[at + word] !== wanted[word]) return false;
  return true;
}

/** The sender of the datagram in one slot, and the way back to it: good until the next batch. */
class SlotPort implements ReplyPort, Endpoint {
  readonly #transport: BatchedUdpTransport;
  readonly #slot: number;
  readonly #nameAt: number;
  /** For all who keep the address, and the way back. */
  #kept: KeptPort | undefined;
  #size = 0;

  constructor(transport: BatchedUdpTransport, slot: number) {
    this.#transport = transport;
    this.#slot = slot;
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
    this.#kept ??= new KeptPort(this.#transport, this.#slot);
    return this.#kept;
  }

  keep(): ReplyPort {
    this.#transport.noteKept();
    this.#kept ??= new KeptPort(this.#transport, this.#slot);
    return this.#kept;
  }

  /** Another datagram has come in this slot. */
  forget(): void {
    this.#kept = undefined;
  }

  buffer(size: number): Uint8Array {
    this.#size = size;
    return this.#transport.buffer(size);
  }

  send(length: number): void {
    const { received } = this.#transport;
    this.#transport.send(
      this.#size,
      length,
      received.names,
      this.#nameAt,
      received.packetInfo,
      this.#slot * CONTROL_WORDS,
      received.packetInfoLength(this.#slot),
    );
  }

  drop(): void {
    this.#size = 0;
  }
}

const NO_INFO = new Uint32Array(0);
const NAME_WORDS = NAME_STRIDE / 4;
/** Ways that datagrams came in, of which there are as many as addresses of this machine, and interfaces. */
const MAX_KNOWN_INFOS = 64;

/** The way back for a reply that comes later, and the client there. */
class KeptPort extends KeptEndpoint implements ReplyPort {
  readonly #transport: BatchedUdpTransport;
  readonly #info: Uint32Array;

  constructor(transport: BatchedUdpTransport, slot: number) {
    super(transport.names, slot * NAME_WORDS);
    this.#transport = transport;
    this.#info = transport.infoOf(slot);
  }

  get client(): Endpoint {
    return this;
  }

  get local(): Endpoint {
    return this.#transport.local;
  }

  keep(): ReplyPort {
    return this;
  }

  buffer(size: number): Uint8Array {
    return this.#transport.buffer(size);
  }

  send(length: number): void {
    const { scratch } = this.#transport;
    const info = this.#info;
    this.writeTo(scratch.words);
    this.#transport.send(this.#transport.bufferSize, length, scratch.octets, 0, info, 0, info.byteLength);
  }

  drop(): void {
    // The buffer is the transport's.
  }
}
