import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import debug from "./index.ts";

test("sets the block to debug, even if repeated", () => {
  assert.equal(PluginTest.of(debug, "debug").settings.debug, true);
  assert.equal(PluginTest.of(debug, "debug\ndebug").settings.debug, true);
});

test("is not in the chain", () => {
  assert.deepEqual(PluginTest.of(debug, "debug").instances, []);
});

for (const [text, code, message] of [
  ["debug on", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after 'on'[\s\S]*expected no arguments/],
  ["debug {\n all\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'all'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(debug, text),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}
