/** Servers that break HTTP/2: each affects only the queries that it breaks. */
import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { TimeoutWheel } from "../../lib/time/timeout-wheel.ts";
import { ConnectBackOff } from "../exchange/connect-back-off.ts";
import { UpstreamMetrics } from "../exchange/upstream-metrics.ts";
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  FrameType,
  field,
  frame,
  HONEST_RAW,
  numbers,
  OK_BLOCK,
  type RawConnection,
  RawHttp2Server,
  type RawScript,
  settings,
  TRAILERS_BLOCK,
} from "../fixtures/raw-http2-server.ts";
import { TestRequest, TRUE_RANDOM, until } from "../fixtures/test-request.ts";
import { GrpcDialect } from "./grpc-dialect.ts";
import { Http2Exchange } from "./http2-exchange.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

class Bench {
  readonly clock = new FakeClock();
  readonly server: RawHttp2Server;
  readonly exchange: Http2Exchange;

  private constructor(server: RawHttp2Server) {
    this.server = server;
    const remote = server.address;
    this.exchange = new Http2Exchange({
      remote,
      clock: this.clock,
      wheel: new TimeoutWheel(this.clock, 50),
      random: TRUE_RANDOM,
      metrics: new UpstreamMetrics(new MetricsRegistry(), "forward").exchange(remote.text, "grpc"),
      expire: 10_000,
      maxAge: 0,
      dialect: new GrpcDialect(undefined, "dns.example"),
      backOff: new ConnectBackOff(TRUE_RANDOM),
    });
    cleanups.push(() => this.exchange.close());
  }

  static async start(script: RawScript, greeting?: Uint8Array): Promise<Bench> {
    const server = await RawHttp2Server.start(script, greeting);
    cleanups.push(() => server.stop());
    return new Bench(server);
  }

  send(name?: string): TestRequest {
    const request = new TestRequest(name);
    this.exchange.send(request, 2_000, 5_000);
    return request;
  }

  /** The outcome of a query: "answered", or the reason. */
  async ask(name?: string): Promise<string> {
    return outcome(await this.send(name).result());
  }

  /** The server behaves again: queries are answered, over any connection. */
  async recovers(): Promise<void> {
    this.server.script = HONEST_RAW;
    this.clock.advance(2_500);
    assert.equal(await this.ask("later.example."), "answered");
    assert.equal(this.exchange.pending, 0);
    assert.equal(this.exchange.openConnections, 1);
  }
}

type Result = Awaited<ReturnType<TestRequest["result"]>>;
const outcome = (result: Result): string => (result.kind === "answered" ? "answered" : result.error.message);

const {
  DATA,
  HEADERS,
  RST_STREAM,
  SETTINGS,
  PUSH_PROMISE,
  PING,
  GOAWAY,
  WINDOW_UPDATE,
  CONTINUATION,
  PRIORITY,
} = FrameType;

