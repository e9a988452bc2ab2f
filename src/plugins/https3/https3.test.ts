import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import https3 from "./index.ts";

for (const [text, streams, connections] of [
  ["https3", 256, 200],
  ["https3 {\n max_streams 7\n max_connections 8\n}", 7, 8],
  ["https3 {\n max_streams 0\n max_connections 0\n}", 0, 0],
] as const) {
  test(`${JSON.stringify(text)} allows ${streams} streams and ${connections} connections`, () => {
    const { settings } = PluginTest.of(https3, text);
    assert.deepEqual([settings.maxHttps3Streams, settings.maxHttps3Connections], [streams, connections]);
  });
}

for (const [text, message] of [
  ["https3 {\n max_streams -1\n}", /'-1' is not a whole number of 0 or more/],
  ["https3 {\n max_connections x\n}", /'x' is not a whole number of 0 or more/],
  ["https3 5", /Wrong argument count/],
  ["https3 {\n idle 5\n}", /unknown property 'idle'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(https3, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}

test("the first of several lines counts, as in CoreDNS", () => {
  const { settings } = PluginTest.of(
    https3,
    "https3 {\n max_connections 3\n}\nhttps3 {\n max_connections 4\n more\n}",
  );
  assert.equal(settings.maxHttps3Connections, 3);
});
