/**
 * Batched UDP sockets to upstreams on Linux: queries of one event-loop turn are sent together, and replies are received together.
 * The sockets are made by our own system calls; the event loop reports arrivals.
 */
import { release } from "node:os";
import { getSystemErrorName } from "node:util";
import { readU16 } from "../../dns/octets.ts";
import { BATCH, ReceiveBatch, SendBatch } from "../../runtime/linux/datagram-batch.ts";
import type { SendFailures } from "../../runtime/linux/datagram-sender.ts";
import type { Reader } from "../../runtime/linux/event-loop.ts";
import { Linux } from "../../runtime/linux/layouts.ts";
import { type Libc, NoForeignFunctions, setSocketNumber } from "../../runtime/linux/libc.ts";
import { type LinuxSockets, linuxSockets } from "../../runtime/linux/linux-sockets.ts";
import { SegmentTrial } from "../../runtime/linux/segment-trial.ts";
import { cutsSegments, SegmentedBatch } from "../../runtime/linux/segmented-batch.ts";
import {
  parseHost,
  readAddress,
  readLocalName,
  readPort,
  SOCKET_ADDRESS_OCTETS,
  writeSocketAddress,
} from "../../runtime/linux/socket-address.ts";
import type { UpstreamAddress } from "../config/address.ts";
import {
  type DatagramListener,
  type DatagramPort,
  type DatagramPortOptions,
  NETWORK_ERRORS,
  type OpenDatagramPort,
  openDgramPort,
} from "./datagram-port.ts";

/** Longer replies are truncated, and queried again over TCP. */
const RECEIVE_SLOT = 4096;
/** Full batches of one socket that are received in a turn of the event loop, unless it is over before. */
const BATCHES_A_TURN = 4;
const RECEIVE_BUFFER = 1 << 20;
/** Send batches kept for reuse. */
const MOST_SPARE = 4;
/** Replies between two looks at the clock, at most. The first look follows the first reply, because uncompiled code is slow. */
const REPLIES_A_LOOK = 8;