describe("an HTTP/2 connection error fails its queries, and the next query gets a new connection", () => {
  for (const [title, ...octets] of [
    ["a window widened by nothing", frame(WINDOW_UPDATE, 0, 0, numbers(0))],
    ["a window that overflows", frame(WINDOW_UPDATE, 0, 0, numbers(0x7fff_ffff))],
    ["a window of no length", frame(WINDOW_UPDATE, 0, 0)],
    ["an initial window that overflows", settings([4, 0x8000_0000])],
    ["settings on a stream", frame(SETTINGS, 0, 1)],
    ["settings of an odd size", frame(SETTINGS, 0, 0, Buffer.alloc(7))],
    ["frames smaller than allowed", settings([5, 100])],
    ["push that is switched on", settings([2, 1])],
    ["a push", frame(PUSH_PROMISE, END_HEADERS, 1, Buffer.concat([numbers(2), Uint8Array.of(0x82)]))],
    ["data on no stream", frame(DATA, 0, 0, Buffer.alloc(10))],
    ["data on an idle stream", frame(DATA, 0, 99, Buffer.alloc(10))],
    ["a reset of an idle stream", frame(RST_STREAM, 0, 99, numbers(8))],
    ["a response on an idle stream", frame(HEADERS, END_HEADERS, 99, OK_BLOCK)],
    ["a request in place of a response", frame(HEADERS, END_HEADERS, 2, OK_BLOCK)],
    ["a frame that is too long", frame(77, 0, 0, Buffer.alloc(16_385))],
    ["CONTINUATION of nothing", frame(CONTINUATION, END_HEADERS, 1, OK_BLOCK)],
    ["a header that is interrupted", frame(HEADERS, 0, 1, OK_BLOCK), frame(PING, 0, 0, Buffer.alloc(8))],
    ["a header that is no HPACK", frame(HEADERS, END_HEADERS, 1, Uint8Array.of(0xff, 0xff))],
    ["a field of the table that is not there", frame(HEADERS, END_HEADERS, 1, Uint8Array.of(0xbe))],
    [
      "a table of HPACK larger than allowed",
      frame(HEADERS, END_HEADERS, 1, Buffer.concat([Uint8Array.of(0x3f, 0xe2, 0x1f), OK_BLOCK])),
    ],
    ["a ping of no length", frame(PING, 0, 0)],
    ["a goodbye with a fault", frame(GOAWAY, 0, 0, numbers(0, 2))],
    [
      "CONTINUATION without end",
      frame(HEADERS, 0, 1, OK_BLOCK),
      ...Array.from({ length: 2000 }, () => frame(CONTINUATION, 0, 1)),
    ],
    [
      "a header without end",
      frame(HEADERS, 0, 1, OK_BLOCK),
      ...Array.from({ length: 100 }, () => frame(CONTINUATION, 0, 1, field("x", "y".repeat(100)))),
    ],
    ["settings by the thousand", ...Array.from({ length: 20_000 }, () => settings())],
    ["pings by the thousand", ...Array.from({ length: 20_000 }, () => frame(PING, 0, 0, Buffer.alloc(8)))],
  ] as const)
    test(title, async () => {
      const bench = await Bench.start((connection) => connection.send(...octets));
      const requests = [bench.send("one.example."), bench.send("two.example.")];
      for (const request of requests) {
        const text = outcome(await request.result());
        assert.match(
          text,
          /^rpc error: code = Unavailable desc = (the server broke the rules of HTTP\/2: |Session closed with error code 2$)/,
        );
        assert.equal(request.results.length, 1);
      }
      await bench.recovers();
    });
});

/** Frames that a server may send on the stream of a query in place of its response. */
type StreamFault = (stream: number) => Uint8Array;

describe("an HTTP/2 stream error fails only its query", () => {
  for (const [title, fault] of [
    ["a reset", (id) => frame(RST_STREAM, 0, id, numbers(2))],
    ["a response without status", (id) => frame(HEADERS, END_HEADERS, id, field("a", "b"))],
    ["capitals", (id) => frame(HEADERS, END_HEADERS, id, Buffer.concat([OK_BLOCK, field("A", "b")]))],
    [
      "hundreds of fields",
      (id) =>
        frame(
          HEADERS,
          END_HEADERS,
          id,
          Buffer.concat([OK_BLOCK, ...Array.from({ length: 500 }, () => field("a", "b"))]),
        ),
    ],
    [
      "trailers with a status of HTTP",
      (id) =>
        Buffer.concat([
          frame(HEADERS, END_HEADERS, id, OK_BLOCK),
          frame(HEADERS, END_HEADERS | END_STREAM, id, Buffer.concat([Uint8Array.of(0x88), TRAILERS_BLOCK])),
        ]),
    ],
  ] satisfies readonly (readonly [string, StreamFault])[])
    test(title, async () => {
      const bench = await Bench.start((connection, request) => {
        const [first] = connection.requests;
        if (first !== undefined && first !== request)
          connection.send(fault(first.stream), connection.response(request));
      });
      const [bad, good] = [bench.send("one.example."), bench.send("two.example.")];
      assert.equal(outcome(await good.result()), "answered");
      assert.match(
        outcome(await bad.result()),
        /^rpc error: code = \w+ desc = stream error: stream ID 1; code \d+$/,
      );
      await bench.recovers();
      assert.equal(bench.server.connections.length, 1);
    });
});

const WRONG_LENGTH: StreamFault = (id) =>
  Buffer.concat([
    frame(HEADERS, END_HEADERS, id, Buffer.concat([OK_BLOCK, field("content-length", "3")])),
    frame(DATA, END_STREAM, id, Buffer.alloc(10)),
  ]);

