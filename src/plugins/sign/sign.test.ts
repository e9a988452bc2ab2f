import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import sign from "./index.ts";
import { readSignatureTime } from "./signature-time.ts";

for (const [text, message] of [
  ["sign", /unexpected line ending after 'sign'/],
  ["sign db", /no keys: 'key file' is required/],
  ["sign db {\n key directory x\n}", /directory: not implemented/],
  ["sign db {\n key file\n}", /unexpected line ending after 'file'/],
  ["sign db {\n foo\n}", /unknown property 'foo'/],
  ["sign db {\n directory\n}", /unexpected line ending after 'directory'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(sign, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}

test("reads the times of signatures", () => {
  assert.equal(readSignatureTime("19700101000001"), 1);
  assert.equal(readSignatureTime("20261122101500"), Date.UTC(2026, 10, 22, 10, 15, 0) / 1000);
  assert.equal(readSignatureTime("1700000000"), undefined);
});
