import { connect, type OnReadOpts, type Socket } from "node:net";
import { writeU16 } from "../../dns/octets.ts";
import type { BufferPool, PooledBuffer } from "../../lib/collections/buffer-pool.ts";
import type { SharedTurns } from "../../lib/time/turn-share.ts";
import type { UpstreamAddress } from "../config/address.ts";
import type { RequestCarrier, UpstreamRequest } from "../exchange/exchange.ts";
import { FrameReader } from "./frame-reader.ts";

/** Owns the connections. */
export interface ConnectionOwner {
  connected(connection: TcpConnection): void;
  received(connection: TcpConnection, message: Uint8Array, lent: PooledBuffer | undefined): void;
  timedOut(connection: TcpConnection, request: UpstreamRequest): void;
  /** The time that all connections may use in a turn of the event loop. */
  readonly turns: SharedTurns;
  /** For large messages. */
  readonly buffers: BufferPool;
  /** Read buffer of the system, used by one connection after the other. */
  readonly inbox: Uint8Array;
  letGo(connection: TcpConnection, request: UpstreamRequest): void;
  /** Called once, unless the owner itself closed the connection. Without an error, the peer closed it in order. */
  lost(connection: TcpConnection, error: Error | undefined): void;
}

/** Octets gathered for one write at the end of a turn. */
const MAX_GATHERED = 8 * 1024;

/** Opens a stream to an upstream: TCP, or TLS over TCP. */
export interface StreamDialler {
  /** The `proto` label of metrics. */
  readonly protocol: string;
  /** The socket's event after which messages may be sent. */
  readonly readyEvent: "connect" | "secureConnect";
  /** @param onread receives the octets that are read: a dialler that cannot do so leaves them to the socket's `data` */
  dial(remote: UpstreamAddress, sourceAddress: string | undefined, onread?: OnReadOpts): Socket;
  /** The whole message for an error above TCP; `undefined` for an error of the network. */
  describe(error: Error): string | undefined;
  /**
   * The message to send in place of a query, such as a padded one, or the query's own octets. The result is used before the next
   * call.
   */
  outgoing(bytes: Uint8Array, length: number, questionEnd: number): Uint8Array;
}

export const PLAIN_TCP: StreamDialler = {
  protocol: "tcp",
  readyEvent: "connect",
  dial: (remote, sourceAddress, onread) =>
    connect({
      host: remote.host,
      port: remote.port,
      noDelay: true,
      ...(onread !== undefined && { onread }),
      ...(sourceAddress !== undefined && { localAddress: sourceAddress }),
    }),
  describe: () => undefined,
  outgoing: (bytes, length) => (length === bytes.length ? bytes : bytes.subarray(0, length)),
};

/** One connection to an upstream, with the pool's state about it. */
export class TcpConnection implements RequestCarrier {
  readonly #owner: ConnectionOwner;
  readonly #dialler: StreamDialler;
  readonly #socket: Socket;
  readonly openedAt: number;
  state: "connecting" | "open" | "closed" = "connecting";
  inFlight = 0;
  /** Messages received over it. */
  answers = 0;
  /** `Clock.now()` when the last query was answered. */
  idleSince: number;
  /** Gets no further queries. */
  retired = false;
  /** The peer does not read, so octets wait: further queries use other connections. */
  blocked = false;
  #local = "";
  readonly #reader: FrameReader;
  /** Octets left for the next turn. Until then nothing more is read. */
  #unread: Uint8Array | undefined;
  /** The owner of these octets, if they are a copy of the inbox. */
  #kept: PooledBuffer | undefined;
  /** Octets of queries to be written at the end of this turn, because each write is a system call. */
  #gathered = 0;
  /** The upstream has closed the connection; the data before is read first. */
  #hasEnded = false;

