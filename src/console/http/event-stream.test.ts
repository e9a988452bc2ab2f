import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { test } from "node:test";
import { EventStream } from "./event-stream.ts";

test("a client that reads nothing loses events, and its place at last", async (t) => {
  const server = createServer();
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = Object(server.address()) as AddressInfo;
  const client = connect(port, "127.0.0.1")
    .pause()
    .on("error", () => undefined);
  client.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
  const [, response] = await once(server, "request");
  const stream = new EventStream(response);
  let hasEnded = false;
  stream.onEnd(() => {
    hasEnded = true;
  });
  const text = "x".repeat(64 * 1024);
  let sent = 0;
  while (stream.send("queries", { text })) sent++;
  assert.ok(sent > 0);
  let lost = 1;
  for (; !response.destroyed; lost++) {
    assert.ok(lost < 1_000, "is let go");
    assert.equal(stream.send("queries", { text }), false);
  }
  assert.ok(lost > 60, `${lost} events are no time to wait`);
  if (!hasEnded) await once(response, "close");
  assert.ok(hasEnded);
  client.destroy();
});

test("a client to which nothing is said hears that the server is there", async (t) => {
  const server = createServer((_request, response) => {
    const stream = new EventStream(response);
    for (let count = 0; count < 3; count++) stream.beat();
    stream.end();
  });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = Object(server.address()) as AddressInfo;
  const answer = await fetch(`http://127.0.0.1:${port}/`);
  // The first look finds what was said at the beginning.
  assert.match(await answer.text(), /^retry: 2000\n\n(:\n\n){2}$/);
});
