/** DNS over QUIC (RFC 9250): messages of streams, and their answers. */
import type { Endpoint } from "../../plugin/message/endpoint.ts";
import { codeOctets } from "../../quic/records.ts";
import type { ListenTarget, MessageReceiver, ReplyPort } from "../transport.ts";
import { DoqCode } from "./doq-connection.ts";
import { hasKeepalive } from "./keepalive.ts";
import {
  listenQuic,
  type QuicClient,
  type QuicListenOptions,
  type QuicReplies,
  type QuicTransport,
} from "./quic-transport.ts";
import { Order } from "./record-kinds.ts";

export interface DoqOptions extends Omit<QuicListenOptions, "name" | "speech" | "onRequest" | "counters"> {
  readonly counters: Omit<QuicListenOptions["counters"], "protocolError">;
  /** Called for each answer, and for each connection closed for its client's fault, with the code (RFC 9250 section 4.3). */
  readonly onResponse: (code: number) => void;
}

/**
 * Opens a UDP socket and hands the messages of all streams to `receiver`.
 * @throws ListenError, QuicUnavailable
 */
export function listenDoq(
  target: ListenTarget,
  receiver: MessageReceiver,
  options: DoqOptions,
): Promise<QuicTransport> {
  const { onResponse, counters } = options;
  return listenQuic(target, {
    ...options,
    name: "quic",
    speech: "doq",
    counters: { ...counters, protocolError: () => onResponse(DoqCode.PROTOCOL_ERROR) },
    onRequest(client, stream, message, replies) {
      const port = new DoqReplyPort(client, stream, replies, onResponse);
      // Unlike on other transports, a reply in place of a query is an error: its sender does not follow the protocol.
      if (((message[2] as number) & 0x80) !== 0 || hasKeepalive(message)) port.reject();
      else receiver.receive(message, message.length, port);
    },
  });
}

class DoqReplyPort implements ReplyPort {
  readonly #client: QuicClient;
  readonly #stream: number;
  readonly #replies: QuicReplies;
  readonly #onResponse: (code: number) => void;
  #octets: Uint8Array = NO_OCTETS;

  constructor(client: QuicClient, stream: number, replies: QuicReplies, onResponse: (code: number) => void) {
    this.#client = client;
    this.#stream = stream;
    this.#replies = replies;
    this.#onResponse = onResponse;
  }

  get client(): Endpoint {
    return this.#client.endpoint;
  }

  get local(): Endpoint {
    return this.#replies.local;
  }

  keep(): ReplyPort {
    return this;
  }

  buffer(size: number): Uint8Array {
    this.#octets = Buffer.allocUnsafe(2 + size);
    return this.#octets.subarray(2);
  }

  send(length: number): void {
    const octets = this.#octets;
    octets[0] = length >>> 8;
    octets[1] = length;
    this.#onResponse(DoqCode.NO_ERROR);
    this.#replies.order(Order.ANSWER, this.#client, this.#stream, octets.subarray(0, 2 + length));
  }

  drop(): void {
    this.#onResponse(DoqCode.INTERNAL_ERROR);
    this.#replies.order(Order.RESET, this.#client, this.#stream, codeOctets(DoqCode.INTERNAL_ERROR));
  }

  reject(): void {
    this.#replies.order(Order.CLOSE, this.#client, this.#stream, codeOctets(DoqCode.PROTOCOL_ERROR));
  }
}

const NO_OCTETS = new Uint8Array(0);