/** The fastest ports of this system; `PORTOLAN_UDP=dgram` selects the plain ones. */
export async function fastestDatagramPorts(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<OpenDatagramPort> {
  if (environment.PORTOLAN_UDP === "dgram") return openDgramPort;
  const sockets = await linuxSockets();
  return sockets instanceof NoForeignFunctions
    ? openDgramPort
    : batchedDatagramPorts(sockets, () => performance.now());
}

/** @param now milliseconds, from any origin */
export function batchedDatagramPorts(sockets: LinuxSockets, now: () => number): OpenDatagramPort {
  const shared = new SharedBatches(sockets, now);
  return (options, listener) => new BatchedPort(shared, options, listener);
}

/** One receive buffer for all ports, since replies are processed at once; and the ports that have queries to send. */
class SharedBatches {
  readonly sockets: LinuxSockets;
  readonly received: ReceiveBatch;
  /** The port with unprocessed replies in {@link received}, left by the last turn. */
  waiting: BatchedPort | undefined;
  readonly #now: () => number;
  readonly #trials = new WeakMap<UpstreamAddress, SegmentTrial>();
  readonly #spare: SegmentedBatch[] = [];
  #unsent: BatchedPort[] = [];
  #flushing: BatchedPort[] = [];

  constructor(sockets: LinuxSockets, now: () => number) {
    this.sockets = sockets;
    this.#now = now;
    this.received = new ReceiveBatch(sockets.libc, { slotOctets: RECEIVE_SLOT, named: false });
  }

  /** The segmentation trial shared by all ports to an upstream. */
  trialOf(remote: UpstreamAddress): SegmentTrial {
    const known = this.#trials.get(remote);
    if (known !== undefined) return known;
    const trial = new SegmentTrial(this.#now);
    this.#trials.set(remote, trial);
    return trial;
  }

  /** For the queries of one port in one turn of the event loop: usually only one port has any. */
  takeBatch(): SegmentedBatch {
    return this.#spare.pop() ?? new SegmentedBatch(this.sockets.libc);
  }

  giveBack(batch: SegmentedBatch): void {
    if (this.#spare.length < MOST_SPARE) this.#spare.push(batch);
  }

  /** The port sends its queries at the end of this turn of the event loop. */
  flushLater(port: BatchedPort): void {
    if (this.#unsent.push(port) === 1) this.sockets.loop.atTurnEnd(this.#flush);
  }

  readonly #flush = (): void => {
    const ports = this.#unsent;
    this.#unsent = this.#flushing;
    for (const port of ports) port.flush();
    ports.length = 0;
    this.#flushing = ports;
  };
}

class BatchedPort implements DatagramPort, Reader {
  readonly #libc: Libc;
  readonly #shared: SharedBatches;
  readonly #listener: DatagramListener;
  readonly #fd: number;
  /** Set while queries wait for the end of the turn. */
  #sending: SegmentedBatch | undefined;
  readonly #trial: SegmentTrial | undefined;
  #closed = false;
  /** Replies of the last batch, and the first one not yet passed on. */
  #received = 0;
  #next = 0;

  constructor(shared: SharedBatches, options: DatagramPortOptions, listener: DatagramListener) {
    const { libc, loop } = shared.sockets;
    this.#libc = libc;
    this.#shared = shared;
    this.#listener = listener;
    const opened = openConnected(libc, options);
    const errno = typeof opened === "number" ? loop.watch(opened, this) : opened.errno;
    if (typeof opened !== "number" || errno !== 0) {
      if (typeof opened === "number") libc.close(opened);
      this.#fd = -1;
      queueMicrotask(() =>
        this.#failed(errno, typeof opened === "number" ? "epoll_ctl" : opened.action, false),
      );
      return;
    }
    this.#fd = opened;
    if (cutsSegments(libc, opened, release())) this.#trial = shared.trialOf(options.remote);
  }

  get gathers(): boolean {
    return this.#sending !== undefined;
  }

  send(bytes: Uint8Array, length: number, id: number): void {
    if (this.#fd < 0 || this.#closed) return;
    // Queries are seldom longer.
    if (length > SegmentedBatch.slotOctets) {
      this.#sendAlone(bytes, length, id);
      return;
    }
    const sending = this.#sending ?? this.#beginSending();
    const slot = sending.buffer();
    for (let at = 2; at < length; at++) slot[at] = bytes[at] as number;
    slot[0] = id >>> 8;
    slot[1] = id;
    sending.commit(length);
  }

  localText(): string {
    if (this.#fd < 0 || this.#closed) return "";
    const name = new Uint8Array(SOCKET_ADDRESS_OCTETS);
    if (readLocalName(this.#libc, this.#fd, name) < 0) return "";
    const address = readAddress(name, 0);
    return address.includes(":") ? `[${address}]:${readPort(name, 0)}` : `${address}:${readPort(name, 0)}`;
  }

  close(): void {
    if (this.#closed) return;
    this.flush();
    this.#closed = true;
    if (this.#fd >= 0) this.#shared.sockets.loop.close(this.#fd);
  }

  #beginSending(): SegmentedBatch {
    this.#sending = this.#shared.takeBatch().for(this.#fd, this.#trial, this.#failures);
    this.#shared.flushLater(this);
    return this.#sending;
  }

  flush(): void {
    const sending = this.#sending;
    if (sending === undefined) return;
    this.#sending = undefined;
    sending.flush();
    this.#shared.giveBack(sending);
  }

  readable(): boolean {
    const { received, sockets, waiting } = this.#shared;
    // Reported again as soon as the others are passed on.
    if (waiting !== undefined) return false;
    for (let batch = 0; batch < BATCHES_A_TURN && !this.#closed; batch++) {
      if (batch > 0 && sockets.loop.isTurnOver) break;
      const count = received.receive(this.#fd);
      if (count < 0) {
        // An ICMP error about an earlier query precedes the replies behind it.
        if (count !== -Linux.EAGAIN && count !== -Linux.EINTR) this.#failed(-count, "receive", true);
        if (count === -Linux.EAGAIN) break;
        continue;
      }
      this.#next = 0;
      this.#received = count;
      if (!this.#passOn() || count < BATCH) break;
    }
    return true;
  }

  goOn(): boolean {
    this.#shared.waiting = undefined;
    this.#passOn();
    return true;
  }

  /** @returns whether all received replies were passed on: the rest is for the next turn */
  #passOn(): boolean {
    const { received, sockets } = this.#shared;
    let toLook = 1;
    let nextLook = this.#next + toLook;
    while (this.#next < this.#received && !this.#closed) {
      const slot = this.#next++;
      const octets = received.slots[slot] as Uint8Array;
      this.#trial?.arrived(readU16(octets, 0));
      this.#listener.received(octets, received.length(slot));
      if (this.#next < nextLook || this.#next >= this.#received) continue;
      toLook = Math.min(2 * toLook, REPLIES_A_LOOK);
      nextLook += toLook;
      if (!sockets.loop.isTurnOver) continue;
      this.#shared.waiting = this;
      sockets.loop.goOnLater(this);
      return false;
    }
    return true;
  }

  #sendAlone(bytes: Uint8Array, length: number, id: number): void {
    const options = { slotOctets: length, named: false, slots: 1 } as const;
    const batch = SendBatch.through(this.#libc, this.#fd, options, this.#failures);
    const slot = batch.buffer();
    slot.set(bytes.subarray(0, length));
    slot[0] = id >>> 8;
    slot[1] = id;
    batch.commit(length);
    batch.flush();
  }

  readonly #failures: SendFailures = {
    // Lost like any datagram that meets a full queue: the timeout handles it.
    full: () => undefined,
    refused: (errno) => this.#failed(errno, "send", true),
  };

  /** Reported to the listener after the call that caused it. */
  #failed(errno: number, action: string, usable: boolean): void {
    const code = getSystemErrorName(-errno);
    const error = Object.assign(new Error(`${action} ${code}`), { code, syscall: action });
    queueMicrotask(() => {
      if (!this.#closed) this.#listener.failed(error, usable && NETWORK_ERRORS.has(code));
    });
  }
}

/** A socket on a random ephemeral port, connected so that the kernel drops datagrams from other addresses. */
function openConnected(
  libc: Libc,
  { remote, sourceAddress }: DatagramPortOptions,
): number | { errno: number; action: string } {
  const domain = remote.family === 4 ? Linux.AF_INET : Linux.AF_INET6;
  const fd = libc.socket(domain, Linux.SOCK_DGRAM | Linux.SOCK_NONBLOCK | Linux.SOCK_CLOEXEC, 0);
  if (fd < 0) return { errno: libc.errno(), action: "socket" };
  setSocketNumber(libc, fd, Linux.SOL_SOCKET, Linux.SO_RCVBUF, RECEIVE_BUFFER);
  const name = new Uint8Array(SOCKET_ADDRESS_OCTETS);
  for (const [action, host, port] of [
    ["bind", sourceAddress, 0],
    ["connect", remote.host, remote.port],
  ] as const) {
    if (host === undefined) continue;
    const parsed = parseHost(host);
    const length = writeSocketAddress(
      name,
      0,
      remote.family,
      parsed?.octets ?? new Uint8Array(4),
      port,
      parsed?.scope ?? 0,
    );
    const result = action === "bind" ? libc.bind(fd, name, length) : libc.connect(fd, name, length);
    if (result < 0) {
      const errno = libc.errno();
      libc.close(fd);
      return { errno, action };
    }
  }
  return fd;
}
