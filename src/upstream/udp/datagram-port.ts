/**
 * A UDP socket as the exchange sees it. `node:dgram` works everywhere; a batching implementation only needs these two interfaces.
 */
import { createSocket, type Socket } from "node:dgram";
import { writeU16 } from "../../dns/octets.ts";
import type { UpstreamAddress } from "../config/address.ts";

/** A socket connected to one upstream: the kernel drops datagrams from other addresses. */
export interface DatagramPort {
  /** Whether queries are gathered and sent together, so that an additional one is cheap. */
  readonly gathers?: boolean;
  /** Sends the first `length` octets, with `id` in place of the first two. The octets may be reused at once. */
  send(bytes: Uint8Array, length: number, id: number): void;
  /** Local address and port, for messages; empty while it has no address. */
  localText(): string;
  close(): void;
}

export interface DatagramListener {
  /** One datagram; the octets may be reused after the call. */
  received(bytes: Uint8Array, length: number): void;
  /**
   * A datagram of this port was not delivered, or nothing can be sent at all. Called after the call that caused it.
   *
   * @param usable whether the port may still be used
   */
  failed(error: Error, usable: boolean): void;
}

export interface DatagramPortOptions {
  readonly remote: UpstreamAddress;
  /** Local address; chosen by the system if absent. */
  readonly sourceAddress: string | undefined;
}

/**
 * Opens a port on a random ephemeral source port of the system's choice, ready to send when the call returns. Errors are reported
 * to the listener.
 */
export type OpenDatagramPort = (options: DatagramPortOptions, listener: DatagramListener) => DatagramPort;

export const openDgramPort: OpenDatagramPort = (options, listener) => new DgramPort(options, listener);

class DgramPort implements DatagramPort {
  readonly #listener: DatagramListener;
  readonly #socket: Socket;
  #opening = true;
  #connected = false;
  #closed = false;

  constructor({ remote, sourceAddress }: DatagramPortOptions, listener: DatagramListener) {
    this.#listener = listener;
    const { family } = remote;
    this.#socket = createSocket({
      type: family === 4 ? "udp4" : "udp6",
      recvBufferSize: RECEIVE_BUFFER,
      // Addresses are literal. Answering synchronously completes bind and connect before they return.
      lookup: (host, _options, callback) => callback(null, host, family),
    });
    this.#socket.on("error", (error) => this.#failed(error));
    // After a failed bind, connect would bind again, to the wrong address.
    if (sourceAddress === undefined || this.#bind(sourceAddress)) this.#connect(remote);
    this.#opening = false;
  }

  send(bytes: Uint8Array, length: number, id: number): void {
    if (!this.#connected) return;
    const copy = Buffer.allocUnsafe(length);
    copy.set(length === bytes.length ? bytes : bytes.subarray(0, length));
    writeU16(copy, 0, id);
    this.#socket.send(copy, this.#sent);
  }

  localText(): string {
    if (!this.#connected || this.#closed) return "";
    const { address, port } = this.#socket.address();
    return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#connected = false;
    this.#socket.close();
  }

  readonly #sent = (error: Error | null): void => {
    // An error for one datagram, too long or refused by a full queue, does not concern the others.
    if (error !== null && isNetworkError(error)) this.#failed(error);
  };

  #bind(address: string): boolean {
    this.#socket.bind({ address, port: 0, exclusive: true });
    try {
      this.#socket.address();
      return true;
    } catch {
      return false;
    }
  }

  #connect(remote: UpstreamAddress): void {
    this.#socket.connect(remote.port, remote.host);
    let peer: { readonly address: string; readonly port: number };
    try {
      peer = this.#socket.remoteAddress();
    } catch {
      // An event reports the reason.
      return;
    }
    this.#connected = true;
    this.#socket.on("message", (message, from) => {
      // Between bind and connect, the socket accepted datagrams from any address.
      if (from.port === peer.port && from.address === peer.address)
        this.#listener.received(message, message.length);
    });
  }

  #failed(error: Error): void {
    if (this.#closed) return;
    if (this.#opening) {
      queueMicrotask(() => this.#failed(error));
      return;
    }
    const usable = this.#connected && isNetworkError(error);
    if (!usable) this.#connected = false;
    this.#listener.failed(error, usable);
  }
}

/** In bytes, up to the kernel's limit. Holds the answers that arrive while the event loop is busy. */
const RECEIVE_BUFFER = 1 << 20;

export function isNetworkError(error: Error): boolean {
  return "code" in error && typeof error.code === "string" && NETWORK_ERRORS.has(error.code);
}

/** Reported by ICMP or a packet filter: they concern the path to the upstream, not the socket. */
export const NETWORK_ERRORS: ReadonlySet<string> = new Set([
  "EACCES",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTDOWN",
  "EHOSTUNREACH",
  "ENETDOWN",
  "ENETUNREACH",
  "ENOPROTOOPT",
  "EPERM",
  "EPROTO",
]);
