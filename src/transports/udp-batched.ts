/**
 * Batched DNS over UDP on Linux. The socket is made by our own system calls: the event loop reports arrivals, `recvmmsg` receives
 * all datagrams with their local addresses, and `sendmmsg` answers from these.
 */
import { isMainThread } from "node:worker_threads";
import type { Endpoint } from "../plugin/message/endpoint.ts";
import {
  askForPacketInfo,
  BATCH,
  type BatchOptions,
  CONTROL_WORDS,
  NAME_STRIDE,
  NAME_WORDS,
  ReceiveBatch,
  type ReturnBatch,
  SendBatch,
} from "../runtime/linux/datagram-batch.ts";
import { DatagramSender } from "../runtime/linux/datagram-sender.ts";
import type { Reader } from "../runtime/linux/event-loop.ts";
import { Linux, SocketAddress4, SocketAddress6 } from "../runtime/linux/layouts.ts";
import type { LinuxSockets } from "../runtime/linux/linux-sockets.ts";
import {
  readAddress,
  readFamily,
  readLocalName,
  readPort,
  SOCKET_ADDRESS_OCTETS,
} from "../runtime/linux/socket-address.ts";
import { WayOut } from "../runtime/linux/way-out.ts";
import { ReportedEndpoint, unspecifiedEndpoint } from "./endpoint.ts";
import { type AddressBuffer, addressBuffer } from "./kept-endpoint.ts";
import { type ListenTarget, MAX_DATAGRAM_OCTETS, type MessageReceiver, type Transport } from "./transport.ts";
import type { UdpOptions } from "./udp.ts";
import { type DatagramTransport, SlotPort } from "./udp-batched-ports.ts";
import {
  connectToItself,
  listenFailure,
  openUdpSocket,
  openWayOut,
  setReusePort,
  takesIpv4,
  type UdpSocket,
} from "./udp-socket.ts";

/** Queries are small: longer datagrams are truncated. */
const RECEIVE_SLOT = 4096;
/** Replies up to this size are sent in batches, larger ones one by one. */
const SEND_SLOT = 4096;
/**
 * Datagrams received in a turn of the event loop, unless it is over before: a flood of UDP must not starve TCP, health and timers.
 */
const DATAGRAMS_A_TURN = 16 * BATCH;
/** Datagrams in one batch from which the socket counts as busy. */
const BUSY_BATCH = 2;
/**
 * Datagrams of a batch between two looks at the clock, at most. Most are fast, but signing is slow, and uncompiled code is slower
 * still: the first look follows the first datagram, and the interval doubles each time there was time left.
 */
const DATAGRAMS_A_LOOK = 16;
/** Datagrams received from a socket that is about to close. */
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

