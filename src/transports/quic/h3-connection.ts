/** The server side of HTTP/3 connections (RFC 9114), as far as DNS needs it: no dynamic table, no push. */
import { GatheredOctets } from "../../lib/collections/gathered-octets.ts";
import type { QuicStream, QuicStreamUser } from "../../quic/quic.ts";
import { MAX_BODY } from "../http-queries.ts";
import {
  frame,
  H2_FRAMES,
  H3Code,
  H3Frame,
  Http3FrameReader,
  type Http3FrameUser,
  readVarint,
  varint,
} from "./h3-frames.ts";
import { packRequest } from "./h3-handover.ts";
import { type RequestLine, readRequestLine } from "./h3-request-line.ts";
import { decodeFields, QpackError } from "./qpack.ts";
import {
  type CloseCodes,
  type ConnectionHome,
  ServedConnection,
  type ServedStream,
} from "./served-connection.ts";

/** Octets of the header of a request. */
const MAX_HEADER = 16 * 1024;
const MAX_FIELD_SECTION_SIZE = 6;
/** Of unidirectional streams (RFC 9114 section 6.2, RFC 9204 section 4.2). */
const StreamType = { CONTROL: 0, PUSH: 1, QPACK_ENCODER: 2, QPACK_DECODER: 3 } as const;

const SETTINGS = Uint8Array.from([...varint(MAX_FIELD_SECTION_SIZE), ...varint(MAX_HEADER)]);

export class H3Connection extends ServedConnection {
  readonly codes: CloseCodes = {
    none: H3Code.NO_ERROR,
    internal: H3Code.INTERNAL_ERROR,
    excessiveLoad: H3Code.EXCESSIVE_LOAD,
  };
  readonly #peerStreams = new Set<number>();
  #control: QuicStream | undefined;
  #nextRequest = 0;

  override connected(): void {
    super.connected();
    this.#control = this.connection.openStream(true, DEAF);
    this.#control?.write(
      Buffer.concat([Uint8Array.of(StreamType.CONTROL), frame(H3Frame.SETTINGS, SETTINGS)]),
      false,
    );
  }

  /** @returns false if the client already has such a stream */
  claim(type: number): boolean {
    if (this.#peerStreams.has(type)) return false;
    this.#peerStreams.add(type);
    return true;
  }

  protected listen(_stream: QuicStream): QuicStreamUser {
    return new PeerStream(this);
  }

  protected begin(stream: QuicStream): ServedStream {
    this.#nextRequest = Math.max(this.#nextRequest, stream.id + 4);
    return new H3Request(this, stream, this.home);
  }

  protected override sayGoodbye(): void {
    this.#control?.write(frame(H3Frame.GOAWAY, Uint8Array.from(varint(this.#nextRequest % 2 ** 30))), false);
  }
}

const DEAF: QuicStreamUser = { received: () => undefined, lost: () => undefined };

/** A unidirectional stream of the client: its type comes first. */
class PeerStream implements QuicStreamUser {
  readonly #connection: H3Connection;
  #head: Uint8Array = NO_OCTETS;
  #type: number | undefined;
  #frames: Http3FrameReader | undefined;
  /** The next octet continues an instruction of QPACK. */
  #isInInstruction = false;

  constructor(connection: H3Connection) {
    this.#connection = connection;
  }

