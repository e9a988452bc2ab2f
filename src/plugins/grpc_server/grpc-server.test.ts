import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import grpcServer from "./index.ts";

for (const [text, streams, connections] of [
  ["grpc_server", 256, 200],
  ["grpc_server {\n max_streams 7\n max_connections 8\n}", 7, 8],
  ["grpc_server {\n max_streams 0\n max_connections 0\n}", 0, 0],
] as const) {
  test(`${JSON.stringify(text)} allows ${streams} streams and ${connections} connections`, () => {
    const { settings } = PluginTest.of(grpcServer, text);
    assert.deepEqual([settings.maxGrpcStreams, settings.maxGrpcConnections], [streams, connections]);
  });
}

for (const [text, message] of [
  ["grpc_server {\n max_streams -1\n}", /'-1' is not a whole number of 0 or more/],
  ["grpc_server {\n max_connections x\n}", /'x' is not a whole number of 0 or more/],
  ["grpc_server 5", /Wrong argument count/],
  ["grpc_server {\n idle 5\n}", /unknown property 'idle'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(grpcServer, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}

test("the first of several lines counts, as in CoreDNS", () => {
  const { settings } = PluginTest.of(
    grpcServer,
    "grpc_server {\n max_connections 3\n}\ngrpc_server {\n max_connections 4\n more\n}",
  );
  assert.equal(settings.maxGrpcConnections, 3);
});
