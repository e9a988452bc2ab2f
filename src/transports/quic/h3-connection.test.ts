import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { say, TestConnection, TestHome, TestStream } from "./fixtures/quic-peer.ts";
import { H3Connection } from "./h3-connection.ts";
import { frame, H3Code, H3Frame, varint } from "./h3-frames.ts";
import { unpackRequest } from "./h3-handover.ts";
import { encodeFields } from "./qpack.ts";

class Peer {
  readonly home = new TestHome();
  readonly connection = new TestConnection();
  readonly served = new H3Connection(1, this.connection, this.home);
  #streams = 0;

  constructor() {
    this.connection.user = this.served;
    this.served.connected();
  }

  /** A client's stream, and its data. */
  stream(octets: Uint8Array, { isEnd = true, size = octets.length, oneWay = false } = {}): TestStream {
    const stream = new TestStream(this.connection, 4 * this.#streams++ + (oneWay ? 2 : 0), oneWay);
    say(this.served.accepted(stream), octets, isEnd, Math.max(size, 1));
    return stream;
  }
}

const fields = (...list: readonly (readonly [name: string, value: string])[]): Buffer =>
  frame(H3Frame.HEADERS, encodeFields(list.map(([name, value]) => ({ name, value }))));
const LINE = [
  [":method", "POST"],
  [":scheme", "https"],
  [":path", "/dns-query"],
] as const;
const BODY = Buffer.from("a message of thirty-two octets..");
const data = (octets: Uint8Array): Buffer => frame(H3Frame.DATA, octets);

describe("a request", () => {
  for (const [title, octets, body] of [
    ["with a body", [fields(...LINE), data(BODY)], BODY],
    ["without", [fields(...LINE)], Buffer.alloc(0)],
    ["with its length", [fields(...LINE, ["content-length", "32"]), data(BODY)], BODY],
    [
      "with its length, twice",
      [fields(...LINE, ["content-length", "0"], ["content-length", "0"])],
      Buffer.alloc(0),
    ],
    [
      "in frames of an octet",
      [fields(...LINE), ...Array.from(BODY, (octet) => data(Uint8Array.of(octet)))],
      BODY,
    ],
    ["among unknown frames", [frame(0x21, BODY), fields(...LINE), frame(0x40, BODY), data(BODY)], BODY],
    ["with trailers", [fields(...LINE), data(BODY), fields(["a", "b"])], BODY],
    ["with te: trailers", [fields(...LINE, ["te", "trailers"]), data(BODY)], BODY],
  ] as const)
    for (const size of [1, 3, 1000])
      test(`${title} is passed on, from pieces of ${size} octets`, () => {
        const peer = new Peer();
        peer.stream(Buffer.concat(octets), { size });
        assert.equal(peer.home.requests.length, 1);
        const parts = unpackRequest(peer.home.requests[0]?.payload ?? new Uint8Array());
        assert.deepEqual([parts.method, parts.path], ["POST", "/dns-query"]);
        assert.deepEqual(Buffer.from(parts.body ?? []), Buffer.from(body));
        peer.served.settle(0);
        assert.equal(peer.home.held, 0);
      });

  for (const [title, code, ...octets] of [
    ["no path", H3Code.MESSAGE_ERROR, fields([":method", "GET"], [":scheme", "https"])],
    ["an empty path", H3Code.MESSAGE_ERROR, fields([":method", "GET"], [":scheme", "https"], [":path", ""])],
    ["two methods", H3Code.MESSAGE_ERROR, fields(...LINE, [":method", "GET"])],
    ["two authorities", H3Code.MESSAGE_ERROR, fields(...LINE, [":authority", "a"], [":authority", "b"])],
    ["a status", H3Code.MESSAGE_ERROR, fields(...LINE, [":status", "200"])],
    ["an unknown pseudo-header", H3Code.MESSAGE_ERROR, fields(...LINE, [":test", "a"])],
    ["a pseudo-header after others", H3Code.MESSAGE_ERROR, fields(["a", "b"], ...LINE)],
    ["capitals", H3Code.MESSAGE_ERROR, fields(...LINE, ["A", "b"])],
    ["a connection-specific field", H3Code.MESSAGE_ERROR, fields(...LINE, ["connection", "close"])],
    ["a connection-specific coding", H3Code.MESSAGE_ERROR, fields(...LINE, ["transfer-encoding", "chunked"])],
    ["te: gzip", H3Code.MESSAGE_ERROR, fields(...LINE, ["te", "gzip"])],
    ["a length that is not a number", H3Code.MESSAGE_ERROR, fields(...LINE, ["content-length", "-1"])],
    [
      "two lengths",
      H3Code.MESSAGE_ERROR,
      fields(...LINE, ["content-length", "32"], ["content-length", "31"]),
      data(BODY),
    ],
    ["less than announced", H3Code.MESSAGE_ERROR, fields(...LINE, ["content-length", "33"]), data(BODY)],
    ["more than announced", H3Code.MESSAGE_ERROR, fields(...LINE, ["content-length", "31"]), data(BODY)],
    ["a length without a body", H3Code.MESSAGE_ERROR, fields(...LINE, ["content-length", "1"])],
    ["nothing", H3Code.REQUEST_INCOMPLETE],
    ["only unknown frames", H3Code.REQUEST_INCOMPLETE, frame(0x21, BODY)],
    ["a header that is too long", H3Code.EXCESSIVE_LOAD, frame(H3Frame.HEADERS, Buffer.alloc(16_385))],
  ] as const)
    test(`with ${title} is reset, and affects nothing else`, () => {
      const peer = new Peer();
      const stream = peer.stream(Buffer.concat(octets));
      assert.equal(stream.resetCode, code);
      assert.deepEqual([peer.home.requests, peer.home.violations, peer.home.held], [[], 0, 0]);
      peer.stream(fields(...LINE));
      assert.equal(peer.home.requests.length, 1);
    });

  for (const [title, code, ...octets] of [
    ["a body first", H3Code.FRAME_UNEXPECTED, data(BODY)],
    [
      "a header after its trailers",
      H3Code.FRAME_UNEXPECTED,
      fields(...LINE),
      fields(["a", "b"]),
      fields(["a", "b"]),
    ],
    ["a body after its trailers", H3Code.FRAME_UNEXPECTED, fields(...LINE), fields(["a", "b"]), data(BODY)],
    ["a push", H3Code.FRAME_UNEXPECTED, fields(...LINE), frame(H3Frame.PUSH_PROMISE, BODY)],
    ["settings", H3Code.FRAME_UNEXPECTED, fields(...LINE), frame(H3Frame.SETTINGS, BODY)],
    ["a frame of HTTP/2", H3Code.FRAME_UNEXPECTED, frame(2, BODY)],
    ["half a frame", H3Code.FRAME_ERROR, fields(...LINE).subarray(0, 9)],
    ["half the head of a frame", H3Code.FRAME_ERROR, fields(...LINE), Uint8Array.of(0)],
    ["no QPACK", H3Code.DECOMPRESSION_FAILED, frame(H3Frame.HEADERS, Uint8Array.of(1, 0, 0x80))],
  ] as const)
    test(`with ${title} ends the connection`, () => {
      const peer = new Peer();
      peer.stream(Buffer.concat(octets));
      assert.equal(peer.connection.closeCode, code);
      assert.deepEqual([peer.home.requests, peer.home.violations], [[], 1]);
    });

  test("with a body longer than any message is passed on without it", () => {
    const peer = new Peer();
    peer.stream(
      Buffer.concat([fields(...LINE), ...Array.from({ length: 66 }, () => data(Buffer.alloc(1000)))]),
    );
    assert.equal(unpackRequest(peer.home.requests[0]?.payload ?? new Uint8Array()).body, undefined);
  });

  test("is reset if all requests together hold too much", () => {
    const peer = new Peer();
    peer.home.room = 100;
    const stream = peer.stream(Buffer.concat([fields(...LINE), data(Buffer.alloc(101))]));
    assert.deepEqual([stream.resetCode, peer.home.held], [H3Code.EXCESSIVE_LOAD, 0]);
  });

  test("is reset when it takes too long, unless it is whole", () => {
    const peer = new Peer();
    const slow = peer.stream(Buffer.concat([fields(...LINE), data(BODY)]), { isEnd: false });
    const whole = peer.stream(fields(...LINE));
    peer.served.sweep(999, 1000, 60_000);
    assert.equal(slow.resetCode, undefined);
    peer.served.sweep(1000, 1000, 60_000);
    assert.deepEqual([slow.resetCode, whole.resetCode], [H3Code.EXCESSIVE_LOAD, undefined]);
    assert.ok(peer.served.awaitsAnswers);
  });
});

describe("a unidirectional stream of the client", () => {
  const settings = frame(H3Frame.SETTINGS, Uint8Array.from([...varint(6), ...varint(100)]));
  for (const [title, ...octets] of [
    ["settings", Uint8Array.of(0), settings],
    ["settings, and a goodbye", Uint8Array.of(0), settings, frame(H3Frame.GOAWAY, Uint8Array.of(0))],
    ["settings, and an unknown frame", Uint8Array.of(0), settings, frame(0x21, BODY)],
    ["no table of QPACK", Uint8Array.of(2, 0x20, 0x20)],
    ["a cancelled stream", Uint8Array.of(3, 0x44)],
    [
      "cancelled streams of higher numbers",
      Uint8Array.of(3, 0x7f, 0x81, 0x01, 0x44, 0x7f, 0x80, 0x80, 0x01, 0x7f, 0x00),
    ],
    ["data of an unknown type", Uint8Array.of(0x21), BODY],
    ["a type of eight octets", Buffer.from("c000000000000021", "hex"), BODY],
  ] as const)
    for (const size of [1, 2, 1000])
      test(`may have ${title}, in pieces of ${size} octets`, () => {
        const peer = new Peer();
        peer.stream(Buffer.concat(octets), { isEnd: false, size, oneWay: true });
        assert.deepEqual([peer.connection.closeCode, peer.home.violations], [undefined, 0]);
      });

  for (const [title, code, ...octets] of [
    ["no settings first", H3Code.MISSING_SETTINGS, Uint8Array.of(0), frame(H3Frame.GOAWAY, Uint8Array.of(0))],
    ["settings twice", H3Code.FRAME_UNEXPECTED, Uint8Array.of(0), settings, settings],
    ["a body", H3Code.FRAME_UNEXPECTED, Uint8Array.of(0), settings, data(BODY)],
    ["a header", H3Code.FRAME_UNEXPECTED, Uint8Array.of(0), settings, fields(...LINE)],
    ["a frame of HTTP/2", H3Code.FRAME_UNEXPECTED, Uint8Array.of(0), settings, frame(8, BODY)],
    ["endless settings", H3Code.EXCESSIVE_LOAD, Uint8Array.of(0, 4, 0x80, 0, 0x40, 1)],
    ["a push", H3Code.STREAM_CREATION_ERROR, Uint8Array.of(1)],
    ["a table of QPACK", H3Code.ENCODER_STREAM_ERROR, Uint8Array.of(2, 0x3f, 0xe1, 0x1f)],
    ["an entry for a table", H3Code.ENCODER_STREAM_ERROR, Uint8Array.of(2, 0x20, 0xc0)],
    ["an acknowledgement", H3Code.DECODER_STREAM_ERROR, Uint8Array.of(3, 0x84)],
    ["an insert count increment", H3Code.DECODER_STREAM_ERROR, Uint8Array.of(3, 0x01)],
    [
      "an acknowledgement after a cancelled stream",
      H3Code.DECODER_STREAM_ERROR,
      Uint8Array.of(3, 0x7f, 0x01, 0x84),
    ],
  ] as const)
    for (const size of [1, 1000])
      test(`must not have ${title}, in pieces of ${size} octets`, () => {
        const peer = new Peer();
        peer.stream(Buffer.concat(octets), { isEnd: false, size, oneWay: true });
        assert.equal(peer.connection.closeCode, code);
      });

  for (const type of [0, 2, 3]) {
    test(`of type ${type} must not end`, () => {
      const peer = new Peer();
      peer.stream(type === 0 ? Buffer.concat([Uint8Array.of(0), settings]) : Uint8Array.of(type), {
        oneWay: true,
      });
      assert.equal(peer.connection.closeCode, H3Code.CLOSED_CRITICAL_STREAM);
    });

    test(`of type ${type} must not come twice`, () => {
      const peer = new Peer();
      peer.stream(Uint8Array.of(type), { isEnd: false, oneWay: true });
      assert.equal(peer.connection.closeCode, undefined);
      peer.stream(Uint8Array.of(type), { isEnd: false, oneWay: true });
      assert.equal(peer.connection.closeCode, H3Code.STREAM_CREATION_ERROR);
    });
  }

  test("of an unknown type may end", () => {
    const peer = new Peer();
    peer.stream(Uint8Array.of(0x21, 1), { oneWay: true });
    assert.equal(peer.connection.closeCode, undefined);
  });
});
