import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { untilTrue } from "../../../test/support/until-true.ts";
import { ownLoop } from "../../runtime/linux/fixtures/own-loop.ts";
import { NoForeignFunctions } from "../../runtime/linux/libc.ts";
import { linuxSockets } from "../../runtime/linux/linux-sockets.ts";
import { addressOf } from "../fixtures/udp-bench.ts";
import { batchedDatagramPorts } from "./batched-datagram-port.ts";

const skip = (await linuxSockets()) instanceof NoForeignFunctions ? "koffi is not available here" : false;

test("slow replies end a turn of the event loop within a batch, and still reach their requests", {
  skip,
}, async () => {
  const own = await ownLoop();
  const open = batchedDatagramPorts(own, () => own.clock.now);
  const total = 500;
  const turns = [0];
  // The two share the receive buffer.
  const peers = await Promise.all(
    [1, 2].map(async (tag) => {
      const server = createSocket("udp4");
      server.bind(0, "127.0.0.1");
      await once(server, "listening");
      const port = open(
        { remote: addressOf("127.0.0.1", server.address().port), sourceAddress: undefined },
        {
          received: (bytes) => {
            assert.equal(bytes[0], tag);
            own.clock.now += 1;
            turns[turns.length - 1] = (turns.at(-1) ?? 0) + 1;
          },
          failed: (error) => assert.fail(error),
        },
      );
      port.send(Uint8Array.of(0, 0, 1), 3, 1);
      const [, client] = await once(server, "message");
      await new Promise<void>((resolve) => server.connect(client.port, client.address, resolve));
      return { tag, server, port };
    }),
  );
  for (let sent = 0; sent < total; sent++)
    for (const { tag, server } of peers) server.send(Uint8Array.of(tag));
  await untilTrue(() => turns.reduce((sum, count) => sum + count) >= total * peers.length, {
    between: async () => {
      await new Promise(setImmediate);
      turns.push(0);
    },
  });
  for (const { port, server } of peers) {
    port.close();
    server.close();
  }
  const most = Math.max(...turns);
  assert.ok(most <= 1, `${most} datagrams of 1 ms each in one turn`);
});
