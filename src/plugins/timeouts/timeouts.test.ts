import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import timeouts from "./index.ts";

function limits(text: string): readonly [number, number, number, number] {
  const { settings } = PluginTest.of(timeouts, text);
  return [settings.readTimeout, settings.writeTimeout, settings.idleTimeout, settings.maxTcpQueries];
}

for (const [text, expected] of [
  ["timeouts {\n read 5s\n write 10s\n idle 1m30s\n maxtcpqueries 100\n}", [5_000, 10_000, 90_000, 100]],
  ["timeouts {\n read 20\n}", [20_000, 5_000, 10_000, -1]],
  ["timeouts {\n write 1s\n}", [3_000, 1_000, 10_000, -1]],
  ["timeouts {\n idle 24h\n}", [3_000, 5_000, 86_400_000, -1]],
  ["timeouts {\n maxtcpqueries -1\n}", [3_000, 5_000, 10_000, -1]],
  ["timeouts {\n maxtcpqueries 1\n}", [3_000, 5_000, 10_000, 1]],
  ["timeouts {\n read 4s\n}\ntimeouts {\n idle 4s\n}", [4_000, 5_000, 4_000, -1]],
] as const) {
  test(`${JSON.stringify(text)} gives ${expected.join(", ")}`, () => {
    assert.deepEqual(limits(text), expected);
  });
}

for (const [text, code, message] of [
  ["timeouts", "PLUGIN_EMPTY", /2:1: error: timeouts block with no timeouts specified/],
  ["timeouts {\n}", "PLUGIN_EMPTY", /timeouts block with no timeouts specified/],
  ["timeouts 5s {\n read 5s\n}", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after '5s'/],
  ["timeouts {\n raed 5s\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'raed'[\s\S]*mean 'read'/],
  ["timeouts {\n read\n}", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending after 'read'/],
  ["timeouts {\n read 1s 2s\n}", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after '2s'/],
  [
    "timeouts {\n read 999ms\n}",
    "PLUGIN_BAD_VALUE",
    /3:7: error: timeout provided '999ms' needs to be between 1 second and 24 hours/,
  ],
  ["timeouts {\n write 24h1s\n}", "PLUGIN_BAD_VALUE", /timeout provided '24h1s' needs to be between/],
  ["timeouts {\n idle 0\n}", "PLUGIN_BAD_VALUE", /timeout provided '0' needs to be between/],
  ["timeouts {\n idle soon\n}", "PLUGIN_BAD_VALUE", /expected a duration such as 30s/],
  ["timeouts {\n maxtcpqueries 0\n}", "PLUGIN_BAD_VALUE", /'0' needs to be -1 or a positive number/],
  ["timeouts {\n maxtcpqueries -2\n}", "PLUGIN_BAD_VALUE", /'-2' needs to be -1 or a positive number/],
  ["timeouts {\n maxtcpqueries few\n}", "PLUGIN_BAD_VALUE", /'few' needs to be -1 or a positive number/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(timeouts, text),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}
