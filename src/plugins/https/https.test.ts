import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import https from "./index.ts";

for (const [text, expected] of [
  ["https", 200],
  ["https {\n max_connections 7\n}", 7],
  ["https {\n max_connections 0\n}", 0],
] as const) {
  test(`${JSON.stringify(text)} allows ${expected} connections`, () => {
    assert.equal(PluginTest.of(https, text).settings.maxHttpsConnections, expected);
  });
}

for (const [text, expected] of [
  ["https", 0],
  ["https {\n max_streams 0\n}", 0],
  ["https {\n max_streams 4294967295\n}", 4_294_967_295],
] as const) {
  test(`${JSON.stringify(text)} sets ${expected} as the number of streams`, () => {
    assert.equal(PluginTest.of(https, text).settings.maxHttpsStreams, expected);
  });
}

for (const [text, message] of [
  ["https {\n max_connections -1\n}", /'-1' is not a whole number of 0 or more/],
  ["https {\n max_connections many\n}", /'many' is not a whole number of 0 or more/],
  ["https {\n max_connections\n}", /Wrong argument count/],
  ["https 5", /Wrong argument count/],
  ["https {\n max_streams -1\n}", /max_streams must be a non-negative integer: -1/],
  ["https {\n max_streams many\n}", /max_streams must be a non-negative integer: many/],
  ["https {\n max_streams 4294967296\n}", /max_streams must not exceed 4294967295: 4294967296/],
  ["https {\n foo 5\n}", /unknown property 'foo'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(https, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}

test("the first of several lines counts, as in CoreDNS", () => {
  const { settings } = PluginTest.of(
    https,
    "https {\n max_connections 3\n}\nhttps {\n max_connections 4\n more\n}",
  );
  assert.equal(settings.maxHttpsConnections, 3);
});
