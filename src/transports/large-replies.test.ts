/** Buffers of large replies are used again. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { ConnectionBudget } from "./connection-budget.ts";
import { listenTcp } from "./tcp.ts";
import type { MessageReceiver } from "./transport.ts";

const QUERIES = 200;
const REPLY_OCTETS = 60_000;

test("a connection that reads what it asks for has all of its large replies out of few buffers", async () => {
  const budget = new ConnectionBudget();
  const buffers = new Set<ArrayBufferLike>();
  const receiver: MessageReceiver = {
    receive(bytes, length, port) {
      const buffer = port.buffer(REPLY_OCTETS);
      buffers.add(buffer.buffer);
      buffer.fill(bytes[0] ?? 0, 0, REPLY_OCTETS);
      assert.equal(length, 1);
      port.send(REPLY_OCTETS);
    },
  };
  const transport = await listenTcp({ host: "127.0.0.1", port: 0 }, receiver, {
    clock: new FakeClock(),
    limits: () => ({ readTimeout: 1_000, idleTimeout: 1_000, maxQueries: -1 }),
    budget,
  });
  const socket = connect(transport.port, "127.0.0.1");
  try {
    await once(socket, "connect");
    for (let number = 0; number < QUERIES; number++) {
      socket.write(Uint8Array.of(0, 1, number));
      let reply = Buffer.alloc(0);
      while (reply.length < REPLY_OCTETS + 2) {
        const [chunk] = await once(socket, "data");
        reply = Buffer.concat([reply, chunk]);
      }
      assert.equal(reply.length, REPLY_OCTETS + 2);
      assert.ok(reply.subarray(2).every((octet) => octet === number));
    }
    assert.ok(buffers.size <= 4, `${buffers.size}`);
    assert.ok(budget.buffers.freeOctets >= REPLY_OCTETS);
  } finally {
    socket.destroy();
    await transport.close();
  }
});
