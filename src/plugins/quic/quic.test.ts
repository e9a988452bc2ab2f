import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import quic from "./index.ts";

for (const [text, streams, queries] of [
  ["quic", 256, 1024],
  ["quic {\n max_streams 7\n worker_pool_size 8\n}", 7, 8],
] as const) {
  test(`${JSON.stringify(text)} allows ${streams} streams and ${queries} queries`, () => {
    const { settings } = PluginTest.of(quic, text);
    assert.deepEqual([settings.maxQuicStreams, settings.maxQuicQueries], [streams, queries]);
  });
}

for (const [text, message] of [
  ["quic {\n max_streams 0\n}", /'0' is not a whole number of 1 or more/],
  ["quic {\n worker_pool_size -1\n}", /'-1' is not a whole number of 1 or more/],
  ["quic {\n worker_pool_size many\n}", /'many' is not a whole number of 1 or more/],
  ["quic {\n max_streams\n}", /Wrong argument count/],
  ["quic 5", /Wrong argument count/],
  ["quic {\n max_connections 5\n}", /unknown property 'max_connections'/],
  ["quic\nquic", /only be used once/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(quic, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}
