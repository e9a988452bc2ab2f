/**
 * SPDY/3.1 as far as `kubectl port-forward` speaks it: the client opens streams, both sides send data, pings are answered
 * (draft-mbelshe-httpbis-spdy-00, section 2.6; kubectl's SPDY has no flow control).
 */
import { Duplex } from "node:stream";
import { constants, createDeflate, createInflate, type Deflate, type Inflate } from "node:zlib";

type Headers = ReadonlyMap<string, string>;
/** Called for each new stream. Its headers tell the purpose. */
type StreamReceiver = (stream: SpdyStream, headers: Headers) => void;

const VERSION = 3;
const Type = { SYN_STREAM: 1, SYN_REPLY: 2, RST_STREAM: 3, PING: 6 } as const;
const FIN = 1;
const HEAD = 8;
/** Status of RST_STREAM. */
const CANCEL = 5;

interface Frame {
  /** `undefined` for data. */
  readonly type: number | undefined;
  /** Of data. */
  readonly streamId: number;
  readonly flags: number;
  readonly body: Buffer;
}

/** The server's side of a connection. */
export class SpdySession {
  readonly #connection: Duplex;
  readonly #onStream: StreamReceiver;
  readonly #streams = new Map<number, SpdyStream>();
  /** Of headers: each direction is compressed as one text. */
  readonly #inflate: Inflate;
  readonly #deflate: Deflate;

  /** @param connection with a handler for its errors */
  constructor(connection: Duplex, onStream: StreamReceiver) {
    const dictionary = headerDictionary();
    this.#connection = connection;
    this.#onStream = onStream;
    this.#inflate = createInflate({ dictionary, finishFlush: constants.Z_SYNC_FLUSH });
    this.#deflate = createDeflate({ dictionary });
  }

  /** Serves the connection until it ends. @throws where it breaks, or what comes is not SPDY */
  async run(): Promise<void> {
    try {
      let rest: Buffer = Buffer.alloc(0);
      for await (const chunk of this.#connection) {
        rest = Buffer.concat([rest, chunk]);
        while (rest.length >= HEAD && rest.length >= HEAD + rest.readUIntBE(5, 3)) {
          const end = HEAD + rest.readUIntBE(5, 3);
          await this.#take(parseFrame(rest.subarray(0, end)));
          rest = rest.subarray(end);
        }
      }
    } finally {
      for (const stream of this.#streams.values()) stream.destroy();
      this.#connection.destroy();
    }
  }

  sendData(streamId: number, octets: Buffer, isLast: boolean): void {
    const head = Buffer.alloc(HEAD);
    head.writeUInt32BE(streamId, 0);
    head.writeUInt32BE(octets.length, 4);
    head.writeUInt8(isLast ? FIN : 0, 4);
    this.#write(Buffer.concat([head, octets]));
  }

  /** @param isWhole whether both sides have ended their data */
  forget(streamId: number, isWhole: boolean): void {
    if (!this.#streams.delete(streamId) || isWhole) return;
    this.#sendControl(Type.RST_STREAM, 0, numbers(streamId, CANCEL));
  }

  async #take({ type, streamId, flags, body }: Frame): Promise<void> {
    if (type === undefined) {
      const stream = this.#streams.get(streamId);
      if (body.length > 0) stream?.push(body);
      if ((flags & FIN) !== 0) stream?.push(null);
    } else if (type === Type.SYN_STREAM) {
      const id = body.readUInt32BE(0);
      const headers = parseHeaders(await through(this.#inflate, body.subarray(10)));
      const stream = new SpdyStream(this, id);
      this.#streams.set(id, stream);
      if ((flags & FIN) !== 0) stream.push(null);
      const none = await through(this.#deflate, numbers(0));
      this.#sendControl(Type.SYN_REPLY, 0, Buffer.concat([numbers(id), none]));
      this.#onStream(stream, headers);
    } else if (type === Type.RST_STREAM) {
      const id = body.readUInt32BE(0);
      const stream = this.#streams.get(id);
      this.#streams.delete(id);
      stream?.destroy();
    } else if (type === Type.PING) this.#sendControl(Type.PING, 0, body);
  }

  #sendControl(type: number, flags: number, body: Buffer): void {
    const head = Buffer.alloc(HEAD);
    head.writeUInt16BE(0x8000 | VERSION, 0);
    head.writeUInt16BE(type, 2);
    head.writeUInt32BE(body.length, 4);
    head.writeUInt8(flags, 4);
    this.#write(Buffer.concat([head, body]));
  }

  #write(octets: Buffer): void {
    if (this.#connection.writable) this.#connection.write(octets);
  }
}

export class SpdyStream extends Duplex {
  readonly #session: SpdySession;
  readonly #id: number;

  constructor(session: SpdySession, id: number) {
    super();
    this.#session = session;
    this.#id = id;
    this.on("error", () => undefined);
  }

  override _read(): void {
    // Data are pushed as they arrive.
  }

  override _write(octets: Buffer, _encoding: string, done: () => void): void {
    this.#session.sendData(this.#id, octets, false);
    done();
  }

  override _final(done: () => void): void {
    this.#session.sendData(this.#id, Buffer.alloc(0), true);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#session.forget(this.#id, this.writableFinished && this.readableEnded);
    done(error);
  }
}

function parseFrame(octets: Buffer): Frame {
  const first = octets.readUInt32BE(0);
  const isControl = first >>> 31 === 1;
  if (isControl && ((first >>> 16) & 0x7fff) !== VERSION) throw new Error("not a frame of SPDY/3");
  return {
    type: isControl ? first & 0xffff : undefined,
    streamId: isControl ? 0 : first,
    flags: octets.readUInt8(4),
    body: octets.subarray(HEAD),
  };
}

function parseHeaders(octets: Buffer): Headers {
  let at = 0;
  const number = (): number => {
    at += 4;
    return octets.readUInt32BE(at - 4);
  };
  const text = (): string => {
    const length = number();
    at += length;
    return octets.toString("utf8", at - length, at);
  };
  const headers = new Map<string, string>();
  for (let left = number(); left > 0; left--) headers.set(text(), text());
  return headers;
}

function numbers(...values: readonly number[]): Buffer {
  const octets = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) octets.writeUInt32BE(value, 4 * index);
  return octets;
}

/** One block of headers, to its end. */
function through(compressor: Inflate | Deflate, octets: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    compressor.once("error", reject);
    compressor.write(octets);
    compressor.flush(constants.Z_SYNC_FLUSH, () => {
      compressor.off("error", reject);
      const found: unknown = compressor.read();
      resolve(Buffer.isBuffer(found) ? found : Buffer.alloc(0));
    });
  });
}

/** The dictionary of both sides (section 2.6.10.1): words with their lengths, and texts without. */
function headerDictionary(): Buffer {
  const words = [
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age",
    "allow authorization cache-control connection content-base content-encoding content-language content-length",
    "content-location content-md5 content-range content-type date etag expect expires from host if-match",
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma",
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade",
    "user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie",
    "keep-alive origin",
  ].flatMap((line) => line.split(" ").map((word) => word.replace("_", " ")));
  const texts = [
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505",
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized",
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable",
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT",
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,",
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.",
  ];
  const counted = words.flatMap((word) => [numbers(word.length), Buffer.from(word)]);
  return Buffer.concat([...counted, ...texts.map((text) => Buffer.from(text))]);
}
