/** DNS over UDP on `node:dgram`: one callback per datagram. */
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { isWildcardHost } from "../lib/net/listen-address.ts";
import type { Endpoint } from "../plugin/message/endpoint.ts";
import { ReportedEndpoint, unspecifiedEndpoint } from "./endpoint.ts";
import {
  errorCode,
  formatListenAddress,
  ListenError,
  type ListenTarget,
  type MessageReceiver,
  type ReplyPort,
  type Transport,
} from "./transport.ts";

export interface UdpOptions {
  /**
   * Lets several sockets share the address (`multisocket`). Two servers would then not notice each other, so the first socket of a
   * server is opened without it.
   */
  readonly reusePort?: boolean;
  /** Called for datagrams that could not be sent, and for a socket that cannot be read. */
  readonly onSendError?: (error: Error) => void;
  /** Called for each truncated datagram, which is still delivered. */
  readonly onCutOff?: (() => void) | undefined;
  /** Called for each datagram from port 0, which cannot be answered: it is skipped. */
  readonly onUnanswerable?: (() => void) | undefined;
}

/** Opens UDP sockets, plain or batched. */
export type UdpListen = (
  target: ListenTarget,
  receiver: MessageReceiver,
  options?: UdpOptions,
) => Promise<Transport>;

/**
 * Opens a UDP socket and hands every datagram to `receiver`.
 * @throws ListenError
 */
export async function listenUdp(
  target: ListenTarget,
  receiver: MessageReceiver,
  options: UdpOptions = {},
): Promise<Transport> {
  const socket = await bindUdp(target, options);
  return new UdpTransport(socket, receiver, options);
}

/** Addresses are always literal here, so the resolver that `dgram` would call for each packet is skipped. */
const lookupLiteral = (
  host: string,
  _options: unknown,
  callback: (error: NodeJS.ErrnoException | null, address: string, family: number) => void,
): void => callback(null, host, host.includes(":") ? 6 : 4);

const RECEIVE_BUFFER_OCTETS = 4 * 1024 * 1024;

function bindUdp(target: ListenTarget, options: UdpOptions): Promise<Socket> {
  const { host, port } = target;
  const isWildcard = isWildcardHost(host);
  const attempt = (address: string, family: "udp4" | "udp6"): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const socket = createSocket({
        type: family,
        ipv6Only: family === "udp6" && !isWildcard,
        reusePort: options.reusePort ?? false,
        lookup: lookupLiteral,
      });
      socket.once("error", (error) => {
        socket.close();
        reject(new ListenError(formatListenAddress("udp", host, port), errorCode(error), error));
      });
      socket.bind({ address, port, exclusive: true }, () => {
        socket.removeAllListeners("error");
        resolve(socket);
      });
    });
  if (!isWildcard) return attempt(host, host.includes(":") ? "udp6" : "udp4");
  return attempt("::", "udp6").catch((error: unknown) => {
    if (error instanceof ListenError && NO_IPV6.has(error.code)) return attempt("0.0.0.0", "udp4");
    throw error;
  });
}

/** Errors of a machine without IPv6 for `::`. */
export const NO_IPV6: ReadonlySet<string> = new Set(["EAFNOSUPPORT", "EADDRNOTAVAIL", "EINVAL"]);

class UdpTransport implements Transport {
  readonly name = "udp";
  readonly host: string;
  readonly port: number;
  readonly #socket: Socket;
  readonly #receiver: MessageReceiver;
  readonly #local: Endpoint;
  readonly #shared: boolean;
  readonly #onSent: (error: Error | null) => void;
  readonly #onUnanswerable: (() => void) | undefined;
  #closed = false;

  constructor(socket: Socket, receiver: MessageReceiver, options: UdpOptions) {
    const { address, port } = socket.address();
    this.host = address;
    this.port = port;
    this.#socket = socket;
    this.#receiver = receiver;
    this.#shared = options.reusePort ?? false;
    this.#onUnanswerable = options.onUnanswerable;
    this.#local =
      address === "::" || address === "0.0.0.0"
        ? unspecifiedEndpoint(port)
        : new ReportedEndpoint(address, port);
    this.#onSent = (error) => {
      if (error !== null && !this.#closed) options.onSendError?.(error);
    };
    growReceiveBuffer(socket);
    // A datagram that cannot be delivered must never end the process.
    socket.on("error", (error) => options.onSendError?.(error));
    socket.on("message", this.#onMessage);
  }

  share(): boolean {
    return this.#shared;
  }

  pause(): void {
    this.#socket.removeListener("message", this.#onMessage);
  }

  close(): Promise<void> {
    this.#closed = true;
    return new Promise((resolve) => {
      this.#socket.close(() => resolve());
    });
  }

  sendTo(bytes: Uint8Array, length: number, port: number, address: string): void {
    if (this.#closed) return;
    this.#socket.send(bytes, 0, length, port, address, this.#onSent);
  }

  readonly #onMessage = (bytes: Buffer, remote: RemoteInfo): void => {
    if (remote.port === 0) this.#onUnanswerable?.();
    else this.#receiver.receive(bytes, bytes.length, new UdpReplyPort(this, remote, this.#local));
  };
}

function growReceiveBuffer(socket: Socket): void {
  try {
    socket.setRecvBufferSize(RECEIVE_BUFFER_OCTETS);
  } catch {
    // The kernel's limit is lower: its own size will do, with less room for bursts.
    return;
  }
}

/** A datagram's sender: endpoint and way back in one object. */
class UdpReplyPort extends ReportedEndpoint implements ReplyPort {
  readonly local: Endpoint;
  readonly #transport: UdpTransport;
  readonly #remoteAddress: string;
  #buffer: Uint8Array = NO_OCTETS;

  constructor(transport: UdpTransport, remote: RemoteInfo, local: Endpoint) {
    super(remote.address, remote.port);
    this.#transport = transport;
    this.#remoteAddress = remote.address;
    this.local = local;
  }

  get client(): Endpoint {
    return this;
  }

  keep(): ReplyPort {
    return this;
  }

  buffer(size: number): Uint8Array {
    this.#buffer = Buffer.allocUnsafe(size);
    return this.#buffer;
  }

  send(length: number): void {
    this.#transport.sendTo(this.#buffer, length, this.port, this.#remoteAddress);
  }

  drop(): void {
    this.#buffer = NO_OCTETS;
  }
}

const NO_OCTETS = new Uint8Array(0);
