import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { type Allowance, BUCKET_OCTETS, BucketTable } from "./bucket-table.ts";
import { KeyedHash } from "./keyed-hash.ts";

/** Eight buckets are one set. */
const SET = 8;

/** A plain table: objects in a map, the least recently used first. */
class Model {
  readonly #capacity: number;
  readonly #buckets = new Map<number, { full: number; used: number; refusals: number }>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#buckets.size;
  }

  take(key: number, { interval, burst, debt }: Allowance, now: number): number {
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      if (this.#buckets.size === this.#capacity) {
        const [oldest] = [...this.#buckets].sort(([, one], [, other]) => one.used - other.used);
        this.#buckets.delete(oldest?.[0] ?? assert.fail());
      }
      bucket = { full: 0, used: now, refusals: 0 };
      this.#buckets.set(key, bucket);
    }
    bucket.used = now;
    const next = Math.max(bucket.full, now) + interval;
    if (next <= now + burst) {
      bucket.full = next;
      return 0;
    }
    if (debt > 0) bucket.full = Math.min(next, now + burst + debt);
    bucket.refusals++;
    return bucket.refusals;
  }
}

const allowances = fc.record({
  interval: fc.integer({ min: 1, max: 500 }),
  burst: fc.integer({ min: 500, max: 2_000 }),
  debt: fc.constantFrom(0, 0, 3_000),
});

/** Keys, each with the time since the one before. At least a millisecond: stamps have whole ones. */
const steps = fc.array(
  fc.record({ key: fc.integer({ min: 1, max: 12 }), wait: fc.integer({ min: 1, max: 300 }) }),
  { maxLength: 400 },
);

test("it refuses and evicts like a plain table", () => {
  fc.assert(
    fc.property(allowances, steps, (allowance, taken) => {
      const table = BucketTable.create(SET);
      const model = new Model(SET);
      let now = 0;
      for (const { key, wait } of taken) {
        now += wait;
        assert.equal(table.take(key, key << 12, allowance, now), model.take(key, allowance, now));
        assert.equal(table.size, model.size);
      }
    }),
  );
});

test("a token that is taken if it is free is the same token", () => {
  fc.assert(
    fc.property(allowances, steps, fc.infiniteStream(fc.boolean()), (allowance, taken, ways) => {
      const [one, other] = [BucketTable.create(SET), BucketTable.create(SET)];
      let now = 0;
      for (const { key, wait } of taken.slice(0, 100)) {
        now += wait;
        const only = (key % SET) + 1;
        const isFree = other.tokens(only, only << 12, allowance, now) > 0;
        const isTaken = ways.next().value
          ? one.takeIfFree(only, only << 12, allowance, now) ||
            one.take(only, only << 12, allowance, now) === 0
          : one.take(only, only << 12, allowance, now) === 0;
        assert.equal(other.take(only, only << 12, allowance, now) === 0, isTaken);
        assert.equal(isFree, isTaken);
      }
    }),
  );
});

describe("a million invented addresses", () => {
  const allowance = { interval: 10, burst: 1_000, debt: 0 };
  const hash = new KeyedHash(0x1234, 0x5678);
  const table = BucketTable.create(1_000_000);

  test("take at most 32 MB", () => {
    const before = process.memoryUsage().rss;
    for (let address = 0; address < 1_000_000; address++) {
      hash.start(0);
      hash.add(address);
      hash.finish();
      table.take(hash.low, hash.high, allowance, 1 + address / 1_000);
    }
    assert.ok(process.memoryUsage().rss - before < 32 << 20);
    assert.ok(table.octets < 32 << 20);
    assert.ok(table.size <= table.capacity);
    // Sets fill unevenly: a table of a million places holds most of a million keys.
    assert.ok(table.size > 860_000, `${table.size}`);
    assert.equal(BUCKET_OCTETS * 1_600_000, 32_000_000);
  });

  test("leave a client in use its bucket", () => {
    hash.start(7);
    hash.finish();
    const { low, high } = hash;
    let now = 10_000;
    let granted = 0;
    for (let address = 0; address < 200_000; address++) {
      now += 0.01;
      if (address % 100 === 0 && table.take(low, high, allowance, now) === 0) granted++;
      hash.start(1);
      hash.add(address);
      hash.finish();
      table.take(hash.low, hash.high, allowance, now);
    }
    // 100 tokens at once, and 100 a second for two seconds.
    assert.ok(Math.abs(granted - 300) <= 2, `${granted}`);
  });
});

test("two threads share a bucket, whatever the origins of their clocks", () => {
  const allowance = { interval: 100, burst: 1_000, debt: 0 };
  const leader = BucketTable.create(SET, 1_000_000);
  const follower = BucketTable.over(leader.memory, 1_004_000);
  for (let taken = 0; taken < 10; taken++)
    assert.equal(taken % 2 ? follower.take(1, 0, allowance, 1_000) : leader.take(1, 0, allowance, 5_000), 0);
  assert.equal(follower.take(1, 0, allowance, 1_000), 1);
  assert.equal(leader.take(1, 0, allowance, 5_000), 2);
  assert.equal(leader.take(1, 0, allowance, 5_100), 0);
});

test("hashes depend on the key, and on every word", () => {
  const seen = new Set<string>();
  for (const [left, right] of [
    [1, 2],
    [1, 3],
    [2, 2],
  ] as const) {
    const hash = new KeyedHash(left, right);
    for (let domain = 0; domain < 4; domain++) {
      for (let word = 0; word < 500; word++) {
        hash.start(domain);
        hash.add(word);
        hash.finish();
        seen.add(`${hash.low} ${hash.high}`);
      }
    }
  }
  assert.equal(seen.size, 3 * 4 * 500);
});
