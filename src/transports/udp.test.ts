import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { describe, test } from "node:test";
import { untilTrue } from "../../test/support/until-true.ts";
import { BATCH } from "../runtime/linux/datagram-batch.ts";
import { ownLoop } from "../runtime/linux/fixtures/own-loop.ts";
import { NoForeignFunctions } from "../runtime/linux/libc.ts";
import { linuxSockets } from "../runtime/linux/linux-sockets.ts";
import { rawUdpSocket } from "./fixtures/raw-udp-socket.ts";
import {
  ListenError,
  type ListenTarget,
  MAX_DATAGRAM_OCTETS,
  type MessageReceiver,
  type ReplyPort,
  type Transport,
} from "./transport.ts";
import { listenUdp, type UdpListen } from "./udp.ts";
import { listenUdpBatched } from "./udp-batched.ts";

const found = await linuxSockets();
const sockets = found instanceof NoForeignFunctions ? undefined : found;
const ways: readonly (readonly [string, UdpListen | undefined])[] = [
  ["dgram", listenUdp],
  [
    "batched",
    sockets && ((target, receiver, options) => listenUdpBatched(sockets, target, receiver, options)),
  ],
];

/** Sends each message back, with the sender's port after it. */
const echo: MessageReceiver = {
  receive(bytes, length, port) {
    const out = port.buffer(length + 2);
    out.set(bytes.subarray(0, length));
    out.set([port.client.port >> 8, port.client.port & 0xff], length);
    port.send(length + 2);
  },
};

async function client(family: 4 | 6 = 4): Promise<Socket> {
  const socket = createSocket(family === 4 ? "udp4" : "udp6");
  socket.bind(0, family === 4 ? "127.0.0.1" : "::1");
  await once(socket, "listening");
  return socket;
}

/** Sends a datagram to a transport whenever the transport delivers one, and counts those of each turn of the event loop. */
class Refill implements MessageReceiver {
  static readonly TOTAL = 5_000;
  readonly #socket = createSocket("udp4");
  readonly #turns: number[] = [0];
  readonly #onReceive: () => void;
  #sent = 0;

  constructor(onReceive: () => void = () => undefined) {
    this.#onReceive = onReceive;
  }

  receive(bytes: Uint8Array, length: number, port: ReplyPort): void {
    this.#turns[this.#turns.length - 1] = (this.#turns.at(-1) ?? 0) + 1;
    this.#onReceive();
    this.#send();
    echo.receive(bytes, length, port);
  }

  /** @returns the number of datagrams in each turn */
  async run(port: number): Promise<number[]> {
    // A connected socket sends at once, so that the next datagram has arrived before this one is answered.
    await new Promise<void>((resolve) => this.#socket.connect(port, "127.0.0.1", resolve));
    for (let n = 0; n < 200; n++) this.#send();
    while (this.#turns.reduce((sum, count) => sum + count) < Refill.TOTAL) {
      await new Promise((resolve) => setImmediate(resolve));
      this.#turns.push(0);
    }
    this.#socket.close();
    return this.#turns;
  }

  #send(): void {
    if (this.#sent++ < Refill.TOTAL) this.#socket.send(Uint8Array.of(0));
  }
}

test("a flood of slow queries ends a turn of the event loop within a batch, and all are answered", {
  skip: sockets === undefined,
}, async () => {
  const own = await ownLoop();
  const refill = new Refill(() => {
    own.clock.now += 0.5;
  });
  const transport = await listenUdpBatched(own, { host: "127.0.0.1", port: 0 }, refill);
  const most = Math.max(...(await refill.run(transport.port)));
  await transport.close();
  // It checks the clock after each eighth.
  assert.ok(most <= 8, `${most} datagrams of 0.5 ms each in one turn`);
});

test("a turn that is over within a batch leaves the rest of it to the next turns, or to the end of the socket", {
  skip: sockets === undefined,
}, async () => {
  const own = await ownLoop();
  const turns: number[][] = [[]];
  const slow: MessageReceiver = {
    receive(bytes, length, port) {
      turns.at(-1)?.push(bytes[0] ?? -1);
      // As if each had to be signed ten times.
      own.clock.now += 1;
      echo.receive(bytes, length, port);
    },
  };
  const transport = await listenUdpBatched(own, { host: "127.0.0.1", port: 0 }, slow);
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.connect(transport.port, "127.0.0.1", resolve));
  const replies: number[] = [];
  socket.on("message", (reply) => replies.push(reply[0] ?? -1));
  const all = Array.from({ length: BATCH }, (_, number) => number);
  // A connected socket sends at once: all of them have arrived before the first is processed.
  for (const number of all) socket.send(Uint8Array.of(number));
  while (replies.length < BATCH) {
    await new Promise((resolve) => setImmediate(resolve));
    turns.push([]);
  }
  assert.deepEqual([turns.flat(), replies], [all, all]);
  const most = Math.max(...turns.map(({ length }) => length));
  assert.ok(most <= 4, `${most} datagrams of 1 ms each in one turn`);
  for (const number of all) socket.send(Uint8Array.of(number));
  await untilTrue(() => turns.flat().length !== BATCH, {
    between: () => new Promise((resolve) => setImmediate(resolve)),
  });
  assert.ok(turns.flat().length < 2 * BATCH);
  transport.pause();
  assert.deepEqual(turns.flat(), [...all, ...all]);
  socket.close();
  await transport.close();
});

