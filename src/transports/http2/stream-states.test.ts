import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  data,
  frame,
  GET,
  get,
  head,
  MESSAGE,
  number,
  POST,
  post,
  type Scene,
  scene,
  settings,
} from "./fixtures/raw-client.ts";
import { encodeFields } from "./hpack-encoder.ts";
import { ErrorCode, FrameFlag, FrameType, Setting } from "./http2-frames.ts";
import { StreamNumbers } from "./stream-numbers.ts";

const { END_STREAM, END_HEADERS, PADDED, PRIORITY } = FrameFlag;
const { PROTOCOL_ERROR, STREAM_CLOSED, FLOW_CONTROL_ERROR } = ErrorCode;

/** A GET request without END_STREAM. */
const openGet = (stream: number): Buffer => frame(FrameType.HEADERS, END_HEADERS, stream, GET);
const reset = (stream: number): Buffer => frame(FrameType.RST_STREAM, 0, stream, number(ErrorCode.CANCEL));
const widen = (stream: number, octets: number): Buffer =>
  frame(FrameType.WINDOW_UPDATE, 0, stream, number(octets));
const dependency = (stream: number, exclusive = 0): Buffer =>
  Buffer.concat([number(stream + exclusive), Uint8Array.of(255)]);
const trailers = (stream: number, ...fields: readonly (readonly [string, string])[]): Buffer =>
  frame(FrameType.HEADERS, END_HEADERS | END_STREAM, stream, encodeFields(fields));

describe("on a stream whose request is whole and not yet answered", () => {
  for (const [title, octets] of [
    ["more of the body", data(1, MESSAGE)],
    ["an empty part of the body", data(1, Buffer.alloc(0))],
    ["a second header", get(1)],
    ["trailers", trailers(1, ["a", "b"])],
  ] as const)
    test(`${title} ends the stream`, async () => {
      await scene(async ({ connect, receiver, faults }) => {
        receiver.answers = false;
        const client = (await connect()).greet().send(get(1), octets, get(3));
        assert.equal(await client.resetOf(1), STREAM_CLOSED);
        await client.ping();
        for (const port of receiver.waiting) receiver.answer(port);
        await client.first(FrameType.DATA, 3);
        assert.deepEqual([client.body(1).length, faults()], [0, 0]);
      });
    });

  for (const [title, octets] of [
    ["a wider window", widen(1, 1000)],
    ["another priority", frame(FrameType.PRIORITY, 0, 1, dependency(3))],
  ] as const)
    test(`${title} is allowed`, async () => {
      await scene(async ({ connect, receiver }) => {
        receiver.answers = false;
        const client = (await connect()).greet().send(get(1), octets);
        await client.ping();
        for (const port of receiver.waiting) receiver.answer(port);
        await client.first(FrameType.DATA, 1);
      });
    });
});

/** Sends `last` after `before` was answered or reset by either side. */
async function afterwards(
  run: (client: Awaited<ReturnType<Scene["connect"]>>, scene: Scene) => Promise<unknown>,
  before: readonly Uint8Array[],
  last: Uint8Array,
): Promise<void> {
  await scene(async (all) => {
    const client = (await all.connect()).greet().send(...before);
    await client.ping();
    client.send(last);
    await run(client, all);
  });
}

