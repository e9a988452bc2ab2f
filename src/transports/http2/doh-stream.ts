/** DNS over HTTP/2 (RFC 8484): one request, and the way back for its answer. */
import { copyOctets } from "../../dns/octets.ts";
import type { Reply } from "../../plugin/query/reply.ts";
import {
  type HttpQueriesOptions,
  isMessage,
  MAX_BODY,
  maxAge,
  readTarget,
  refusal,
} from "../http-queries.ts";
import type { ReplyPort } from "../transport.ts";
import { digitsOf, encodeFields, writeDigits } from "./hpack-encoder.ts";
import { FRAME_HEAD, FrameFlag, FrameType, writeFrameHead } from "./http2-frames.ts";
import { Http2Stream, type StreamHome } from "./http2-stream.ts";
import type { RequestHead } from "./request-head.ts";

/** State shared by the streams of a listener. */
export class DohRequests {
  readonly options: HttpQueriesOptions;
  /** Messages of GET requests are decoded into this buffer and lent to the receiver. */
  readonly message = new Uint8Array(MAX_BODY);
  readonly #refusals = new Map<number, { readonly block: Uint8Array; readonly body: Uint8Array }>();

  constructor(options: HttpQueriesOptions) {
    this.options = options;
  }

  refusal(status: number): { readonly block: Uint8Array; readonly body: Uint8Array } {
    const known = this.#refusals.get(status);
    if (known !== undefined) return known;
    const { headers, body } = refusal(status);
    const fields = Object.entries({ ...headers, "content-length": body.length });
    const made = { block: encodeFields([[":status", status], ...fields]), body };
    this.#refusals.set(status, made);
    return made;
  }
}

const GET_TARGET = Buffer.from("/dns-query?dns=", "latin1");
const POST_TARGET = Buffer.from("/dns-query", "latin1");
const TOO_LARGE = 431;

/** `:status: 200`, `content-type`, and the name of `content-length`. */
const OK_BEGINNING = Uint8Array.from([
  ...encodeFields([
    [":status", 200],
    ["content-type", "application/dns-message"],
  ]),
  ...encodeFields([["content-length", ""]]).subarray(0, 2),
]);
/** The name of `cache-control`; the length of the value and the value follow. */
const CACHE_CONTROL = encodeFields([["cache-control", ""]]).subarray(0, 2);
const MAX_AGE = Buffer.from("max-age=", "latin1");
/** Reserved digits of length and age beyond those of the first guess: five, and those of 32 bits. */
const MORE_DIGITS = 5 + 10;
/** Octets of a header without digits. */
const OK_OCTETS = OK_BEGINNING.length + 1 + CACHE_CONTROL.length + 1 + MAX_AGE.length;

export class DohStream extends Http2Stream implements ReplyPort {
  protected readonly maxBody = MAX_BODY;
  readonly #requests: DohRequests;
  #octets: Uint8Array = NO_OCTETS;
  #maxAge = 0;
  #isHead = false;
  /** Start of the response in the output, and the estimated length of its header. */
  #at = 0;
  #header = 0;

  constructor(home: StreamHome, id: number, requests: DohRequests) {
    super(home, id);
    this.#requests = requests;
  }

  begin(head: RequestHead): void {
    this.#isHead = head.method === "HEAD";
    if (head.isTooLarge) {
      this.refuse(TOO_LARGE);
      return;
    }
    this.joinTrace(head);
    const { path, pathStart, pathEnd } = head;
    if (head.method === "POST" && isText(path, pathStart, pathEnd, POST_TARGET)) {
      if (this.isWhole) this.refused(400);
      return;
    }
    const { message } = this.#requests;
    const octets = head.method === "GET" ? decodeTarget(path, pathStart, pathEnd, message) : 0;
    if (octets > 0) {
      if (this.isWhole) this.#ask(message, octets);
      else this.standForBody(message.subarray(0, octets));
      return;
    }
    const wanted = readTarget(head.method, head.pathText);
    if (wanted.kind === "refused") this.refuse(wanted.status);
    else if (wanted.kind === "message") this.standForBody(wanted.message);
    else if (this.isWhole) this.refused(400);
  }

  keep(): ReplyPort {
    return this;
  }

  describe(reply: Reply): void {
    this.#maxAge = maxAge(reply, this.#requests.options.wallTime());
  }

  /** Directly after the header's room in the output, unless the body cannot be sent at once. */
  buffer(size: number): Uint8Array {
    const { output, beginning } = this.home.sender;
    this.#header = beginning + OK_OCTETS + digitsOf(size) + digitsOf(this.#maxAge);
    const heads = FRAME_HEAD + this.#header + FRAME_HEAD;
    this.#at = output.room(heads + size + MORE_DIGITS);
    this.#octets = output.octets.subarray(this.#at + heads, this.#at + heads + size);
    return this.#octets;
  }

