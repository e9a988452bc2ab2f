import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { Rcode } from "../../dns/index.ts";
import { answering, records } from "../../plugin/testing.ts";
import { HONEST, type Script, SILENT } from "../../upstream/fixtures/scripted-server.ts";
import { until } from "../../upstream/fixtures/test-request.ts";
import {
  deadAddress,
  ForwardBench,
  forwarderOf,
  metricLines,
  withShortAddress,
} from "./fixtures/forward-bench.ts";

const bench = new ForwardBench();
afterEach(() => bench.stop());

const saying =
  (rcode: number): Script =>
  (asked) =>
    asked.answer({ rcode });

describe("when an upstream fails", () => {
  it("the next one is tried", async () => {
    const server = await bench.server(HONEST);
    const test = await bench.start(`forward . ${await deadAddress()} ${server.text} {\npolicy sequential\n}`);
    for (const transport of ["udp", "tcp"] as const) {
      const answer = await test.ask({ name: "example.org.", transport });
      assert.deepEqual(answer.answer, ["example.org. 60 IN A 192.0.2.1"]);
    }
  });

  it("probes do not count as uses of the connection cache", async () => {
    const silent = await bench.server(SILENT);
    const test = await bench.start(`forward . ${silent.text} {
      read_timeout 100ms
      max_connect_attempts 1
    }`);
    const outcome = test.outcome({ name: "example.org." });
    await silent.receives(1);
    test.clock.advance(150);
    await outcome;
    for (let probes = 2; probes < 4; probes++) {
      await silent.receives(probes);
      test.clock.advance(1_600);
    }
    const used = await metricLines(test, "coredns_proxy_conn_cache_");
    assert.equal(
      used.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0),
      1,
      used.join("\n"),
    );
  });

  it("a silent one times out after read_timeout", async () => {
    const silent = await bench.server(SILENT);
    const server = await bench.server(HONEST);
    const test = await bench.start(`forward . ${silent.text} ${server.text} {
      policy sequential
      read_timeout 300ms
    }`);
    const answer = test.ask({ name: "example.org." });
    await silent.receives(1);
    test.clock.advance(299);
    assert.equal(server.asked.length, 0);
    test.clock.advance(50);
    assert.deepEqual((await answer).answer, ["example.org. 60 IN A 192.0.2.1"]);
  });

  it("twice as many attempts as upstreams are made, and the last error is reported", async () => {
    const [one, other] = [await bench.server(SILENT), await bench.server(SILENT)];
    const test = await bench.start(`forward . ${one.text} ${other.text} {
      policy sequential
      max_fails 0
    }`);
    const outcome = test.outcome({ name: "example.org." });
    const order = [one, other, one, other];
    const seen = new Map([
      [one, 0],
      [other, 0],
    ]);
    // Only the time between two attempts counts, and three attempts start within five seconds.
    for (const server of order.slice(0, 3)) {
      const count = (seen.get(server) ?? 0) + 1;
      seen.set(server, count);
      await server.receives(count);
      test.clock.advance(2_101);
    }
    const settled = await outcome;
    assert.ok(settled.kind === "failed");
    assert.equal(settled.rcode, Rcode.SERVFAIL);
    assert.match(settled.error?.message ?? "", /^read udp 127\.0\.0\.1:\d+->127\.0\.0\.1:\d+: i\/o timeout$/);
    assert.equal(one.asked.length + other.asked.length, 3);
  });

  const budgets: readonly (readonly [option: string, attempts: number])[] = [
    ["", 4],
    ["max_connect_attempts 1", 1],
    ["max_connect_attempts 3", 3],
  ];
  for (const [option, attempts] of budgets) {
    it(`${attempts} attempts are made with ${option === "" ? "two upstreams" : option}`, async () => {
      const broken: Script = (asked) => asked.send(withShortAddress(asked));
      const servers = [await bench.server(broken), await bench.server(broken)];
      const test = await bench.start(`forward . ${servers.map(({ text }) => text).join(" ")} {
        max_fails 0
        ${option}
      }`);
      const outcome = await test.outcome({ name: "example.org." });
      assert.equal(outcome.kind, "failed");
      assert.equal(
        servers.reduce((sum, { asked }) => sum + asked.length, 0),
        attempts,
      );
    });
  }

  it("attempts without limit end after five seconds, and do not spin meanwhile", async () => {
    const broken: Script = (asked) => asked.send(withShortAddress(asked));
    const server = await bench.server(broken);
    const test = await bench.start(`forward . ${server.text} {
      max_fails 0
      max_connect_attempts 0
    }`);
    let settled = false;
    const outcome = Promise.resolve(test.outcome({ name: "example.org." })).finally(() => {
      settled = true;
    });
    await server.receives(2);
    for (let waited = 0; waited < 5_000; waited += 100) {
      await test.clock.settle(100);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until(() => {
      if (!settled) test.clock.advance(50);
      return settled;
    }, "the query is given up");
    assert.equal((await outcome).kind, "failed");
    assert.ok(server.asked.length >= 10 && server.asked.length <= 60, `${server.asked.length} attempts`);
  });

  it("an abandoned query is dropped", async () => {
    const server = await bench.server(SILENT);
    const test = await bench.start(`forward . ${server.text}`);
    const query = test.query({ name: "example.org." });
    query.deadline = test.clock.now() + 500;
    const outcome = test.chain((asked) => asked.fail())(query);
    await server.receives(1);
    test.clock.advance(601);
    assert.equal((await outcome).kind, "failed");
    const late = test.query({ name: "example.org." });
    late.deadline = test.clock.now();
    const refused = test.chain((asked) => asked.fail())(late);
    assert.ok(!(refused instanceof Promise) && refused.kind === "failed");
    assert.equal(refused.error?.message, "no healthy proxies");
    assert.equal(server.asked.filter(({ name }) => name === "example.org.").length, 1);
  });
});

