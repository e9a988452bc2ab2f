import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { FakeClock } from "../../lib/clock.ts";
import { listenForStreams } from "../byte-stream-server.ts";
import { ConnectionBudget } from "../connection-budget.ts";
import type { MessageReceiver, ReplyPort } from "../transport.ts";
import { DohRequests, DohStream } from "./doh-stream.ts";
import { HpackDecoder, hpackScratch } from "./hpack-decoder.ts";
import { encodeFields } from "./hpack-encoder.ts";
import {
  ErrorCode,
  FRAME_HEAD,
  FrameFlag,
  FrameType,
  PREFACE,
  Setting,
  settingsPayload,
  writeFrameHead,
} from "./http2-frames.ts";
import { Http2Sessions } from "./http2-session.ts";

const { END_STREAM, END_HEADERS, PADDED, PRIORITY } = FrameFlag;
const MESSAGE = Buffer.from("00010100000100000000000003777777076578616d706c65036f72670000010001", "hex");

/** Answers with as many octets as it is told, or keeps the way back. */
class Answerer implements MessageReceiver {
  answers = true;
  replyLength = 40;
  received = 0;
  readonly waiting: ReplyPort[] = [];

  receive(_bytes: Uint8Array, _length: number, port: ReplyPort): void {
    this.received++;
    if (this.answers) this.answer(port);
    else this.waiting.push(port.keep());
  }

  answer(port: ReplyPort): void {
    port.buffer(this.replyLength).fill(7);
    port.send(this.replyLength);
  }
}

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

function frame(type: number, flags: number, stream: number, payload: Uint8Array = new Uint8Array()): Buffer {
  const head = new Uint8Array(FRAME_HEAD);
  writeFrameHead(head, 0, payload.length, type, flags, stream);
  return Buffer.concat([head, payload]);
}

const number = (value: number): Buffer => {
  const octets = Buffer.alloc(4);
  octets.writeUInt32BE(value);
  return octets;
};

const settings = (...said: readonly (readonly [number, number])[]): Buffer =>
  frame(FrameType.SETTINGS, 0, 0, settingsPayload(said));

const head = (
  method: string,
  path: string,
  ...more: readonly (readonly [string, string | number])[]
): Uint8Array => encodeFields([[":method", method], [":scheme", "https"], [":path", path], ...more]);

const GET = head("GET", `/dns-query?dns=${MESSAGE.toString("base64url")}`);
const POST = head("POST", "/dns-query");
const get = (stream: number): Buffer => frame(FrameType.HEADERS, END_HEADERS | END_STREAM, stream, GET);
const post = (stream: number): Buffer => frame(FrameType.HEADERS, END_HEADERS, stream, POST);
const data = (stream: number, octets: Uint8Array, flags: number = END_STREAM): Buffer =>
  frame(FrameType.DATA, flags, stream, octets);

/** A client that says what it wants, and keeps what comes back. */
class RawClient {
  readonly socket: Socket;
  readonly frames: Frame[] = [];
  #pending: Buffer = Buffer.alloc(0);

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("error", () => undefined);
    socket.on("data", (octets: Buffer) => {
      this.#pending = Buffer.concat([this.#pending, octets]);
      while (this.#pending.length >= FRAME_HEAD) {
        const length = this.#pending.readUIntBE(0, 3);
        if (this.#pending.length < FRAME_HEAD + length) break;
        this.frames.push({
          type: this.#pending[3] as number,
          flags: this.#pending[4] as number,
          stream: this.#pending.readUInt32BE(5),
          payload: this.#pending.subarray(FRAME_HEAD, FRAME_HEAD + length),
        });
        this.#pending = this.#pending.subarray(FRAME_HEAD + length);
      }
    });
  }

  /** Begins properly. */
  greet(...said: readonly (readonly [number, number])[]): this {
    return this.send(PREFACE, settings(...said));
  }

  send(...octets: readonly Uint8Array[]): this {
    this.socket.write(Buffer.concat(octets));
    return this;
  }

