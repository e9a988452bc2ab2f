/**
 * UDP sockets to upstreams on Linux, by the batch: queries of one turn of the event loop leave together, replies are taken
 * together. Node is asked only to tell when something has arrived.
 */
import { createSocket, type Socket } from "node:dgram";
import { getSystemErrorName } from "node:util";
import { BATCH, ReceiveBatch, SendBatch } from "../lib/linux/datagram-batch.ts";
import { Linux } from "../lib/linux/layouts.ts";
import { type Libc, loadLibc, setSocketNumber } from "../lib/linux/libc.ts";
import { parseHost, SOCKET_ADDRESS_OCTETS, writeSocketAddress } from "../lib/linux/socket-address.ts";
import { TurnBudget } from "../lib/turn-budget.ts";
import {
  type DatagramListener,
  type DatagramPort,
  type DatagramPortOptions,
  isNetworkError,
  NETWORK_ERRORS,
  type OpenDatagramPort,
  openDgramPort,
} from "./datagram-port.ts";

/** Queries are seldom longer; those that are go out alone. */
const SEND_SLOT = 512;
/** Replies that are longer are cut, and asked for again over TCP. */
const RECEIVE_SLOT = 4096;
/** Full batches of one socket taken in a turn of the event loop. */
const BATCHES_A_TURN = 4;
const RECEIVE_BUFFER = 1 << 20;

/** The quickest ports that this system has; `PORTOLAN_UDP=dgram` asks for the plain ones. */
export async function fastestDatagramPorts(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<OpenDatagramPort> {
  const libc = environment.PORTOLAN_UDP === "dgram" ? undefined : await loadLibc();
  return libc === undefined ? openDgramPort : batchedDatagramPorts(libc);
}

export function batchedDatagramPorts(libc: Libc): OpenDatagramPort {
  const shared = new SharedBatches(libc);
  return (options, listener) => new BatchedPort(libc, shared, options, listener);
}

/** One memory for what is received, as it is used up before anything else happens; and the ports that have something to send. */
class SharedBatches {
  readonly received: ReceiveBatch;
  #unsent: BatchedPort[] = [];
  #scheduled = false;

  constructor(libc: Libc) {
    this.received = new ReceiveBatch(libc, RECEIVE_SLOT, false);
  }

  /** The port's queries leave at the end of this turn of the event loop. */
  flushLater(port: BatchedPort): void {
    this.#unsent.push(port);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#flush);
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    const ports = this.#unsent;
    this.#unsent = [];
    for (const port of ports) port.flush();
  };
}

class BatchedPort implements DatagramPort {
  readonly #libc: Libc;
  readonly #shared: SharedBatches;
  readonly #listener: DatagramListener;
  readonly #socket: Socket;
  readonly #fd: number;
  readonly #sending: SendBatch | undefined;
  readonly #batches = new TurnBudget(BATCHES_A_TURN);
  #closed = false;

  constructor(libc: Libc, shared: SharedBatches, options: DatagramPortOptions, listener: DatagramListener) {
    this.#libc = libc;
    this.#shared = shared;
    this.#listener = listener;
    this.#socket = createSocket({ type: options.remote.family === 4 ? "udp4" : "udp6" });
    const opened = openConnected(libc, options);
    if (typeof opened !== "number") {
      this.#fd = -1;
      queueMicrotask(() => this.#failed(opened.errno, opened.action, false));
      return;
    }
    this.#fd = opened;
    this.#sending = new SendBatch(libc, opened, SEND_SLOT, false, {
      // Lost like any datagram that meets a full queue: the time-out tells.
      full: () => undefined,
      refused: (errno) => this.#failed(errno, "send", true),
    });
    this.#socket.on("error", (error) => this.#broken(error));
    this.#socket.on("message", this.#onMessage);
    this.#socket.bind({ fd: opened, exclusive: true });
  }

  send(bytes: Uint8Array, length: number, id: number): void {
    const sending = this.#sending;
    if (sending === undefined || this.#closed) return;
    if (length > SEND_SLOT) {
      this.#sendAlone(bytes, length, id);
      return;
    }
    if (sending.isEmpty) this.#shared.flushLater(this);
    const slot = sending.buffer();
    for (let at = 2; at < length; at++) slot[at] = bytes[at] as number;
    slot[0] = id >>> 8;
    slot[1] = id;
    sending.commit(length);
  }

  localText(): string {
    if (this.#fd < 0 || this.#closed) return "";
    try {
      const { address, port } = this.#socket.address();
      return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
    } catch {
      // Not adopted by Node yet: only messages about the very first queries lack the address.
      return "";
    }
  }

  close(): void {
    if (this.#closed) return;
    this.flush();
    this.#closed = true;
    this.#socket.close();
  }

  flush(): void {
    if (!this.#closed) this.#sending?.flush();
  }

  readonly #onMessage = (message: Buffer): void => {
    this.#listener.received(message, message.length);
    const { received } = this.#shared;
    for (let batch = this.#batches.left; batch > 0 && !this.#closed; batch--) {
      const count = received.receive(this.#fd);
      if (count < 0 && count !== -Linux.EAGAIN && count !== -Linux.EINTR)
        this.#failed(-count, "receive", true);
      for (let slot = 0; slot < count; slot++) {
        this.#listener.received(received.slots[slot] as Uint8Array, received.length(slot));
      }
      if (count < BATCH) break;
      this.#batches.spend(1);
    }
  };

  #sendAlone(bytes: Uint8Array, length: number, id: number): void {
    const batch = new SendBatch(this.#libc, this.#fd, length, false, {
      full: () => undefined,
      refused: (errno) => this.#failed(errno, "send", true),
    });
    const slot = batch.buffer();
    slot.set(bytes.subarray(0, length));
    slot[0] = id >>> 8;
    slot[1] = id;
    batch.commit(length);
    batch.flush();
  }

  #broken(error: Error): void {
    // Node reads the first datagram of a burst, and so also hears what ICMP had to say.
    if (!this.#closed) this.#listener.failed(error, isNetworkError(error));
  }

  /** The listener hears of it later than the call that caused it. */
  #failed(errno: number, action: string, usable: boolean): void {
    const code = getSystemErrorName(-errno);
    const error = Object.assign(new Error(`${action} ${code}`), { code, syscall: action });
    queueMicrotask(() => {
      if (!this.#closed) this.#listener.failed(error, usable && NETWORK_ERRORS.has(code));
    });
  }
}

/** A socket on a random ephemeral port, connected so that the kernel drops what others send. */
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
