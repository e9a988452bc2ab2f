/** The used fields of one request's header. One object serves all requests of a listener, one after the other. */
import type { TraceHeaders } from "../../plugin/message/endpoint.ts";
import { TRACE_CONTEXT_HEADERS } from "../../plugin/message/trace-context.ts";
import { type FieldSink, MAX_BLOCK } from "./hpack-decoder.ts";
import { FieldName } from "./hpack-fields.ts";

const NO_OCTETS = new Uint8Array(0);
/** Maximum header list, counted as in RFC 9113 section 6.5.2. */
export const MAX_HEADER_LIST = MAX_BLOCK;

export class RequestHead implements FieldSink {
  /** Empty before {@link reset} and for a request without one. */
  method = "";
  /** Valid while the request begins. */
  path: Uint8Array = NO_OCTETS;
  pathStart = 0;
  pathEnd = 0;
  contentType = "";
  /** Octets of the body; -1 if the request does not say. */
  contentLength = -1;
  /** Trace headers of the request. */
  trace: TraceHeaders | undefined;
  #size = 0;
  #isMalformed = false;
  #isInFields = false;
  #hasPath = false;
  #hasScheme = false;
  #hasAuthority = false;

  reset(): void {
    this.method = "";
    this.path = NO_OCTETS;
    this.pathStart = 0;
    this.pathEnd = 0;
    this.contentType = "";
    this.contentLength = -1;
    this.trace = undefined;
    this.#size = 0;
    this.#isMalformed = false;
    this.#isInFields = false;
    this.#hasPath = false;
    this.#hasScheme = false;
    this.#hasAuthority = false;
  }

  /** Whether these fields may be trailers, without any pseudo-header (RFC 9113 section 8.1). */
  get isTrailers(): boolean {
    return !(
      this.#isMalformed ||
      this.method !== "" ||
      this.#hasPath ||
      this.#hasScheme ||
      this.#hasAuthority
    );
  }

  /** Whether this is a valid request (RFC 9113 sections 8.2 and 8.3). */
  get isRequest(): boolean {
    if (this.#isMalformed || this.method === "") return false;
    return this.method === "CONNECT" || (this.#hasPath && this.pathEnd > this.pathStart && this.#hasScheme);
  }

  get isTooLarge(): boolean {
    return this.#size > MAX_HEADER_LIST;
  }

  get pathText(): string {
    return latin1(this.path, this.pathStart, this.pathEnd);
  }

  field(name: number, octets: Uint8Array, start: number, end: number, size: number): void {
    this.#size += size;
    switch (name) {
      case FieldName.OTHER:
        break;
      case FieldName.METHOD:
        this.#pseudo(this.method !== "");
        this.method = methodText(octets, start, end);
        return;
      case FieldName.PATH:
        this.#pseudo(this.#hasPath);
        this.#hasPath = true;
        this.path = octets;
        this.pathStart = start;
        this.pathEnd = end;
        return;
      case FieldName.SCHEME:
        this.#pseudo(this.#hasScheme);
        this.#hasScheme = true;
        return;
      case FieldName.AUTHORITY:
        this.#pseudo(this.#hasAuthority);
        this.#hasAuthority = true;
        return;
      case FieldName.CONTENT_LENGTH:
        this.#readLength(octets, start, end);
        break;
      case FieldName.CONTENT_TYPE:
        this.contentType = latin1(octets, start, end);
        break;
      case FieldName.TE:
        if (latin1(octets, start, end) !== "trailers") this.#isMalformed = true;
        break;
      case FieldName.FORBIDDEN:
        this.#isMalformed = true;
        break;
      default:
        this.#noteTrace(TRACE_CONTEXT_HEADERS[name - FieldName.TRACE], octets, start, end);
    }
    this.#isInFields = true;
  }

  #pseudo(isThere: boolean): void {
    if (isThere || this.#isInFields) this.#isMalformed = true;
  }

  #readLength(octets: Uint8Array, start: number, end: number): void {
    let value = 0;
    for (let at = start; at < end; at++) {
      const digit = (octets[at] as number) - 0x30;
      if (digit < 0 || digit > 9) this.#isMalformed = true;
      value = value * 10 + digit;
    }
    if (end === start || (this.contentLength >= 0 && this.contentLength !== value)) this.#isMalformed = true;
    this.contentLength = value;
  }

  #noteTrace(name: string | undefined, octets: Uint8Array, start: number, end: number): void {
    if (name === undefined || this.isTooLarge) return;
    this.trace = { ...this.trace, [name]: latin1(octets, start, end) };
  }
}

function methodText(octets: Uint8Array, start: number, end: number): string {
  if (end - start === 3 && octets[start] === 0x47 && octets[start + 1] === 0x45 && octets[start + 2] === 0x54)
    return "GET";
  return latin1(octets, start, end);
}

function latin1(octets: Uint8Array, start: number, end: number): string {
  return Buffer.from(octets.buffer, octets.byteOffset + start, end - start).toString("latin1");
}
