/** Large messages in both directions: reply buffers are reused, and incomplete messages are limited. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { untilTrue } from "../../test/support/until-true.ts";
import { FakeClock } from "../lib/time/clock.ts";
import { ConnectionBudget } from "./connection-budget.ts";
import { listenTcp } from "./tcp.ts";
import type { MessageReceiver } from "./transport.ts";

const QUERIES = 200;
const LIMITS = () => ({ readTimeout: 1_000, idleTimeout: 1_000, maxQueries: -1 });
const REPLY_OCTETS = 60_000;

test("a connection that reads gets all of its large replies from few buffers", async () => {
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
    limits: LIMITS,
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

test("connections with incomplete long messages are closed if there is no room for more", async () => {
  const budget = new ConnectionBudget({ maxUnsentOfAll: 200_000 });
  let closed = 0;
  const transport = await listenTcp(
    { host: "127.0.0.1", port: 0 },
    {
      receive(bytes, length, port) {
        port.buffer(length).set(bytes);
        port.send(length);
      },
    },
    { clock: new FakeClock(), limits: LIMITS, budget, onUnread: () => closed++ },
  );
  const sockets = Array.from({ length: 20 }, () => connect(transport.port, "127.0.0.1"));
  try {
    const begun = Buffer.alloc(60_000, 255);
    for (const socket of sockets) {
      socket.on("error", () => undefined);
      socket.write(begun);
    }
    // At first each has room for its message, later only for its share.
    await untilTrue(() => closed >= 17, { between: () => new Promise((resolve) => setImmediate(resolve)) });
    assert.ok(budget.unsent <= 200_000, `${budget.unsent}`);
    const quick = connect(transport.port, "127.0.0.1");
    sockets.push(quick);
    quick.write(Uint8Array.of(0, 1, 7));
    assert.deepEqual(await once(quick, "data"), [Buffer.of(0, 1, 7)]);
    for (const socket of sockets) socket.destroy();
    await untilTrue(() => budget.connections === 0, {
      between: () => new Promise((resolve) => setImmediate(resolve)),
    });
    assert.equal(budget.unsent, 0);
  } finally {
    for (const socket of sockets) socket.destroy();
    await transport.close();
  }
});

test("under memory pressure, a client that sends a long message is disconnected as soon as that is known", async () => {
  const budget = new ConnectionBudget();
  let received = 0;
  let refused = 0;
  const transport = await listenTcp(
    { host: "127.0.0.1", port: 0 },
    {
      receive(_bytes, _length, port) {
        received++;
        port.drop();
        // The pressure starts here.
        budget.limits = { ...budget.limits, takesLong: false };
      },
    },
    { clock: new FakeClock(), limits: LIMITS, budget, onUnread: () => refused++ },
  );
  const socket = connect(transport.port, "127.0.0.1").on("error", () => undefined);
  try {
    await once(socket, "connect");
    const closed = new Promise((resolve) => socket.once("close", resolve));
    const long = Buffer.alloc(2 + REPLY_OCTETS);
    long.writeUInt16BE(REPLY_OCTETS);
    // The third message is whole, like the first; the rest of the fourth is not awaited.
    socket.write(Buffer.concat([long, Uint8Array.of(0, 1, 7), long, long.subarray(0, 10)]));
    socket.resume();
    await closed;
    assert.deepEqual([received, refused, budget.unsent], [2, 1, 0]);
  } finally {
    socket.destroy();
    await transport.close();
  }
});
