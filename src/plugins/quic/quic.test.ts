import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import quic from "./index.ts";

for (const [text, connections, streams, queries] of [
  ["quic", 200, 256, 1024],
  ["quic {\n max_streams 7\n worker_pool_size 8\n max_connections 9\n}", 9, 7, 8],
  ["quic {\n max_connections 0\n}", 0, 256, 1024],
] as const) {
  test(`${JSON.stringify(text)} allows ${connections} connections, ${streams} streams and ${queries} queries`, () => {
    const { settings } = PluginTest.of(quic, text);
    assert.deepEqual(
      [settings.maxQuicConnections, settings.maxQuicStreams, settings.maxQuicQueries],
      [connections, streams, queries],
    );
  });
}

for (const [text, message] of [
  ["quic {\n max_streams 0\n}", /'0' is not a whole number of 1 or more/],
  ["quic {\n worker_pool_size -1\n}", /'-1' is not a whole number of 1 or more/],
  ["quic {\n worker_pool_size many\n}", /'many' is not a whole number of 1 or more/],
  ["quic {\n max_streams\n}", /Wrong argument count/],
  ["quic 5", /Wrong argument count/],
  ["quic {\n max_connections -1\n}", /max_connections must be a non-negative integer: -1/],
  ["quic {\n max_connections many\n}", /invalid max_connections value 'many'/],
  ["quic {\n max_connections\n}", /Wrong argument count/],
  ["quic {\n max_connections 1 2\n}", /Wrong argument count or unexpected line ending after '2'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(quic, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}

test("the first of several lines counts, as in CoreDNS", () => {
  const { settings } = PluginTest.of(
    quic,
    "quic {\n max_connections 3\n}\nquic {\n max_connections 4\n more\n}",
  );
  assert.equal(settings.maxQuicConnections, 3);
});
