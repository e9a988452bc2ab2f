/** Damaged shared memory costs the cached answers, never the process. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { untilTrue } from "../../../test/support/until-true.ts";
import { Name } from "../../dns/index.ts";
import { makeTestQuery, records } from "../../plugin/testing.ts";
import { EntrySlab } from "./entry-slab.ts";
import { makeCache } from "./fixtures/make-cache.ts";

const ROUNDS = Number(process.env.PORTOLAN_SLAB_ROUNDS ?? 600);
/** Milliseconds, far more than the rounds take on an idle machine. */
const PATIENCE = 120_000;
/**
 * Slabs whose writer is terminated during a write, and bound for the threads started for them: at least a third
 * succeed.
 */
const SLABS = 3;
const MOST_THREADS = 60;

function contentFor(name: string) {
  const asked = makeTestQuery({ name });
  return {
    asked,
    sections: asked.reply({ answer: records(`${name} 300 IN A 192.0.2.1`) }).encoded,
    ...{ rcode: 0, flags: 0, ttl: 300, expiresAt: 300_000, error: false, answers: true },
    ...{ wildcard: undefined, hits: undefined },
  };
}

/** The slab finds what was stored, and no block or node of it leaks. */
function assertWhole(slab: EntrySlab): void {
  const contents = Array.from({ length: 50 }, (_, index) => contentFor(`name-${index}.example.com.`));
  for (const [index, content] of contents.entries())
    assert.ok(slab.put({ hash: index, traits: 0 }, content) >= 0);
  for (const [index, { asked }] of contents.entries())
    assert.equal(slab.read(slab.find(index, 0, asked))?.ttl, 300);
  slab.dropAtOrBelow(Name.root, 2 * slab.capacity);
  assert.deepEqual([slab.size, slab.octets], [0, 0]);
}

test("with a slab overwritten at random each call ends, and emptying repairs the slab", async (context) => {
  const worker = new Worker(new URL("./fixtures/damage-thread.ts", import.meta.url), {
    workerData: { rounds: ROUNDS, seed: 4711 },
  });
  const timeout = new AbortController();
  try {
    const outcome = await Promise.race([
      once(worker, "message").then(([message]) => message),
      delay(PATIENCE, "a call does not end", { signal: timeout.signal }),
    ]);
    assert.notEqual(outcome, "a call does not end");
    context.diagnostic(`emptied ${outcome.emptied} times in ${ROUNDS} rounds`);
    assert.equal(outcome.lasting, 0);
    assert.ok(outcome.emptied >= ROUNDS);
  } finally {
    timeout.abort();
    await worker.terminate();
  }
});

test("threads terminated during a write leave a slab that others can use", async (context) => {
  const reasons: string[] = [];
  const slabs: EntrySlab[] = [];
  const { asked } = contentFor("probe.example.com.");
  let threads = 0;
  while (slabs.length < SLABS && threads < MOST_THREADS) {
    const slab = new EntrySlab({ capacity: 200, regions: 1 }, false, ++threads);
    slab.onEmptied(({ message }) => void reasons.push(message));
    const worker = new Worker(new URL("./fixtures/writing-thread.ts", import.meta.url), {
      workerData: slab.share(0),
    });
    await once(worker, "message");
    await worker.terminate();
    // No thread writes any more, so a lock that is still taken was abandoned.
    if (slab.removeAnswer(1, 0, asked)) assertWhole(slab);
    else slabs.push(slab);
  }
  context.diagnostic(`${slabs.length} of ${threads} threads were in the middle of a write`);
  assert.equal(slabs.length, SLABS);
  // An abandoned lock is detected after two seconds.
  await Promise.all(
    slabs.map(async (slab) => {
      await untilTrue(() => slab.removeAnswer(1, 0, asked), { what: "the lock is free" });
    }),
  );
  assert.equal(reasons.length, SLABS);
  assert.deepEqual(new Set(reasons), new Set(["a thread ended while it wrote"]));
  for (const slab of slabs) assertWhole(slab);
});

test("a slab whose pages were released while in use is emptied and reports it", () => {
  const slab = new EntrySlab({ capacity: 200, regions: 1 }, false, 7);
  const reasons: Error[] = [];
  slab.onEmptied((reason) => void reasons.push(reason));
  const words = new Int32Array(slab.share(0).buffer);
  for (const name of ["x.good.example.", "t.good.example."])
    slab.put({ hash: 1, traits: 0 }, contentFor(name));
  words.fill(0, 16);
  for (const name of ["x", "t", "u", "v"])
    slab.put({ hash: 1, traits: 0 }, contentFor(`${name}.good.example.`));
  assert.ok(reasons.length > 0);
  assertWhole(slab);
});

test("an emptied cache is counted and logged", async () => {
  const { running, handler } = makeCache();
  const { success } = handler.share();
  const words = new Int32Array(success.buffer);
  const ask = async (host: string): Promise<void> => {
    const query = running.query({ name: `${host}.good.example.` });
    await handler.handle(query, () => query.reply({ answer: records(`${query.name} 300 IN A 192.0.2.1`) }));
  };
  await ask("x");
  words.fill(0, 16);
  for (const host of ["t", "u", "v", "w"]) await ask(host);
  const { body } = await running.metrics.expose();
  assert.match(body, /^portolan_cache_damages_total\{zones="\."\} [1-9]/m);
  assert.match(running.log.lines.join("\n"), /all cached answers were dropped because memory was damaged: /);
  await handler.stop();
});
