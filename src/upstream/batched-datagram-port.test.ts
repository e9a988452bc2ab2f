import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { BATCH } from "../lib/linux/datagram-batch.ts";
import { ownLoop } from "../lib/linux/fixtures/own-loop.ts";
import { NoForeignFunctions } from "../lib/linux/libc.ts";
import { linuxSockets } from "../lib/linux/linux-sockets.ts";
import { batchedDatagramPorts } from "./batched-datagram-port.ts";
import { addressOf } from "./fixtures/udp-bench.ts";

const skip = (await linuxSockets()) instanceof NoForeignFunctions ? "koffi is not to be had here" : false;

test("replies that take long end a turn of the event loop with the batch that was begun", {
  skip,
}, async () => {
  const own = await ownLoop();
  const server = createSocket("udp4");
  server.bind(0, "127.0.0.1");
  await once(server, "listening");
  const total = 1_000;
  const turns = [0];
  const port = batchedDatagramPorts(own)(
    { remote: addressOf("127.0.0.1", server.address().port), sourceAddress: undefined },
    {
      received: () => {
        own.clock.now += 0.1;
        turns[turns.length - 1] = (turns.at(-1) ?? 0) + 1;
      },
      failed: (error) => assert.fail(error),
    },
  );
  port.send(Uint8Array.of(0, 0, 1), 3, 1);
  const [, client] = await once(server, "message");
  await new Promise<void>((resolve) => server.connect(client.port, client.address, resolve));
  for (let sent = 0; sent < total; sent++) server.send(Uint8Array.of(0));
  while (turns.reduce((sum, count) => sum + count) < total) {
    await new Promise((resolve) => setImmediate(resolve));
    turns.push(0);
  }
  port.close();
  server.close();
  const most = Math.max(...turns);
  assert.ok(most <= BATCH, `${most} datagrams of 0.1 ms each in one turn`);
});
