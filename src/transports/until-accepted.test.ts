import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { untilAccepted } from "./byte-stream-server.ts";

test("a socket that closes once its accept queue is empty resets no connection", async () => {
  const taken: Socket[] = [];
  const server = createServer((socket) => void taken.push(socket.on("error", () => undefined)));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  let resets = 0;
  const clients = Array.from({ length: 60 }, () =>
    connect(port, "127.0.0.1").on("error", () => {
      resets++;
    }),
  );
  await Promise.all(clients.map((client) => once(client, "connect")));
  await untilAccepted(() => taken.length);
  const isClosed = once(server, "close");
  server.close();
  assert.equal(taken.length, 60);
  for (const socket of taken) socket.end("here");
  await Promise.all(clients.map((client) => once(client.resume().end(), "close")));
  await isClosed;
  assert.equal(resets, 0);
});
