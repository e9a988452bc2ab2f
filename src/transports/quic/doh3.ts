/** DNS over HTTP/3 (RFC 8484 over RFC 9114): requests and responses. */
import { HttpQueries, type HttpResponse, readTarget } from "../http-queries.ts";
import { withTraceHeaders } from "../traced-endpoint.ts";
import type { ListenTarget, MessageReceiver } from "../transport.ts";
import { frame, H3Frame } from "./h3-frames.ts";
import { unpackRequest } from "./h3-handover.ts";
import { encodeFields } from "./qpack.ts";
import {
  listenQuic,
  type QuicClient,
  type QuicListenOptions,
  type QuicReplies,
  type QuicTransport,
} from "./quic-transport.ts";
import { Order } from "./record-kinds.ts";

export interface Doh3Options extends Omit<QuicListenOptions, "name" | "speech" | "onRequest"> {
  /** Called for each response. */
  readonly onResponse: (status: number) => void;
}

/**
 * Opens a UDP socket and hands the messages of all requests to `receiver`.
 * @throws ListenError, QuicUnavailable
 */
export function listenDoh3(
  target: ListenTarget,
  receiver: MessageReceiver,
  options: Doh3Options,
): Promise<QuicTransport> {
  const { clock, onResponse } = options;
  const queries = new HttpQueries({ receiver, wallTime: () => clock.wallTime(), onResponse });
  return listenQuic(target, {
    ...options,
    name: "https3",
    speech: "h3",
    onRequest(client, stream, payload, replies) {
      const { method, path, trace, body } = unpackRequest(payload);
      const response = new Http3Response(client, stream, replies);
      const wanted = readTarget(method, path);
      const endpoint = trace === undefined ? client.endpoint : withTraceHeaders(client.endpoint, trace);
      if (wanted.kind === "refused") queries.refuse(wanted.status, response);
      else if (wanted.kind === "message") queries.ask(wanted.message, endpoint, replies.local, response);
      else if (body === undefined) queries.refuse(400, response);
      else queries.ask(body, endpoint, replies.local, response);
    },
  });
}

class Http3Response implements HttpResponse {
  isOpen = true;
  readonly #client: QuicClient;
  readonly #stream: number;
  readonly #replies: QuicReplies;

  constructor(client: QuicClient, stream: number, replies: QuicReplies) {
    this.#client = client;
    this.#stream = stream;
    this.#replies = replies;
  }

  write(status: number, headers: Readonly<Record<string, string | number>>, body: Uint8Array): void {
    this.isOpen = false;
    const fields = Object.entries({ ":status": status, ...headers }).map(([name, value]) => ({
      name,
      value: String(value),
    }));
    const octets = Buffer.concat([frame(H3Frame.HEADERS, encodeFields(fields)), frame(H3Frame.DATA, body)]);
    this.#replies.order(Order.ANSWER, this.#client, this.#stream, octets);
  }
}