  received(octets: Uint8Array, isLast: boolean): void {
    let rest = octets;
    if (this.#type === undefined) {
      const head = this.#head.length === 0 ? octets : Buffer.concat([this.#head, octets]);
      const type = readVarint(head, 0);
      if (type === undefined) {
        this.#head = Uint8Array.from(head);
        return;
      }
      this.#type = type;
      rest = head.subarray(1 << ((head[0] as number) >> 6));
      if (!this.#begin(type)) return;
    }
    if (rest.length > 0 && !this.#take(rest)) return;
    if (isLast && this.#type <= StreamType.QPACK_DECODER)
      this.#connection.violate(H3Code.CLOSED_CRITICAL_STREAM, "control stream ends");
  }

  lost(): void {
    if ((this.#type ?? StreamType.QPACK_DECODER + 1) <= StreamType.QPACK_DECODER)
      this.#connection.violate(H3Code.CLOSED_CRITICAL_STREAM, "control stream ends");
  }

  #begin(type: number): boolean {
    // Streams of unknown types are ignored.
    if (type > StreamType.QPACK_DECODER) return true;
    if (type === StreamType.PUSH || !this.#connection.claim(type)) {
      this.#connection.violate(H3Code.STREAM_CREATION_ERROR, "no stream of this type expected");
      return false;
    }
    if (type === StreamType.CONTROL) this.#frames = new Http3FrameReader(new ControlFrames(this.#connection));
    return true;
  }

  #take(octets: Uint8Array): boolean {
    switch (this.#type) {
      case StreamType.CONTROL:
        this.#frames?.take(octets);
        break;
      case StreamType.QPACK_ENCODER:
        // The only valid instruction for an absent table is "Set Dynamic Table Capacity" to 0.
        if (octets.some((octet) => octet !== 0x20))
          this.#connection.violate(H3Code.ENCODER_STREAM_ERROR, "there is no dynamic table");
        break;
      case StreamType.QPACK_DECODER:
        if (!this.#areCancellations(octets))
          this.#connection.violate(H3Code.DECODER_STREAM_ERROR, "there is no dynamic table");
    }
    return this.#connection.connection.isOpen;
  }

  /** Only stream cancellations are valid (RFC 9204 section 4.4.2): we send nothing that could be acknowledged. */
  #areCancellations(octets: Uint8Array): boolean {
    for (const octet of octets) {
      if (this.#isInInstruction) this.#isInInstruction = (octet & 0x80) !== 0;
      else if ((octet & 0xc0) !== 0x40) return false;
      else this.#isInInstruction = octet === 0x7f;
    }
    return true;
  }
}

/** The client's control stream: settings first. Nothing on it changes our behaviour. */
class ControlFrames implements Http3FrameUser {
  readonly #connection: H3Connection;
  #hasSettings = false;

  constructor(connection: H3Connection) {
    this.#connection = connection;
  }

  begin(type: number, length: number): boolean {
    const isSettings = type === H3Frame.SETTINGS;
    if (!this.#hasSettings && !isSettings) return this.#violate(H3Code.MISSING_SETTINGS, "no settings");
    if (
      (this.#hasSettings && isSettings) ||
      H2_FRAMES.has(type) ||
      type === H3Frame.DATA ||
      type === H3Frame.HEADERS ||
      type === H3Frame.PUSH_PROMISE
    )
      return this.#violate(H3Code.FRAME_UNEXPECTED, `frame ${type} on the control stream`);
    if (length > MAX_HEADER) return this.#violate(H3Code.EXCESSIVE_LOAD, "frame too long");
    this.#hasSettings = true;
    return true;
  }

  payload(): boolean {
    return true;
  }

  #violate(code: number, reason: string): boolean {
    this.#connection.violate(code, reason);
    return false;
  }
}

/** One request. */
class H3Request implements ServedStream, Http3FrameUser {
  readonly stream: QuicStream;
  readonly since: number;
  isAsked = false;
  readonly #connection: H3Connection;
  readonly #home: ConnectionHome;
  readonly #frames = new Http3FrameReader(this);
  /** The received part of the header, and later of the body. */
  #gathered = new GatheredOctets();
  #held = 0;
  #type = -1;
  #line: RequestLine | undefined;
  #hasTrailers = false;
  #isOver = false;

  constructor(connection: H3Connection, stream: QuicStream, home: ConnectionHome) {
    this.#connection = connection;
    this.stream = stream;
    this.#home = home;
    this.since = home.now();
  }

  received(octets: Uint8Array, isLast: boolean): void {
    if (this.#isOver) return;
    if (octets.length > 0) this.#frames.take(octets);
    if (!isLast || this.#isOver) return;
    if (!this.#frames.isBetweenFrames) this.#violate(H3Code.FRAME_ERROR, "stream ends within a frame");
    else if (this.#line === undefined) this.#give(H3Code.REQUEST_INCOMPLETE);
    else if ((this.#line.contentLength ?? this.#gathered.length) !== this.#gathered.length)
      this.#give(H3Code.MESSAGE_ERROR);
    else this.#ask(this.#line, this.#gathered.octets);
  }

  lost(): void {
    this.#connection.forget(this);
  }

  end(): void {
    this.#isOver = true;
    this.#home.letGo(this.#held);
    this.#held = 0;
    this.#gathered = new GatheredOctets();
  }

  begin(type: number, length: number): boolean {
    this.#type = type;
    const isKnown = type <= H3Frame.GOAWAY || type === H3Frame.MAX_PUSH_ID;
    if (!isKnown) return true;
    const isExpected =
      (type === H3Frame.HEADERS && !this.#hasTrailers) ||
      (type === H3Frame.DATA && this.#line !== undefined && !this.#hasTrailers);
    if (!isExpected) return this.#violate(H3Code.FRAME_UNEXPECTED, `frame ${type} in a request`);
    if (type === H3Frame.HEADERS && length > MAX_HEADER) return this.#give(H3Code.EXCESSIVE_LOAD);
    if (type === H3Frame.HEADERS && this.#line !== undefined) this.#hasTrailers = true;
    return true;
  }

  payload(octets: Uint8Array, isEnd: boolean): boolean {
    if (this.#type === H3Frame.DATA) return this.#body(octets);
    // Trailers, and frames of other types, have no meaning here.
    if (this.#type !== H3Frame.HEADERS || this.#hasTrailers) return true;
    if (!this.#keep(octets)) return false;
    return isEnd ? this.#readHeader() : true;
  }

  #body(octets: Uint8Array): boolean {
    if (this.#gathered.length + octets.length <= MAX_BODY) return this.#keep(octets);
    if (this.#line !== undefined) this.#ask(this.#line, undefined);
    return false;
  }

  #readHeader(): boolean {
    const block = this.#gathered.octets;
    this.#gathered = new GatheredOctets();
    try {
      this.#line = readRequestLine(decodeFields(block));
      return this.#line !== undefined || this.#give(H3Code.MESSAGE_ERROR);
    } catch (error) {
      if (!(error instanceof QpackError)) throw error;
      return this.#violate(H3Code.DECOMPRESSION_FAILED, error.message);
    }
  }

  #keep(octets: Uint8Array): boolean {
    if (octets.length === 0) return true;
    if (!this.#home.hold(octets.length)) return this.#give(H3Code.EXCESSIVE_LOAD);
    this.#held += octets.length;
    this.#gathered.add(octets);
    return true;
  }

  #ask({ method, path, trace }: RequestLine, body: Uint8Array | undefined): void {
    this.isAsked = true;
    this.#isOver = true;
    this.#connection.ask(this, packRequest({ method, path, trace, body }));
  }

  /** Resets only this request. */
  #give(code: number): false {
    this.stream.reset(code);
    this.#connection.forget(this);
    return false;
  }

  #violate(code: number, reason: string): false {
    this.#connection.violate(code, reason);
    return false;
  }
}

const NO_OCTETS = new Uint8Array(0);