  send(length: number): void {
    const { home } = this;
    const octets = this.#octets;
    this.#octets = NO_OCTETS;
    if (!home.settled(this)) return;
    this.#requests.options.onResponse?.(200);
    const { sender } = home;
    if (sender.hasWindow(this, length)) {
      this.#writeInPlace(length);
      return;
    }
    const block = new Uint8Array(OK_OCTETS + digitsOf(length) + digitsOf(this.#maxAge));
    this.#writeHeader(block, 0, length);
    // The output is written to before the body, which lies in it.
    home.respond(this, block, copyOctets(octets, 0, length));
  }

  drop(): void {
    if (this.home.settled(this)) this.refused(500);
  }

  reject(): void {
    if (this.home.settled(this)) this.refused(400);
  }

  protected whole(body: Uint8Array): void {
    this.#ask(body, body.length);
  }

  protected tooLong(): void {
    this.refused(400);
  }

  protected refused(status: number): void {
    if (!this.isOpen) return;
    this.#requests.options.onResponse?.(status);
    const { block, body } = this.#requests.refusal(status);
    // A response to HEAD has the header of one to GET, and no content (RFC 9110 section 9.3.2).
    this.home.respond(this, block, this.#isHead ? NO_OCTETS : body);
  }

  #ask(message: Uint8Array, length: number): void {
    if (!isMessage(message, length)) {
      this.refused(400);
      return;
    }
    this.home.asked(this);
    this.#requests.options.receiver.receive(message, length, this);
  }

  #writeInPlace(length: number): void {
    const { sender } = this.home;
    const { octets } = sender.output;
    const header = sender.beginning + OK_OCTETS + digitsOf(length) + digitsOf(this.#maxAge);
    let at = writeFrameHead(octets, this.#at, header, FrameType.HEADERS, FrameFlag.END_HEADERS, this.id);
    const body = at + header + FRAME_HEAD;
    const written = at + this.#header + FRAME_HEAD;
    if (body !== written) octets.copyWithin(body, written, written + length);
    at = this.#writeHeader(octets, sender.writeBeginning(octets, at), length);
    writeFrameHead(octets, at, length, FrameType.DATA, FrameFlag.END_STREAM, this.id);
    sender.wrote(this, body + length, length);
  }

  /** @returns its end */
  #writeHeader(out: Uint8Array, start: number, length: number): number {
    const lengthDigits = digitsOf(length);
    const ageDigits = digitsOf(this.#maxAge);
    out.set(OK_BEGINNING, start);
    let at = start + OK_BEGINNING.length;
    out[at++] = lengthDigits;
    at = writeDigits(out, at, length, lengthDigits);
    out.set(CACHE_CONTROL, at);
    at += CACHE_CONTROL.length;
    out[at++] = MAX_AGE.length + ageDigits;
    out.set(MAX_AGE, at);
    return writeDigits(out, at + MAX_AGE.length, this.#maxAge, ageDigits);
  }
}

const NO_OCTETS = new Uint8Array(0);

function isText(octets: Uint8Array, start: number, end: number, text: Uint8Array): boolean {
  if (end - start !== text.length) return false;
  for (let at = 0; at < text.length; at++) if (octets[start + at] !== text[at]) return false;
  return true;
}

/** The value of each base64url digit; 64 for all other octets. */
const DIGITS = base64urlDigits();

function base64urlDigits(): Uint8Array {
  const digits = new Uint8Array(256).fill(64);
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (let digit = 0; digit < alphabet.length; digit++) digits[alphabet.charCodeAt(digit)] = digit;
  return digits;
}

/**
 * Decodes the message of the usual request target: the path with only `dns` as its query.
 * @returns its octets; 0 for any other target, valid or not
 */
function decodeTarget(path: Uint8Array, start: number, end: number, out: Uint8Array): number {
  const first = start + GET_TARGET.length;
  const digits = end - first;
  if (digits <= 0 || digits % 4 === 1 || !isText(path, start, first, GET_TARGET)) return 0;
  let written = 0;
  let bits = 0;
  let have = 0;
  for (let at = first; at < end; at++) {
    const digit = DIGITS[path[at] as number] as number;
    if (digit === 64) return 0;
    bits = (bits << 6) | digit;
    have += 6;
    if (have < 8) continue;
    have -= 8;
    out[written++] = bits >>> have;
    bits &= 0xff;
  }
  return written;
}
