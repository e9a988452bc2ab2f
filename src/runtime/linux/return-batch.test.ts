/** Replies that are written over their queries go back to the senders, whatever else is in the batch. */
import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { describe, test } from "node:test";
import { untilTrue } from "../../../test/support/until-true.ts";
import { askForPacketInfo, BATCH, ReceiveBatch } from "./datagram-batch.ts";
import { DatagramSender } from "./datagram-sender.ts";
import { ownLoop } from "./fixtures/own-loop.ts";
import { Linux } from "./layouts.ts";
import { type Libc, NoForeignFunctions } from "./libc.ts";
import { linuxSockets } from "./linux-sockets.ts";
import {
  parseHost,
  readLocalName,
  readPort,
  SOCKET_ADDRESS_OCTETS,
  writeSocketAddress,
} from "./socket-address.ts";

const skip = (await linuxSockets()) instanceof NoForeignFunctions ? "koffi is not available" : false;

const ROUNDS = 40;
const SLOT_OCTETS = 512;

const PLACES = [
  { title: "one address of IPv4", host: "127.0.0.1", clients: ["127.0.0.1"], packetInfo: false },
  { title: "all addresses of IPv4", host: "0.0.0.0", clients: ["127.0.0.1", "127.0.0.2"], packetInfo: true },
  { title: "one address of IPv6", host: "::1", clients: ["::1"], packetInfo: false },
  {
    title: "all addresses of both",
    host: "::",
    clients: ["::1", "127.0.0.1", "127.0.0.3"],
    packetInfo: true,
  },
];

const noFailures = {
  full: () => assert.fail("full"),
  refused: (errno: number) => assert.fail(`errno ${errno}`),
};

function bound(libc: Libc, host: string): { fd: number; port: number; family: 4 | 6 } {
  const octets = parseHost(host)?.octets ?? new Uint8Array(4);
  const family = octets.length === 4 ? 4 : 6;
  const fd = libc.socket(family === 4 ? Linux.AF_INET : Linux.AF_INET6, Linux.SOCK_DGRAM, 0);
  const name = new Uint8Array(SOCKET_ADDRESS_OCTETS);
  assert.equal(libc.bind(fd, name, writeSocketAddress(name, 0, family, octets, 0)), 0);
  readLocalName(libc, fd, name);
  return { fd, port: readPort(name, 0), family };
}

/** A client takes only what comes from the address that it has asked. */
async function client(host: string, port: number): Promise<Socket> {
  const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
  socket.connect(port, host);
  await once(socket, "connect");
  return socket;
}

describe("replies in the place of their queries", { skip }, () => {
  for (const { title, host, clients, packetInfo } of PLACES)
    test(title, async () => {
      const { libc } = await ownLoop();
      const { fd, port, family } = bound(libc, host);
      if (packetInfo) assert.ok(askForPacketInfo(libc, fd, family) >= 0);
      const received = new ReceiveBatch(libc, { slotOctets: SLOT_OCTETS, named: family, packetInfo });
      const returns = received.returns(new DatagramSender(libc, fd, noFailures));
      const sockets = await Promise.all(
        Array.from({ length: 12 }, (_, index) => client(clients[index % clients.length] ?? "", port)),
      );
      const got: string[][] = sockets.map(() => []);
      for (const [index, socket] of sockets.entries())
        socket.on("message", (message) => void got[index]?.push(message.toString("latin1")));
      let seed = 1;
      const roll = (limit: number): number => {
        seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 1;
        return seed % limit;
      };
      for (let round = 0; round < ROUNDS; round++) {
        const wanted: string[][] = sockets.map(() => []);
        const count = 1 + roll(BATCH);
        for (let each = 0; each < count; each++)
          await new Promise((sent) => sockets[roll(sockets.length)]?.send(`${round}/${each}`, sent));
        let answered = 0;
        for (let seen = 0; seen < count; ) {
          const filled = received.receive(fd);
          assert.ok(filled > 0, `errno ${-filled}`);
          for (let slot = 0; slot < filled; slot++) {
            const octets = received.slots[slot] ?? new Uint8Array(0);
            const text = Buffer.from(octets.subarray(0, received.length(slot))).toString("latin1");
            // Some are answered otherwise, or not at all.
            if (roll(3) === 0) continue;
            const reply = `${text} ${"x".repeat(roll(300))}`;
            octets.set(Buffer.from(reply, "latin1"));
            returns.commit(slot, reply.length);
            answered++;
            const from = readPort(received.names, slot * (received.names.length / BATCH));
            wanted[sockets.findIndex((socket) => socket.address().port === from)]?.push(reply);
          }
          if (!returns.isEmpty) returns.flush();
          assert.ok(returns.isEmpty);
          seen += filled;
        }
        const arrived = (): number => got.reduce((sum, each) => sum + each.length, 0);
        await untilTrue(() => arrived() >= answered, { between: () => new Promise(setImmediate) });
        assert.deepEqual(got, wanted);
        for (const each of got) each.length = 0;
      }
      for (const socket of sockets) socket.close();
      libc.close(fd);
    });
});
