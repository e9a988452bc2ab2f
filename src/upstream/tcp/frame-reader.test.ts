import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { frame } from "../fixtures/scripted-server.ts";
import { FrameReader } from "./frame-reader.ts";

it("finds the same messages however the stream is split", () => {
  const messages = fc.array(fc.uint8Array({ maxLength: 600 }), { maxLength: 8 });
  fc.assert(
    fc.property(messages, fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1 }), (sent, cuts) => {
      const stream = Buffer.concat(sent.map(frame));
      const received: Uint8Array[] = [];
      const reader = new FrameReader((message) => received.push(message));
      for (let at = 0, cut = 0; at < stream.length; cut++) {
        const chunk = stream.subarray(at, at + (cuts[cut % cuts.length] ?? 1));
        at += chunk.length;
        reader.push(chunk);
      }
      assert.deepEqual(
        received.map((message) => [...message]),
        sent.map((message) => [...message]),
      );
    }),
  );
});

it("returns octets that stay when the chunk is reused", () => {
  const received: Uint8Array[] = [];
  const reader = new FrameReader((message) => received.push(message));
  const chunk = frame(Uint8Array.of(1, 2, 3));
  reader.push(chunk);
  chunk.fill(9);
  assert.deepEqual(received, [Uint8Array.of(1, 2, 3)]);
});

it("keeps one unfinished message", () => {
  const received: Uint8Array[] = [];
  const reader = new FrameReader((message) => received.push(message));
  reader.push(Uint8Array.of(0xff));
  reader.push(Uint8Array.of(0xff));
  reader.push(new Uint8Array(65_534));
  assert.equal(received.length, 0);
  reader.push(Uint8Array.of(7, 0, 0));
  assert.equal(received.length, 2);
  assert.equal(received[0]?.length, 65_535);
  assert.equal(received[1]?.length, 0);
});