  /** The first frame that is looked for, when it has come. */
  async first(type: number, stream?: number): Promise<Frame> {
    for (;;) {
      const found = this.frames.find((one) => one.type === type && (stream ?? one.stream) === one.stream);
      if (found !== undefined) return found;
      assert.ok(!this.socket.destroyed && !this.socket.readableEnded, "the connection has ended");
      await once(this.socket, "data");
    }
  }

  /** The code that the connection ended with. */
  async goodbye(): Promise<number> {
    return (await this.first(FrameType.GOAWAY)).payload.readUInt32BE(4);
  }

  async resetOf(stream: number): Promise<number> {
    return (await this.first(FrameType.RST_STREAM, stream)).payload.readUInt32BE(0);
  }

  /** Resolves when all that was sent before has been looked at. */
  async ping(): Promise<void> {
    const mark = Buffer.alloc(8, this.frames.length);
    this.send(frame(FrameType.PING, 0, 0, mark));
    while (!this.frames.some(({ type, payload }) => type === FrameType.PING && payload.equals(mark)))
      await once(this.socket, "data");
  }

  body(stream: number): Buffer {
    const parts = this.frames.filter((one) => one.type === FrameType.DATA && one.stream === stream);
    return Buffer.concat(parts.map(({ payload }) => payload));
  }
}

interface Scene {
  readonly receiver: Answerer;
  readonly clock: FakeClock;
  readonly budget: ConnectionBudget;
  readonly statuses: number[];
  readonly faults: () => number;
  readonly timeouts: string[];
  readonly unread: () => number;
  readonly connect: () => Promise<RawClient>;
  readonly pause: () => void;
}

async function scene(run: (scene: Scene) => Promise<void>, maxStreams = 250): Promise<void> {
  const clock = new FakeClock();
  const receiver = new Answerer();
  const budget = new ConnectionBudget();
  const [statuses, timeouts]: [number[], string[]] = [[], []];
  let faults = 0;
  let unread = 0;
  const requests = new DohRequests({
    receiver,
    wallTime: () => clock.wallTime(),
    onResponse: (status) => statuses.push(status),
  });
  const sessions = new Http2Sessions({
    clock,
    budget,
    maxStreams: () => maxStreams,
    timeouts: () => ({ read: 1000, write: 2000, idle: 40_000 }),
    onFault: () => faults++,
    onTimeout: (what) => timeouts.push(what),
    onUnread: () => unread++,
    open: (home, id) => new DohStream(home, id, requests),
  });
  const transport = await listenForStreams(
    { host: "127.0.0.1", port: 0 },
    {
      name: "https",
      clock,
      budget,
      handshakeTimeout: () => 1000,
      serve: (stream, heardFrom) => sessions.serve(stream, heardFrom),
    },
  );
  const clients: RawClient[] = [];
  try {
    await run({
      receiver,
      clock,
      budget,
      statuses,
      timeouts,
      faults: () => faults,
      unread: () => unread,
      pause: () => transport.pause(),
      async connect() {
        const socket = connect(transport.port, "127.0.0.1");
        await once(socket, "connect");
        const client = new RawClient(socket);
        clients.push(client);
        return client;
      },
    });
  } finally {
    for (const { socket } of clients) socket.destroy();
    await transport.close();
  }
}

function fieldsOf({ payload }: Frame): number[] {
  const sizes: number[] = [];
  const sink = {
    field: (_name: number, _octets: Uint8Array, _start: number, _end: number, size: number) =>
      sizes.push(size),
  };
  new HpackDecoder(hpackScratch()).decode(payload, 0, payload.length, sink);
  return sizes;
}

