import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeFields, encodeFields, QpackError } from "./qpack.ts";

const octets = (hex: string): Uint8Array => Buffer.from(hex.replaceAll(" ", ""), "hex");

test("reads entries of the static table, literals, and both kinds of text", () => {
  const fields = decodeFields(
    octets(
      // GET, https, :path without and :authority with Huffman code (RFC 7541 appendix C.4.1), x-a as a literal name, an unused
      // entry.
      "0000 d1 d7 5104 2f646e73 508c f1e3c2e5f23a6ba0ab90f4ff 23 782d61 0162 dd",
    ),
  );
  assert.deepEqual(fields, [
    { name: ":method", value: "GET" },
    { name: ":scheme", value: "https" },
    { name: ":path", value: "/dns" },
    { name: ":authority", value: "www.example.com" },
    { name: "x-a", value: "b" },
    { name: "", value: "" },
  ]);
});

test("reads what it writes", () => {
  const long = "v".repeat(300);
  const fields = [
    { name: ":status", value: "200" },
    { name: ":status", value: "418" },
    { name: "content-type", value: "application/dns-message" },
    { name: "cache-control", value: "max-age=3600" },
    { name: "content-length", value: "65535" },
    { name: "x-content-type-options", value: "nosniff" },
    { name: "x-a-name-that-nobody-has-heard-of", value: long },
  ];
  assert.deepEqual(decodeFields(encodeFields(fields)), fields);
});

for (const [what, hex] of [
  ["nothing", ""],
  ["half a prefix", "00"],
  ["an insert count", "0100"],
  ["an entry of the dynamic table", "0000 80"],
  ["a name from the dynamic table", "0000 40 00"],
  ["a post-base entry", "0000 10"],
  ["a post-base name", "0000 00 00"],
  ["an entry beyond the static table", "0000 ff24"],
  ["a text longer than the block", "0000 51 05 2f"],
  ["an unterminated text", "0000 51 7f"],
  ["an unterminated length", "0000 51 7f ffffffffffffff01"],
  ["an invalid Huffman code", "0000 51 81 00"],
] as const) {
  test(`refuses ${what}`, () => {
    assert.throws(() => decodeFields(octets(hex)), QpackError);
  });
}
