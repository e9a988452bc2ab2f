import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DoqCode, DoqConnection } from "./doq-connection.ts";
import { say, TestConnection, TestHome, TestStream } from "./fixtures/quic-peer.ts";

class Peer {
  readonly home = new TestHome();
  readonly connection = new TestConnection();
  readonly served = new DoqConnection(1, this.connection, this.home);
  #streams = 0;

  constructor() {
    this.connection.user = this.served;
    this.served.connected();
  }

  stream(octets: Uint8Array, { isEnd = true, size = octets.length, oneWay = false } = {}): TestStream {
    const stream = new TestStream(this.connection, 4 * this.#streams++ + (oneWay ? 2 : 0), oneWay);
    say(this.served.accepted(stream), octets, isEnd, Math.max(size, 1));
    return stream;
  }
}

/** A message of this many octets, after its length. */
function framed(length: number, id = 0): Buffer {
  const octets = Buffer.alloc(2 + length, 7);
  octets.writeUInt16BE(length, 0);
  octets.writeUInt16BE(id, 2);
  return octets;
}

describe("a query", () => {
  for (const length of [12, 13, 300, 65_535])
    for (const size of [1, 2, 3, 1200, 70_000]) {
      // The longest message, octet by octet, would take too long.
      if (length === 65_535 && size < 1200) continue;
      test(`of ${length} octets is passed on, from pieces of ${size}`, () => {
        const peer = new Peer();
        peer.stream(framed(length), { size });
        assert.equal(peer.home.requests.length, 1);
        // Not `deepEqual`: a diff of two long messages would take minutes and all of the memory.
        assert.ok(
          framed(length)
            .subarray(2)
            .equals(peer.home.requests[0]?.payload ?? new Uint8Array(0)),
        );
        assert.ok(peer.served.awaitsAnswers);
        assert.ok(peer.served.settle(0) !== undefined);
        assert.equal(peer.served.settle(0), undefined);
        assert.deepEqual(
          [peer.home.held, peer.home.settledRequests, peer.served.awaitsAnswers],
          [0, 1, false],
        );
      });
    }

  test("is passed on once it is whole, before the stream ends, and once", () => {
    const peer = new Peer();
    const stream = new TestStream(peer.connection, 0, false);
    const user = peer.served.accepted(stream);
    say(user, framed(20), false);
    assert.equal(peer.home.requests.length, 1);
    say(user, new Uint8Array(0), true);
    assert.deepEqual([peer.home.requests.length, peer.home.violations], [1, 0]);
  });

  test("is copied from Buffers, which are lent as well", () => {
    const peer = new Peer();
    const user = peer.served.accepted(new TestStream(peer.connection, 0, false));
    const first = framed(20).subarray(0, 9);
    user.received(first, false);
    first.fill(0xff);
    user.received(framed(20).subarray(9), true);
    assert.deepEqual(peer.home.requests, [{ stream: 0, payload: Uint8Array.from(framed(20).subarray(2)) }]);
  });

  for (const [title, octets, isEnd] of [
    ["of nothing", Buffer.alloc(0), true],
    ["of half a length", Buffer.from([0]), true],
    ["of no length", Buffer.alloc(2), false],
    ["shorter than a header", framed(11), false],
    ["shorter than announced", framed(40).subarray(0, 41), true],
    ["longer than announced", Buffer.concat([framed(40), Buffer.alloc(1)]), false],
    ["followed by another", Buffer.concat([framed(40), framed(40)]), true],
    ["with an id", framed(40, 1), true],
  ] as const)
    for (const size of [1, 1200])
      test(`${title}, in pieces of ${size} octets, ends the connection`, () => {
        const peer = new Peer();
        peer.stream(octets, { isEnd, size });
        assert.equal(peer.connection.closeCode, DoqCode.PROTOCOL_ERROR);
        assert.deepEqual([peer.home.violations, peer.home.held, peer.home.connections], [1, 0, 0]);
      });

  test("on a unidirectional stream ends the connection", () => {
    const peer = new Peer();
    peer.stream(framed(40), { oneWay: true });
    assert.deepEqual([peer.connection.closeCode, peer.home.requests], [DoqCode.PROTOCOL_ERROR, []]);
  });

  test("is reset if all requests together hold too much", () => {
    const peer = new Peer();
    peer.home.room = 30;
    const stream = peer.stream(framed(100).subarray(0, 40), { isEnd: false });
    assert.deepEqual([stream.resetCode, peer.home.held], [DoqCode.EXCESSIVE_LOAD, 0]);
    assert.equal(peer.connection.closeCode, undefined);
  });

  test("that its client resets is settled, and its memory is released", () => {
    const peer = new Peer();
    const [half, whole] = [
      new TestStream(peer.connection, 0, false),
      new TestStream(peer.connection, 4, false),
    ];
    const users = [peer.served.accepted(half), peer.served.accepted(whole)] as const;
    say(users[0], framed(100).subarray(0, 40), false);
    say(users[1], framed(100), true);
    assert.equal(peer.home.held, 40);
    for (const user of users) user.lost();
    assert.deepEqual([peer.home.held, peer.home.settledRequests, peer.served.awaitsAnswers], [0, 1, false]);
    assert.equal(peer.served.settle(1), undefined);
  });

  test("that is not whole in time is reset; a connection without queries ends in time", () => {
    const peer = new Peer();
    const [slow, whole] = [
      peer.stream(framed(100).subarray(0, 40), { isEnd: false }),
      peer.stream(framed(100)),
    ];
    peer.home.time = 1000;
    peer.served.sweep(1000, 1001, 500);
    assert.equal(slow.resetCode, undefined);
    peer.served.sweep(1000, 1000, 500);
    assert.deepEqual([slow.resetCode, whole.resetCode], [DoqCode.EXCESSIVE_LOAD, undefined]);
    peer.served.settle(1);
    peer.served.sweep(1499, 1000, 500);
    assert.equal(peer.connection.finishCode, undefined);
    peer.served.sweep(1500, 1000, 500);
    assert.equal(peer.connection.finishCode, DoqCode.NO_ERROR);
  });

  test("that was accepted is answered before the connection ends; others are reset", () => {
    const peer = new Peer();
    peer.stream(framed(100).subarray(0, 40), { isEnd: false });
    peer.stream(framed(100));
    peer.served.endWhenAnswered();
    assert.deepEqual([peer.home.held, peer.connection.finishCode], [0, undefined]);
    peer.served.settle(1);
    assert.equal(peer.connection.finishCode, DoqCode.NO_ERROR);
  });

  test("of a closed connection is settled", () => {
    const peer = new Peer();
    peer.stream(framed(100));
    peer.stream(framed(100).subarray(0, 40), { isEnd: false });
    peer.served.destroy();
    assert.equal(peer.connection.closeCode, DoqCode.EXCESSIVE_LOAD);
    assert.deepEqual([peer.home.settledRequests, peer.home.held, peer.served.awaitsAnswers], [1, 0, false]);
  });
});