describe("a request is answered", () => {
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
      "among frames that nobody knows",
      frame(99, 255, 3, Buffer.alloc(50)),
      frame(FrameType.PRIORITY, 0, 7, Buffer.alloc(5)),
      get(1),
    ],
  ] as const) {
    test(title, async () => {
      await scene(async ({ connect, statuses, faults }) => {
        const client = (await connect()).greet().send(...octets);
        const response = await client.first(FrameType.HEADERS, 1);
        // The size of the table, once a connection; then :status, content-type, content-length, cache-control.
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

  test("whatever the length of the reply, and that of its length", async () => {
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
});

describe("a refusal costs its stream", () => {
  for (const [title, code, ...octets] of [
    [
      "no method",
      ErrorCode.PROTOCOL_ERROR,
      frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, encodeFields([[":path", "/"]])),
    ],
    [
      "more than was said",
      ErrorCode.PROTOCOL_ERROR,
      frame(FrameType.HEADERS, END_HEADERS, 1, head("POST", "/dns-query", ["content-length", 3])),
      data(1, MESSAGE),
    ],
    [
      "less than was said",
      ErrorCode.PROTOCOL_ERROR,
      frame(FrameType.HEADERS, END_HEADERS, 1, head("POST", "/dns-query", ["content-length", 300])),
      data(1, MESSAGE),
    ],
    [
      "a length and nothing",
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
      "a window widened by nothing",
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
    ["a POST of nothing", 400, frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, POST)],
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
});

describe("a fault costs the connection", () => {
  for (const [title, code, ...octets] of [
    ["another protocol", ErrorCode.PROTOCOL_ERROR, Buffer.from("GET / HTTP/1.1\r\nHost: dns\r\n\r\n")],
    ["no settings", ErrorCode.PROTOCOL_ERROR, PREFACE, get(1)],
    [
      "an acknowledgement in place of settings",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      frame(FrameType.SETTINGS, FrameFlag.ACK, 0),
    ],
    ["a stream of even number", ErrorCode.PROTOCOL_ERROR, PREFACE, settings(), get(2)],
    ["a request on no stream", ErrorCode.PROTOCOL_ERROR, PREFACE, settings(), get(0)],
    ["DATA on a stream that is not there", ErrorCode.PROTOCOL_ERROR, PREFACE, settings(), data(1, MESSAGE)],
    [
      "a reset of a stream that is not there",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.RST_STREAM, 0, 1, number(8)),
    ],
    [
      "a window for a stream that is not there",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.WINDOW_UPDATE, 0, 1, number(8)),
    ],
    [
      "the connection's window widened by nothing",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.WINDOW_UPDATE, 0, 0, number(0)),
    ],
    [
      "a window that overflows",
      ErrorCode.FLOW_CONTROL_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.WINDOW_UPDATE, 0, 0, number(0x7fff_ffff)),
    ],
    [
      "a setting that overflows",
      ErrorCode.FLOW_CONTROL_ERROR,
      PREFACE,
      settings([Setting.INITIAL_WINDOW_SIZE, 0x8000_0000]),
    ],
    ["a setting of push that is none", ErrorCode.PROTOCOL_ERROR, PREFACE, settings([Setting.ENABLE_PUSH, 2])],
    [
      "frames smaller than allowed",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings([Setting.MAX_FRAME_SIZE, 100]),
    ],
    [
      "settings of an odd size",
      ErrorCode.FRAME_SIZE_ERROR,
      PREFACE,
      frame(FrameType.SETTINGS, 0, 0, Buffer.alloc(7)),
    ],
    [
      "settings by the hundred in a frame",
      ErrorCode.ENHANCE_YOUR_CALM,
      PREFACE,
      frame(FrameType.SETTINGS, 0, 0, Buffer.alloc(600)),
    ],
    ["settings on a stream", ErrorCode.PROTOCOL_ERROR, PREFACE, settings(), frame(FrameType.SETTINGS, 0, 1)],
    [
      "an acknowledgement with octets",
      ErrorCode.FRAME_SIZE_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.SETTINGS, FrameFlag.ACK, 0, Buffer.alloc(6)),
    ],
    [
      "a short ping",
      ErrorCode.FRAME_SIZE_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.PING, 0, 0, Buffer.alloc(7)),
    ],
    [
      "a short reset",
      ErrorCode.FRAME_SIZE_ERROR,
      PREFACE,
      settings(),
      post(1),
      frame(FrameType.RST_STREAM, 0, 1, Buffer.alloc(3)),
    ],
    [
      "a push",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.PUSH_PROMISE, END_HEADERS, 1, GET),
    ],
    [
      "more padding than frame",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      post(1),
      data(1, Buffer.from([5, 0, 0]), PADDED),
    ],
    [
      "padding of nothing",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      post(1),
      data(1, Buffer.alloc(0), PADDED),
    ],
    [
      "a frame that is too long",
      ErrorCode.FRAME_SIZE_ERROR,
      PREFACE,
      settings(),
      frame(99, 0, 0, Buffer.alloc(16_385)),
    ],
    [
      "a header that is interrupted",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.HEADERS, 0, 1, GET),
      get(3),
    ],
    [
      "a header that goes on elsewhere",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.HEADERS, 0, 1, GET),
      frame(FrameType.CONTINUATION, END_HEADERS, 3),
    ],
    [
      "CONTINUATION of nothing",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.CONTINUATION, END_HEADERS, 1, GET),
    ],
    [
      "a header without end",
      ErrorCode.ENHANCE_YOUR_CALM,
      PREFACE,
      settings(),
      frame(FrameType.HEADERS, 0, 1, GET),
      ...Array.from({ length: 17 }, () => frame(FrameType.CONTINUATION, 0, 1)),
    ],
    [
      "a header that is too long",
      ErrorCode.ENHANCE_YOUR_CALM,
      PREFACE,
      settings(),
      frame(FrameType.HEADERS, 0, 1, Buffer.alloc(16_000, 0x82)),
      frame(FrameType.CONTINUATION, 0, 1, Buffer.alloc(400, 0x82)),
    ],
    [
      "a header that is no HPACK",
      ErrorCode.COMPRESSION_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.HEADERS, END_HEADERS, 1, Buffer.from([0xff, 0xff])),
    ],
    [
      "trailers that are no HPACK",
      ErrorCode.COMPRESSION_ERROR,
      PREFACE,
      settings(),
      post(1),
      frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, Buffer.from([0x80])),
    ],
    [
      "more than the window takes",
      ErrorCode.FLOW_CONTROL_ERROR,
      PREFACE,
      settings(),
      post(1),
      ...Array.from({ length: 17 }, () => data(1, Buffer.alloc(16_384), 0)),
    ],
  ] as const) {
    test(title, async () => {
      await scene(async ({ connect, faults, budget }) => {
        const client = (await connect()).send(...octets);
        if (title === "more than the window takes") {
          // That of the stream comes first.
          assert.equal(await client.resetOf(1), ErrorCode.NO_ERROR);
          return;
        }
        const closed = once(client.socket, "close");
        assert.equal(await client.goodbye(), code);
        await closed;
        assert.equal(faults(), 1);
        assert.equal(budget.unsent, 0);
      });
    });
  }

  for (const [title, ...octets] of [
    ["pings", frame(FrameType.PING, 0, 0, Buffer.alloc(8))],
    ["settings", settings()],
    ["windows", frame(FrameType.WINDOW_UPDATE, 0, 0, number(1))],
    ["frames that nobody knows", frame(77, 0, 0)],
    ["crumbs of a body", data(1, Buffer.from("x"), 0)],
    ["empty parts of a body", data(1, Buffer.alloc(0), 0)],
  ] as const) {
    test(`${title} by the thousand`, async () => {
      await scene(async ({ connect, clock }) => {
        const client = (await connect()).greet().send(post(1));
        const half = Buffer.concat(Array.from({ length: 450 }, () => octets).flat());
        client.send(half, half);
        await client.ping();
        // What is sent over a longer time is no flood.
        clock.advance(10_000);
        client.send(get(3), half);
        await client.ping();
        client.send(half, half);
        assert.equal(await client.goodbye(), ErrorCode.ENHANCE_YOUR_CALM);
      });
    });
  }

  for (const [title, octets] of [
    ["that are not whole", post],
    ["that are being answered", get],
  ] as const) {
    test(`requests ${title}, and resets of them, by the thousand`, async () => {
      await scene(async ({ connect, receiver }) => {
        receiver.answers = false;
        const client = (await connect()).greet();
        const ids = Array.from({ length: 1100 }, (_, index) => 2 * index + 1);
        client.send(
          ...ids.flatMap((id) => [octets(id), frame(FrameType.RST_STREAM, 0, id, number(ErrorCode.CANCEL))]),
        );
        assert.equal(await client.goodbye(), ErrorCode.ENHANCE_YOUR_CALM);
        // Who resets a stream does not thereby get another query answered.
        assert.ok(receiver.received <= 250);
      });
    });
  }
});