describe("a stream error that Node treats as a connection error: queries are resent", () => {
  for (const [title, fault] of [
    ["a window widened by nothing", (id) => frame(WINDOW_UPDATE, 0, id, numbers(0))],
    ["a window that overflows", (id) => frame(WINDOW_UPDATE, 0, id, numbers(0x7fff_ffff))],
    ["data before the header", (id) => frame(DATA, 0, id, Buffer.alloc(10))],
    ["a length that is not that of the body", WRONG_LENGTH],
  ] satisfies readonly (readonly [string, StreamFault])[])
    test(title, async () => {
      const bench = await Bench.start(HONEST_RAW);
      const { server } = bench;
      assert.equal(await bench.ask("first.example."), "answered");
      server.script = (connection, { stream }) => {
        if (connection.requests.length < 3) return;
        server.script = HONEST_RAW;
        connection.send(fault(stream));
      };
      const requests = [bench.send("one.example."), bench.send("two.example.")];
      for (const request of requests) {
        assert.equal(outcome(await request.result()), "answered");
        assert.equal(request.results.length, 1);
      }
      assert.equal(server.connections.length, 2);
      await bench.recovers();
    });

  test("three times, and then they fail with the reason", async () => {
    const bench = await Bench.start((connection, { stream }) => connection.send(WRONG_LENGTH(stream)));
    assert.match(await bench.ask(), /desc = the server broke the rules of HTTP\/2: /);
    assert.equal(bench.server.connections.length, 3);
    await bench.recovers();
  });
});

describe("unusual but allowed frames", () => {
  for (const [title, octets] of [
    ["an unknown frame", frame(77, 255, 1, Buffer.alloc(50))],
    ["a priority", frame(PRIORITY, 0, 1, Buffer.alloc(5))],
    ["a wider window for a stream that is done", frame(WINDOW_UPDATE, 0, 1, numbers(10))],
    ["a reset of a stream that is done", frame(RST_STREAM, 0, 1, numbers(0))],
    ["data on a stream that is done", frame(DATA, END_STREAM, 1, Buffer.alloc(10))],
    ["a header on a stream that is done", frame(HEADERS, END_HEADERS | END_STREAM, 1, TRAILERS_BLOCK)],
    ["a table of HPACK of nothing", settings([1, 0])],
    [
      "a table of HPACK of nothing, and then a large one",
      Buffer.concat([settings([1, 0]), settings([1, 0x1_0000])]),
    ],
    ["an unknown setting", settings([99, 1])],
    ["an unsolicited ping acknowledgement", frame(PING, ACK, 0, Buffer.alloc(8))],
    ["one more acknowledgement of settings", frame(SETTINGS, ACK, 0)],
  ] as const)
    test(title, async () => {
      const bench = await Bench.start((connection, request) => {
        connection.answer(request);
        if (request.stream === 1) connection.send(octets);
      });
      assert.equal(await bench.ask("one.example."), "answered");
      assert.equal(await bench.ask("two.example."), "answered");
      await bench.recovers();
    });
});

describe("flow-control windows of the server", () => {
  /** A connection whose streams have no window. */
  async function withoutWindow(): Promise<{ bench: Bench; connection: RawConnection }> {
    const bench = await Bench.start(HONEST_RAW);
    assert.equal(await bench.ask("first.example."), "answered");
    const [connection] = bench.server.connections;
    assert.ok(connection !== undefined);
    connection.send(settings([4, 0]));
    await connection.looked();
    return { bench, connection };
  }

  test("of zero: a query is sent as far as setting changes open the window", async () => {
    const { bench, connection } = await withoutWindow();
    const request = bench.send();
    const octets = () =>
      connection.received
        .filter(({ type, stream }) => type === DATA && stream === 3)
        .reduce((sum, { payload }) => sum + payload.length, 0);
    await connection.receives(HEADERS, 3);
    await connection.looked();
    assert.equal(octets(), 0);
    connection.send(settings([4, 5]));
    await connection.looked();
    assert.equal(octets(), 5);
    connection.send(settings([4, 1000]));
    assert.equal(outcome(await request.result()), "answered");
    await bench.recovers();
    assert.equal(bench.server.connections.length, 1);
  });

  test("that never open: the query times out, and the next one gets another connection", async () => {
    const { bench, connection } = await withoutWindow();
    const request = bench.send();
    await connection.receives(HEADERS, 3);
    bench.clock.advance(2_100);
    assert.match(outcome(await request.result()), /DeadlineExceeded/);
    await bench.recovers();
    assert.equal(bench.server.connections.length, 2);
  });

  test("for one stream at a time: all queries are answered in turn", async () => {
    const bench = await Bench.start(HONEST_RAW, settings([3, 1]));
    const requests = Array.from({ length: 50 }, (_, index) => bench.send(`n${index}.example.`));
    for (const request of requests) assert.equal(outcome(await request.result()), "answered");
    await bench.recovers();
  });

  test("for no stream at all: queries time out, and the next ones get another connection", async () => {
    const bench = await Bench.start(HONEST_RAW);
    assert.equal(await bench.ask("first.example."), "answered");
    const [connection] = bench.server.connections;
    connection?.send(settings([3, 0]));
    await connection?.looked();
    const requests = Array.from({ length: 50 }, (_, index) => bench.send(`n${index}.example.`));
    bench.clock.advance(2_100);
    for (const request of requests) assert.match(outcome(await request.result()), /DeadlineExceeded/);
    await bench.recovers();
    assert.equal(bench.server.connections.length, 2);
  });
});

