import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { Name } from "../dns/name.ts";
import { Flag } from "../dns/numbers.ts";
import { RecordType } from "../dns/type-names.ts";
import { MetricsRegistry } from "../lib/metrics/metrics.ts";
import { FakeClock } from "../lib/time/clock.ts";
import { TimeoutWheel } from "../lib/time/timeout-wheel.ts";
import { UpstreamMetrics } from "./exchange/upstream-metrics.ts";
import { HONEST, type Script, ScriptedServer, SILENT } from "./fixtures/scripted-server.ts";
import { TRUE_RANDOM, until } from "./fixtures/test-request.ts";
import { type PlainUpstreamOptions, plainUpstream, type Upstream } from "./upstream.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Bench {
  readonly server: ScriptedServer;
  readonly upstream: Upstream;
  readonly clock: FakeClock;
  readonly registry: MetricsRegistry;
}

async function bench(script: Script, options: Partial<PlainUpstreamOptions> = {}): Promise<Bench> {
  const server = await ScriptedServer.start(script);
  cleanups.push(() => server.stop());
  const clock = new FakeClock();
  const registry = new MetricsRegistry({ processMetrics: false });
  const upstream = plainUpstream(server.address, {
    clock,
    wheel: new TimeoutWheel(clock, 50),
    random: TRUE_RANDOM,
    metrics: new UpstreamMetrics(registry, "forward"),
    expire: 10_000,
    maxAge: 0,
    maxIdle: 0,
    probe: { domain: Name.root, recursionDesired: true, interval: 500 },
    onlyTcp: false,
    ...options,
  });
  cleanups.push(() => upstream.close());
  return { server, upstream, clock, registry };
}

describe("health", () => {
  it("queries the NS of the root, once, and accepts any answer", async () => {
    const { server, upstream, clock } = await bench((asked) => asked.answer({ rcode: 5 }));
    upstream.health.check();
    upstream.health.check();
    assert.ok(upstream.health.checking);
    await until(() => !upstream.health.checking, "the check ends");
    const [asked] = server.asked;
    assert.equal(asked?.name, ".");
    assert.equal(asked.message.questions[0]?.type, RecordType.NS);
    assert.equal(asked.message.flags & Flag.RD, Flag.RD);
    assert.equal(asked.protocol, "udp");
    clock.advance(5_000);
    assert.equal(server.asked.length, 1);
    assert.equal(upstream.health.fails, 0);
  });

  it("is down after more failures than allowed, and up after the first answer", async () => {
    const { server, upstream, clock, registry } = await bench(SILENT);
    upstream.health.check();
    for (let fails = 1; fails <= 3; fails++) {
      await server.receives(fails);
      assert.equal(upstream.health.isDown(2), false);
      clock.advance(1_101);
      assert.equal(upstream.health.fails, fails);
      clock.advance(500);
    }
    assert.equal(upstream.health.isDown(2), true);
    assert.equal(upstream.health.isDown(3), false);
    assert.equal(upstream.health.isDown(0), false);
    await server.receives(4);
    server.script = HONEST;
    clock.advance(1_101);
    clock.advance(500);
    await until(() => !upstream.health.checking, "the upstream is back");
    assert.equal(upstream.health.fails, 0);
    assert.equal(upstream.health.isDown(2), false);
    const { body } = await registry.expose();
    assert.ok(
      body.includes(`coredns_proxy_healthcheck_failures_total{proxy_name="forward",to="${server.text}"} 4`),
      body,
    );
  });

  it("waits for the interval between two probes", async () => {
    const { server, upstream, clock } = await bench(SILENT, {
      probe: { domain: Name.parse("probe.example."), recursionDesired: false, interval: 3_000 },
    });
    upstream.health.check();
    const [asked] = await server.receives(1);
    assert.equal(asked?.name, "probe.example.");
    assert.equal(asked.message.flags & Flag.RD, 0);
    clock.advance(1_101);
    clock.advance(2_900);
    assert.equal(server.asked.length, 1);
    clock.advance(100);
    await server.receives(2);
  });

  it("probes over TCP if queries go over TCP", async () => {
    const { server, upstream } = await bench(HONEST, { onlyTcp: true });
    upstream.health.check();
    await until(() => !upstream.health.checking, "the check ends");
    assert.equal(server.asked[0]?.protocol, "tcp");
  });

  it("takes an answer to another question for a sign of life", async () => {
    const { upstream } = await bench((asked) => asked.answer({ message: { questions: [] } }));
    upstream.health.check();
    await until(() => !upstream.health.checking, "the check ends");
    assert.equal(upstream.health.fails, 0);
  });

  it("ends with the upstream", async () => {
    const { server, upstream, clock } = await bench(SILENT);
    upstream.health.check();
    await server.receives(1);
    clock.advance(1_101);
    upstream.close();
    upstream.health.check();
    clock.advance(10_000);
    assert.equal(server.asked.length, 1);
    assert.equal(clock.pendingTimers, 0);
  });
});

it("durations are grouped by rcode, unusual ones as numbers", async () => {
  const { server, upstream, registry } = await bench(HONEST);
  upstream.durations.observe(0, 3);
  upstream.durations.observe(0, 5);
  upstream.durations.observe(3841, 250);
  const { body } = await registry.expose();
  const labels = `proxy_name="forward",to="${server.text}"`;
  const sum = /_sum\{[^}]*rcode="NOERROR"[^}]*\} (\S+)/.exec(body)?.[1];
  assert.ok(Math.abs(Number(sum) - 0.008) < 1e-9, body);
  assert.ok(body.includes(`coredns_proxy_request_duration_seconds_count{${labels},rcode="NOERROR"} 2`), body);
  assert.ok(body.includes(`coredns_proxy_request_duration_seconds_count{${labels},rcode="3841"} 1`), body);
});