describe("streams", () => {
  test("above the limit are refused, and those that were reset count until their queries are settled", async () => {
    await scene(async ({ connect, receiver }) => {
      receiver.answers = false;
      const client = (await connect()).greet();
      client.send(get(1), get(3), frame(FrameType.RST_STREAM, 0, 1, number(ErrorCode.CANCEL)), get(5));
      assert.equal(await client.resetOf(5), ErrorCode.REFUSED_STREAM);
      assert.equal(receiver.received, 2);
      for (const port of receiver.waiting) receiver.answer(port);
      await client.first(FrameType.DATA, 3);
      client.send(get(7), get(9));
      await client.ping();
      assert.equal(receiver.received, 4);
      // To the one that was given up nothing was sent.
      assert.equal(client.body(1).length, 0);
    }, 2);
  });

  test("that are not whole in time are given up", async () => {
    await scene(async ({ connect, clock, timeouts, receiver }) => {
      const client = (await connect()).greet().send(post(1), data(1, MESSAGE.subarray(0, 9), 0), get(3));
      await client.ping();
      receiver.answers = false;
      client.send(get(5));
      await client.ping();
      clock.advance(1300);
      assert.equal(await client.resetOf(1), ErrorCode.CANCEL);
      assert.deepEqual(timeouts, ["request"]);
      // A query that is being answered may take its time.
      for (const port of receiver.waiting) receiver.answer(port);
      await client.first(FrameType.DATA, 5);
    });
  });

  test("take what the client's windows have room for, and the rest when they open", async () => {
    await scene(async ({ connect, receiver, budget }) => {
      receiver.replyLength = 1000;
      const client = (await connect()).greet([Setting.INITIAL_WINDOW_SIZE, 300]).send(get(1), get(3));
      await client.ping();
      assert.deepEqual([client.body(1).length, client.body(3).length], [300, 300]);
      assert.equal(budget.unsent, 1400);
      client.send(frame(FrameType.WINDOW_UPDATE, 0, 1, number(600)));
      await client.ping();
      assert.equal(client.body(1).length, 900);
      client.send(settings([Setting.INITIAL_WINDOW_SIZE, 1000]));
      await client.ping();
      assert.deepEqual([client.body(1), client.body(3)], [Buffer.alloc(1000, 7), Buffer.alloc(1000, 7)]);
      assert.equal(budget.unsent, 0);
    });
  });

  test("share the window of the connection", async () => {
    await scene(async ({ connect, receiver, budget }) => {
      receiver.replyLength = 50_000;
      const client = (await connect()).greet([Setting.INITIAL_WINDOW_SIZE, 100_000]).send(get(1), get(3));
      await client.ping();
      assert.equal(client.body(1).length + client.body(3).length, 65_535);
      client.send(frame(FrameType.WINDOW_UPDATE, 0, 0, number(100_000)));
      await client.ping();
      assert.equal(client.body(1).length + client.body(3).length, 100_000);
      assert.equal(budget.unsent, 0);
    });
  });

  test("of a client that opens no window are given up in time, and keep a bounded part", async () => {
    await scene(async ({ connect, clock, receiver, timeouts, budget, unread }) => {
      receiver.replyLength = 10_000;
      const client = (await connect()).greet([Setting.INITIAL_WINDOW_SIZE, 0]);
      for (let id = 1; id < 400; id += 2) client.send(get(id));
      await client.ping();
      const refused = client.frames.filter(({ type }) => type === FrameType.RST_STREAM).length;
      assert.ok(refused > 150, String(refused));
      assert.ok(budget.unsent <= 512 * 1024);
      clock.advance(2500);
      await client.ping();
      assert.deepEqual(new Set(timeouts), new Set(["response"]));
      assert.equal(timeouts.length + refused, 200);
      assert.equal(budget.unsent, 0);
      assert.equal(unread(), 0);
    });
  });
});

