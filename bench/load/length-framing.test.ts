import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FrameSplitter, frame } from "./length-framing.ts";

test("messages come out as they went in, however the stream is cut", () => {
  const messages = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 8 });
  fc.assert(
    fc.property(messages, fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }), (sent, cuts) => {
      const stream = Buffer.concat(sent.map(frame));
      const splitter = new FrameSplitter();
      const received: Uint8Array[] = [];
      for (let at = 0, cut = 0; at < stream.length; cut++) {
        const end = at + (cuts[cut % cuts.length] ?? 1);
        splitter.push(stream.subarray(at, end), (message) => received.push(Uint8Array.from(message)));
        at = end;
      }
      assert.deepEqual(received, sent);
    }),
  );
});
