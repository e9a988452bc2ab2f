/**
 * Many clients that pipeline queries and read no replies: the memory that they hold together is limited, and other clients are
 * answered.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { untilTrue } from "../../test/support/until-true.ts";
import { SystemClock } from "../lib/time/clock.ts";
import { ConnectionBudget } from "./connection-budget.ts";
import { listenGrpc } from "./grpc.ts";
import { encodeFields } from "./http2/hpack-encoder.ts";
import { FrameFlag, FrameType, Setting } from "./http2/http2-frames.ts";
import { listenHttps } from "./https.ts";
import { listenTcp } from "./tcp.ts";
import type { ListenTarget, MessageReceiver, Transport } from "./transport.ts";

/** Common limit. Each client alone would have as much as 512 KiB. */
const BOUND = 1024 * 1024;
/** A chunk of one client's data and its replies, which may come on top before a check. */
const MARGIN = 512 * 1024;
const CLIENTS = 24;
/** Connections closed before the test ends. */
const CLOSED = 8;
const REPLY_OCTETS = 290;
const MESSAGE = Buffer.alloc(12);
const TIMEOUTS = { read: 60_000, write: 60_000, idle: 60_000 };
const TARGET: ListenTarget = { host: "127.0.0.1", port: 0 };

interface Protocol {
  readonly name: string;
  listen(receiver: MessageReceiver, budget: ConnectionBudget, onUnread: () => void): Promise<Transport>;
  /** The beginning of a connection. */
  readonly greeting: Buffer;
  /** Requests from number `first` on, up to a hundred. */
  requests(first: number, count: number): Buffer;
}

const clock = new SystemClock();

const PROTOCOLS: readonly Protocol[] = [
  {
    name: "TCP",
    listen: (receiver, budget, onUnread) =>
      listenTcp(TARGET, receiver, {
        clock,
        budget,
        onUnread,
        limits: () => ({ readTimeout: 60_000, idleTimeout: 60_000, maxQueries: -1 }),
      }),
    greeting: Buffer.alloc(0),
    requests: (_first, count) =>
      repeated(count, () => Buffer.concat([Buffer.of(0, MESSAGE.length), MESSAGE])),
  },
  {
    name: "HTTP/1.1",
    listen: (receiver, budget, onUnread) =>
      listenHttps(TARGET, receiver, { clock, budget, onUnread, timeouts: () => TIMEOUTS }),
    greeting: Buffer.alloc(0),
    requests: (_first, count) =>
      repeated(count, () =>
        Buffer.from(`GET /dns-query?dns=${MESSAGE.toString("base64url")} HTTP/1.1\r\nhost: a\r\n\r\n`),
      ),
  },
  {
    name: "gRPC over HTTP/2",
    listen: (receiver, budget, onUnread) =>
      listenGrpc(TARGET, receiver, {
        clock,
        budget,
        onUnread,
        timeouts: () => TIMEOUTS,
        maxStreams: () => 0,
      }),
    greeting: Buffer.concat([
      Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
      // Windows with room for all replies: only the socket is left unread.
      frame(FrameType.SETTINGS, 0, 0, Buffer.of(0, Setting.INITIAL_WINDOW_SIZE, 0x7f, 0xff, 0xff, 0xff)),
      frame(FrameType.WINDOW_UPDATE, 0, 0, Buffer.of(0x7f, 0, 0, 0)),
    ]),
    requests: (first, count) =>
      repeated(count, (index) => {
        const id = 2 * (first + index) + 1;
        const packet = Buffer.concat([
          Buffer.of(0, 0, 0, 0, 2 + MESSAGE.length, 0x0a, MESSAGE.length),
          MESSAGE,
        ]);
        return Buffer.concat([
          frame(FrameType.HEADERS, FrameFlag.END_HEADERS, id, CALL),
          frame(FrameType.DATA, FrameFlag.END_STREAM, id, packet),
        ]);
      }),
  },
];

const CALL = Buffer.from(
  encodeFields([
    [":method", "POST"],
    [":scheme", "http"],
    [":path", "/coredns.dns.DnsService/Query"],
    ["content-type", "application/grpc"],
  ]),
);

function frame(type: number, flags: number, id: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, payload]);
}

function repeated(count: number, make: (index: number) => Buffer): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, index) => make(index)));
}

/** Answers each message at once, and records the held memory. */
class Answerer implements MessageReceiver {
  most = 0;
  readonly #budget: ConnectionBudget;

