/** One request of HTTP/2 and its response: the part that does not depend on what is asked. */

import { copyOctets } from "../../dns/octets.ts";
import type { Endpoint } from "../../plugin/message/endpoint.ts";
import type { ByteStream } from "../byte-stream-server.ts";
import { withTraceHeaders } from "../traced-endpoint.ts";
import type { FrameSender, SendingStream } from "./frame-sender.ts";
import type { RequestHead } from "./request-head.ts";

/** Octets of a body that a client may send before it is heard: more than the longest of ours. */
export const STREAM_WINDOW = 80 * 1024;

/** What becomes of a part of the body: it is kept, or passed over until the last one comes, or passed over for good. */
const BodyUse = { KEPT: 0, COUNTED: 1, IGNORED: 2 } as const;

/** The connection of a stream. */
export interface StreamHome {
  readonly stream: ByteStream;
  readonly sender: FrameSender<Http2Stream>;
  /** When a request that begins now has to be whole, by the clock. */
  readonly requestDeadline: number;
  /** What the client takes on a new stream. */
  readonly streamSendWindow: number;
  /** The message of a stream goes to the receiver: the query may take its time. */
  asked(stream: Http2Stream): void;
  /** The receiver has settled the message of a stream. @returns whether there is anybody to answer */
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
  /** False once the client, or the session, has given it up, or the response has been sent: nothing more is written on it. */
  isOpen = true;
  /** The client has sent all that it will. */
  isWhole = false;
  /** A message of it is with the receiver, which will settle it. */
  isAsked = false;
  /** When it has to be done, by the clock. */
  deadline: number;
  sendWindow: number;
  /** What the client may still send on it. */
  receiveWindow = STREAM_WINDOW;
  unsent: Uint8Array | undefined;
  trailers: Uint8Array | undefined;
  #client: Endpoint;
  #expected = -1;
  #received = 0;
  /** What is kept of the body. */
  #parts: Uint8Array[] = [];
  #held = 0;
  #bodyUse: (typeof BodyUse)[keyof typeof BodyUse] = BodyUse.KEPT;
  /** The status of a response that waits for the end of the request, 0 for none. */
  #refusal = 0;

  constructor(home: StreamHome, id: number) {
    this.home = home;
    this.id = id;
    this.deadline = home.requestDeadline;
    this.sendWindow = home.streamSendWindow;
    this.#client = home.stream.client;
  }

  /** Who asks, and which trace the request belongs to. */
  get client(): Endpoint {
    return this.#client;
  }

  get local(): Endpoint {
    return this.home.stream.local;
  }

  /** The header has come. It answers, or waits for {@link whole}. */
  abstract begin(head: RequestHead): void;
  /** The body has come, or what stands for it. It is lent. */
  protected abstract whole(body: Uint8Array): void;
  /** More has come than any message has, or than there is room for. */
  protected abstract tooLong(beginning: Uint8Array): void;
  /** Sends a response of this status. */
  protected abstract refused(status: number): void;
  protected abstract readonly maxBody: number;

  protected joinTrace({ trace }: RequestHead): void {
    if (trace !== undefined) this.#client = withTraceHeaders(this.#client, trace);
  }

  /**
   * Refuses a request once it is whole, or too long. Until then the client may still break the rules of HTTP/2, and hears of that instead.
   */
  protected refuse(status: number): void {
    this.#refusal = status;
    this.#bodyUse = BodyUse.COUNTED;
    if (this.isWhole) this.refused(status);
  }

  /** The header has the whole message, which is lent. It takes the place of the body, if there is one. */
  protected standForBody(message: Uint8Array): void {
    if (this.isWhole) this.whole(message);
    else if (this.#keep(message)) this.#bodyUse = BodyUse.COUNTED;
    else this.refuse(400);
  }

  /** @param length of the body, -1 where the client did not say */
  expect(length: number): void {
    this.#expected = length;
  }

  /**
   * A part of the body, which is lent.
   * @returns false where it is not of the length that the header says (RFC 9113 section 8.1.1)
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

  /** Lets go of what is kept of the body. */
  dropBody(): void {
    this.#parts = [];
    if (this.#held > 0) this.home.sender.keep(-this.#held);
    this.#held = 0;
  }

  /** @returns false where clients have too much kept already */
  #keep(octets: Uint8Array): boolean {
    if (octets.length === 0) return true;
    if (!this.home.sender.keep(octets.length)) return false;
    this.#parts.push(copyOctets(octets, 0, octets.length));
    this.#held += octets.length;
    return true;
  }
}
