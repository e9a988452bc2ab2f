import assert from "node:assert/strict";
import { test } from "node:test";
import { Query } from "../query/query.ts";
import { makeTestQuery } from "../testing.ts";

for (const [what, data, sound] of [
  ["of a /24", [0, 1, 24, 0, 192, 0, 2], true],
  ["of an IPv6 /33", [0, 2, 33, 0, 0x20, 1, 0xd, 0xb8, 0x80], true],
  ["that tells nothing", [0, 0, 0, 0], true],
  ["without its prefix lengths", [0, 1], false],
  ["of an unknown family", [0, 3, 0, 0], false],
  ["with a prefix longer than an address", [0, 1, 33, 0, 192, 0, 2, 1, 0], false],
  ["with too few octets", [0, 1, 24, 0, 192, 0], false],
  ["with too many octets", [0, 1, 24, 0, 192, 0, 2, 0], false],
  ["with bits behind its prefix", [0, 1, 23, 0, 192, 0, 3], false],
] as const) {
  test(`a query with a client subnet ${what} is ${sound ? "read" : "refused"}`, () => {
    const cookie = { code: 10, data: new Uint8Array(8) };
    const options = [cookie, { code: 8, data: Uint8Array.from(data) }, cookie];
    // Made with another code, since the test kit makes readable queries alone.
    const made = makeTestQuery({
      name: "www.example.org.",
      edns: {
        options: options.map((option) => ({ ...option, code: option.code === 8 ? 65_001 : option.code })),
      },
    });
    const bytes = made.bytes.slice(0, made.length);
    const at = bytes.findIndex((octet, index) => octet === 0xfd && bytes[index + 1] === 0xe9);
    bytes.set([0, 8], at);
    assert.equal(Query.read(bytes, bytes.length, made) !== undefined, sound);
  });
}