  constructor(budget: ConnectionBudget) {
    this.#budget = budget;
  }

  receive(_bytes: Uint8Array, _length: number, port: Parameters<MessageReceiver["receive"]>[2]): void {
    port.buffer(REPLY_OCTETS).fill(7, 0, REPLY_OCTETS);
    port.send(REPLY_OCTETS);
    this.most = Math.max(this.most, this.#budget.unsent);
  }
}

/** Sends queries as long as the server reads, and reads nothing. */
function askAndReadNothing(port: number, protocol: Protocol): Socket {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  socket.pause();
  socket.write(protocol.greeting);
  let asked = 0;
  const ask = (): void => {
    if (socket.destroyed) return;
    const isTaken = socket.write(protocol.requests(asked, 100));
    asked += 100;
    if (isTaken) setImmediate(ask);
    else socket.once("drain", ask);
  };
  socket.once("connect", ask);
  return socket;
}

for (const protocol of PROTOCOLS)
  test(`clients that pipeline over ${protocol.name} and read nothing hold no more than the common limit, and others are answered`, async () => {
    const budget = new ConnectionBudget({ maxUnsentOfAll: BOUND });
    const receiver = new Answerer(budget);
    let closed = 0;
    const transport = await protocol.listen(receiver, budget, () => closed++);
    const sockets = Array.from({ length: CLIENTS }, () => askAndReadNothing(transport.port, protocol));
    try {
      while (closed < CLOSED) {
        const socket = connect(transport.port, "127.0.0.1").on("error", () => undefined);
        sockets.push(socket);
        socket.write(Buffer.concat([protocol.greeting, protocol.requests(0, 1)]));
        const answered = (async () => {
          let octets = 0;
          for await (const chunk of socket) {
            assert.ok(chunk instanceof Buffer);
            octets += chunk.filter((octet) => octet === 7).length;
            if (octets >= REPLY_OCTETS) return;
          }
          assert.fail("a client that reads was hung up on");
        })();
        await answered;
        assert.ok(budget.unsent <= BOUND + MARGIN, `${budget.unsent} octets are held`);
        for (let index = 0; index < CLIENTS; index++)
          if (sockets[index]?.destroyed === true)
            sockets[index] = askAndReadNothing(transport.port, protocol);
        await nextTurn();
      }
      assert.ok(receiver.most <= BOUND + MARGIN, `${receiver.most} octets were held`);
    } finally {
      for (const socket of sockets) socket.destroy();
      await transport.close();
    }
    await untilTrue(() => budget.unsent === 0, { between: () => nextTurn() });
  });

test("small waiting replies count with Node's objects for them", async () => {
  const budget = new ConnectionBudget({ maxUnsent: 64 * 1024 });
  let answered = 0;
  const receiver: MessageReceiver = {
    receive(_bytes, _length, port) {
      answered++;
      port.buffer(12).fill(7, 0, 12);
      port.send(12);
    },
  };
  const transport = await PROTOCOLS[0]?.listen(receiver, budget, () => undefined);
  assert.ok(transport && PROTOCOLS[0]);
  const socket = askAndReadNothing(transport.port, PROTOCOLS[0]);
  try {
    await untilTrue(() => budget.unsent > budget.limits.maxUnsent, { between: () => nextTurn() });
    const then = answered;
    // The server stops reading from it. Without the objects, a reply of 12 octets would count far less.
    for (let turn = 0; turn < 50; turn++) await nextTurn();
    assert.ok(answered - then < 512, `${answered - then} more were answered`);
    assert.ok(budget.unsent < 64 * 1024 + MARGIN, `${budget.unsent} octets are held`);
  } finally {
    socket.destroy();
    await transport.close();
  }
});

test("queries that wait to be processed count, whole or not", async () => {
  const budget = new ConnectionBudget();
  const receiver: MessageReceiver = { receive: () => undefined };
  const transport = await PROTOCOLS[0]?.listen(receiver, budget, () => undefined);
  assert.ok(transport && PROTOCOLS[0]);
  const socket = connect(transport.port, "127.0.0.1").on("error", () => undefined);
  try {
    await once(socket, "connect");
    // Of these, 256 are in flight, and no more.
    socket.write(PROTOCOLS[0].requests(0, 2_000));
    await untilTrue(() => budget.unsent >= 10_000, { between: () => nextTurn() });
  } finally {
    socket.destroy();
    await transport.close();
  }
  await untilTrue(() => budget.unsent === 0, { between: () => nextTurn() });
});
