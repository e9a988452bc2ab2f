import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, test } from "node:test";
import { untilTrue } from "../../test/support/until-true.ts";
import { FakeClock } from "../lib/time/clock.ts";
import { FixedEndpoint } from "../plugin/message/endpoint.ts";
import type { StreamLayer } from "./byte-stream-server.ts";
import { ConnectionBudget } from "./connection-budget.ts";
import { listenTcp } from "./tcp.ts";
import type { MessageReceiver, ReplyPort, Transport } from "./transport.ts";

const MESSAGE = Uint8Array.of(0, 1, 7);

/** Answers at once, or never, as the test says. */
class Answerer implements MessageReceiver {
  answers = true;
  received = 0;
  /** Octets; default: those of the message. */
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
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
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
    budget: new ConnectionBudget({ maxConnections }),
    onTurnedAway: () => turnedAway++,
  });
  try {
    await run(transport, receiver, () => turnedAway);
  } finally {
    await transport.close();
  }
}

describe("at the limit of connections", () => {
  test("a new connection replaces the one that was silent the longest, and is counted", async () => {
    await withLimit(3, async (transport, _receiver, turnedAway) => {
      const first = await connected(transport);
      await checkAnswered(first);
      const silent = await connected(transport);
      const third = await connected(transport);
      await checkAnswered(third);
      // Opened before the silent one, but with a later message.
      await checkAnswered(first);
      assert.equal(turnedAway(), 0);
      const fourth = await connected(transport);
      await Promise.all([once(silent.resume(), "close"), checkAnswered(fourth)]);
      assert.equal(turnedAway(), 1);
      for (const socket of [first, third, fourth]) await checkAnswered(socket);
      for (const socket of [first, third, fourth]) socket.destroy();
    });
  });

  test("a connection that sends part of a message counts as silent", async () => {
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

  test("a connection that waits for its answer stays, and if all do, the new one is turned away", async () => {
    await withLimit(2, async (transport, receiver, turnedAway) => {
      receiver.answers = false;
      const patient = await Promise.all([connected(transport), connected(transport)]);
      for (const socket of patient) socket.write(MESSAGE);
      await untilTrue(() => receiver.waiting.length >= 2, {
        between: () => new Promise((resolve) => setImmediate(resolve)),
      });
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
  test("still gets later answers", async () => {
    await withLimit(10, async (transport, receiver) => {
      receiver.answers = false;
      const socket = await connected(transport);
      socket.end(Buffer.concat([MESSAGE, MESSAGE]));
      await untilTrue(() => receiver.waiting.length >= 2, {
        between: () => new Promise((resolve) => setImmediate(resolve)),
      });
      for (const port of receiver.waiting) {
        port.buffer(1)[0] = 7;
        port.send(1);
      }
      assert.deepEqual(Buffer.concat(await socket.toArray()), Buffer.concat([MESSAGE, MESSAGE]));
    });
  });

  test("gets all answers to its earlier queries, even beyond the server's limit", async () => {
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

test("a client that reads no replies cannot send more than its share allows", async () => {
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
    // The kernel's buffers come on top: far less than 2,000 replies.
    assert.ok(receiver.received < 500, `${receiver.received} were taken`);
    socket.destroy();
  });
});

test("messages that arrive together are processed in portions and in order, also before the end of a client", async () => {
  const turns = [0];
  const ids: number[] = [];
  const total = 3_000;
  const receiver: MessageReceiver = {
    receive(bytes, length, port) {
      turns[turns.length - 1] = (turns.at(-1) ?? 0) + 1;
      ids.push(((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0));
      port.buffer(length).set(bytes.subarray(0, length));
      port.send(length);
    },
  };
  const transport = await listenTcp({ host: "127.0.0.1", port: 0 }, receiver, {
    ...OPTIONS,
    budget: new ConnectionBudget(),
  });
  try {
    const socket = await connected(transport);
    let replies = 0;
    socket.on("data", (data) => {
      replies += data.length / 4;
    });
    const ended = once(socket, "end");
    socket.end(
      Buffer.concat(Array.from({ length: total }, (_, id) => Uint8Array.of(0, 2, id >> 8, id & 0xff))),
    );
    while (ids.length < total) {
      await turn();
      turns.push(0);
    }
    await ended;
    assert.deepEqual(
      ids,
      Array.from({ length: total }, (_, id) => id),
    );
    assert.equal(replies, total);
    const most = Math.max(...turns);
    // Sockets are read before immediates run: a portion of each.
    assert.ok(most <= 2 * 128, `${most} messages in one turn`);
  } finally {
    await transport.close();
  }
});

test("slow messages end the turn before their portion is full", async () => {
  const clock = new FakeClock();
  const turns = [0];
  const total = 128;
  const receiver: MessageReceiver = {
    receive(bytes, length, port) {
      turns[turns.length - 1] = (turns.at(-1) ?? 0) + 1;
      clock.advance(1);
      port.buffer(length).set(bytes.subarray(0, length));
      port.send(length);
    },
  };
  const transport = await listenTcp({ host: "127.0.0.1", port: 0 }, receiver, {
    ...OPTIONS,
    clock,
    budget: new ConnectionBudget(),
  });
  try {
    const socket = await connected(transport);
    const ended = once(socket.resume(), "end");
    socket.end(Buffer.concat(Array.from({ length: total }, () => MESSAGE)));
    while (turns.reduce((sum, count) => sum + count) < total) {
      await turn();
      turns.push(0);
    }
    await ended;
    const most = Math.max(...turns);
    // Once when they arrive, and once in the immediates of the same turn.
    assert.ok(most <= 2, `${most} messages of 1 ms each in one turn`);
  } finally {
    await transport.close();
  }
});

test("connections share the time of a turn, and none is left out", async () => {
  const clock = new FakeClock();
  const connections = 20;
  const each = 4;
  const turns = [0];
  const receiver: MessageReceiver = {
    receive(bytes, length, port) {
      turns[turns.length - 1] = (turns.at(-1) ?? 0) + 1;
      clock.advance(1);
      port.buffer(length).set(bytes.subarray(0, length));
      port.send(length);
    },
  };
  const transport = await listenTcp({ host: "127.0.0.1", port: 0 }, receiver, {
    ...OPTIONS,
    clock,
    budget: new ConnectionBudget(),
  });
  try {
    const sockets = await Promise.all(Array.from({ length: connections }, () => connected(transport)));
    const ended = sockets.map((socket) => once(socket.resume(), "end"));
    for (const socket of sockets) socket.end(Buffer.concat(Array.from({ length: each }, () => MESSAGE)));
    while (turns.reduce((sum, count) => sum + count) < connections * each) {
      await turn();
      turns.push(0);
    }
    await Promise.all(ended);
    const most = Math.max(...turns);
    assert.ok(most <= 2, `${most} messages of 1 ms each in one turn`);
  } finally {
    await transport.close();
  }
});

test("late replies are not kept for a client that does not read: over the limit its connection is closed", async () => {
  await withLimit(10, async (transport, receiver) => {
    receiver.answers = false;
    const socket = await connected(transport);
    socket.pause();
    socket.write(Buffer.concat(Array.from({ length: 256 }, () => MESSAGE)));
    await untilTrue(() => receiver.waiting.length >= 256, { between: () => turn() });
    let sent = 0;
    for (const port of receiver.waiting) {
      if (port.parts?.isOpen !== true) break;
      port.buffer(60_000);
      port.send(60_000);
      sent++;
    }
    // All 256 are 15 MB: half a megabyte may wait, plus the kernel's buffers.
    assert.ok(sent < 200, `${sent} replies were taken`);
    await new Promise((resolve) =>
      socket
        .on("error", () => undefined)
        .resume()
        .once("close", resolve),
    );
  });
});

test("all clients together leave no more unread than the limit of the process", async () => {
  const budget = new ConnectionBudget({ maxUnsentOfAll: 1024 * 1024 });
  const receiver = new Answerer();
  receiver.answers = false;
  const transport = await listenTcp({ host: "127.0.0.1", port: 0 }, receiver, { ...OPTIONS, budget });
  try {
    const sockets = await Promise.all(Array.from({ length: 20 }, () => connected(transport)));
    for (const socket of sockets) {
      socket.on("error", () => undefined);
      socket.pause();
      socket.write(Buffer.concat(Array.from({ length: 200 }, () => MESSAGE)));
    }
    await untilTrue(() => receiver.waiting.length >= 20 * 200, { between: () => turn() });
    for (const port of receiver.waiting) {
      port.buffer(60_000);
      port.send(60_000);
      assert.ok(budget.unsent <= 1024 * 1024 + 20 * 60_002, `${budget.unsent} octets`);
    }
    for (const socket of sockets) socket.destroy();
  } finally {
    await transport.close();
  }
});

test("an answer of many messages waits for its client, and ends when the client disconnects", async () => {
  await withLimit(10, async (transport, receiver) => {
    receiver.answers = false;
    const socket = await connected(transport);
    socket.pause();
    socket.write(MESSAGE);
    await untilTrue(() => receiver.waiting.length >= 1, { between: () => turn() });
    const port = receiver.waiting[0];
    assert.ok(port?.parts !== undefined);
    let sent = 0;
    const send = (): boolean => {
      sent++;
      port.buffer(60_000).fill(7, 0, 60_000);
      return port.parts?.sendPart(60_000) ?? false;
    };
    while (send());
    let received = 0;
    socket.on("data", (data: Buffer) => (received += data.length));
    socket.resume();
    await port.parts.drained();
    assert.ok(send());
    port.drop();
    await untilTrue(() => received >= sent * 60_002, { between: () => turn() });
    socket.destroy();
    await untilTrue(() => port.parts?.isOpen === false, { between: () => turn() });
    await port.parts.drained();
  });
});

test("layers come first, may name another client, and have the timeout of a first message", async () => {
  const clock = new FakeClock();
  const receiver = new Answerer();
  const clients: string[] = [];
  const greeting: StreamLayer = {
    enter(stream, proceed) {
      stream.socket.once("data", (data) => {
        stream.socket.unshift(data.subarray(1));
        proceed({
          ...stream,
          client: new FixedEndpoint("192.0.2.7", data[0] ?? 0, Uint8Array.of(192, 0, 2, 7)),
        });
      });
    },
  };
  const transport = await listenTcp(
    { host: "127.0.0.1", port: 0 },
    {
      receive(bytes, length, port) {
        clients.push(`${port.client.address} ${port.client.port}`);
        receiver.receive(bytes, length, port);
      },
    },
    { ...OPTIONS, clock, budget: new ConnectionBudget(), layers: () => [greeting] },
  );
  try {
    const socket = await connected(transport);
    socket.write(Buffer.concat([Uint8Array.of(9), MESSAGE]));
    assert.deepEqual(await once(socket, "data"), [Buffer.from(MESSAGE)]);
    assert.deepEqual(clients, ["192.0.2.7 9"]);
    const silent = await connected(transport);
    // The server has it when it answers the other.
    await checkAnswered(socket);
    clock.advance(1_000);
    await once(silent.resume(), "close");
    socket.destroy();
  } finally {
    await transport.close();
  }
});

const OPTIONS = {
  clock: new FakeClock(),
  limits: () => ({ readTimeout: 1_000, idleTimeout: 1_000, maxQueries: -1 }),
};

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
