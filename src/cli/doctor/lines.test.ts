import assert from "node:assert/strict";
import { test } from "node:test";
import { linesOf, TooLongLine } from "./lines.ts";

async function* inPortions(text: string, octets: number): AsyncGenerator<Uint8Array> {
  const all = Buffer.from(text);
  for (let at = 0; at < all.length; at += octets) yield all.subarray(at, at + octets);
}

test("chunk boundaries do not change the lines, and the last line may lack its end", async () => {
  const text = "one\n\nzwölf Hütten\nlast";
  for (let octets = 1; octets <= 25; octets++) {
    const lines: unknown[] = [];
    for await (const some of linesOf(inPortions(text, octets)))
      for (const line of some) lines.push([line.number, line.text, line.isWhole]);
    assert.deepEqual(
      lines,
      [
        [1, "one", true],
        [2, "", true],
        [3, "zwölf Hütten", true],
        [4, "last", false],
      ],
      `${octets} octets at a time`,
    );
  }
});

test("a line without end is refused", async () => {
  async function* endless(): AsyncGenerator<Uint8Array> {
    yield Buffer.from("short\n");
    for (;;) yield Buffer.alloc(1024 * 1024, "x");
  }
  await assert.rejects(
    async () => {
      for await (const lines of linesOf(endless())) assert.equal(lines.length, 1);
    },
    (error: unknown) => error instanceof TooLongLine && error.number === 2,
  );
});