describe("health", () => {
  async function downTest(option = "") {
    const sick = await bench.server(SILENT);
    const test = await bench.start(`forward . ${sick.text} {
      max_fails 1
      health_check 1s no_rec domain probe.example
      ${option}
    }`);
    const { health } = forwarderOf(test).upstreams[0] ?? assert.fail();
    const first = test.outcome({ name: "example.org." });
    await sick.receives(1);
    test.clock.advance(2_101);
    await sick.receives(3);
    test.clock.advance(2_101);
    assert.equal((await first).kind, "failed");
    while (!health.isDown(1)) {
      test.clock.advance(500);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return { sick, test, health };
  }

  it("a failed query begins the check, which ends when the upstream answers", async () => {
    const { sick, test, health } = await downTest();
    const probe = sick.asked.find(({ name }) => name === "probe.example.");
    assert.equal(probe?.message.flags, 0);
    assert.ok(health.fails >= 2);
    sick.script = HONEST;
    await until(() => {
      test.clock.advance(100);
      return !health.checking;
    }, "the upstream is back");
    assert.equal((await test.ask({ name: "example.org." })).rcode, Rcode.NOERROR);
    const [line] = await metricLines(test, "coredns_proxy_healthcheck_failures_total");
    assert.match(line ?? "", / [2-9]$/);
    assert.deepEqual(await metricLines(test, "coredns_forward_healthcheck_broken_total"), [
      "coredns_forward_healthcheck_broken_total 0",
    ]);
  });

  it("when all are down one is still tried, once", async () => {
    const { sick, test } = await downTest();
    const before = sick.asked.filter(({ name }) => name === "example.org.").length;
    const outcome = test.outcome({ name: "example.org." });
    await until(
      () => sick.asked.filter(({ name }) => name === "example.org.").length === before + 1,
      "it is asked",
    );
    test.clock.advance(2_101);
    const settled = await outcome;
    assert.ok(settled.kind === "failed");
    assert.match(settled.error?.message ?? "", /i\/o timeout$/);
    assert.equal(sick.asked.filter(({ name }) => name === "example.org.").length, before + 1);
    assert.deepEqual(await metricLines(test, "coredns_forward_healthcheck_broken_total"), [
      "coredns_forward_healthcheck_broken_total 1",
    ]);
  });

  it("with failfast_all_unhealthy_upstreams no upstream is tried then, and no query waits", async () => {
    const { sick, test } = await downTest("failfast_all_unhealthy_upstreams");
    const before = sick.asked.filter(({ name }) => name === "example.org.").length;
    const outcome = test.outcome({ name: "example.org." });
    assert.ok(!(outcome instanceof Promise) && outcome.kind === "failed");
    assert.equal(outcome.rcode, Rcode.SERVFAIL);
    assert.equal(outcome.error?.message, "no healthy proxies");
    assert.equal(sick.asked.filter(({ name }) => name === "example.org.").length, before);
    assert.deepEqual(await metricLines(test, "coredns_forward_healthcheck_broken_total"), [
      "coredns_forward_healthcheck_broken_total 1",
    ]);
  });

  it("an upstream that is down is skipped", async () => {
    const sick = await bench.server(SILENT);
    const well = await bench.server(HONEST);
    const test = await bench.start(`forward . ${sick.text} ${well.text} {
      policy sequential
      max_fails 1
    }`);
    const { health } = forwarderOf(test).upstreams[0] ?? assert.fail();
    health.check();
    await until(() => {
      test.clock.advance(200);
      return health.isDown(1);
    }, "it is down");
    const before = sick.asked.length;
    for (let count = 0; count < 3; count++)
      assert.equal((await test.ask({ name: "example.org." })).rcode, Rcode.NOERROR);
    assert.equal(sick.asked.slice(before).filter(({ name }) => name === "example.org.").length, 0);
  });

  it("max_fails 0 checks nothing", async () => {
    const test = await bench.start(`forward . ${await deadAddress()} {\nmax_fails 0\n}`);
    assert.equal((await test.outcome({ name: "example.org." })).kind, "failed");
    assert.equal(forwarderOf(test).upstreams[0]?.health.checking, false);
  });

  it("force_tcp checks over TCP", async () => {
    const server = await bench.server((asked) => {
      if (asked.name === ".") HONEST(asked);
      else asked.socket?.destroy();
    });
    const test = await bench.start(`forward . ${server.text} {\nforce_tcp\n}`);
    assert.equal((await test.outcome({ name: "example.org." })).kind, "failed");
    await until(() => server.asked.some(({ name }) => name === "."), "the upstream is checked");
    assert.ok(server.asked.every(({ protocol }) => protocol === "tcp"));
  });
});

describe("failover", () => {
  it("tries the others on these rcodes, and returns the last such answer if there is no better one", async () => {
    const servers = [
      await bench.server(saying(Rcode.SERVFAIL)),
      await bench.server(saying(Rcode.REFUSED)),
      await bench.server(HONEST),
    ];
    const [one, two, three] = servers;
    const test = await bench.start(`forward . ${servers.map(({ text }) => text).join(" ")} {
      policy sequential
      failover SERVFAIL REFUSED
    }`);
    assert.equal((await test.ask({ name: "example.org." })).rcode, Rcode.NOERROR);
    assert.deepEqual(
      [one, two, three].map((server) => server?.asked.length),
      [1, 1, 1],
    );
    if (three !== undefined) three.script = saying(Rcode.REFUSED);
    assert.equal((await test.ask({ name: "example.org." })).rcode, Rcode.REFUSED);
    assert.deepEqual(
      [one, two, three].map((server) => server?.asked.length),
      [2, 2, 2],
    );
  });

  it("does not repeat the question to a single upstream", async () => {
    const server = await bench.server(saying(Rcode.SERVFAIL));
    const test = await bench.start(`forward . ${server.text} {\nfailover SERVFAIL\n}`);
    assert.equal((await test.ask({ name: "example.org." })).rcode, Rcode.SERVFAIL);
    assert.equal(server.asked.length, 1);
  });

  it("returns the answer it has when the others do not answer", async () => {
    const server = await bench.server(saying(Rcode.REFUSED));
    const test = await bench.start(`forward . ${server.text} ${await deadAddress()} {
      policy sequential
      max_connect_attempts 1
      failover REFUSED
    }`);
    assert.equal((await test.ask({ name: "example.org." })).rcode, Rcode.REFUSED);
  });
});

describe("next", () => {
  const cases: readonly (readonly [option: string, script: Script, goesOn: boolean])[] = [
    ["next NXDOMAIN", saying(Rcode.NXDOMAIN), true],
    ["next NXDOMAIN", saying(Rcode.SERVFAIL), false],
    ["next REFUSED SERVFAIL", saying(Rcode.SERVFAIL), true],
    ["next_on_nodata", saying(Rcode.NOERROR), true],
    ["next_on_nodata", HONEST, false],
    ["next_on_nodata", saying(Rcode.NXDOMAIN), false],
    ["next_on_nodata", (asked) => asked.answer({ flags: 0x0200 }), false],
  ];
  for (const [index, [option, script, goesOn]] of cases.entries()) {
    it(`${option} ${goesOn ? "goes on to the forward behind" : "stays"} (${index})`, async () => {
      const first = await bench.server(script);
      const second = await bench.server(HONEST);
      const test = await bench.start(`forward . ${first.text} {\n${option}\n}\nforward . ${second.text}`);
      await test.ask({ name: "example.org." });
      assert.equal(first.asked.length, 1);
      assert.equal(second.asked.length, goesOn ? 1 : 0);
    });
  }

  it("does not continue if another plugin is behind it, or no plugin", async () => {
    const server = await bench.server(saying(Rcode.NXDOMAIN));
    const test = await bench.start(`forward . ${server.text} {\nnext NXDOMAIN\n}`);
    const next = answering({ answer: records("example.org. 60 IN A 192.0.2.200") });
    assert.equal((await test.ask({ name: "example.org.", next })).rcode, Rcode.NXDOMAIN);
  });

  it("looks past neighbours that handle no queries", async () => {
    const server = await bench.server(saying(Rcode.NXDOMAIN));
    const second = await bench.server(HONEST);
    const test = await bench.start(`forward . ${server.text} {\nnext NXDOMAIN\n}\nforward . ${second.text}`, {
      neighbours: [{ name: "health", instance: {} }],
    });
    assert.equal((await test.ask({ name: "example.org." })).rcode, Rcode.NOERROR);
  });
});

describe("max_concurrent", () => {
  it("refuses excess queries at once, and accepts queries again when one is done", async () => {
    const server = await bench.server(SILENT);
    const test = await bench.start(`forward . ${server.text} {\nmax_concurrent 2\n}`);
    const waiting = [test.ask({ name: "a.example." }), test.ask({ name: "b.example." })];
    const refused = test.outcome({ name: "c.example." });
    assert.ok(!(refused instanceof Promise) && refused.kind === "failed");
    assert.equal(refused.rcode, Rcode.REFUSED);
    assert.equal(refused.error?.message, "concurrent queries exceeded maximum 2");
    assert.deepEqual(await metricLines(test, "coredns_forward_max_concurrent_rejects_total"), [
      "coredns_forward_max_concurrent_rejects_total 1",
    ]);
    for (const asked of await server.receives(2)) HONEST(asked);
    await Promise.all(waiting);
    server.script = HONEST;
    assert.equal((await test.ask({ name: "d.example." })).rcode, Rcode.NOERROR);
  });

  it("counts a query until its end, however it ends", async () => {
    const test = await bench.start(`forward . ${await deadAddress()} {
      max_concurrent 1
      max_fails 0
    }`);
    for (let count = 0; count < 5; count++) {
      const outcome = await test.outcome({ name: "example.org." });
      assert.ok(outcome.kind === "failed");
      assert.equal(outcome.rcode, Rcode.SERVFAIL);
    }
  });
});

describe("policies", () => {
  it("round_robin uses each in turn", async () => {
    const servers = [await bench.server(HONEST), await bench.server(HONEST), await bench.server(HONEST)];
    const test = await bench.start(
      `forward . ${servers.map(({ text }) => text).join(" ")} {\npolicy round_robin\n}`,
    );
    for (let count = 0; count < 6; count++) await test.ask({ name: "example.org." });
    assert.deepEqual(
      servers.map(({ asked }) => asked.length),
      [2, 2, 2],
    );
  });

  it("sequential uses the first as long as it answers", async () => {
    const servers = [await bench.server(HONEST), await bench.server(HONEST)];
    const test = await bench.start(
      `forward . ${servers.map(({ text }) => text).join(" ")} {\npolicy sequential\n}`,
    );
    for (let count = 0; count < 4; count++) await test.ask({ name: "example.org." });
    assert.deepEqual(
      servers.map(({ asked }) => asked.length),
      [4, 0],
    );
  });

  it("random uses all of them in the long run", async () => {
    const servers = [await bench.server(HONEST), await bench.server(HONEST)];
    const test = await bench.start(`forward . ${servers.map(({ text }) => text).join(" ")}`);
    for (let count = 0; count < 100; count++) await test.ask({ name: "example.org." });
    for (const { asked } of servers) assert.ok(asked.length > 20, `${asked.length} of 100`);
  });
});
