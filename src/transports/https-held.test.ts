/** Memory that HTTP/1.1 holds for clients that do not read, or do not finish sending, is limited. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { untilTrue } from "../../test/support/until-true.ts";
import { SystemClock } from "../lib/time/clock.ts";
import { ConnectionBudget, type ConnectionLimits } from "./connection-budget.ts";
import { listenHttps } from "./https.ts";
import type { MessageReceiver } from "./transport.ts";

const REPLY_OCTETS = 60_000;
const MESSAGE = Buffer.alloc(12);
const GET = `GET /dns-query?dns=${MESSAGE.toString("base64url")} HTTP/1.1\r\nhost: a\r\n\r\n`;
const TIMEOUTS = { read: 60_000, write: 60_000, idle: 60_000 };

interface Scene {
  readonly budget: ConnectionBudget;
  /** The maximum held at a time. */
  readonly most: number;
  readonly unread: number;
  connect(): Promise<Socket>;
}

async function scene(limits: Partial<ConnectionLimits>, run: (scene: Scene) => Promise<void>): Promise<void> {
  const budget = new ConnectionBudget(limits);
  let most = 0;
  let unread = 0;
  const receiver: MessageReceiver = {
    receive(_bytes, _length, port) {
      port.buffer(REPLY_OCTETS).fill(7);
      port.send(REPLY_OCTETS);
      most = Math.max(most, budget.unsent);
    },
  };
  const transport = await listenHttps({ host: "127.0.0.1", port: 0 }, receiver, {
    clock: new SystemClock(),
    budget,
    timeouts: () => TIMEOUTS,
    onUnread: () => unread++,
  });
  const sockets: Socket[] = [];
  try {
    await run({
      budget,
      get most() {
        return most;
      },
      get unread() {
        return unread;
      },
      async connect() {
        const socket = connect(transport.port, "127.0.0.1").on("error", () => undefined);
        sockets.push(socket);
        await once(socket, "connect");
        return socket;
      },
    });
  } finally {
    for (const socket of sockets) socket.destroy();
    await transport.close();
  }
}

test("a client that keeps sending queries and reads nothing is disconnected", async () => {
  await scene({}, async (seen) => {
    const socket = await seen.connect();
    socket.pause();
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.write(GET.repeat(90));
    await untilTrue(() => seen.unread > 0, { between: () => nextTurn() });
    assert.ok(seen.most <= seen.budget.limits.maxUnsent, `${seen.most}`);
    socket.resume();
    await closed;
    await untilTrue(() => seen.budget.unsent === 0, { between: () => nextTurn() });
    assert.equal(seen.unread, 1);
  });
});

test("a client that reads gets all of its answers, and nothing is held for it", async () => {
  await scene({}, async (seen) => {
    const socket = await seen.connect();
    let octets = 0;
    socket.on("data", (data: Buffer) => {
      octets += data.filter((octet) => octet === 7).length;
    });
    for (let round = 1; round <= 5; round++) {
      socket.write(GET.repeat(5));
      await untilTrue(() => octets >= round * 5 * REPLY_OCTETS, { between: () => nextTurn() });
    }
    await untilTrue(() => seen.budget.unsent === 0, { between: () => nextTurn() });
    assert.deepEqual([octets, seen.unread], [25 * REPLY_OCTETS, 0]);
  });
});

test("under memory pressure a long body is refused, and a short one is not", async () => {
  await scene({ takesLong: false }, async (seen) => {
    for (const [octets, status] of [
      [5_000, 400],
      [100, 200],
    ] as const) {
      const socket = await seen.connect();
      socket.write(`POST /dns-query HTTP/1.1\r\nhost: a\r\ncontent-length: ${octets}\r\n\r\n`);
      socket.write(Buffer.alloc(octets));
      const [reply] = await once(socket, "data");
      assert.match(String(reply), new RegExp(`^HTTP/1\\.1 ${status} `));
    }
  });
});

test("incomplete bodies are held within the common limit, and others are refused", async () => {
  await scene({ maxUnsentOfAll: 100_000 }, async (seen) => {
    const head = "POST /dns-query HTTP/1.1\r\nhost: a\r\ncontent-length: 60000\r\n\r\n";
    const first = await seen.connect();
    first.write(head);
    first.write(Buffer.alloc(50_000));
    await untilTrue(() => seen.budget.unsent >= 50_000, { between: () => nextTurn() });
    const second = await seen.connect();
    second.write(head);
    second.write(Buffer.alloc(30_000));
    await untilTrue(() => seen.budget.unsent >= 80_000, { between: () => nextTurn() });
    second.write(Buffer.alloc(29_000));
    const [reply] = await once(second, "data");
    assert.match(String(reply), /^HTTP\/1\.1 400 /);
    assert.ok(seen.budget.unsent <= 51_000, `${seen.budget.unsent}`);
    first.write(Buffer.alloc(10_000));
    const [answer] = await once(first, "data");
    assert.match(String(answer), /^HTTP\/1\.1 200 /);
    first.destroy();
    second.destroy();
    await untilTrue(() => seen.budget.unsent === 0, { between: () => nextTurn() });
  });
});
