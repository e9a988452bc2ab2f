/** The interface between transports and the server. */
import type { Endpoint, TransportName } from "../plugin/message/endpoint.ts";
import type { Reply } from "../plugin/query/reply.ts";

/**
 * The way back for one message. The receiver asks for a buffer, writes the reply from its first octet on, and sends it, now or
 * later; or drops. Exactly one of `send` and `drop` must follow every message.
 */
export interface ReplyPort {
  readonly client: Endpoint;
  readonly local: Endpoint;
  /** A port for a later answer: this object may be reused for the next message. */
  keep(): ReplyPort;
  /** A buffer of at least `size` octets, valid until `send` or `drop`, which must follow at once. */
  buffer(size: number): Uint8Array;
  /** Describes the reply that is sent next to a transport with metadata of its own (the headers of HTTP). */
  describe?(reply: Reply): void;
  /** Sends the first `length` octets of the last buffer. */
  send(length: number): void;
  /** Sends nothing, or nothing more after {@link PartPort.sendPart}. */
  drop(): void;
  /**
   * Present if the transport has its own error (a status of HTTP) for a message that is not a DNS query, in place of a bare header.
   */
  reject?(rejection: Rejection): void;
  /** Present if one query may have an answer of many messages. Usable after {@link keep}. */
  readonly parts?: PartPort | undefined;
}

/** Why a message reaches no plugin: it is malformed, or its opcode is not supported. */
export type Rejection = "malformed" | "not-implemented";

/** The way back for an answer of many messages. `drop` of the port ends it. */
export interface PartPort {
  /**
   * Sends the first `length` octets of the port's buffer, with more to follow. False if the client is behind: wait for {@link
   * drained}.
   */
  sendPart(length: number): boolean;
  /** Resolves when there is room again, or the client has disconnected. Never rejects. */
  drained(): Promise<void>;
  /** False when the client has disconnected. */
  readonly isOpen: boolean;
  /** The answer cannot be completed: the client must not take it for the whole. */
  abort(): void;
}

/** Receives messages from a transport. `bytes` is only lent until the call returns; its first `length` octets are the message. */
export interface MessageReceiver {
  /** @param together whether it arrived together with the previous message, so that the clock need not be read again */
  receive(bytes: Uint8Array, length: number, port: ReplyPort, together?: boolean): void;
  /**
   * For transports that hold many messages in one buffer: answers a message at once, without a port, if the same message was
   * answered a moment ago. The reply overwrites the message. Absent while that is impossible.
   * @param words the buffer as 32-bit words of the machine; the message begins at the word `at`, and has room for {@link
   * REPEATED_OCTETS}. Octets after its end are undefined
   * @param length of the message in octets
   * @param family of the client's address
   * @param together as above; true for the {@link receive} that follows
   * @param names words of the machine; the client's address begins at the word `addressAt`, one for IPv4 and four for IPv6
   * @returns octets of the reply; 0 if the message is unchanged and must be received as usual
   */
  readonly repeat?:
    | ((
        words: Int32Array,
        at: number,
        length: number,
        family: 4 | 6,
        together: boolean,
        names: Int32Array,
        addressAt: number,
      ) => number)
    | undefined;
}

/** Maximum length of a repeated reply: every datagram has room for it. */
export const REPEATED_OCTETS = 512;

/** An open socket that receives messages. */
export interface Transport {
  readonly name: TransportName;
  readonly host: string;
  /** The actual port, if port 0 was requested. */
  readonly port: number;
  /**
   * Lets further sockets of this user, in this process or another, listen on the same address and receive their share of the
   * messages. Absent, or false, if that had to be decided when the socket was opened.
   * @param on false to stop sharing. Default true
   */
  share?(on?: boolean): boolean;
  /** Accepted connections; absent for datagrams. */
  readonly accepted?: number;
  /** Octets that its connections hold beside the budget of the data plane: unread replies, and incomplete messages. */
  readonly held?: number;
  /**
   * Leaves new connections to other sockets on the address, or else to a later attempt, so that closing this socket resets none.
   */
  holdBack?(): void;
  /** Another configuration is in force. For settings that are not read for each connection. */
  settingsChanged?(): void;
  /** Accepts no new messages; those in flight may still be answered. */
  pause(): void;
  /**
   * Accepts no new connections, and serves open ones until they fall silent, or for `patience` milliseconds. Resolves when the
   * address is free. Absent for transports without connections: close them.
   */
  fadeOut?(patience: number): Promise<void>;
  /** Resolves when the last connection left by {@link fadeOut} is gone. */
  emptied?(): Promise<void>;
  /** Closes the socket and everything on it. */
  close(): Promise<void>;
}

/** The longest UDP payload in an IPv4 packet. */
export const MAX_DATAGRAM_OCTETS = 65_507;

export interface ListenTarget {
  /** IP address. Empty, `0.0.0.0` and `::` all mean every address of both families, if the machine has both. */
  readonly host: string;
  readonly port: number;
}

/** An address that cannot be listened on. */
export class ListenError extends Error {
  override readonly name = "ListenError";
  readonly address: string;
  /** `EADDRINUSE`, `EACCES`, … */
  readonly code: string;

  /** @param reason replaces the general meaning of the code */
  constructor(address: string, code: string, cause?: Error, reason?: string) {
    super(`cannot listen on ${address}: ${reason ?? LISTEN_REASONS[code] ?? cause?.message ?? code}`, {
      cause,
    });
    this.address = address;
    this.code = code;
  }
}

const LISTEN_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "the address is in use by another program (find it with: ss -lntup)",
  EACCES:
    "no right to bind this port: run as root, grant CAP_NET_BIND_SERVICE, or use a port above 1023 (-dns.port)",
  EADDRNOTAVAIL: "this machine has no such address",
  EAFNOSUPPORT: "this machine does not speak this address family",
};

/** The error code of a failed system call, or a name for any other error. */
export function errorCode(error: unknown): string {
  if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
  return "UNKNOWN";
}

/** `udp 127.0.0.1:53`, `tcp [::1]:53`, `udp :53`. */
export function formatListenAddress(transport: string, host: string, port: number): string {
  return `${transport} ${host.includes(":") ? `[${host}]` : host}:${port}`;
}