describe("a connection", () => {
  test("whose client does not read is read no further, and given up in time", async () => {
    await scene(async ({ connect, clock, receiver, timeouts, budget }) => {
      receiver.replyLength = 60_000;
      const client = (await connect()).greet([Setting.INITIAL_WINDOW_SIZE, 0x7fff_ffff]);
      client.send(frame(FrameType.WINDOW_UPDATE, 0, 0, number(0x7000_0000)));
      await client.ping();
      client.socket.pause();
      const closed = new Promise((resolve) => client.socket.once("close", resolve));
      let id = 1;
      for (let behind = false; !behind; await nextTurn()) {
        for (let count = 0; count < 20; count++, id += 2) client.send(get(id));
        behind = budget.unsent > 0 && client.socket.writableLength > 0;
      }
      for (let before = -1; before !== receiver.received; await nextTurn()) before = receiver.received;
      assert.ok(budget.unsent < 1024 * 1024, String(budget.unsent));
      for (let count = 0; count < 12; count++) clock.advance(500);
      client.socket.resume();
      await closed;
      assert.ok(timeouts.includes("response"));
      assert.equal(budget.unsent, 0);
    });
  });

  test("is told goodbye when it has been idle, and closed", async () => {
    await scene(async ({ connect, clock, faults }) => {
      const client = (await connect()).greet().send(get(1));
      await client.ping();
      clock.advance(39_000);
      client.send(get(3));
      await client.ping();
      clock.advance(39_000);
      await client.ping();
      const closed = once(client.socket, "close");
      clock.advance(1500);
      assert.equal(await client.goodbye(), ErrorCode.NO_ERROR);
      await closed;
      assert.equal(faults(), 0);
    });
  });

  test("that is to end answers what is under way, and takes no more", async () => {
    await scene(async ({ connect, receiver, pause }) => {
      receiver.answers = false;
      const client = (await connect()).greet().send(get(1));
      await client.ping();
      pause();
      const goodbye = await client.first(FrameType.GOAWAY);
      assert.equal(goodbye.payload.readUInt32BE(0), 1);
      client.send(get(3));
      await client.ping();
      assert.equal(receiver.received, 1);
      const closed = once(client.socket, "close");
      for (const port of receiver.waiting) receiver.answer(port);
      await closed;
      assert.equal(client.body(1).length, 40);
    });
  });

  test("that the client closes for its part still brings the answers", async () => {
    await scene(async ({ connect, receiver }) => {
      receiver.answers = false;
      const client = (await connect()).greet().send(get(1), post(3));
      await client.ping();
      client.socket.end();
      const closed = once(client.socket, "close");
      while (receiver.waiting.length === 0) await nextTurn();
      for (const port of receiver.waiting) receiver.answer(port);
      await closed;
      assert.equal(client.body(1).length, 40);
    });
  });

  test("that has gone is no trouble to those who answer", async () => {
    await scene(async ({ connect, receiver, statuses, budget }) => {
      receiver.answers = false;
      const client = (await connect()).greet().send(get(1), post(3), data(3, MESSAGE.subarray(0, 9), 0));
      await client.ping();
      client.socket.resetAndDestroy();
      while (budget.connections > 0) await nextTurn();
      for (const port of receiver.waiting) receiver.answer(port);
      assert.deepEqual(statuses, []);
      assert.equal(budget.unsent, 0);
    });
  });
});
