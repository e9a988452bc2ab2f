import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { EdnsOptionCode, Flag, Rcode } from "../../dns/index.ts";
import { answering, PluginTest, records } from "../../plugin/testing.ts";
import { HONEST, SILENT } from "../../upstream/fixtures/scripted-server.ts";
import { until } from "../../upstream/fixtures/test-request.ts";
import { ForwardBench, metricLines } from "./fixtures/forward-bench.ts";
import forward from "./index.ts";

const bench = new ForwardBench();
afterEach(() => bench.stop());

const ELSEWHERE = answering({ answer: records("next.example. 60 IN A 192.0.2.200") });

describe("forward", () => {
  it("passes the query on unchanged, and the answer back", async () => {
    const server = await bench.server((asked) =>
      asked.answer({
        flags: Flag.AA | Flag.AD,
        answer: ["wWw.eXample.org. 60 IN CNAME host.eXample.org.", "host.eXample.org. 30 IN A 192.0.2.1"],
        authority: ["eXample.org. 300 IN NS ns.example.org."],
      }),
    );
    const test = await bench.start(`forward . ${server.text}`);
    const answer = await test.ask({
      name: "wWw.eXample.org.",
      id: 77,
      flags: Flag.RD | Flag.CD,
      edns: {
        udpSize: 4_096,
        dnssecOk: true,
        options: [{ code: EdnsOptionCode.COOKIE, data: new Uint8Array(8) }],
      },
    });
    const [asked] = server.asked;
    assert.equal(asked?.name, "wWw.eXample.org.");
    assert.equal(asked.message.flags & (Flag.RD | Flag.CD), Flag.RD | Flag.CD);
    assert.equal(asked.message.edns?.udpSize, 4_096);
    assert.equal(asked.message.edns.dnssecOk, true);
    assert.deepEqual(
      asked.message.edns.options.map(({ code }) => code),
      [EdnsOptionCode.COOKIE],
    );
    assert.equal(answer.rcode, Rcode.NOERROR);
    assert.equal(answer.reply.flags, Flag.AA | Flag.AD | Flag.RA);
    assert.equal(answer.reply.isEncoded, true);
    assert.deepEqual(answer.answer, [
      "wWw.eXample.org. 60 IN CNAME host.eXample.org.",
      "host.eXample.org. 30 IN A 192.0.2.1",
    ]);
    assert.deepEqual(answer.authority, ["eXample.org. 300 IN NS ns.example.org."]);
    assert.equal(answer.reply.edns, undefined);
  });

  it("forwards every class", async () => {
    const server = await bench.server((asked) => asked.answer({ rcode: Rcode.REFUSED }));
    const test = await bench.start(`forward . ${server.text}`);
    const answer = await test.ask({ name: "version.bind.", type: "TXT", class: 3 });
    assert.equal(answer.rcode, Rcode.REFUSED);
    assert.equal(server.asked[0]?.message.questions[0]?.class, 3);
  });

  it("passes on an rcode of 12 bits and the options of the upstream", async () => {
    const error = { code: EdnsOptionCode.EXTENDED_ERROR, data: Uint8Array.of(0, 22) };
    const server = await bench.server((asked) =>
      asked.answer({
        rcode: Rcode.BADCOOKIE,
        message: { edns: { udpSize: 1_400, version: 0, dnssecOk: true, options: [error] } },
      }),
    );
    const test = await bench.start(`forward . ${server.text}`);
    const { reply } = await test.ask({ name: "example.org.", edns: {} });
    assert.equal(reply.rcode, Rcode.BADCOOKIE);
    assert.deepEqual(reply.edns?.options, [error]);
    assert.equal(reply.edns.udpSize, 1_400);
    assert.equal(reply.encoded.additionalCount, 0);
  });

  it("distinguishes an upstream's OPT without options from a missing one", async () => {
    const server = await bench.server((asked) =>
      asked.answer({ message: { edns: { udpSize: 512, version: 0, dnssecOk: false, options: [] } } }),
    );
    const test = await bench.start(`forward . ${server.text}`);
    assert.deepEqual((await test.ask({ name: "example.org.", edns: {} })).reply.edns?.options, []);
    server.script = (asked) => asked.answer();
    assert.equal((await test.ask({ name: "example.org.", edns: {} })).reply.edns, undefined);
  });

  describe("leaves to the next plugin", () => {
    const cases: readonly (readonly [name: string, forwarded: boolean])[] = [
      ["example.org.", true],
      ["www.EXAMPLE.org.", true],
      ["xexample.org.", false],
      ["org.", false],
      ["example.com.", false],
      ["internal.example.org.", false],
      ["deep.Internal.example.org.", false],
      ["notinternal.example.org.", true],
    ];
    for (const [name, forwarded] of cases) {
      it(`${name}: ${forwarded ? "no" : "yes"}`, async () => {
        const server = await bench.server(HONEST);
        const test = await bench.start(`forward example.org ${server.text} {
          except internal.example.org
        }`);
        const answer = await test.ask({ name, next: ELSEWHERE });
        assert.equal(answer.answer[0]?.endsWith("192.0.2.1"), forwarded);
        assert.equal(server.asked.length, forwarded ? 1 : 0);
      });
    }

    it("but never FROM itself", async () => {
      const server = await bench.server(HONEST);
      const test = await bench.start(`forward example.org ${server.text} {
        except example.org
      }`);
      await test.ask({ name: "example.org." });
      await test.ask({ name: "www.example.org.", next: ELSEWHERE });
      assert.deepEqual(
        server.asked.map(({ name }) => name),
        ["example.org."],
      );
    });
  });

  describe("asks over", () => {
    const cases: readonly (readonly [
      client: "udp" | "tcp" | "tls" | "https" | "quic",
      option: string,
      upstream: string,
    ])[] = [
      ["udp", "", "udp"],
      ["tcp", "", "tcp"],
      ["tls", "", "tcp"],
      ["https", "", "tcp"],
      ["quic", "", "udp"],
      ["udp", "force_tcp", "tcp"],
      ["tcp", "prefer_udp", "udp"],
      ["udp", "force_tcp\nprefer_udp", "tcp"],
    ];
    for (const [client, option, upstream] of cases) {
      it(`${upstream} when the client comes over ${client}${option === "" ? "" : ` with ${option.replace("\n", " and ")}`}`, async () => {
        const server = await bench.server(HONEST);
        const test = await bench.start(`forward . ${server.text} {\n${option}\n}`);
        await test.ask({ name: "example.org.", transport: client });
        assert.equal(server.asked[0]?.protocol, upstream);
      });
    }
  });

  it("passes TC on to the client", async () => {
    const server = await bench.server((asked) => asked.answer({ flags: Flag.TC }));
    const test = await bench.start(`forward . ${server.text}`);
    const { reply } = await test.ask({ name: "example.org." });
    assert.equal(reply.truncated, true);
    assert.equal(server.asked.length, 1);
  });

  it("with prefer_udp asks the same upstream over TCP after TC", async () => {
    const server = await bench.server((asked) =>
      asked.protocol === "udp" ? asked.answer({ flags: Flag.TC }) : HONEST(asked),
    );
    const test = await bench.start(`forward . ${server.text} {\nprefer_udp\n}`);
    for (const transport of ["udp", "tcp"] as const) {
      const { reply } = await test.ask({ name: "example.org.", transport });
      assert.equal(reply.truncated, false);
      assert.equal(reply.encoded.answerCount, 1);
    }
    assert.deepEqual(
      server.asked.map(({ protocol }) => protocol),
      ["udp", "tcp", "udp", "tcp"],
    );
  });

  it("sends a derived query as the plugin derived it", async () => {
    const server = await bench.server(HONEST);
    const test = await bench.start(`forward . ${server.text}`);
    const query = test
      .query({ name: "example.org.", flags: 0 })
      .derive({ flags: Flag.RD | Flag.AD, edns: undefined });
    await test.chain((asked) => asked.fail())(query);
    assert.equal(server.asked[0]?.message.flags, Flag.RD | Flag.AD);
  });

  it("releases the client's bytes once it has sent them", async () => {
    const server = await bench.server(SILENT);
    const test = await bench.start(`forward . ${server.text}`);
    const query = test.query({ name: "example.org." });
    const outcome = test.chain((asked) => asked.fail())(query);
    const received = query.bytes;
    query.detach();
    received.fill(0xff);
    const [asked] = await server.receives(1);
    assert.equal(asked?.name, "example.org.");
    assert.ok(asked !== undefined);
    HONEST(asked);
    assert.equal((await outcome).kind, "reply");
  });

  it("notes the upstream in the metadata and in the trace", async () => {
    const server = await bench.server(HONEST);
    const test = await bench.start(`forward . ${server.text}`);
    const query = test.query({ name: "example.org." });
    const notes: string[] = [];
    query.metadata = new Map();
    query.trace = { note: (text) => notes.push(text), enter: () => undefined, leave: () => undefined };
    await test.chain((asked) => asked.fail())(query);
    assert.equal(query.metadataValue("forward/upstream"), server.text);
    assert.deepEqual(notes, [`asks ${server.text} over udp`, `${server.text} answers NOERROR after 0.00 ms`]);
  });

  it("counts queries and answers", async () => {
    const server = await bench.server((asked) => asked.answer({ rcode: Rcode.NXDOMAIN }));
    const test = await bench.start(`forward . ${server.text}`, {
      site: { random: { fraction: () => 0, unpredictable: () => 5 } },
    });
    for (let count = 0; count < 3; count++) await test.ask({ name: "example.org." });
    await test.ask({ name: "example.org.", transport: "tcp" });
    const labels = `proxy_name="forward",to="${server.text}"`;
    assert.deepEqual(await metricLines(test, "coredns_proxy_request_duration_seconds_count"), [
      `coredns_proxy_request_duration_seconds_count{${labels},rcode="NXDOMAIN"} 4`,
    ]);
    assert.deepEqual(await metricLines(test, "coredns_proxy_conn_cache_hits_total"), [
      `coredns_proxy_conn_cache_hits_total{${labels},proto="udp"} 2`,
      `coredns_proxy_conn_cache_hits_total{${labels},proto="tcp"} 0`,
    ]);
    assert.deepEqual(await metricLines(test, "coredns_proxy_conn_cache_misses_total"), [
      `coredns_proxy_conn_cache_misses_total{${labels},proto="udp"} 1`,
      `coredns_proxy_conn_cache_misses_total{${labels},proto="tcp"} 1`,
    ]);
    assert.deepEqual(await metricLines(test, "coredns_proxy_healthcheck_failures_total"), [
      `coredns_proxy_healthcheck_failures_total{${labels}} 0`,
    ]);
    assert.deepEqual(await metricLines(test, "coredns_forward_"), [
      "coredns_forward_healthcheck_broken_total 0",
      "coredns_forward_max_concurrent_rejects_total 0",
    ]);
  });

  it("answers 1000 queries at once, each with its own answer", async () => {
    const server = await bench.server((asked) => {
      const number = Number(/^host-(\d+)/.exec(asked.name)?.[1]);
      asked.answer({ answer: [`${asked.name} 60 IN A 10.0.${number >> 8}.${number & 255}`] });
    });
    const test = await bench.start(`forward . ${server.text}`);
    const answers: Promise<{ readonly answer: string[] }>[] = [];
    for (let number = 0; number < 1_000; number++) {
      answers.push(test.ask({ name: `host-${number}.example.org.` }));
      if (number % 100 === 99) await server.receives(number + 1);
    }
    for (const [number, answer] of (await Promise.all(answers)).entries())
      assert.deepEqual(answer.answer, [
        `host-${number}.example.org. 60 IN A 10.0.${number >> 8}.${number & 255}`,
      ]);
  });

  it("sends from source_address", async () => {
    const server = await bench.server(HONEST);
    const test = await bench.start(`forward . ${server.text} {\nsource_address 127.0.0.9\n}`);
    await test.ask({ name: "example.org." });
    await test.ask({ name: "example.org.", transport: "tcp" });
    assert.deepEqual(
      server.asked.map(({ sourceAddress }) => sourceAddress),
      ["127.0.0.9", "127.0.0.9"],
    );
  });

  it("keeps connections by max_idle_conns, expire and max_age", async () => {
    const server = await bench.server(HONEST);
    const test = await bench.start(`forward . ${server.text} {
      force_tcp
      max_idle_conns 1
      expire 2s
      max_age 3s
    }`);
    await Promise.all([1, 2, 3].map(() => test.ask({ name: "example.org." })));
    await until(
      () => server.connections.filter((socket) => !socket.destroyed).length === 1,
      "two are closed",
    );
    test.clock.advance(4_000);
    await until(() => server.connections.every((socket) => socket.destroyed), "the last one is closed");
    await test.ask({ name: "example.org." });
    for (let second = 0; second < 3; second++) {
      test.clock.advance(1_000);
      await test.ask({ name: "example.org." });
    }
    assert.equal(server.connections.length, 5);
  });

  it("fails before it was started", async () => {
    const idle = PluginTest.of(forward, "forward . 192.0.2.1");
    const outcome = await idle.outcome({ name: "example.org." });
    assert.ok(outcome.kind === "failed");
    assert.equal(outcome.rcode, Rcode.SERVFAIL);
    assert.equal(outcome.error?.message, "the upstreams are not known yet");
  });
});
