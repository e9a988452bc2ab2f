import assert from "node:assert/strict";
import { test } from "node:test";
import { Rcode } from "../../dns/index.ts";
import type { Next, Query, ReplyContent } from "../../plugin/index.ts";
import { PluginTest, records } from "../../plugin/testing.ts";
import cache from "./index.ts";

/** A cache before an upstream that counts. */
class Scene {
  readonly running: PluginTest<unknown>;
  readonly asked: Query[] = [];
  reply: ReplyContent = { answer: records("www.example.org. 100 IN A 192.0.2.1") };
  delay = 0;
  readonly #next: Next;

  constructor(options: string) {
    this.running = PluginTest.of(cache, `cache {\n${options}\n}`);
    this.#next = (query) => {
      this.asked.push(query);
      const outcome = query.reply(this.reply);
      if (this.delay === 0) return outcome;
      return new Promise((resolve) => {
        this.running.clock.after(this.delay * 1000, () => resolve(outcome));
      });
    };
  }

  /** The TTL shown, after `seconds`. */
  async askAfter(seconds: number): Promise<number | undefined> {
    await this.running.clock.settle(seconds * 1000);
    const { reply } = await this.running.ask({ name: "www.example.org.", next: this.#next });
    return reply.answer[0]?.ttl;
  }

  get prefetches(): number {
    const labels = ["server", "zones", "view"];
    return this.running.metrics
      .counter({ name: "coredns_cache_prefetch_total", help: "-", labels })
      .slot("dns://:53", ".", "").value;
  }
}

test("a popular answer near its end is refreshed in the background", async () => {
  const scene = new Scene("prefetch 3");
  await scene.askAfter(0);
  assert.equal(await scene.askAfter(50), 50);
  assert.equal(await scene.askAfter(39), 11);
  assert.equal(scene.prefetches, 0);
  assert.equal(await scene.askAfter(1), 10);
  assert.equal(scene.prefetches, 1);
  assert.equal(scene.asked.length, 2);
  assert.equal(scene.asked[1]?.transport, "tcp");
  assert.equal(await scene.askAfter(1), 99);
});

test("the share of the TTL is rounded up", async () => {
  const scene = new Scene("prefetch 1 1m 25%");
  scene.reply = { answer: records("www.example.org. 10 IN A 192.0.2.1") };
  await scene.askAfter(0);
  assert.equal(await scene.askAfter(6.5), 4);
  assert.equal(scene.prefetches, 0);
  assert.equal(await scene.askAfter(0.5), 3);
  assert.equal(scene.prefetches, 1);
});

test("hits count as long as the gaps between them are not longer than DURATION", async () => {
  const scene = new Scene("prefetch 2 5s 90%");
  await scene.askAfter(0);
  await scene.askAfter(20);
  await scene.askAfter(5.001);
  assert.equal(scene.prefetches, 0);
  await scene.askAfter(5);
  assert.equal(scene.prefetches, 1);
});

test("a first hit soon after the start of the clock counts as one", async () => {
  const scene = new Scene("prefetch 2 1h 90%");
  await scene.askAfter(0);
  await scene.askAfter(15);
  assert.equal(scene.prefetches, 0);
});

test("the new answer inherits the count of hits", async () => {
  const scene = new Scene("prefetch 3 1m");
  await scene.askAfter(0);
  for (const wait of [30, 30, 30]) await scene.askAfter(wait);
  assert.equal(scene.prefetches, 1);
  await scene.askAfter(59);
  await scene.askAfter(32);
  assert.equal(scene.prefetches, 2);
});

test("one prefetch at a time for each answer", async () => {
  const scene = new Scene("prefetch 1");
  await scene.askAfter(0);
  scene.delay = 3;
  for (const wait of [91, 0, 1]) await scene.askAfter(wait);
  assert.equal(scene.prefetches, 1);
  assert.equal(await scene.askAfter(3), 99);
  assert.equal(scene.running.clock.pendingTimers, 0);
});

test("a prefetch that fails leaves the answer, and the next hit tries again", async () => {
  const scene = new Scene("prefetch 1");
  await scene.askAfter(0);
  scene.reply = { rcode: Rcode.SERVFAIL };
  assert.equal(await scene.askAfter(95), 5);
  assert.equal(await scene.askAfter(1), 4);
  assert.equal(scene.prefetches, 2);
});

test("a miss waits for the prefetch of an answer that has just expired", async () => {
  const scene = new Scene("prefetch 1");
  await scene.askAfter(0);
  scene.delay = 10;
  assert.equal(await scene.askAfter(95), 5);
  const late = scene.askAfter(6);
  await scene.running.clock.settle(10_000);
  assert.equal(await late, 100);
  assert.equal(scene.asked.length, 2);
});

test("keepttl changes nothing about when an answer is prefetched", async () => {
  const scene = new Scene("prefetch 1\nkeepttl");
  await scene.askAfter(0);
  assert.equal(await scene.askAfter(89), 100);
  assert.equal(scene.prefetches, 0);
  assert.equal(await scene.askAfter(1), 100);
  assert.equal(scene.prefetches, 1);
});