describe("on a closed stream", () => {
  for (const [title, code, before, last] of [
    ["more of the body after the answer", STREAM_CLOSED, [get(1)], data(1, MESSAGE)],
    [
      "more of the body after an answer to a body",
      STREAM_CLOSED,
      [post(1), data(1, MESSAGE)],
      data(1, MESSAGE),
    ],
    [
      "a body after a POST without one",
      STREAM_CLOSED,
      [frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, POST)],
      data(1, MESSAGE),
    ],
    ["a second header after the answer", STREAM_CLOSED, [get(1)], get(1)],
    ["trailers after the answer", STREAM_CLOSED, [get(1)], trailers(1, ["a", "b"])],
    ["a body after the client's reset", STREAM_CLOSED, [post(1), reset(1)], data(1, MESSAGE)],
    ["a header after the client's reset", STREAM_CLOSED, [post(1), reset(1)], get(1)],
    ["a body after the client's reset of a GET", STREAM_CLOSED, [openGet(1), reset(1)], data(1, MESSAGE)],
    ["a header for a skipped lower number", PROTOCOL_ERROR, [get(5)], get(3)],
    ["a header for the skipped first number", PROTOCOL_ERROR, [get(3)], get(1)],
    ["a body for a skipped lower number", PROTOCOL_ERROR, [get(5)], data(3, MESSAGE)],
    ["a lower number, used before others were skipped", STREAM_CLOSED, [get(1), get(7)], get(1)],
    [
      "more after the end of an ignored request",
      STREAM_CLOSED,
      [post(1), data(1, Buffer.alloc(11), 0), post(1), data(1, MESSAGE)],
      data(1, MESSAGE),
    ],
  ] as const)
    test(`${title} ends the connection`, async () => {
      await afterwards(
        async (client, { faults }) => {
          const closed = once(client.socket, "close");
          assert.equal(await client.goodbye(), code);
          await closed;
          assert.equal(faults(), 1);
        },
        before,
        last,
      );
    });

  const refused = head("POST", "/dns-query", ["connection", "close"]);
  for (const [title, before, last] of [
    [
      "the body of a malformed request",
      [frame(FrameType.HEADERS, END_HEADERS, 1, refused)],
      data(1, MESSAGE),
    ],
    [
      "trailers of a malformed request",
      [frame(FrameType.HEADERS, END_HEADERS, 1, refused)],
      trailers(1, ["a", "b"]),
    ],
    [
      "the rest of a body that is too long",
      [post(1), ...Array.from({ length: 5 }, () => data(1, Buffer.alloc(14_000), 0))],
      data(1, MESSAGE),
    ],
    ["the rest after a fault of the stream", [post(1), post(1)], data(1, MESSAGE)],
    ["a window for an answer already sent", [get(1)], widen(1, 1000)],
    ["a reset that crossed the answer", [get(1)], reset(1)],
    ["a priority", [get(1)], frame(FrameType.PRIORITY, 0, 1, dependency(3))],
    ["a window for a skipped number", [get(5)], widen(3, 1000)],
  ] as const)
    test(`${title} is ignored`, async () => {
      await afterwards(
        async (client, { faults }) => {
          client.send(get(7));
          await client.first(FrameType.DATA, 7);
          assert.equal(faults(), 0);
        },
        before,
        last,
      );
    });

  test("the body of a request above the limit is ignored", async () => {
    await scene(async ({ connect, receiver, faults }) => {
      receiver.answers = false;
      const client = (await connect()).greet().send(get(1), post(3));
      assert.equal(await client.resetOf(3), ErrorCode.REFUSED_STREAM);
      client.send(data(3, MESSAGE));
      await client.ping();
      assert.equal(faults(), 0);
    }, 1);
  });

  test("the body of a request that took too long is ignored", async () => {
    await scene(async ({ connect, clock, faults }) => {
      const client = (await connect()).greet().send(post(1));
      await client.ping();
      clock.advance(1300);
      assert.equal(await client.resetOf(1), ErrorCode.CANCEL);
      client.send(data(1, MESSAGE), get(3));
      await client.first(FrameType.DATA, 3);
      assert.equal(faults(), 0);
    });
  });

  test("the body of a request after GOAWAY is ignored", async () => {
    await scene(async ({ connect, receiver, pause, faults }) => {
      receiver.answers = false;
      const client = (await connect()).greet().send(get(1));
      await client.ping();
      pause();
      assert.equal(await client.goodbye(), ErrorCode.NO_ERROR);
      client.send(post(5), data(5, MESSAGE), data(3, MESSAGE));
      await client.ping();
      for (const port of receiver.waiting) receiver.answer(port);
      await client.first(FrameType.DATA, 1);
      assert.equal(faults(), 0);
    });
  });
});

describe("the stream numbers of a session", () => {
  test("are limited, however many streams are reset or skipped", () => {
    const numbers = new StreamNumbers();
    for (let id = 1; id < 40_000; id += 4) {
      numbers.begin(id);
      numbers.reset(id);
    }
    assert.ok(numbers.size <= 1100, String(numbers.size));
    // The latest are remembered, the oldest are not.
    assert.equal(numbers.faultOf(39_997), undefined);
    assert.equal(numbers.faultOf(39_995), PROTOCOL_ERROR);
    assert.equal(numbers.faultOf(1), STREAM_CLOSED);
    assert.equal(numbers.faultOf(3), STREAM_CLOSED);
    assert.equal(numbers.faultOf(39_999), PROTOCOL_ERROR);
  });

  test("take no memory for an ordinary client", () => {
    const numbers = new StreamNumbers();
    for (let id = 1; id < 2000; id += 2) {
      numbers.begin(id);
      numbers.reset(id);
      numbers.end(id);
      assert.equal(numbers.faultOf(id), STREAM_CLOSED);
    }
    assert.equal(numbers.size, 0);
  });
});

