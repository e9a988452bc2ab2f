/** One HTTP/2 request and its response: the part that does not depend on the content. */

import { copyOctets } from "../../dns/octets.ts";
import type { Endpoint } from "../../plugin/message/endpoint.ts";
import type { ByteStream } from "../byte-stream-server.ts";
import { withTraceHeaders } from "../traced-endpoint.ts";
import type { FrameSender, SendingStream } from "./frame-sender.ts";
import type { RequestHead } from "./request-head.ts";

/** Initial receive window of a stream: more than our longest body. */
export const STREAM_WINDOW = 80 * 1024;

/** Use of body data: kept, counted until the last part, or ignored. */
const BodyUse = { KEPT: 0, COUNTED: 1, IGNORED: 2 } as const;

/** The connection of a stream. */
export interface StreamHome {
  readonly stream: ByteStream;
  readonly sender: FrameSender<Http2Stream>;
  /** Deadline of a request that begins now, on the clock. */
  readonly requestDeadline: number;
  /** Send window of a new stream. */
  readonly streamSendWindow: number;
  /** The message of a stream goes to the receiver: the query may take any time. */
  asked(stream: Http2Stream): void;
  /** The receiver has settled the message of a stream. @returns whether the stream can still be answered */
  settled(stream: Http2Stream): boolean;
  /**
   * Sends a response, unless the client has given up.
   * @param block header block, as are `trailers`
   * @param body may be lent
   */
  respond(stream: Http2Stream, block: Uint8Array, body: Uint8Array, trailers?: Uint8Array): void;
}

export abstract class Http2Stream implements SendingStream {
  readonly id: number;
  readonly home: StreamHome;
  /** The next one in the same chain of the session's table. */
  next: Http2Stream | undefined;
  /** False once the client or the session has reset it, or the response has been sent: nothing more is written on it. */
  isOpen = true;
  /** The client has sent END_STREAM. */
  isWhole = false;
  /** The receiver has a message of it to settle. */
  isAsked = false;
  /** Its deadline on the clock. */
  deadline: number;
  sendWindow: number;
  /** Octets that the client may still send on it. */
  receiveWindow = STREAM_WINDOW;
  unsent: Uint8Array | undefined;
  trailers: Uint8Array | undefined;
  #client: Endpoint;
  #expected = -1;
  #received = 0;
  /** The kept parts of the body. */
  #parts: Uint8Array[] = [];
  #held = 0;
  #bodyUse: (typeof BodyUse)[keyof typeof BodyUse] = BodyUse.KEPT;
  /** Status of a response that waits for the end of the request, 0 for none. */
  #refusal = 0;

  constructor(home: StreamHome, id: number) {
    this.home = home;
    this.id = id;
    this.deadline = home.requestDeadline;
    this.sendWindow = home.streamSendWindow;
    this.#client = home.stream.client;
  }

  /** The client, and the trace of the request. */
  get client(): Endpoint {
    return this.#client;
  }

  get local(): Endpoint {
    return this.home.stream.local;
  }

  /** The header has arrived. Answers, or waits for {@link whole}. */
  abstract begin(head: RequestHead): void;
  /** The body, or its replacement, has arrived. It is lent. */
  protected abstract whole(body: Uint8Array): void;
  /** The body is longer than any message, or than there is room for. */
  protected abstract tooLong(beginning: Uint8Array): void;
  /** Sends a response with this status. */
  protected abstract refused(status: number): void;
  protected abstract readonly maxBody: number;

  protected joinTrace({ trace }: RequestHead): void {
    if (trace !== undefined) this.#client = withTraceHeaders(this.#client, trace);
  }

  /** Refuses a request once it is whole, or too long. Until then, errors of HTTP/2 take precedence. */
  protected refuse(status: number): void {
    this.#refusal = status;
    this.#bodyUse = BodyUse.COUNTED;
    if (this.isWhole) this.refused(status);
  }

  /** The header has the whole message, which is lent. It replaces the body, if there is one. */
  protected standForBody(message: Uint8Array): void {
    if (this.isWhole) this.whole(message);
    else if (this.#keep(message)) this.#bodyUse = BodyUse.COUNTED;
    else this.refuse(400);
  }

  /** @param length of the body, -1 if unknown */
  expect(length: number): void {
    this.#expected = length;
  }

  /**
   * A part of the body, which is lent.
   * @returns false if the length differs from the header's (RFC 9113 section 8.1.1)
   */
  take(octets: Uint8Array, isLast: boolean): boolean {
    this.#received += octets.length;
    if (isLast) this.isWhole = true;
    if (this.#expected >= 0 && (isLast ? this.#received !== this.#expected : this.#received > this.#expected))
      return false;
    if (!this.isOpen || this.#bodyUse === BodyUse.IGNORED) return true;
    const isTooLong = this.#received > this.maxBody;
    const isKept = isLast || isTooLong || this.#bodyUse === BodyUse.COUNTED || this.#keep(octets);
    if (!isLast && !isTooLong && isKept) return true;
    const parts = this.#parts;
    if (isLast && this.#bodyUse === BodyUse.KEPT && parts.length > 0) parts.push(octets);
    this.#bodyUse = BodyUse.IGNORED;
    this.dropBody();
    if (this.#refusal > 0) this.refused(this.#refusal);
    else if (isTooLong || !isKept) this.tooLong(parts[0] ?? octets);
    else if (parts.length === 0) this.whole(octets);
    else this.whole(parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts));
    return true;
  }

  /** Releases the kept parts of the body. */
  dropBody(): void {
    this.#parts = [];
    if (this.#held > 0) this.home.sender.keep(-this.#held);
    this.#held = 0;
  }

  /** @returns false if clients already have too many octets kept */
  #keep(octets: Uint8Array): boolean {
    if (octets.length === 0) return true;
    if (!this.home.sender.keep(octets.length)) return false;
    this.#parts.push(copyOctets(octets, 0, octets.length));
    this.#held += octets.length;
    return true;
  }
}
