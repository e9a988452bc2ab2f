import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { writePacketHead } from "../lib/net/grpc-message.ts";
import { FakeClock } from "../lib/time/clock.ts";
import { ConnectionBudget } from "./connection-budget.ts";
import { listenGrpc } from "./grpc.ts";
import { Answerer, data, frame, head, MESSAGE, number, RawClient } from "./http2/fixtures/raw-client.ts";
import { encodeFields } from "./http2/hpack-encoder.ts";
import { ErrorCode, FrameFlag, FrameType, Setting } from "./http2/http2-frames.ts";

const { END_STREAM, END_HEADERS } = FrameFlag;
const METHOD = "/coredns.dns.DnsService/Query";
const CONTENT_TYPE = ["content-type", "application/grpc"] as const;
const PACKET = Buffer.concat([writePacketHead(MESSAGE.length), MESSAGE]);

interface Listener {
  readonly client: RawClient;
  readonly receiver: Answerer;
}

async function listener(run: (listener: Listener) => Promise<void>, maxStreams = 256): Promise<void> {
  const receiver = new Answerer();
  const transport = await listenGrpc({ host: "127.0.0.1", port: 0 }, receiver, {
    clock: new FakeClock(),
    budget: new ConnectionBudget(),
    maxStreams: () => maxStreams,
    timeouts: () => ({ read: 1000, write: 2000 }),
  });
  const socket = connect(transport.port, "127.0.0.1");
  try {
    const client = new RawClient(socket);
    await once(socket, "connect");
    await run({ client, receiver });
  } finally {
    socket.destroy();
    await transport.close();
  }
}

const call = (stream: number): Buffer =>
  Buffer.concat([
    frame(FrameType.HEADERS, END_HEADERS, stream, head("POST", METHOD, CONTENT_TYPE)),
    data(stream, PACKET),
  ]);

describe("a request that is not gRPC is refused with a text, once all of it has arrived", () => {
  for (const [title, begun, text] of [
    ["GET", head("GET", METHOD), "gRPC calls are POST requests\n"],
    ["HEAD", head("HEAD", METHOD), ""],
    ["another content type", head("POST", METHOD), "only application/grpc is understood here\n"],
    [
      "a large header",
      Buffer.concat([head("POST", METHOD, CONTENT_TYPE), Buffer.alloc(500, 0x90)]),
      "the header is too large\n",
    ],
  ] as const) {
    test(title, async () => {
      await listener(async ({ client, receiver }) => {
        client.greet().send(frame(FrameType.HEADERS, END_HEADERS, 1, begun));
        await client.ping();
        assert.ok(!client.frames.some(({ type }) => type === FrameType.HEADERS));
        client.send(data(1, PACKET));
        await client.ping();
        assert.equal(client.body(1).toString(), text);
        client.send(call(3));
        await client.first(FrameType.DATA, 3);
        assert.equal(receiver.received, 1);
        assert.ok(!client.frames.some(({ type }) => type === FrameType.RST_STREAM));
      });
    });

    test(`${title}, and no valid HTTP/2 either: its stream is reset instead`, async () => {
      await listener(async ({ client }) => {
        client
          .greet()
          .send(
            frame(FrameType.HEADERS, END_HEADERS, 1, begun),
            frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, encodeFields([[":method", "POST"]])),
          );
        assert.equal(await client.resetOf(1), ErrorCode.PROTOCOL_ERROR);
        assert.ok(!client.frames.some(({ type }) => type === FrameType.HEADERS));
      });
    });
  }
});

test("refusals that wait for a window count as streams", async () => {
  await listener(async ({ client }) => {
    client.greet([Setting.INITIAL_WINDOW_SIZE, 0]);
    for (const id of [1, 3, 5])
      client.send(frame(FrameType.HEADERS, END_HEADERS | END_STREAM, id, head("GET", METHOD)));
    assert.equal(await client.resetOf(5), ErrorCode.REFUSED_STREAM);
  }, 2);
});

test("an unknown method is answered at once: clients may wait for that before they send more", async () => {
  await listener(async ({ client }) => {
    const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    client.greet().send(frame(FrameType.HEADERS, END_HEADERS, 1, head("POST", path, CONTENT_TYPE)));
    await client.first(FrameType.HEADERS, 1);
    assert.equal(await client.resetOf(1), ErrorCode.NO_ERROR);
    // Data that the client had already sent is not an error.
    client.send(data(1, PACKET), call(3));
    await client.first(FrameType.DATA, 3);
  });
});

test("a call that continues after its end is reset", async () => {
  await listener(async ({ client, receiver }) => {
    receiver.answers = false;
    client.greet().send(call(1), data(1, PACKET));
    assert.equal(await client.resetOf(1), ErrorCode.STREAM_CLOSED);
  });
});

test("a change of the window releases the rest of an answer, its status last", async () => {
  await listener(async ({ client }) => {
    client.greet([Setting.INITIAL_WINDOW_SIZE, 1]).send(call(1));
    await client.ping();
    assert.equal(client.body(1).length, 1);
    client.send(frame(FrameType.WINDOW_UPDATE, 0, 1, number(46)));
    await client.ping();
    assert.equal(client.body(1).length, 47);
    const last = client.frames.findLast(({ stream }) => stream === 1);
    assert.deepEqual([last?.type, last?.flags], [FrameType.HEADERS, END_HEADERS | END_STREAM]);
  });
});
