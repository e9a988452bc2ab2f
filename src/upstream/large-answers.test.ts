/** Buffers of large answers are reused: left to the garbage collector, they piled up under a flood of large answers. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { PooledBuffer } from "../lib/collections/buffer-pool.ts";
import { MetricsRegistry } from "../lib/metrics/metrics.ts";
import { FakeClock } from "../lib/time/clock.ts";
import { TimeoutWheel } from "../lib/time/timeout-wheel.ts";
import { UpstreamMetrics } from "./exchange/upstream-metrics.ts";
import { HONEST, type Script, ScriptedServer } from "./fixtures/scripted-server.ts";
import { TestRequest, TRUE_RANDOM } from "./fixtures/test-request.ts";
import { TcpExchange } from "./tcp/tcp-exchange.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

class LendingRequest extends TestRequest {
  lent: PooledBuffer | undefined;

  override answered(reply: Uint8Array, lent?: PooledBuffer): void {
    this.lent = lent;
    super.answered(reply);
  }
}

/** As long as a message can be: the query, followed by the last octet of its id, repeated. */
const LARGE: Script = (asked) => {
  const reply = Buffer.alloc(0xffff, asked.bytes[1]);
  reply.set(asked.bytes);
  reply[2] = 0x80 | (reply[2] ?? 0);
  asked.send(reply);
};

async function exchangeWith(script: Script): Promise<() => Promise<LendingRequest>> {
  const server = await ScriptedServer.start(script);
  cleanups.push(() => server.stop());
  const clock = new FakeClock();
  const exchange = new TcpExchange({
    remote: server.address,
    clock,
    wheel: new TimeoutWheel(clock, 50),
    random: TRUE_RANDOM,
    metrics: new UpstreamMetrics(new MetricsRegistry(), "forward").exchange(server.address.text, "tcp"),
    expire: 10_000,
    maxAge: 0,
    maxIdle: 0,
  });
  cleanups.push(() => exchange.close());
  return async () => {
    const request = new LendingRequest();
    exchange.send(request, 2_000, 5_000);
    assert.equal((await request.result()).kind, "answered");
    return request;
  };
}

function lentOf({ lent }: LendingRequest): PooledBuffer {
  assert.ok(lent !== undefined);
  return lent;
}

function assertWhole({ results }: LendingRequest): void {
  const [result] = results;
  assert.ok(result?.kind === "answered" && result.reply.length === 0xffff);
  const filling = result.reply.subarray(100);
  assert.ok(filling.every((octet) => octet === filling[0]));
}

test("a returned large answer makes room for the next one, and a kept one does not", async () => {
  const ask = await exchangeWith(LARGE);
  const first = await ask();
  assertWhole(first);
  lentOf(first).takeBack();
  const second = await ask();
  assert.equal(lentOf(second), lentOf(first));
  const third = await ask();
  assert.notEqual(lentOf(third), lentOf(second));
  assertWhole(second);
  assertWhole(third);
});

test("a large answer to an abandoned query makes room for the next one at once", async () => {
  const ask = await exchangeWith((asked) => {
    const late = Buffer.alloc(0xffff);
    late.set(asked.bytes);
    late[0] = 0xff ^ (asked.bytes[0] ?? 0);
    late[2] = 0x80;
    asked.send(late);
    LARGE(asked);
  });
  const seen = new Set<PooledBuffer>();
  for (let count = 0; count < 10; count++) {
    const request = await ask();
    assertWhole(request);
    seen.add(lentOf(request));
    lentOf(request).takeBack();
  }
  assert.equal(seen.size, 1);
});

test("a small answer has its own octets", async () => {
  const ask = await exchangeWith(HONEST);
  assert.equal((await ask()).lent, undefined);
});