describe("a stream that depends on itself", () => {
  for (const [title, ...octets] of [
    [
      "by its header",
      frame(FrameType.HEADERS, END_HEADERS | END_STREAM | PRIORITY, 1, Buffer.concat([dependency(1), GET])),
    ],
    [
      "by its header, exclusively and with padding",
      frame(
        FrameType.HEADERS,
        END_HEADERS | END_STREAM | PRIORITY | PADDED,
        1,
        Buffer.concat([Uint8Array.of(2), dependency(1, 0x8000_0000), GET, Buffer.alloc(2)]),
      ),
    ],
    [
      "by a header of several frames",
      frame(FrameType.HEADERS, END_STREAM | PRIORITY, 1, Buffer.concat([dependency(1), GET.subarray(0, 9)])),
      frame(FrameType.CONTINUATION, END_HEADERS, 1, GET.subarray(9)),
    ],
    [
      "by its trailers",
      post(1),
      frame(FrameType.HEADERS, END_HEADERS | END_STREAM | PRIORITY, 1, dependency(1)),
    ],
    ["by a priority", post(1), frame(FrameType.PRIORITY, 0, 1, dependency(1))],
  ] as const)
    test(`${title} is reset`, async () => {
      await scene(async ({ connect, receiver }) => {
        const client = (await connect()).greet().send(...octets);
        assert.equal(await client.resetOf(1), PROTOCOL_ERROR);
        client.send(get(3));
        await client.first(FrameType.DATA, 3);
        assert.equal(receiver.received, 1);
      });
    });

  test("and is idle ends the connection: it cannot be reset", async () => {
    await scene(async ({ connect }) => {
      const client = (await connect()).greet().send(frame(FrameType.PRIORITY, 0, 1, dependency(1)));
      assert.equal(await client.goodbye(), PROTOCOL_ERROR);
      assert.ok(!client.frames.some(({ type }) => type === FrameType.RST_STREAM));
    });
  });

  test("and is closed changes nothing", async () => {
    await scene(async ({ connect }) => {
      const client = (await connect()).greet().send(get(1), frame(FrameType.PRIORITY, 0, 1, dependency(1)));
      await client.ping();
      assert.ok(!client.frames.some(({ type }) => type === FrameType.RST_STREAM));
    });
  });
});

describe("an incomplete request is not answered yet", () => {
  for (const [title, code, ...octets] of [
    ["a window increment of 0", PROTOCOL_ERROR, widen(1, 0)],
    ["windows that overflow together", FLOW_CONTROL_ERROR, widen(1, 0x7fff_ffff), widen(1, 0x7fff_ffff)],
    ["more than the announced length", PROTOCOL_ERROR, data(1, MESSAGE)],
    ["trailers with a method", PROTOCOL_ERROR, trailers(1, [":method", "POST"])],
    ["trailers with a connection-specific field", PROTOCOL_ERROR, trailers(1, ["connection", "close"])],
    ["a second header", PROTOCOL_ERROR, openGet(1)],
  ] as const)
    for (const [method, path] of [
      ["GET", `/dns-query?dns=${MESSAGE.toString("base64url")}`],
      ["POST", "/dns-query"],
      ["POST", "/elsewhere"],
      ["PUT", "/dns-query"],
    ] as const)
      test(`${method} ${path.slice(0, 10)}: ${title} ends the stream`, async () => {
        await scene(async ({ connect, statuses, budget }) => {
          const begun = head(method, path, ["content-length", 0]);
          const client = (await connect()).greet().send(frame(FrameType.HEADERS, END_HEADERS, 1, begun));
          await client.ping();
          client.send(...octets);
          assert.equal(await client.resetOf(1), code);
          await client.ping();
          assert.deepEqual([statuses, budget.unsent], [[], 0]);
        });
      });

  for (const [title, status, begun, ...rest] of [
    ["a GET, with an empty end", 200, GET, data(1, Buffer.alloc(0))],
    ["a GET, with an ignored body", 200, GET, data(1, Buffer.alloc(50), 0), data(1, Buffer.alloc(9))],
    ["a GET, with trailers", 200, GET, trailers(1, ["a", "b"])],
    ["another path", 404, head("POST", "/"), data(1, MESSAGE)],
    ["another method, in parts", 400, head("PUT", "/dns-query"), data(1, MESSAGE, 0), data(1, MESSAGE)],
    ["a large header", 431, Buffer.concat([POST, Buffer.alloc(500, 0x90)]), data(1, MESSAGE)],
    [
      "another path, with a body longer than any message",
      404,
      head("POST", "/"),
      ...Array.from({ length: 5 }, () => data(1, Buffer.alloc(14_000), 0)),
    ],
  ] as const)
    test(`${title}: ${status}`, async () => {
      await scene(async ({ connect, statuses, budget }) => {
        const client = (await connect()).greet();
        client.send(frame(FrameType.HEADERS, END_HEADERS, 1, begun));
        await client.ping();
        assert.deepEqual(statuses, []);
        client.send(...rest);
        await client.ping();
        assert.deepEqual([statuses, budget.unsent], [[status], 0]);
        if (status === 200) assert.deepEqual(client.body(1), Buffer.alloc(40, 7));
      });
    });

  test("a GET that waits for its end counts in the budget, until its client gives up", async () => {
    await scene(async ({ connect, budget, timeouts, clock }) => {
      const client = (await connect()).greet().send(openGet(1), openGet(3));
      await client.ping();
      assert.equal(budget.unsent, 2 * MESSAGE.length);
      client.send(reset(1));
      await client.ping();
      assert.equal(budget.unsent, MESSAGE.length);
      clock.advance(1300);
      assert.equal(await client.resetOf(3), ErrorCode.CANCEL);
      assert.deepEqual([budget.unsent, timeouts], [0, ["request"]]);
    });
  });

  test("a body that is too long is refused once, while the refusal waits for a window", async () => {
    await scene(async ({ connect, statuses }) => {
      const client = (await connect()).greet([Setting.INITIAL_WINDOW_SIZE, 0]).send(post(1));
      for (let part = 0; part < 7; part++) client.send(data(1, Buffer.alloc(11_000), 0));
      client.send(widen(1, 1000));
      await client.first(FrameType.DATA, 1);
      await client.ping();
      assert.deepEqual(statuses, [400]);
      assert.equal(client.frames.filter(({ type }) => type === FrameType.HEADERS).length, 1);
    });
  });
});

