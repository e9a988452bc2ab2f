import assert from "node:assert/strict";
import { test } from "node:test";
import { frame, Http3FrameReader, readVarint, varint } from "./h3-frames.ts";

for (const [value, length] of [
  [0, 1],
  [63, 1],
  [64, 2],
  [16_383, 2],
  [16_384, 4],
  [2 ** 30 - 1, 4],
] as const) {
  test(`${value} has ${length} octets, and is not read with one octet missing`, () => {
    const octets = Uint8Array.from(varint(value));
    assert.equal(octets.length, length);
    assert.equal(readVarint(octets, 0), value);
    assert.equal(readVarint(octets.subarray(0, length - 1), 0), undefined);
  });
}

test("an integer of eight octets is read", () => {
  assert.equal(readVarint(Buffer.from("c000000100000003", "hex"), 0), 2 ** 32 + 3);
});

for (const size of [1, 2, 3, 7, 1000]) {
  test(`frames are read from pieces of ${size} octets`, () => {
    const payload = new Uint8Array(100).fill(9);
    const octets = Buffer.concat([frame(1, payload), frame(0x21, new Uint8Array()), frame(0, payload)]);
    const found: [type: number, length: number, octets: number, ended: boolean][] = [];
    const reader = new Http3FrameReader({
      begin(type, length) {
        found.push([type, length, 0, false]);
        return true;
      },
      payload(part, isEnd) {
        const last = found.at(-1) ?? [0, 0, 0, false];
        last[2] += part.length;
        last[3] = isEnd;
        return true;
      },
    });
    for (let at = 0; at < octets.length; at += size) reader.take(octets.subarray(at, at + size));
    assert.deepEqual(found, [
      [1, 100, 100, true],
      [0x21, 0, 0, true],
      [0, 100, 100, true],
    ]);
    assert.ok(reader.isBetweenFrames);
    reader.take(octets.subarray(0, 5));
    assert.ok(!reader.isBetweenFrames);
  });
}
