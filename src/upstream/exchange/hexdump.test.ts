import assert from "node:assert/strict";
import { it } from "node:test";
import { hexdump } from "./hexdump.ts";

it("prints 16 bytes a line, and the length", () => {
  assert.deepEqual(hexdump(Uint8Array.from({ length: 18 }, (_, index) => index)), [
    "000000 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f",
    "000010 10 11",
    "000012",
  ]);
});