describe("a change of the initial window, while an answer waits", () => {
  test("is acknowledged, and then releases as much of the answer as it allows", async () => {
    await scene(async ({ connect }) => {
      const client = (await connect()).greet([Setting.INITIAL_WINDOW_SIZE, 0]).send(get(1));
      await client.first(FrameType.HEADERS, 1);
      await client.ping();
      assert.equal(client.body(1).length, 0);
      for (const [window, octets] of [
        [1, 1],
        [1, 1],
        [0, 1],
        [30, 30],
        [65_535, 40],
      ] as const) {
        const before = client.frames.length;
        client.send(settings([Setting.INITIAL_WINDOW_SIZE, window]));
        await client.ping();
        assert.equal(client.body(1).length, octets, `window ${window}`);
        assert.equal(client.frames[before]?.type, FrameType.SETTINGS, "the acknowledgement comes first");
      }
      assert.deepEqual(client.body(1), Buffer.alloc(40, 7));
    });
  });

  test("releases the answers of all streams", async () => {
    await scene(async ({ connect }) => {
      const client = (await connect()).greet([Setting.INITIAL_WINDOW_SIZE, 0]);
      const ids = [1, 3, 5, 7, 9];
      client.send(...ids.map(get));
      await client.ping();
      client.send(settings([Setting.INITIAL_WINDOW_SIZE, 20]), widen(5, 20));
      await client.ping();
      assert.deepEqual(
        ids.map((id) => client.body(id).length),
        [20, 20, 40, 20, 20],
      );
      client.send(settings([Setting.INITIAL_WINDOW_SIZE, 40]));
      await client.ping();
      for (const id of ids) assert.equal(client.body(id).length, 40);
    });
  });

  test("that makes a window overflow ends the connection, and is not acknowledged", async () => {
    await scene(async ({ connect }) => {
      const client = (await connect())
        .greet([Setting.INITIAL_WINDOW_SIZE, 0])
        .send(get(1), widen(1, 0x7fff_fff0));
      await client.ping();
      assert.equal(client.body(1).length, 40);
      client.send(settings([Setting.INITIAL_WINDOW_SIZE, 0]), post(3), widen(3, 0x7fff_fff0));
      await client.ping();
      const acknowledged = client.frames.filter(({ type }) => type === FrameType.SETTINGS).length;
      client.send(settings([Setting.INITIAL_WINDOW_SIZE, 100]));
      assert.equal(await client.goodbye(), FLOW_CONTROL_ERROR);
      assert.equal(client.frames.filter(({ type }) => type === FrameType.SETTINGS).length, acknowledged);
    });
  });
});

test("a client that opens and resets streams is disconnected, and nothing of its streams is kept", async () => {
  await scene(async ({ connect, receiver, budget }) => {
    receiver.answers = false;
    const client = (await connect()).greet();
    let id = 1;
    while (!client.frames.some(({ type }) => type === FrameType.GOAWAY)) {
      assert.ok(id < 10_000);
      client.send(openGet(id), reset(id));
      id += 2;
      await nextTurn();
    }
    assert.equal(await client.goodbye(), ErrorCode.ENHANCE_YOUR_CALM);
    assert.deepEqual([receiver.received, budget.unsent], [0, 0]);
  });
});
