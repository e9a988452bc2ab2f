import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import metadata from "./index.ts";

for (const [text, expected] of [
  ["metadata", "example.org.,10.in-addr.arpa."],
  ["metadata Example.net b.example.org", "example.net.,b.example.org."],
  ["metadata 10.1.0.0/16", "1.10.in-addr.arpa."],
  ["metadata .", "."],
] as const) {
  test(`${text} collects for ${expected}`, () => {
    const { instances } = PluginTest.of(metadata, text, { keys: "example.org:53 10.0.0.0/8:53" });
    assert.equal(instances.length, 1);
    assert.equal(String(instances[0]?.metadataZones), expected);
  });
}

test("is not in the chain", () => {
  assert.equal(PluginTest.of(metadata, "metadata").instances[0]?.handle, undefined);
});

for (const [text, code, message] of [
  ["metadata\nmetadata", "PLUGIN_REPEATED", /can only be used once per Server Block/],
  ["metadata {\n zone example.org\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'zone'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(metadata, text),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}
