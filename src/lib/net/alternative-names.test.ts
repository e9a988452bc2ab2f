import assert from "node:assert/strict";
import { test } from "node:test";
import { alternativeNames } from "./alternative-names.ts";

for (const [text, names] of [
  ["", []],
  ["DNS:a.example", ["a.example"]],
  ["DNS:a.example, DNS:*.b.example", ["a.example", "*.b.example"]],
  ["IP Address:192.0.2.1, IP Address:2001:DB8:0:0:0:0:0:1", ["192.0.2.1", "2001:db8::1"]],
  ["email:a@b.example, URI:spiffe://cluster.local/ns/x", ["a@b.example", "spiffe://cluster.local/ns/x"]],
  // One name, which would be two without its quotes.
  ['DNS:"a.example, DNS:b.example", DNS:c.example', ["a.example, DNS:b.example", "c.example"]],
  ["DirName:CN = a.example", []],
  ["othername:<unsupported>, DNS:a.example", ["a.example"]],
] as const) {
  test(JSON.stringify(text), () => {
    assert.deepEqual(alternativeNames(text), names);
  });
}
