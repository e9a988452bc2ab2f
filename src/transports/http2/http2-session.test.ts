import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { untilTrue } from "../../../test/support/until-true.ts";
import { makeTestQuery, records } from "../../plugin/testing.ts";
import {
  data,
  fieldsOf,
  frame,
  GET,
  get,
  head,
  MESSAGE,
  number,
  POST,
  post,
  scene,
  settings,
} from "./fixtures/raw-client.ts";
import { encodeFields } from "./hpack-encoder.ts";
import { ErrorCode, FrameFlag, FrameType, PREFACE, Setting } from "./http2-frames.ts";

const { END_STREAM, END_HEADERS, PADDED, PRIORITY } = FrameFlag;

describe("a request is answered", () => {
  // The longest age has three digits more than none; some responses exceed the portion of the output.
  for (const ttl of [0, 9, 10, 99, 100, 999, 1000, 86_400])
    test(`whole, however large, with a lifetime of ${ttl} seconds`, async () => {
      await scene(async ({ connect, receiver }) => {
        const answer = records(`www.example.org. ${ttl} IN A 192.0.2.1`);
        receiver.reply = makeTestQuery({ name: "www.example.org." }).reply({ answer });
        receiver.answers = false;
        const client = (await connect()).greet([Setting.INITIAL_WINDOW_SIZE, 0x10_0000]);
        let id = -1;
        for (const length of [40, 1990, 2000, 3989, 16_000, 16_384]) {
          receiver.replyLength = length;
          id += 2;
          client.send(get(id));
          await untilTrue(() => receiver.waiting.length > 0, { between: () => nextTurn() });
          for (const port of receiver.waiting.splice(0)) receiver.answer(port);
          await client.ping();
          assert.deepEqual(client.body(id), Buffer.alloc(length, 7), `${length} octets`);
        }
      });
    });

  for (const [title, ...octets] of [
    ["by GET", get(1)],
    ["by POST", post(1), data(1, MESSAGE)],
    [
      "in parts",
      post(1),
      data(1, MESSAGE.subarray(0, 5), 0),
      data(1, MESSAGE.subarray(5), 0),
      data(1, Buffer.alloc(0)),
    ],
    [
      "with trailers",
      post(1),
      data(1, MESSAGE, 0),
      frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, encodeFields([["a", "b"]])),
    ],
    [
      "with its length",
      frame(
        FrameType.HEADERS,
        END_HEADERS,
        1,
        head("POST", "/dns-query", ["content-length", MESSAGE.length]),
      ),
      data(1, MESSAGE),
    ],
    [
      "with padding",
      post(1),
      data(1, Buffer.concat([Buffer.from([4]), MESSAGE, Buffer.alloc(4)]), PADDED | END_STREAM),
    ],
    [
      "with a header of several frames",
      frame(FrameType.HEADERS, END_STREAM, 1, GET.subarray(0, 9)),
      frame(FrameType.CONTINUATION, 0, 1, GET.subarray(9, 20)),
      frame(FrameType.CONTINUATION, END_HEADERS, 1, GET.subarray(20)),
    ],
    [
      "with a priority and padding",
      frame(
        FrameType.HEADERS,
        END_HEADERS | END_STREAM | PADDED | PRIORITY,
        1,
        Buffer.concat([Buffer.from([3, 0, 0, 0, 0, 9]), GET, Buffer.alloc(3)]),
      ),
    ],
    [
      "among unknown frames",
      frame(99, 255, 3, Buffer.alloc(50)),
      frame(FrameType.PRIORITY, 0, 7, Buffer.alloc(5)),
      get(1),
    ],
  ] as const) {
    test(title, async () => {
      await scene(async ({ connect, statuses, faults }) => {
        const client = (await connect()).greet().send(...octets);
        const response = await client.first(FrameType.HEADERS, 1);
        // The table size, once a connection; then :status, content-type, content-length, cache-control.
        assert.equal(response.payload[0], 0x20);
        assert.equal(fieldsOf(response).length, 4);
        await client.ping();
        assert.deepEqual(client.body(1), Buffer.alloc(40, 7));
        assert.deepEqual(statuses, [200]);
        assert.equal(faults(), 0);
      });
    });
  }

  test("octet by octet", async () => {
    await scene(async ({ connect }) => {
      const client = await connect();
      client.socket.setNoDelay(true);
      for (const octet of Buffer.concat([PREFACE, settings(), post(1), data(1, MESSAGE)])) {
        client.send(Uint8Array.of(octet));
        await nextTurn();
      }
      await client.ping();
      assert.equal(client.body(1).length, 40);
    });
  });

  test("with any number of digits in its length", async () => {
    await scene(async ({ connect, receiver }) => {
      const client = (await connect()).greet([Setting.INITIAL_WINDOW_SIZE, 1_000_000]);
      client.send(frame(FrameType.WINDOW_UPDATE, 0, 0, number(1_000_000)));
      const lengths = [12, 99, 100, 999, 1000, 16_384, 16_385, 65_535];
      for (const [index, length] of lengths.entries()) {
        receiver.replyLength = length;
        client.send(get(2 * index + 1));
        await client.ping();
        assert.deepEqual(client.body(2 * index + 1), Buffer.alloc(length, 7));
      }
      assert.ok(client.frames.every(({ payload }) => payload.length <= 16_384));
      const sizes = client.frames
        .filter(({ type }) => type === FrameType.HEADERS)
        .map(({ payload }) => payload[0]);
      assert.deepEqual(sizes, [0x20, ...lengths.slice(1).map(() => 0x88)]);
    });
  });

  test("later, in any order, and many at once", async () => {
    await scene(async ({ connect, receiver }) => {
      receiver.answers = false;
      const client = (await connect()).greet();
      const ids = Array.from({ length: 200 }, (_, index) => 2 * index + 1);
      client.send(...ids.map(get));
      await client.ping();
      for (const port of receiver.waiting.reverse()) receiver.answer(port);
      await client.ping();
      for (const id of ids) assert.equal(client.body(id).length, 40);
    });
  });

  test("in portions, if simultaneous requests take long", async () => {
    await scene(async ({ connect, receiver, clock }) => {
      const turns = [0];
      const receive = receiver.receive.bind(receiver);
      receiver.receive = (...query) => {
        turns[turns.length - 1] = (turns.at(-1) ?? 0) + 1;
        clock.advance(0.5);
        receive(...query);
      };
      const clients = [(await connect()).greet(), (await connect()).greet()];
      const ids = Array.from({ length: 60 }, (_, index) => 2 * index + 1);
      for (const client of clients) client.send(...ids.map(get));
      let isDone = false;
      const done = Promise.all(clients.map((client) => client.ping())).then(() => {
        isDone = true;
      });
      await untilTrue(() => isDone, {
        between: async () => {
          await nextTurn();
          turns.push(0);
        },
      });
      await done;
      for (const client of clients) for (const id of ids) assert.equal(client.body(id).length, 40);
      const most = Math.max(...turns);
      assert.ok(most <= 2 * 4, `${most} requests of 0.5 ms each in one turn`);
    });
  });
});

