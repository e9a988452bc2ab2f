import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { listenTcp } from "./tcp.ts";
import type { MessageReceiver, ReplyPort, Transport } from "./transport.ts";

const MESSAGE = Uint8Array.of(0, 1, 7);

/** Answers at once, or never, as the test says at the time. */
class Answerer implements MessageReceiver {
  answers = true;
  received = 0;
  /** Octets; those of the message itself unless given. */
  replyLength: number | undefined;
  readonly waiting: ReplyPort[] = [];

  receive(bytes: Uint8Array, length: number, port: ReplyPort): void {
    this.received++;
    if (!this.answers) {
      this.waiting.push(port);
      return;
    }
    const reply = this.replyLength ?? length;
    port.buffer(reply).set(bytes.subarray(0, length));
    port.send(reply);
  }
}

async function connected({ port }: Transport): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  return socket;
}

async function checkAnswered(socket: Socket): Promise<void> {
  const reply = once(socket, "data");
  socket.write(MESSAGE);
  assert.deepEqual(await reply, [Buffer.from(MESSAGE)]);
}

async function withLimit(
  maxConnections: number,
  run: (transport: Transport, receiver: Answerer, turnedAway: () => number) => Promise<void>,
): Promise<void> {
  let turnedAway = 0;
  const receiver = new Answerer();
  const transport = await listenTcp({ host: "127.0.0.1", port: 0 }, receiver, {
    clock: new FakeClock(),
    limits: () => ({ readTimeout: 1_000, idleTimeout: 1_000, maxQueries: -1 }),
    maxConnections,
    onTurnedAway: () => turnedAway++,
  });
  try {
    await run(transport, receiver, () => turnedAway);
  } finally {
    await transport.close();
  }
}

describe("at the limit of connections", () => {
  test("the connection that was silent the longest goes for a new one, and is counted", async () => {
    await withLimit(3, async (transport, _receiver, turnedAway) => {
      const first = await connected(transport);
      await checkAnswered(first);
      const silent = await connected(transport);
      const third = await connected(transport);
      await checkAnswered(third);
      // Older than the silent one, but heard of later.
      await checkAnswered(first);
      assert.equal(turnedAway(), 0);
      const fourth = await connected(transport);
      await Promise.all([once(silent.resume(), "close"), checkAnswered(fourth)]);
      assert.equal(turnedAway(), 1);
      for (const socket of [first, third, fourth]) await checkAnswered(socket);
      for (const socket of [first, third, fourth]) socket.destroy();
    });
  });

  test("one that sends a part of a message counts as silent", async () => {
    await withLimit(2, async (transport) => {
      const partial = await connected(transport);
      const whole = await connected(transport);
      await checkAnswered(whole);
      partial.write(MESSAGE.subarray(0, 2));
      const another = await connected(transport);
      await Promise.all([once(partial.resume(), "close"), checkAnswered(another)]);
      await checkAnswered(whole);
      for (const socket of [whole, another]) socket.destroy();
    });
  });

  test("one that waits for its answer stays, and where all do, the new one is turned away", async () => {
    await withLimit(2, async (transport, receiver, turnedAway) => {
      receiver.answers = false;
      const patient = await Promise.all([connected(transport), connected(transport)]);
      for (const socket of patient) socket.write(MESSAGE);
      while (receiver.waiting.length < 2) await new Promise((resolve) => setImmediate(resolve));
      const another = await connected(transport);
      await once(another.resume(), "close");
      assert.equal(turnedAway(), 1);
      const replies = patient.map((socket) => once(socket, "data"));
      for (const port of receiver.waiting) {
        port.buffer(1)[0] = 7;
        port.send(1);
      }
      assert.deepEqual(await Promise.all(replies), [[Buffer.from(MESSAGE)], [Buffer.from(MESSAGE)]]);
      for (const socket of patient) socket.destroy();
    });
  });
});

describe("a client that closes its side", () => {
  test("still gets the answers that come later", async () => {
    await withLimit(10, async (transport, receiver) => {
      receiver.answers = false;
      const socket = await connected(transport);
      socket.end(Buffer.concat([MESSAGE, MESSAGE]));
      while (receiver.waiting.length < 2) await new Promise((resolve) => setImmediate(resolve));
      for (const port of receiver.waiting) {
        port.buffer(1)[0] = 7;
        port.send(1);
      }
      assert.deepEqual(Buffer.concat(await socket.toArray()), Buffer.concat([MESSAGE, MESSAGE]));
    });
  });

  test("gets all of what it asked for before, however much more than the server keeps for it", async () => {
    await withLimit(10, async (transport, receiver) => {
      receiver.replyLength = 60_000;
      const socket = await connected(transport);
      const count = 200;
      socket.end(Buffer.concat(Array.from({ length: count }, () => MESSAGE)));
      let received = 0;
      for await (const chunk of socket) {
        assert.ok(chunk instanceof Buffer);
        received += chunk.length;
      }
      assert.equal(received, count * 60_002);
    });
  });
});

test("a client that reads no replies is taken no further message from than its share allows", async () => {
  await withLimit(10, async (transport, receiver) => {
    receiver.replyLength = 60_000;
    const socket = await connected(transport);
    socket.pause();
    // All of them in one chunk.
    socket.write(Buffer.concat(Array.from({ length: 2_000 }, () => MESSAGE)));
    let before = -1;
    while (receiver.received !== before || receiver.received === 0) {
      before = receiver.received;
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    }
    // What the kernel holds comes on top: far less than 2,000 replies.
    assert.ok(receiver.received < 500, `${receiver.received} were taken`);
    socket.destroy();
  });
});
