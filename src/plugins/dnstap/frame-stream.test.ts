import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { FakeClock } from "../../plugin/testing.ts";
import { FrameStream } from "./frame-stream.ts";

/** Control frames (Frame Streams: length 0, then its own length, then its type). */
const ACCEPT = "00000000 00000004 00000001";
const ACCEPT_OTHER = "00000000 00000010 00000001 00000001 00000004 6f746872";
const ACCEPT_DNSTAP = `00000000 00000022 00000001 00000001 00000016 ${Buffer.from("protobuf:dnstap.Dnstap").toString("hex")}`;
const START_TYPE = "00000002";

/** Two connected ends; the first one runs a stream, the second one is the peer. */
async function pair(stack: AsyncDisposableStack): Promise<[Socket, Socket]> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stack.defer(() => void server.close());
  const address = server.address();
  const accepted = once(server, "connection");
  const client = connect(typeof address === "object" && address !== null ? address.port : 0, "127.0.0.1");
  const [other] = await accepted;
  for (const socket of [client, other]) {
    socket.on("error", () => undefined);
    stack.defer(() => void socket.destroy());
  }
  return [client, other];
}

function octets(hex: string): Buffer {
  return Buffer.from(hex.replaceAll(" ", ""), "hex");
}

for (const [title, said, failure] of [
  ["without a type", ACCEPT, ""],
  ["with dnstap's type", ACCEPT_DNSTAP, ""],
  ["with another type", ACCEPT_OTHER, "it does not accept protobuf:dnstap.Dnstap"],
  ["with what is no control frame", "00000005 4711471147", "it does not speak Frame Streams"],
  ["with a control frame of a megabyte", "00000000 00100000 00000001", "it does not speak Frame Streams"],
] as const) {
  const isTaken = failure === "";
  test(`a peer that accepts ${title} is ${isTaken ? "sent data" : "disconnected"}`, async () => {
    await using stack = new AsyncDisposableStack();
    const clock = new FakeClock();
    const [socket, peer] = await pair(stack);
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const stream = new FrameStream(socket, { writeBuffer: () => 100, clock, onEnd: () => resolve() });
    assert.equal(stream.takesData, false);
    await once(peer, "data");
    const answered = isTaken ? once(peer, "data") : undefined;
    peer.write(octets(said));
    if (answered === undefined) {
      peer.resume();
      await ended;
      assert.equal(stream.failure, failure);
    } else {
      const [start] = await answered;
      assert.equal(start.toString("hex", 8, 12), START_TYPE);
      assert.equal(stream.takesData, true);
      // No time-out is left that would close the connection.
      clock.advance(60_000);
      assert.equal(socket.destroyed, false);
    }
    assert.equal(clock.pendingTimers, 0);
  });
}

for (const [title, frame] of [
  ["takes data again and again", ACCEPT],
  ["offers data itself", "00000000 00000004 00000004"],
  ["sends an unknown control frame", "00000000 00000004 00000063"],
] as const)
  test(`a peer that ${title} is disconnected: it could keep the process busy`, async () => {
    await using stack = new AsyncDisposableStack();
    const stream = await endedBy(stack, frame);
    assert.match(stream.failure ?? "", /^it sends a control frame of type \d+, which is unexpected here$/);
  });

test("a peer that received data and sent FINISH ended in order", async () => {
  await using stack = new AsyncDisposableStack();
  const stream = await endedBy(stack, "00000000 00000004 00000005");
  assert.equal(stream.failure, undefined);
});

test("a silent peer is disconnected", async () => {
  await using stack = new AsyncDisposableStack();
  const clock = new FakeClock();
  const [socket, peer] = await pair(stack);
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const stream = new FrameStream(socket, { writeBuffer: () => 100, clock, onEnd: () => resolve() });
  peer.resume();
  clock.advance(4_999);
  assert.equal(socket.destroyed, false);
  clock.advance(1);
  await ended;
  assert.deepEqual([stream.isOpen, stream.failure], [false, "it does not answer within 5 s"]);
});

test("the end waits for the confirmation of the peer", async () => {
  await using stack = new AsyncDisposableStack();
  const clock = new FakeClock();
  const [socket, peer] = await pair(stack);
  const stream = new FrameStream(socket, { writeBuffer: () => 100, clock, onEnd: () => undefined });
  await once(peer, "data");
  peer.write(octets(ACCEPT));
  await once(peer, "data");
  stream.send(octets("00000001 ab"));
  let hasEnded = false;
  const end = stream.end().then(() => {
    hasEnded = true;
  });
  const received: Buffer[] = [];
  while (!Buffer.concat(received).toString("hex").endsWith("00000003"))
    received.push((await once(peer, "data"))[0]);
  assert.equal(hasEnded, false);
  peer.write(octets("00000000 00000004 00000005"));
  await end;
  assert.equal(clock.pendingTimers, 0);
});

/** A stream whose peer accepts it, and then sends a last frame. */
async function endedBy(stack: AsyncDisposableStack, frame: string): Promise<FrameStream> {
  const [socket, peer] = await pair(stack);
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const stream = new FrameStream(socket, {
    writeBuffer: () => 100,
    clock: new FakeClock(),
    onEnd: () => resolve(),
  });
  peer.resume();
  peer.write(octets(ACCEPT));
  peer.write(octets(frame));
  await ended;
  return stream;
}
