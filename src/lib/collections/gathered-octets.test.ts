import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { GatheredOctets } from "./gathered-octets.ts";

describe("a message in parts", () => {
  for (const [title, sizes] of [
    ["of one part", [300]],
    ["of nothing", [0, 0]],
    ["of empty parts among others", [0, 5, 0, 7, 0]],
    ["of growing parts", [1, 10, 100, 1000, 10_000]],
    ["of shrinking parts", [10_000, 1000, 100, 10, 1]],
    ["of single octets", new Array<number>(5000).fill(1)],
  ] as const)
    test(`${title} is whole, and takes no more than twice its length`, () => {
      const parts = sizes.map((size, index) => new Uint8Array(size).fill(index));
      const message = new GatheredOctets();
      // What was read is read over.
      for (const part of parts) {
        const lent = Uint8Array.from(part);
        message.add(lent);
        lent.fill(0xff);
      }
      const whole = Buffer.concat(parts);
      assert.deepEqual(Buffer.from(message.octets), whole);
      assert.equal(message.length, whole.length);
      assert.ok(message.room <= 2 * whole.length, `${message.room} octets for ${whole.length}`);
    });
});
