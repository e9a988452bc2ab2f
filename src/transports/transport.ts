/** What a transport and the server know of each other. */
import type { Endpoint, TransportName } from "../plugin/message/endpoint.ts";
import type { Reply } from "../plugin/query/reply.ts";

/**
 * The way back for one message. The receiver asks for a buffer, writes the reply from its first octet on, and sends it, now or
 * later; or drops. Exactly one of `send` and `drop` must follow every message.
 */
export interface ReplyPort {
  readonly client: Endpoint;
  readonly local: Endpoint;
  /** The same way back for an answer that comes later: this object may serve the next message by then. */
  keep(): ReplyPort;
  /** A buffer of at least `size` octets, good until `send` or `drop`, which must follow at once. */
  buffer(size: number): Uint8Array;
  /** Told of the reply whose octets are sent next, where the transport says something about them itself (the headers of HTTP). */
  describe?(reply: Reply): void;
  /** Sends the first `length` octets of the buffer given last. */
  send(length: number): void;
  /** Nothing is sent, or nothing more after {@link PartPort.sendPart}. */
  drop(): void;
  /** Present where the message is no DNS query for the transport to answer with its own words (a status of HTTP) in place of a bare header. */
  reject?(rejection: Rejection): void;
  /** Present where one query may have many messages for an answer. Of use once {@link keep} was called. */
  readonly parts?: PartPort | undefined;
}

/** Why a message reaches no plugin: it is malformed, or its opcode is not served. */
export type Rejection = "malformed" | "not-implemented";

/** The way back for an answer of many messages. `drop` of the port ends it. */
export interface PartPort {
  /** Sends the first `length` octets of the port's buffer, with more to follow. False where the client is behind: wait for {@link drained}. */
  sendPart(length: number): boolean;
  /** Resolves when there is room again, or nobody to send to. Never rejects. */
  drained(): Promise<void>;
  /** False when the client has gone. */
  readonly isOpen: boolean;
  /** The answer cannot be finished: the client must not take what it has for the whole. */
  abort(): void;
}

/** Takes messages from a transport. `bytes` is only lent until it returns; `length` octets of it count. */
export interface MessageReceiver {
  /** @param together it came at the same moment as the message before it: the clock need not be read again */
  receive(bytes: Uint8Array, length: number, port: ReplyPort, together?: boolean): void;
  /**
   * For transports that hold many messages in one memory: answers a message at once if the same one was answered a moment ago, without a port. The reply is
   * written over the message. Absent while that does not happen.
   * @param words the memory, by the word of 32 bits as the machine has it; the message begins at the word `at`, and has room for {@link REPEATED_OCTETS}. Octets behind its end
   *   are anything
   * @param length of the message in octets
   * @param family of the client's address
   * @param together as above. It is true for {@link receive} behind this
   * @returns octets of the reply; 0 where the message is as it was, and to be received in the usual way
   */
  readonly repeat?:
    | ((words: Int32Array, at: number, length: number, family: 4 | 6, together: boolean) => number)
    | undefined;
}

/** What a reply that is given again has at the most: less than any datagram has room for. */
export const REPEATED_OCTETS = 512;

/** An open socket that receives messages. */
export interface Transport {
  readonly name: TransportName;
  readonly host: string;
  /** The real port, where port 0 was asked for. */
  readonly port: number;
  /**
   * Lets further sockets of this user, in this process or another, listen on the same address and take their part of the messages.
   * Absent, or false, where that had to be decided when the socket was opened, and was not.
   * @param on false: no more of them. Default true
   */
  share?(on?: boolean): boolean;
  /** Connections that have been accepted; absent for datagrams. */
  readonly accepted?: number;
  /** Leaves new connections to other sockets on the address, and otherwise to a later try, so that closing this one resets none. */
  holdBack?(): void;
  /** Told that another configuration is in force, where what it says is not asked for anew with each connection. */
  settingsChanged?(): void;
  /** Takes no new messages; those under way may still be answered. */
  pause(): void;
  /**
   * Takes no new connections, and answers on those that are open until they fall silent, or for `patience` milliseconds. Resolves when
   * the address is free. Absent where there are no connections: close it.
   */
  fadeOut?(patience: number): Promise<void>;
  /** Resolves when the last connection is gone that {@link fadeOut} has left open. */
  emptied?(): Promise<void>;
  /** Closes the socket and everything on it. */
  close(): Promise<void>;
}

/** Octets of the longest datagram: what an IPv4 packet has room for behind the headers of both. */
export const MAX_DATAGRAM_OCTETS = 65_507;

export interface ListenTarget {
  /** IP address. Empty, `0.0.0.0` and `::` all mean every address of both families, where the machine has both. */
  readonly host: string;
  readonly port: number;
}

/** An address that cannot be listened on. */
export class ListenError extends Error {
  override readonly name = "ListenError";
  readonly address: string;
  /** `EADDRINUSE`, `EACCES`, … */
  readonly code: string;

  /** @param reason in place of what the code says in general */
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
    "no right to bind this port: run as root, grant CAP_NET_BIND_SERVICE, or take a port above 1023 (-dns.port)",
  EADDRNOTAVAIL: "this machine has no such address",
  EAFNOSUPPORT: "this machine does not speak this address family",
};

/** The error code of a failed system call, or a name for anything else. */
export function errorCode(error: unknown): string {
  if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
  return "UNKNOWN";
}

/** `udp 127.0.0.1:53`, `tcp [::1]:53`, `udp :53`. */
export function formatListenAddress(transport: string, host: string, port: number): string {
  return `${transport} ${host.includes(":") ? `[${host}]` : host}:${port}`;
}
