/** Replies of upstreams, and the outcomes. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { Flag, Rcode } from "../../dns/index.ts";
import { answering, ConfigRefused, PluginTest, records } from "../../plugin/testing.ts";
import { AUTHORITY } from "../../upstream/fixtures/encrypted-server.ts";
import { type GrpcScript, HONEST_CALL } from "../../upstream/fixtures/grpc-server.ts";
import { deadAddress, failure, GrpcBench } from "./fixtures/grpc-bench.ts";
import grpc from "./index.ts";

const bench = new GrpcBench();
afterEach(() => bench.stop());

let folder = "";
before(() => {
  folder = mkdtempSync(join(tmpdir(), "grpc-"));
  writeFileSync(join(folder, "ca.pem"), AUTHORITY.certificate);
  writeFileSync(join(folder, "rubbish.pem"), "rubbish\n");
  writeFileSync(join(folder, "nobody.conf"), "search example\n");
});
after(() => rmSync(folder, { recursive: true }));

describe("grpc", () => {
  it("passes queries and answers on unchanged, over one connection", async () => {
    const server = await bench.server((call) =>
      call.answer({ answer: [`${call.name} 60 IN A 192.0.2.1`, `${call.name} 60 IN A 192.0.2.2`] }),
    );
    const test = await bench.start(`grpc . ${server.text}`);
    for (const transport of ["udp", "tcp"] as const) {
      const { answer, reply } = await test.ask({ name: "WWW.example.", id: 4242, transport });
      assert.deepEqual(answer, ["WWW.example. 60 IN A 192.0.2.1", "WWW.example. 60 IN A 192.0.2.2"]);
      assert.ok((reply.flags & Flag.RA) !== 0);
    }
    assert.equal(server.connections.length, 1);
    for (const { asked, headers } of server.calls) {
      assert.equal(asked.message.id, 4242);
      assert.equal(headers[":path"], "/coredns.dns.DnsService/Query");
      assert.equal(headers[":authority"], server.text);
      assert.equal(headers["content-type"], "application/grpc");
      assert.equal(headers.te, "trailers");
      assert.match(String(headers["grpc-timeout"]), /^[1-9]\d{0,7}m$/);
    }
    const { body } = await test.metrics.expose();
    for (const line of [
      `coredns_grpc_requests_total{to="${server.text}"} 2`,
      `coredns_grpc_responses_total{rcode="NOERROR",to="${server.text}"} 2`,
      `coredns_grpc_request_duration_seconds_count{to="${server.text}"} 2`,
    ])
      assert.ok(body.split("\n").includes(line), line);
  });

  it("may be used several times, each for a zone of its own", async () => {
    const [inner, outer] = [
      await bench.server((call) => call.answer({ answer: [`${call.name} 60 IN A 192.0.2.1`] })),
      await bench.server((call) => call.answer({ answer: [`${call.name} 60 IN A 192.0.2.2`] })),
    ];
    const test = await bench.start(
      `grpc b.example ${inner?.text} {\n except x.b.example\n}\ngrpc example ${outer?.text}`,
    );
    for (const [name, address] of [
      ["www.b.example.", "192.0.2.1"],
      ["x.b.example.", "192.0.2.2"],
      ["www.example.", "192.0.2.2"],
    ] as const)
      assert.deepEqual((await test.ask({ name })).answer, [`${name} 60 IN A ${address}`]);
  });

  it("answers many queries at once, each with its own", async () => {
    const server = await bench.server((call) => {
      const number = Number(/^host-(\d+)/.exec(call.name)?.[1]);
      setImmediate(() =>
        call.answer({ answer: [`${call.name} 60 IN A 10.0.${number >> 8}.${number & 255}`] }),
      );
    });
    const test = await bench.start(`grpc . ${server.text}`);
    const answers = Array.from({ length: 500 }, (_, n) => test.ask({ name: `host-${n}.example.` }));
    for (const [n, { answer }] of (await Promise.all(answers)).entries())
      assert.deepEqual(answer, [`host-${n}.example. 60 IN A 10.0.${n >> 8}.${n & 255}`]);
    assert.equal(server.connections.length, 1);
  });

  it("treats the status NotFound, with and without a body, as NXDOMAIN", async () => {
    for (const script of [
      (call) => call.refuse(5, "no such name"),
      (call) => call.reply(new Uint8Array(0), 5),
    ] satisfies GrpcScript[]) {
      const server = await bench.server(script);
      const test = await bench.start(`grpc . ${server.text}`);
      const { rcode, answer, authority } = await test.ask({ name: "example.org.", edns: {} });
      assert.equal(rcode, Rcode.NXDOMAIN);
      assert.deepEqual([answer, authority], [[], []]);
    }
  });

  it("returns FORMERR for a reply to another query", async () => {
    const second = await bench.server();
    for (const [script, reason] of [
      [(call) => call.answer({ message: { id: call.asked.message.id ^ 1 } }), "id"],
      [(call) => call.answer({ message: { questions: [] } }), "question"],
    ] satisfies [GrpcScript, string][]) {
      const server = await bench.server(script);
      const test = await bench.start(`grpc . ${server.text} ${second.text} {\npolicy sequential\n}`);
      const { rcode, answer } = await test.ask({ name: "example.org." });
      assert.equal(rcode, Rcode.FORMERR);
      assert.deepEqual(answer, []);
      const { body } = await test.metrics.expose();
      const labels = `proxy_name="grpc",to="${server.text}",proto="grpc",reason="${reason}"`;
      assert.match(body, new RegExp(`^portolan_proxy_discarded_messages_total\\{${labels}\\} 1$`, "m"));
    }
    assert.equal(second.calls.length, 0);
  });

  it("verifies the certificate with TLS", async () => {
    const server = await bench.server(HONEST_CALL, "tls");
    const tls = `tls ${join(folder, "ca.pem")}`;
    const good = await bench.start(`grpc . ${server.text} {\n${tls}\ntls_servername dns.example\n}`);
    assert.equal((await good.ask({ name: "example.org." })).rcode, Rcode.NOERROR);
    assert.equal(server.calls[0]?.headers[":authority"], "dns.example");
    const byAddress = await bench.start(`grpc . ${server.text} {\n${tls}\n}`);
    assert.equal((await byAddress.ask({ name: "example.org." })).rcode, Rcode.NOERROR);
    const stranger = await bench.start(`grpc . ${server.text} {\n${tls}\ntls_servername other.example\n}`);
    assert.match(await failure(stranger), /^rpc error: code = Unavailable desc = .*certificate is valid for/);
    const plain = await bench.start(`grpc . ${server.text}`);
    assert.match(await failure(plain), /^rpc error: code = Unavailable desc = /);
  });

  it("reaches a socket in the file system", async () => {
    const path = join(folder, "dns.sock");
    const server = await bench.server(HONEST_CALL, path);
    const test = await bench.start(`grpc . unix://${path}`);
    assert.deepEqual((await test.ask({ name: "example.org." })).answer, ["example.org. 60 IN A 192.0.2.1"]);
    assert.equal(server.calls[0]?.headers[":authority"], "localhost");
    const nobody = await bench.start(`grpc . unix://${join(folder, "nobody.sock")}`);
    assert.match(await failure(nobody), /dial unix .*nobody\.sock/);
  });

  it("passes on names outside of FROM, or excepted", async () => {
    const server = await bench.server();
    const test = await bench.start(`grpc example. ${server.text} {\nexcept b.example example\n}`);
    const next = answering({ answer: records("elsewhere. 5 IN A 192.0.2.9") });
    for (const name of ["org.", "b.example.", "a.b.example.", "c.example."])
      assert.deepEqual((await test.ask({ name, next })).answer, ["elsewhere. 5 IN A 192.0.2.9"], name);
    assert.equal(server.calls.length, 0);
    assert.deepEqual((await test.ask({ name: "example.", next })).answer, ["example. 60 IN A 192.0.2.1"]);
  });

  it("falls through if the name does not exist, and if no upstream answers", async () => {
    const denying = await bench.server((call) => call.answer({ rcode: Rcode.NXDOMAIN }));
    const next = answering({ answer: records("elsewhere. 5 IN A 192.0.2.9") });
    const dead = await deadAddress();
    for (const to of [denying.text, dead]) {
      const all = await bench.start(`grpc . ${to} {\nfallthrough\n}`);
      assert.deepEqual((await all.ask({ name: "a.example.", next })).answer, ["elsewhere. 5 IN A 192.0.2.9"]);
      const some = await bench.start(`grpc . ${to} {\nfallthrough org\n}`);
      assert.deepEqual((await some.ask({ name: "a.org.", next })).answer, ["elsewhere. 5 IN A 192.0.2.9"]);
      const outcome = await some.outcome({ name: "a.example.", next });
      assert.equal(outcome.kind === "reply" && outcome.rcode, to === dead ? false : Rcode.NXDOMAIN);
    }
  });

  it("tries upstreams in the order of the policy", async () => {
    const servers = [await bench.server(), await bench.server(), await bench.server()];
    const to = servers.map(({ text }) => text).join(" ");
    const asked = async (policy: string): Promise<number[]> => {
      const before = servers.map(({ calls }) => calls.length);
      const test = await bench.start(`grpc . ${to} {\npolicy ${policy}\n}`);
      for (let turn = 0; turn < 6; turn++) await test.ask({ name: "example.org." });
      return servers.map(({ calls }, index) => calls.length - (before[index] ?? 0));
    };
    assert.deepEqual(await asked("sequential"), [6, 0, 0]);
    assert.deepEqual(await asked("round_robin"), [2, 2, 2]);
    assert.equal(
      (await asked("random")).reduce((sum, count) => sum + count),
      6,
    );
  });

  it("drops a query that the server has dropped", async () => {
    const server = await bench.server(() => undefined);
    const test = await bench.start(`grpc . ${server.text}`);
    const query = test.query({ name: "example.org." });
    const outcome = test.chain((asked) => asked.fail())(query);
    const [call] = await server.receives(1);
    const closed = new Promise((resolve) => call?.stream.on("close", resolve));
    query.abandon();
    assert.equal((await outcome).kind, "dropped");
    await closed;
    assert.equal(call?.stream.rstCode, 8);
  });
});

for (const [text, message] of [
  ["grpc", /unexpected line ending after 'grpc'/],
  ["grpc .", /unexpected line ending after '\.'/],
  ["grpc a..b 127.0.0.1", /unable to normalize 'a\.\.b'/],
  ["grpc . 127.0.0.1:0", /port 0 cannot be queried/],
  ["grpc . 1.2.3", /not an IP address, file, or valid domain: "1\.2\.3"/],
  ["grpc . tls://127.0.0.1", /'tls' is not supported as a destination protocol in grpc: 127\.0\.0\.1/],
  ["grpc . unix://", /not an IP address, file, or valid domain: "unix:\/\/"/],
  [`grpc . ${"127.0.0.1 ".repeat(16)}`, /more than 15 TOs configured: 16/],
  ["grpc . 127.0.0.1 {\npolicy best\n}", /unknown policy 'best'/],
  ["grpc . 127.0.0.1 {\ntls a b c d\n}", /maximum of three arguments allowed for TLS config, found 4/],
  ["grpc . 127.0.0.1 {\nforce_tcp\n}", /unknown property 'force_tcp'/],
] as const) {
  it(`refuses ${JSON.stringify(text.slice(0, 60))}`, () =>
    assert.throws(
      () => PluginTest.of(grpc, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    ));
}

it("does not start with invalid files", async () => {
  for (const [text, message] of [
    [`grpc . ${join(folder, "nobody.conf")}`, /no valid upstream addresses found: no nameserver line/],
    [`grpc . 127.0.0.1 {\ntls ${join(folder, "missing.pem")}\n}`, /tls: error reading .*missing\.pem/],
    [`grpc . 127.0.0.1 {\ntls ${join(folder, "rubbish.pem")}\n}`, /tls: could not read root certs/],
  ] as const) {
    const test = PluginTest.of(grpc, text);
    await assert.rejects(test.start(), message);
    const [instance] = test.instances;
    await assert.rejects(async () => instance?.examine?.(), message);
  }
});

it("accepts port 53, the port of grpc:// and files of name servers", async () => {
  const file = join(folder, "resolv.conf");
  writeFileSync(file, "nameserver 192.0.2.1\nnameserver 2001:db8::1\n");
  const test = PluginTest.of(grpc, `grpc . ${file} 192.0.2.2 grpc://192.0.2.3 192.0.2.4:8053`);
  const places = test.configs[0]?.to.map((word) => (word.kind === "address" ? word.address.text : word.text));
  assert.deepEqual(places, [file, "192.0.2.2:53", "192.0.2.3:443", "192.0.2.4:8053"]);
  await test.start();
  await test.stop();
});
