import assert from "node:assert/strict";
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { untilTrue } from "../../../test/support/until-true.ts";
import { ownLoop } from "../../runtime/linux/fixtures/own-loop.ts";
import { NoForeignFunctions } from "../../runtime/linux/libc.ts";
import { linuxSockets } from "../../runtime/linux/linux-sockets.ts";
import { SegmentedBatch } from "../../runtime/linux/segmented-batch.ts";
import { addressOf } from "../fixtures/udp-bench.ts";
import { batchedDatagramPorts } from "./batched-datagram-port.ts";
import type { DatagramPort, OpenDatagramPort } from "./datagram-port.ts";

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

/** A port and its peer, with what each of them got. */
class Bench implements AsyncDisposable {
  readonly atPeer: Buffer[] = [];
  readonly atPort: Buffer[] = [];
  readonly failures: (readonly [message: string, usable: boolean])[] = [];
  readonly port: DatagramPort;
  readonly #peer: Socket;
  #from: RemoteInfo | undefined;

  private constructor(open: OpenDatagramPort, peer: Socket, sourceAddress: string | undefined) {
    this.#peer = peer.on("message", (octets, from) => {
      this.atPeer.push(octets);
      this.#from = from;
    });
    this.port = open(
      { remote: addressOf("127.0.0.1", peer.address().port), sourceAddress },
      {
        received: (bytes, length) => void this.atPort.push(Buffer.from(bytes.subarray(0, length))),
        failed: (error, usable) => void this.failures.push([error.message, usable]),
      },
    );
  }

  static async open(sourceAddress?: string): Promise<Bench> {
    const own = await ownLoop();
    const peer = createSocket("udp4");
    peer.bind(0, "127.0.0.1");
    await once(peer, "listening");
    return new Bench(
      batchedDatagramPorts(own, () => own.clock.now),
      peer,
      sourceAddress,
    );
  }

  /** Address and port of the last datagram that the peer got. */
  get from(): string {
    return `${this.#from?.address}:${this.#from?.port}`;
  }

  reply(octets: Uint8Array): void {
    assert.ok(this.#from !== undefined);
    this.#peer.send(octets, this.#from.port, this.#from.address);
  }

  closePeer(): Promise<void> {
    return new Promise((resolve) => void this.#peer.close(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.port.close();
    await this.closePeer().catch(() => undefined);
  }
}

test("the queries of a turn leave together at its end, each with its own id and length", {
  skip,
}, async () => {
  await using bench = await Bench.open();
  const { port, atPeer } = bench;
  const query = Buffer.from("0000abcdef", "hex");
  assert.equal(port.gathers, false);
  port.send(query, 5, 0x1234);
  port.send(query, 4, 0xffff);
  assert.equal(port.gathers, true);
  // The octets may be reused at once.
  query.fill(0);
  await untilTrue(() => atPeer.length === 2);
  assert.equal(port.gathers, false);
  assert.deepEqual(
    atPeer.map((octets) => octets.toString("hex")),
    ["1234abcdef", "ffffabcd"],
  );
  assert.equal(port.localText(), bench.from);
});

test("a query that is too long for a batch leaves at once, unchanged but for its id", { skip }, async () => {
  await using bench = await Bench.open();
  const { port, atPeer } = bench;
  const query = Buffer.alloc(SegmentedBatch.slotOctets + 1, 7);
  port.send(query, query.length, 0x0102);
  assert.equal(port.gathers, false);
  await untilTrue(() => atPeer.length === 1);
  query.writeUInt16BE(0x0102);
  assert.deepEqual(atPeer[0], query);
});

test("a reply comes with its own length, and one from elsewhere not at all", { skip }, async () => {
  await using bench = await Bench.open();
  const { port, atPeer, atPort } = bench;
  port.send(Uint8Array.of(0, 0, 9), 3, 1);
  await untilTrue(() => atPeer.length === 1);
  const stranger = createSocket("udp4");
  const [address = "", own] = bench.from.split(":");
  await new Promise((resolve) => stranger.send(Uint8Array.of(6, 6), Number(own), address, resolve));
  stranger.close();
  bench.reply(Uint8Array.of(0, 1, 2, 3));
  bench.reply(Uint8Array.of(0, 1));
  await untilTrue(() => atPort.length >= 2);
  assert.deepEqual(
    atPort.map((octets) => [...octets]),
    [
      [0, 1, 2, 3],
      [0, 1],
    ],
  );
});

test("a peer that does not listen is reported, and the port stays usable", { skip }, async () => {
  await using bench = await Bench.open();
  await bench.closePeer();
  const { port, failures } = bench;
  await untilTrue(() => failures.length > 0, {
    between: async () => {
      port.send(Uint8Array.of(0, 0, 9), 3, 1);
      await new Promise(setImmediate);
    },
  });
  assert.match(failures[0]?.[0] ?? "", /^(?:receive|send) ECONNREFUSED$/);
  assert.equal(failures[0]?.[1], true);
});

test("a source address that this machine does not have is reported once, and nothing is sent", {
  skip,
}, async () => {
  await using bench = await Bench.open("192.0.2.199");
  const { port, atPeer, failures } = bench;
  assert.deepEqual(failures, []);
  port.send(Uint8Array.of(0, 0, 9), 3, 1);
  await untilTrue(() => failures.length > 0);
  assert.deepEqual(failures, [["bind EADDRNOTAVAIL", false]]);
  assert.equal(port.localText(), "");
  assert.deepEqual(atPeer, []);
});

test("a port that is closed sends what it has gathered, and reports nothing from then on", {
  skip,
}, async () => {
  await using bench = await Bench.open();
  const { port, atPeer, atPort } = bench;
  port.send(Uint8Array.of(0, 0, 1), 3, 1);
  port.close();
  port.close();
  port.send(Uint8Array.of(0, 0, 2), 3, 2);
  await untilTrue(() => atPeer.length === 1);
  assert.equal(atPeer[0]?.toString("hex"), "000101");
  assert.equal(port.localText(), "");
  bench.reply(Uint8Array.of(0, 1));
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  assert.deepEqual([atPort.length, atPeer.length], [0, 1]);
});