describe("GOAWAY", () => {
  test("lets accepted queries be answered; the rest goes over another connection", async () => {
    const bench = await Bench.start((connection) => {
      const [first, second] = connection.requests;
      if (first === undefined || second === undefined) return;
      bench.server.script = HONEST_RAW;
      connection.send(frame(GOAWAY, 0, 0, numbers(first.stream, 0)), connection.response(first));
    });
    const requests = [bench.send("one.example."), bench.send("two.example.")];
    for (const request of requests) assert.equal(outcome(await request.result()), "answered");
    assert.deepEqual(
      bench.server.connections.map(({ requests }) => requests.length),
      [2, 1],
    );
    await bench.recovers();
  });

  test("in two steps loses no query", async () => {
    const bench = await Bench.start((connection, request) =>
      connection.send(
        frame(GOAWAY, 0, 0, numbers(0x7fff_ffff, 0)),
        connection.response(request),
        frame(GOAWAY, 0, 0, numbers(request.stream, 0)),
      ),
    );
    for (let round = 0; round < 5; round++) assert.equal(await bench.ask(`n${round}.example.`), "answered");
    await bench.recovers();
  });

  test("for every stream: a query is sent three times, and then fails", async () => {
    const bench = await Bench.start((connection) => connection.send(frame(GOAWAY, 0, 0, numbers(0, 0))));
    assert.match(await bench.ask(), /the server refused the stream$/);
    assert.equal(bench.server.connections.length, 3);
    await bench.recovers();
  });

  test("that revokes an earlier one fails the query", async () => {
    const bench = await Bench.start((connection, request) =>
      connection.send(
        frame(GOAWAY, 0, 0, numbers(1, 0)),
        frame(GOAWAY, 0, 0, numbers(99, 0)),
        connection.response(request),
      ),
    );
    assert.match(await bench.ask(), /the server broke the rules of HTTP\/2/);
    await bench.recovers();
  });

  test("followed by silence: the query times out", async () => {
    const bench = await Bench.start((connection) => connection.send(frame(GOAWAY, 0, 0, numbers(1, 0))));
    const { server } = bench;
    const request = bench.send();
    await until(() => server.connections[0]?.requests.length === 1, "it is asked");
    await server.connections[0]?.looked();
    bench.clock.advance(2_100);
    assert.match(outcome(await request.result()), /DeadlineExceeded/);
    await bench.recovers();
    assert.equal(server.connections.length, 2);
  });
});

describe("an endless response times out", () => {
  const HINTS = Buffer.concat([Uint8Array.of(8, 3), Buffer.from("103")]);
  for (const [title, ...octets] of [
    ["of hints", ...Array.from({ length: 3000 }, () => frame(HEADERS, END_HEADERS, 1, HINTS))],
    [
      "of nothing",
      frame(HEADERS, END_HEADERS, 1, OK_BLOCK),
      ...Array.from({ length: 3000 }, () => frame(DATA, 0, 1)),
    ],
    [
      "of padding",
      frame(HEADERS, END_HEADERS, 1, OK_BLOCK),
      ...Array.from({ length: 3000 }, () => frame(DATA, 8, 1, Buffer.from([100, ...new Uint8Array(100)]))),
    ],
    [
      "of single octets",
      frame(HEADERS, END_HEADERS, 1, OK_BLOCK),
      ...Array.from({ length: 20_000 }, () => frame(DATA, 0, 1, Buffer.alloc(1))),
    ],
  ] as const)
    test(title, async () => {
      const bench = await Bench.start((connection) => connection.send(...octets));
      const request = bench.send();
      await until(() => bench.server.connections[0]?.requests.length === 1, "it is asked");
      await bench.server.connections[0]?.looked();
      bench.clock.advance(2_100);
      assert.match(outcome(await request.result()), /DeadlineExceeded/);
      await bench.recovers();
    });
});
