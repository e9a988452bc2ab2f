/** Upstreams that refuse, break off, lie about lengths or say nothing: each costs one attempt, and no query hangs. */
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { Rcode } from "../../dns/index.ts";
import { type GrpcScript, HONEST_CALL } from "../../upstream/fixtures/grpc-server.ts";
import { ScriptedServer } from "../../upstream/fixtures/scripted-server.ts";
import { deadAddress, failure, GrpcBench } from "./fixtures/grpc-bench.ts";

const bench = new GrpcBench();
afterEach(() => bench.stop());

describe("servers that grpc cannot use", () => {
  const honest = HONEST_CALL;

  const faults: readonly (readonly [what: string, script: GrpcScript, message: RegExp])[] = [
    [
      "status in the trailers",
      (call) => call.reply(new Uint8Array(0), 13, "out of%20ink"),
      /^rpc error: code = Internal desc = out of ink$/,
    ],
    [
      "status in the headers",
      (call) => call.refuse(8, "busy"),
      /^rpc error: code = ResourceExhausted desc = busy$/,
    ],
    ["status without a name", (call) => call.refuse(99), /^rpc error: code = Code\(99\) desc = $/],
    [
      "status that is no number",
      (call) => call.stream.respond({ ":status": 200, "grpc-status": "x" }, { endStream: true }),
      /code = Unknown/,
    ],
    [
      "no status at all",
      (call) => {
        call.stream.respond({ ":status": 200, "content-type": "application/grpc" });
        call.stream.end(Buffer.from([0, 0, 0, 0, 0]));
      },
      /^rpc error: code = Unavailable desc = stream error/,
    ],
    ["length past the end", (call) => call.reply(Buffer.from([0, 0, 0, 1, 0, 0x0a])), /unexpected EOF/],
    ["length short of the end", (call) => call.reply(Buffer.from([0, 0, 0, 0, 0, 0x0a])), /unexpected EOF/],
    ["prefix that is cut off", (call) => call.reply(Buffer.from([0, 0])), /unexpected EOF/],
    [
      "compressed message",
      (call) => call.reply(Buffer.from([1, 0, 0, 0, 0])),
      /^rpc error: code = Unimplemented/,
    ],
    [
      "field that is no field",
      (call) => call.reply(Buffer.from([0, 0, 0, 0, 1, 0x0f])),
      /error unmarshalling/,
    ],
    [
      "field past the end",
      (call) => call.reply(Buffer.from([0, 0, 0, 0, 2, 0x0a, 0x20])),
      /error unmarshalling/,
    ],
    ["no DNS message", (call) => call.reply(Buffer.from([0, 0, 0, 0, 0])), /short message/],
    [
      "a body without end",
      (call) => {
        call.stream.respond({ ":status": 200, "content-type": "application/grpc" });
        call.stream.end(Buffer.alloc(1_000_000));
      },
      /response longer than a DNS message/,
    ],
    [
      "page of a web server",
      (call) => {
        call.stream.respond({ ":status": 200, "content-type": "text/html" });
        call.stream.end("hello");
      },
      /^rpc error: code = Unknown desc = unexpected content-type "text\/html"/,
    ],
    [
      "status of HTTP",
      (call) => call.stream.respond({ ":status": 502 }, { endStream: true }),
      /unexpected HTTP status code received from server: 502/,
    ],
    [
      "stream that is reset",
      (call) => call.stream.close(2),
      /^rpc error: code = Unavailable desc = stream error: .* code 2$/,
    ],
    ["stream that is refused", (call) => call.stream.close(7), /server refused the stream/],
    ["GOAWAY", (call) => call.stream.session?.goaway(2), /^rpc error: code = Unavailable desc = /],
    [
      "connection that ends",
      (call) => call.stream.session?.destroy(),
      /^rpc error: code = Unavailable desc = /,
    ],
    [
      "record that is cut short",
      (call) => {
        const reply = call.asked.encode({ answer: [`${call.name} 1 IN A 192.0.2.1`] });
        call.reply(
          Buffer.concat([
            Buffer.from([0, 0, 0, 0, reply.length + 1, 0x0a, reply.length - 1]),
            reply.subarray(0, -1),
          ]),
        );
      },
      /^reply from 127\.0\.0\.1:\d+: /,
    ],
  ];
  for (const [what, script, message] of faults) {
    it(`${what}: the next one is tried, and the log says why`, async () => {
      const bad = await bench.server(script);
      const good = await bench.server(honest);
      const alone = await bench.start(`grpc . ${bad.text}`);
      assert.match(await failure(alone), message);
      const both = await bench.start(`grpc . ${bad.text} ${good.text} {\npolicy sequential\n}`);
      assert.deepEqual((await both.ask({ name: "example.org." })).answer, ["example.org. 60 IN A 192.0.2.1"]);
    });
  }

  it("no listener: the next one is tried, without further connections for a while", async () => {
    const good = await bench.server(honest);
    const dead = await deadAddress();
    const test = await bench.start(`grpc . ${dead} ${good.text} {\npolicy sequential\n}`);
    for (let turn = 0; turn < 3; turn++)
      assert.equal((await test.ask({ name: "example.org." })).rcode, Rcode.NOERROR);
    const alone = await bench.start(`grpc . ${dead}`);
    assert.match(
      await failure(alone),
      /^rpc error: code = Unavailable desc = dial tcp 127\.0\.0\.1:\d+: connect: connection refused$/,
    );
  });

  it("a server of plain DNS over TCP: the next one is tried", async () => {
    const plain = await ScriptedServer.start(() => undefined);
    plain.script = (asked) => asked.socket?.end("HTTP/1.1 400 Bad Request\r\n\r\n");
    const good = await bench.server(honest);
    const test = await bench.start(`grpc . ${plain.text} ${good.text} {\npolicy sequential\n}`);
    const outcome = test.ask({ name: "example.org." });
    await plain.accepts(1);
    plain.connections[0]?.end("HTTP/1.1 400 Bad Request\r\n\r\n");
    assert.equal((await outcome).rcode, Rcode.NOERROR);
    await plain.stop();
  });

  it("silence: the next one is tried after two seconds, and the silent one comes last from then on", async () => {
    const silent = await bench.server(() => undefined);
    const good = await bench.server(honest);
    const test = await bench.start(`grpc . ${silent.text} ${good.text} {\npolicy sequential\n}`);
    const first = test.ask({ name: "example.org." });
    await silent.receives(1);
    test.clock.advance(2_200);
    assert.equal((await first).rcode, Rcode.NOERROR);
    // Its probes are not answered either.
    for (let probe = 2; probe <= 4; probe++) {
      await silent.receives(probe);
      test.clock.advance(1_200);
      await new Promise((resolve) => setImmediate(resolve));
      test.clock.advance(1_200);
    }
    const calls = silent.calls.filter(({ name }) => name === "example.org.").length;
    assert.equal((await test.ask({ name: "example.org." })).rcode, Rcode.NOERROR);
    assert.equal(silent.calls.filter(({ name }) => name === "example.org.").length, calls);
    const { body } = await test.metrics.expose();
    assert.match(
      body,
      new RegExp(
        `^coredns_proxy_healthcheck_failures_total\\{proxy_name="grpc",to="${silent.text}"\\} [34]$`,
        "m",
      ),
    );
  });

  it("silence of all: an answer within five seconds", async () => {
    const servers = [
      await bench.server(() => undefined),
      await bench.server(() => undefined),
      await bench.server(() => undefined),
    ];
    const test = await bench.start(
      `grpc . ${servers.map(({ text }) => text).join(" ")} {\npolicy sequential\n}`,
    );
    const said = failure(test);
    for (const [server, time] of [
      [servers[0], 2_100],
      [servers[1], 2_100],
      [servers[2], 1_000],
    ] as const) {
      await server?.receives(1);
      test.clock.advance(time);
    }
    assert.equal(await said, "rpc error: code = DeadlineExceeded desc = context deadline exceeded");
  });

  it("a flood of resets costs each query one failure, and no more connections than one", async () => {
    const server = await bench.server((call) => call.stream.close(8));
    const test = await bench.start(`grpc . ${server.text}`);
    const outcomes = await Promise.all(
      Array.from({ length: 300 }, async (_, n) => test.outcome({ name: `a${n}.example.` })),
    );
    assert.ok(outcomes.every(({ kind }) => kind === "failed"));
    assert.ok(server.connections.length <= 2, `${server.connections.length} connections`);
    server.script = honest;
    assert.equal((await test.ask({ name: "example.org." })).rcode, Rcode.NOERROR);
  });

  it("orderly GOAWAY: queries in progress are answered, and later ones use a new connection", async () => {
    const server = await bench.server();
    server.script = (call) => {
      call.stream.session?.goaway(0);
      honest(call);
    };
    const test = await bench.start(`grpc . ${server.text}`);
    for (let turn = 0; turn < 5; turn++)
      assert.equal((await test.ask({ name: "example.org." })).rcode, Rcode.NOERROR);
    assert.equal(server.connections.length, 5);
  });
});
