import assert from "node:assert/strict";
import { test } from "node:test";
import { BufferPool } from "./buffer-pool.ts";

const KIB = 1024;

test("a buffer that came back is used again, for what is as large", () => {
  const pool = new BufferPool();
  const first = pool.take(60 * KIB);
  assert.equal(first.bytes.length, 64 * KIB);
  first.takeBack();
  assert.equal(pool.freeOctets, 64 * KIB);
  assert.notEqual(pool.take(5 * KIB), first);
  assert.equal(pool.take(64 * KIB), first);
  assert.notEqual(pool.take(64 * KIB), first);
  assert.equal(pool.freeOctets, 0);
});

test("the longest message has room with the length in front of it", () => {
  assert.ok(new BufferPool().take(0xffff + 2).bytes.length >= 0xffff + 2);
});

test("no more lies free than is allowed", () => {
  const pool = new BufferPool(100 * KIB);
  const taken = Array.from({ length: 4 }, () => pool.take(40 * KIB));
  for (const buffer of taken) buffer.takeBack();
  assert.equal(pool.freeOctets, 80 * KIB);
  pool.clear();
  assert.equal(pool.freeOctets, 0);
  assert.ok(!taken.includes(pool.take(40 * KIB)));
});

test("what a socket failed to write does not come back: the system may still read it", () => {
  const pool = new BufferPool();
  pool.take(9 * KIB).written(new Error("reset"));
  assert.equal(pool.freeOctets, 0);
  pool.take(9 * KIB).written(null);
  pool.take(17 * KIB).written();
  assert.equal(pool.freeOctets, 40 * KIB);
});