  constructor(
    owner: ConnectionOwner,
    remote: UpstreamAddress,
    sourceAddress: string | undefined,
    now: number,
    dialler: StreamDialler = PLAIN_TCP,
  ) {
    this.#owner = owner;
    this.#dialler = dialler;
    this.openedAt = now;
    this.idleSince = now;
    this.#reader = new FrameReader((message, lent) => {
      if (this.state === "open") owner.received(this, message, lent);
    }, owner.buffers);
    this.#socket = dialler.dial(remote, sourceAddress, {
      buffer: owner.inbox,
      callback: (count, inbox) => {
        this.#read(inbox.subarray(0, count), true);
        return true;
      },
    });
    this.#socket
      .on(dialler.readyEvent, () => this.#connected())
      .on("data", (chunk) => this.#read(chunk, false))
      .on("drain", () => {
        this.blocked = false;
      })
      .on("end", () => this.#ended())
      .on("error", (error) => {
        if (this.#unread !== undefined) this.#reader.push(this.#unread);
        this.#unread = undefined;
        this.#lost(error);
      })
      .on("close", () => this.#ended());
  }

  /** @param isLent whether the octets are overwritten after this */
  #read(chunk: Uint8Array, isLent: boolean): void {
    const { turns, buffers } = this.#owner;
    const read = turns.isOver ? 0 : this.#reader.push(chunk, () => turns.isOver);
    if (read === chunk.length) return;
    this.#unread = chunk.subarray(read);
    if (isLent) {
      this.#kept = buffers.take(chunk.length - read);
      this.#kept.bytes.set(this.#unread);
      this.#unread = this.#kept.bytes.subarray(0, chunk.length - read);
    }
    this.#socket.pause();
    turns.later(this.#readOn);
  }

  readonly #readOn = (): void => {
    const chunk = this.#unread;
    this.#unread = undefined;
    if (this.state === "closed" || chunk === undefined) return;
    this.#read(chunk, false);
    if (this.#unread !== undefined) return;
    this.#kept?.takeBack();
    this.#kept = undefined;
    if (this.#hasEnded) this.#lost(undefined);
    else this.#socket.resume();
  };

  #ended(): void {
    this.#hasEnded = true;
    if (this.#unread === undefined) this.#lost(undefined);
  }

  /** Sends the query, with `id` in place of the first two octets. The octets may be reused at once. */
  write(bytes: Uint8Array, length: number, questionEnd: number, id: number): void {
    const message = this.#dialler.outgoing(bytes, length, questionEnd);
    const frame = Buffer.allocUnsafe(message.length + 2);
    frame.set(message, 2);
    writeU16(frame, 0, message.length);
    writeU16(frame, 2, id);
    if (this.#gathered === 0) {
      this.#socket.cork();
      process.nextTick(this.#sendGathered);
    }
    this.#gathered += frame.length;
    if (!this.#socket.write(frame)) this.blocked = true;
    if (this.blocked || this.#gathered >= MAX_GATHERED) this.#sendGathered();
  }

  readonly #sendGathered = (): void => {
    if (this.#gathered === 0) return;
    this.#gathered = 0;
    this.#socket.uncork();
  };

  /** Local address and port, for messages. */
  get localText(): string {
    return this.#local;
  }

  close(): void {
    if (this.state === "closed") return;
    this.state = "closed";
    this.#socket.destroy();
  }

  timedOut(request: UpstreamRequest): void {
    this.#owner.timedOut(this, request);
  }

  letGo(request: UpstreamRequest): void {
    this.#owner.letGo(this, request);
  }

  #connected(): void {
    if (this.state !== "connecting") return;
    this.state = "open";
    const { localAddress = "", localPort = 0 } = this.#socket;
    this.#local = localAddress.includes(":")
      ? `[${localAddress}]:${localPort}`
      : `${localAddress}:${localPort}`;
    this.#owner.connected(this);
  }

  #lost(error: Error | undefined): void {
    if (this.state === "closed") return;
    this.#owner.lost(this, error);
    this.close();
  }
}