class BatchedUdpTransport implements Transport, Reader, DatagramTransport {
  readonly name = "udp";
  readonly host: string;
  readonly port: number;
  readonly local: Endpoint;
  readonly received: ReceiveBatch;
  readonly #sockets: LinuxSockets;
  readonly #socket: UdpSocket;
  readonly #fd: number;
  readonly #family: 4 | 6;
  readonly #name = new Uint8Array(SOCKET_ADDRESS_OCTETS);
  readonly #nameLength: number;
  readonly #receiver: MessageReceiver;
  readonly #options: UdpOptions;
  readonly #sender: DatagramSender;
  readonly #sending: SendBatch;
  /** Replies that overwrite their queries. */
  readonly #returning: ReturnBatch;
  readonly #batch: Omit<BatchOptions, "slotOctets">;
  readonly isWildcard: boolean;
  readonly #informed: boolean;
  readonly #ports: readonly SlotPort[];
  readonly names: Int32Array;
  readonly scratch: AddressBuffer = addressBuffer();
  bufferSize = 0;
  readonly #infos: Uint32Array[] = [];
  #large: SendBatch | undefined;
  /** Slots of the last batch, and the first unprocessed one. */
  #filled = 0;
  #nextSlot = 0;
  /** The receiver has got the arrival time with an earlier datagram of the batch. */
  #isStamped = false;
  /** Replies are sent at the end of a batch. */
  #draining = false;
  #flushScheduled = false;
  #isKept = false;
  /** Other sockets may have the same address: datagrams left in this one would be lost, while the others could answer them. */
  #isShared: boolean;
  /** The socket's last error, 0 for none: a persistent one is reported once. */
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
    this.isWildcard = wildcard;
    this.local = wildcard ? unspecifiedEndpoint(this.port) : new ReportedEndpoint(this.host, this.port);
    // A socket that is bound to one address always answers from it.
    this.#informed = wildcard && askForPacketInfo(libc, fd, family) === 0;
    this.#sockets = sockets;
    this.#socket = socket;
    this.#isShared = options.reusePort === true;
    this.#fd = fd;
    this.#family = family;
    this.#nameLength = family === 4 ? SocketAddress4.OCTETS : SocketAddress6.OCTETS;
    this.#receiver = receiver;
    this.#options = options;
    const failures = {
      full: (count: number) =>
        options.onSendError?.(new Error(`${count} replies dropped: the socket's send buffer is full`)),
      refused: (errno: number) =>
        options.onSendError?.(new Error(`the system refused to send a reply (errno ${errno})`)),
    };
    this.#batch = { named: family, packetInfo: this.#informed };
    this.received = new ReceiveBatch(libc, { slotOctets: RECEIVE_SLOT, ...this.#batch });
    this.#sender = new DatagramSender(libc, fd, failures, new WayOut(libc, fd, takesIpv4(socket)));
    this.#sending = new SendBatch(libc, { slotOctets: SEND_SLOT, ...this.#batch }, this.#sender);
    this.#returning = this.received.returns(this.#sender);
    this.names = new Int32Array(this.received.names.buffer);
    this.#ports = Array.from({ length: BATCH }, (_, slot) => new SlotPort(this, slot));
  }

  share(on = true): boolean {
    // A closed descriptor may have been reused for another file.
    if (this.#closed) return false;
    // All sockets that share a port must share it, so the second socket would be in the way.
    this.#closeWayOut();
    const isDone = setReusePort(this.#sockets.libc, this.#fd, on);
    this.#isShared = on;
    if (!on) this.openWayOut();
    return isDone;
  }

  /** Sends replies through a second, unwatched socket, if the system allows it. Not for a shared port. */
  openWayOut(): void {
    // The descriptor would leak when the thread ends.
    if (!isMainThread || this.#sender.wayOut !== undefined) return;
    // On a wildcard socket each reply needs its source address.
    if (this.isWildcard && !this.#informed) return;
    const { libc } = this.#sockets;
    const wayOut = openWayOut(libc, this.#socket, this.#name);
    if (wayOut === undefined) return;
    this.#takeLast(wayOut.fd);
    this.#sender.wayOut = wayOut;
  }

  #closeWayOut(): void {
    const { wayOut } = this.#sender;
    if (wayOut === undefined) return;
    this.#flush();
    this.#sender.wayOut = undefined;
    this.#sockets.libc.close(wayOut.fd);
  }

  pause(): void {
    if (this.#closed) return;
    this.#sockets.loop.silence(this.#fd);
    if (this.#isShared && (this.#informed || !this.isWildcard))
      connectToItself(this.#sockets.libc, this.#fd, this.#name, this.#socket.family);
    // Processes the received datagrams, which no other socket gets.
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

  goOn(): boolean {
    this.#isKept = false;
    if (!this.#closed) this.#takeSlots(true);
    return this.#isKept;
  }

  noteKept(): void {
    this.#isKept = true;
  }

  buffer(size: number): Uint8Array {
    this.bufferSize = size;
    if (size <= SEND_SLOT) return this.#sending.buffer();
    this.#large ??= new SendBatch(
      this.#sockets.libc,
      { slotOctets: MAX_DATAGRAM_OCTETS, slots: 1, ...this.#batch },
      this.#sender,
    );
    return this.#large.buffer();
  }

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

  send(
    size: number,
    length: number,
    names: Int32Array,
    nameAt: number,
    info: Uint32Array,
    infoAt: number,
    infoLength: number,
  ): void {
    if (this.#closed) return;
    const batch = size <= SEND_SLOT ? this.#sending : (this.#large ?? this.#sending);
    if (this.#informed) batch.leaveFrom(info, infoAt, infoLength);
    batch.commitToWords(length, names, nameAt, this.#nameLength);
    if (batch !== this.#sending) batch.flush();
    else if (!this.#draining && !this.#flushScheduled) {
      // Replies between batches are sent together.
      this.#flushScheduled = true;
      this.#sockets.loop.atTurnEnd(this.#scheduledFlush);
    }
  }

  readonly #scheduledFlush = (): void => {
    this.#flushScheduled = false;
    this.#flush();
  };

  #flush(): void {
    if (this.#closed) return;
    if (!this.#returning.isEmpty) this.#returning.flush();
    if (!this.#sending.isEmpty) this.#sending.flush();
  }

  /**
   * Receives until the socket is empty: under load the next queries have arrived when the replies to the current batch are sent.
   * After single queries there are mostly none, and checking costs a system call.
   */
  #takeBatches(): void {
    const { loop } = this.#sockets;
    let count = BUSY_BATCH;
    for (let taken = 0; count >= BUSY_BATCH && taken < DATAGRAMS_A_TURN && !this.#closed; taken += count) {
      // Checking the clock is only worthwhile after a full batch.
      if (taken >= BATCH && loop.isTurnOver) break;
      count = this.#takeBatch(this.#fd, true);
      if (this.#nextSlot < this.#filled) return;
    }
    this.#note(count === -Linux.EAGAIN || count === -Linux.EINTR ? 0 : Math.max(0, -count));
  }

  /** Receives all datagrams of a socket that is no longer watched. */
  #takeLast(fd: number): void {
    let count = 1;
    this.#takeSlots(false);
    for (let taken = 0; count > 0 && taken < LAST_DATAGRAMS; taken += count)
      count = this.#takeBatch(fd, false);
  }

  /** @returns the number of datagrams, or the error. Some are left for another turn if this one is over. */
  #takeBatch(fd: number, endsWithTurn: boolean): number {
    const count = this.received.receive(fd);
    this.#nextSlot = 0;
    this.#filled = Math.max(0, count);
    this.#takeSlots(endsWithTurn);
    return count;
  }

  #takeSlots(endsWithTurn: boolean): void {
    const first = this.#nextSlot;
    if (first >= this.#filled) return;
    this.#draining = true;
    this.#isStamped = false;
    let toLook = 1;
    let nextLook = first;
    try {
      do {
        const slot = this.#nextSlot++;
        this.#take(slot);
        if (slot < nextLook) continue;
        if (endsWithTurn && this.#isInterrupted()) break;
        toLook = Math.min(2 * toLook, DATAGRAMS_A_LOOK);
        nextLook = slot + toLook;
      } while (this.#nextSlot < this.#filled);
    } finally {
      // Replies that overwrite their queries are sent before the slots are reused.
      this.#flush();
      this.#draining = false;
    }
  }

  /** Whether the rest of a batch has to wait for the next turn. The event loop does not report data that was already received. */
  #isInterrupted(): boolean {
    if (this.#nextSlot >= this.#filled || !this.#sockets.loop.isTurnOver) return false;
    this.#sockets.loop.goOnLater(this);
    return true;
  }

  #note(errno: number): void {
    if (errno === this.#lastError) return;
    this.#lastError = errno;
    if (errno !== 0 && !this.#closed)
      this.#options.onSendError?.(new Error(`the system refused to receive queries (errno ${errno})`));
  }

  #take(slot: number): void {
    const { received } = this;
    const length = received.length(slot);
    const nameAt = slot * NAME_STRIDE;
    if (readPort(received.names, nameAt) === 0) {
      this.#options.onUnanswerable?.();
      return;
    }
    const together = this.#isStamped;
    this.#isStamped = true;
    const receiver = this.#receiver;
    const { repeat } = receiver;
    if (repeat !== undefined) {
      const family = this.#family === 4 ? 4 : readFamily(received.names, nameAt);
      const addressAt =
        slot * NAME_WORDS + (this.#family === 4 ? IPV4_WORD : family === 4 ? MAPPED_WORD : IPV6_WORD);
      const { words, slotWords } = received;
      const size = repeat(words, slot * slotWords, length, family, together, this.names, addressAt);
      if (size > 0) {
        if (!this.#closed) this.#returning.commit(slot, size);
        return;
      }
    }
    const port = this.#ports[slot] as SlotPort;
    port.forget();
    if (received.cutOff(slot)) this.#options.onCutOff?.();
    // FORMERR is the answer if a record was cut off.
    receiver.receive(received.slots[slot] as Uint8Array, length, port, together || repeat !== undefined);
  }
}

function isAt(words: Uint32Array, at: number, wanted: Uint32Array): boolean {
  for (let word = 0; word < wanted.length; word++) if (words[at + word] !== wanted[word]) return false;
  return true;
}

/** Where an address begins in a socket address, in words; a mapped IPv4 address is the end of an IPv6 address. */
const IPV4_WORD = SocketAddress4.ADDRESS / 4;
const IPV6_WORD = SocketAddress6.ADDRESS / 4;
const MAPPED_WORD = IPV6_WORD + 3;

const NO_INFO = new Uint32Array(0);
/** Distinct arrival data: one per address and interface of this machine. */
const MAX_KNOWN_INFOS = 64;