for (const [name, listen] of ways) {
  describe(`UDP by ${name}`, { skip: listen === undefined ? "koffi is not available here" : false }, () => {
    if (listen === undefined) return;

    async function withTransport(
      target: ListenTarget,
      receiver: MessageReceiver,
      body: (transport: Transport) => Promise<void>,
    ): Promise<void> {
      assert.ok(listen !== undefined);
      const errors: Error[] = [];
      const transport = await listen(target, receiver, { onSendError: (error) => errors.push(error) });
      try {
        await body(transport);
        assert.deepEqual(errors, []);
      } finally {
        await transport.close();
      }
    }

    for (const [host, family] of [
      ["127.0.0.1", 4],
      ["::1", 6],
      ["", 4],
      ["", 6],
    ] as const) {
      test(`answers ${family === 4 ? "IPv4" : "IPv6"} on ${host === "" ? "the wildcard" : host}`, async () => {
        await withTransport({ host, port: 0 }, echo, async (transport) => {
          const socket = await client(family);
          socket.send(Uint8Array.of(1, 2, 3), transport.port, family === 4 ? "127.0.0.1" : "::1");
          const [reply] = (await once(socket, "message")) as [Buffer];
          const { port } = socket.address();
          assert.deepEqual([...reply], [1, 2, 3, port >> 8, port & 0xff]);
          socket.close();
        });
      });
    }

    test("shows IPv4 clients of a dual-stack socket as IPv4, in every datagram of a burst", async () => {
      const seen: string[] = [];
      const watching: MessageReceiver = {
        receive(bytes, length, port) {
          seen.push(
            `${port.client.family} ${port.client.address} ${[...port.client.octets].join(".")} ${port.client.port}`,
          );
          echo.receive(bytes, length, port);
        },
      };
      await withTransport({ host: "", port: 0 }, watching, async (transport) => {
        const socket = await client();
        const replies = gather(socket, 50);
        for (let n = 0; n < 50; n++) socket.send(Uint8Array.of(n), transport.port, "127.0.0.1");
        await replies;
        assert.deepEqual(new Set(seen), new Set([`4 127.0.0.1 127.0.0.1 ${socket.address().port}`]));
        socket.close();
      });
    });

    test("late answers, and answers out of order, reach their own clients", async () => {
      const waiting: { port: ReplyPort; tag: number }[] = [];
      const later: MessageReceiver = {
        receive(bytes, _length, port) {
          waiting.push({ port: port.keep(), tag: bytes[0] ?? 0 });
        },
      };
      await withTransport({ host: "127.0.0.1", port: 0 }, later, async (transport) => {
        const sockets = await Promise.all(Array.from({ length: 20 }, () => client()));
        const replies = sockets.map((socket) => gather(socket, 10));
        for (let n = 0; n < 10; n++) {
          for (const [index, socket] of sockets.entries())
            socket.send(Uint8Array.of(index), transport.port, "127.0.0.1");
        }
        await untilTrue(() => waiting.length >= 200, {
          between: () => new Promise((resolve) => setImmediate(resolve)),
        });
        for (const { port, tag } of waiting.reverse()) {
          port.buffer(1)[0] = tag;
          port.send(1);
        }
        for (const [index, messages] of (await Promise.all(replies)).entries()) {
          assert.deepEqual(
            messages.map((message) => message[0]),
            Array.from({ length: 10 }, () => index),
          );
        }
        for (const socket of sockets) socket.close();
      });
    });

    test("reports truncated datagrams", async () => {
      const lengths: number[] = [];
      let cut = 0;
      const watching: MessageReceiver = {
        receive(bytes, length, port) {
          lengths.push(length);
          echo.receive(bytes.subarray(0, 1), 1, port);
        },
      };
      const transport = await listen({ host: "127.0.0.1", port: 0 }, watching, { onCutOff: () => cut++ });
      const socket = await client();
      const replies = gather(socket, 20);
      for (let n = 0; n < 20; n++) socket.send(new Uint8Array(5_000), transport.port, "127.0.0.1");
      await replies;
      // Node has room for the longest.
      assert.equal(cut, name === "dgram" ? 0 : 20);
      assert.deepEqual(new Set(lengths), new Set([name === "dgram" ? 5_000 : 4_096]));
      socket.close();
      await transport.close();
    });

    for (const [when, host] of [
      ["at once", ""],
      ["at once", "127.0.0.1"],
      ["later", ""],
      ["later", "127.0.0.1"],
    ] as const) {
      test(`replies larger than a slot are sent whole ${when} from ${host === "" ? "the wildcard" : host}`, async () => {
        const reply = (port: ReplyPort, size: number): void => {
          port.buffer(size).fill(7, 0, size);
          port.send(size);
        };
        const large: MessageReceiver = {
          receive(_bytes, _length, port) {
            const way = when === "later" ? port.keep() : port;
            const answer = (): void => {
              for (const size of [20_000, 12, MAX_DATAGRAM_OCTETS]) reply(way, size);
            };
            if (when === "later") setImmediate(answer);
            else answer();
          },
        };
        await withTransport({ host, port: 0 }, large, async (transport) => {
          const socket = await client();
          const replies = gather(socket, 3);
          socket.send(Uint8Array.of(1), transport.port, "127.0.0.1");
          const sizes = (await replies).map((message) => message.length);
          assert.deepEqual(
            sizes.sort((left, right) => left - right),
            [12, 20_000, MAX_DATAGRAM_OCTETS],
          );
          socket.close();
        });
      });
    }

    test("a flood is received in portions, between which the event loop goes on", async () => {
      const refill = new Refill();
      await withTransport({ host: "127.0.0.1", port: 0 }, refill, async (transport) => {
        const most = Math.max(...(await refill.run(transport.port)));
        assert.ok(most <= 1_200, `${most} of ${Refill.TOTAL} datagrams in one turn`);
      });
    });

    test("an empty datagram and one of 60,000 octets are delivered and do no harm", async () => {
      const lengths: number[] = [];
      const noting: MessageReceiver = {
        receive(bytes, length, port) {
          lengths.push(length);
          assert.ok(length <= bytes.length);
          port.buffer(1)[0] = 1;
          port.send(1);
        },
      };
      await withTransport({ host: "127.0.0.1", port: 0 }, noting, async (transport) => {
        const socket = await client();
        const replies = gather(socket, 4);
        for (const size of [0, 60_000, 0, 60_000])
          socket.send(new Uint8Array(size), transport.port, "127.0.0.1");
        await replies;
        assert.equal(lengths.filter((length) => length === 0).length, 2);
        socket.close();
      });
    });

    test("a port in use is an error that names it", async () => {
      await withTransport({ host: "127.0.0.1", port: 0 }, echo, async (transport) => {
        await assert.rejects(
          listen({ host: "127.0.0.1", port: transport.port }, echo),
          (error) =>
            error instanceof ListenError &&
            error.code === "EADDRINUSE" &&
            error.message.includes(`127.0.0.1:${transport.port}`),
        );
      });
    });

    test("an address that this machine does not have is an error", async () => {
      await assert.rejects(
        listen({ host: "192.0.2.77", port: 0 }, echo),
        (error) => error instanceof ListenError && error.code === "EADDRNOTAVAIL",
      );
    });

    test("skips datagrams from port 0, and counts them", async (t) => {
      const raw = rawUdpSocket(sockets);
      if (raw === undefined) {
        t.skip("only root may send from port 0");
        return;
      }
      const seen: number[] = [];
      const watching: MessageReceiver = {
        receive(bytes, length, port) {
          seen.push(port.client.port);
          echo.receive(bytes, length, port);
        },
      };
      let unanswerable = 0;
      const errors: Error[] = [];
      const transport = await listen({ host: "127.0.0.1", port: 0 }, watching, {
        onUnanswerable: () => unanswerable++,
        onSendError: (error) => errors.push(error),
      });
      for (let n = 0; n < 3; n++) raw.send(transport.port);
      const socket = await client();
      const reply = once(socket, "message");
      socket.send(Uint8Array.of(1), transport.port, "127.0.0.1");
      await reply;
      assert.deepEqual([unanswerable, seen, errors], [3, [socket.address().port], []]);
      raw.close();
      socket.close();
      await transport.close();
    });

    test("the clock is read for the first delivered datagram of a batch", async (t) => {
      const raw = rawUdpSocket(sockets);
      if (raw === undefined) {
        t.skip("only root may send from port 0");
        return;
      }
      const seen: boolean[] = [];
      const watching: MessageReceiver = {
        receive(bytes, length, port, together = false) {
          seen.push(together);
          echo.receive(bytes, length, port);
        },
      };
      const transport = await listen({ host: "127.0.0.1", port: 0 }, watching);
      const socket = await client();
      const replies = gather(socket, 4);
      for (let batch = 0; batch < 2; batch++) {
        raw.send(transport.port);
        for (let each = 0; each < 2; each++) raw.send(transport.port, socket.address().port);
        await untilTrue(() => seen.length >= 2 * batch + 2, { between: () => new Promise(setImmediate) });
      }
      await replies;
      // Plain sockets deliver datagrams one by one, and a batch may continue in another turn.
      for (const first of [0, 2]) assert.equal(seen[first], false);
      raw.close();
      socket.close();
      await transport.close();
    });

    test("several sockets share a port when told to", async () => {
      const one = await listen({ host: "127.0.0.1", port: 0 }, echo, { reusePort: true });
      const other = await listen({ host: "127.0.0.1", port: one.port }, echo, { reusePort: true });
      await Promise.all([one.close(), other.close()]);
    });
  });
}

function gather(socket: Socket, count: number): Promise<Buffer[]> {
  return new Promise((resolve) => {
    const messages: Buffer[] = [];
    socket.on("message", (message) => {
      messages.push(message);
      if (messages.length === count) resolve(messages);
    });
  });
}

describe("a UDP socket that is shared after it was opened alone", {
  skip: sockets === undefined ? "koffi is not available here" : false,
}, () => {
  for (const [name, host] of [
    ["one address", "127.0.0.1"],
    ["the wildcard", ""],
  ] as const) {
    test(name, async () => {
      assert.ok(sockets !== undefined);
      const alone = await listenUdpBatched(sockets, { host, port: 0 }, echo);
      const again = (): Promise<Transport> =>
        listenUdpBatched(sockets, { host, port: alone.port }, echo, { reusePort: true });
      await assert.rejects(again(), ListenError);
      assert.equal(alone.share?.(), true);
      const second = await again();
      const third = await again();
      // Without the option the port is in use, as before.
      await assert.rejects(listenUdpBatched(sockets, { host, port: alone.port }, echo), ListenError);
      await Promise.all([alone, second, third].map((transport) => transport.close()));
    });
  }
});