describe("a refusal ends only its stream", () => {
  for (const [title, code, ...octets] of [
    [
      "no method",
      ErrorCode.PROTOCOL_ERROR,
      frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, encodeFields([[":path", "/"]])),
    ],
    [
      "more than announced",
      ErrorCode.PROTOCOL_ERROR,
      frame(FrameType.HEADERS, END_HEADERS, 1, head("POST", "/dns-query", ["content-length", 3])),
      data(1, MESSAGE),
    ],
    [
      "less than announced",
      ErrorCode.PROTOCOL_ERROR,
      frame(FrameType.HEADERS, END_HEADERS, 1, head("POST", "/dns-query", ["content-length", 300])),
      data(1, MESSAGE),
    ],
    [
      "a length without a body",
      ErrorCode.PROTOCOL_ERROR,
      frame(
        FrameType.HEADERS,
        END_HEADERS | END_STREAM,
        1,
        head("POST", "/dns-query", ["content-length", 300]),
      ),
    ],
    ["a second header", ErrorCode.PROTOCOL_ERROR, post(1), post(1)],
    [
      "a window increment of 0",
      ErrorCode.PROTOCOL_ERROR,
      post(1),
      frame(FrameType.WINDOW_UPDATE, 0, 1, number(0)),
    ],
    [
      "a window of the stream that overflows",
      ErrorCode.FLOW_CONTROL_ERROR,
      post(1),
      frame(FrameType.WINDOW_UPDATE, 0, 1, number(0x7fff_ffff)),
    ],
  ] as const) {
    test(title, async () => {
      await scene(async ({ connect, statuses, faults }) => {
        const client = (await connect()).greet().send(...octets);
        assert.equal(await client.resetOf(1), code);
        client.send(get(3));
        await client.first(FrameType.DATA, 3);
        assert.deepEqual(statuses, [200]);
        assert.equal(faults(), 0);
      });
    });
  }

  for (const [title, status, ...octets] of [
    ["another path", 404, frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, head("GET", "/"))],
    ["another method", 400, frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, head("PUT", "/dns-query"))],
    [
      "no base64url",
      400,
      frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, head("GET", "/dns-query?dns=AAA%3D")),
    ],
    ["an empty POST", 400, frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, POST)],
    ["no message", 400, post(1), data(1, MESSAGE.subarray(0, 11))],
    [
      "a large header list",
      431,
      frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, Buffer.concat([GET, Buffer.alloc(500, 0x90)])),
    ],
  ] as const) {
    test(`${title}: ${status}`, async () => {
      await scene(async ({ connect, statuses }) => {
        const client = (await connect()).greet().send(...octets);
        await client.ping();
        assert.deepEqual(statuses, [status]);
        assert.equal(fieldsOf(await client.first(FrameType.HEADERS, 1)).length, 4);
        client.send(get(3));
        await client.first(FrameType.DATA, 3);
      });
    });
  }

  for (const path of ["/dns-query", "/"])
    test(`HEAD of ${path}: no content`, async () => {
      await scene(async ({ connect, statuses }) => {
        const client = (await connect()).greet();
        client.send(frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, head("HEAD", path)));
        assert.equal((await client.first(FrameType.HEADERS, 1)).flags, END_HEADERS | END_STREAM);
        client.send(get(3));
        await client.first(FrameType.DATA, 3);
        assert.deepEqual(
          client.frames.filter(({ type, stream }) => type === FrameType.DATA && stream === 1),
          [],
        );
        assert.deepEqual(statuses, [path === "/" ? 404 : 400, 200]);
      });
    });
});
