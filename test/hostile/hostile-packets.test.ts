/** A million packets that no honest client sends: the server lives, grows no further, and answers as before. */
import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { decodeMessage } from "../../src/dns/message.ts";
import { rcodeName } from "../../src/dns/numbers.ts";
import { formatData } from "../../src/dns/resource-record.ts";
import { ask, framed, queryOctets, TcpClient } from "../support/dns-client.ts";
import { hostilePacket, seedMessages } from "../support/hostile-packets.ts";
import { Peer } from "../support/peers.ts";
import { Portolan, projectRoot } from "../support/portolan.ts";
import { SeededRandom } from "../support/seeded-random.ts";

const PACKETS = 1_000_000;
/** Of them over TCP. */
const TCP_PACKETS = 50_000;
/** After this many the caches are full and the code is compiled. */
const WARM_UP = 300_000;
/** V8 collects garbage late on a machine with much memory: this limits it to the size of a small pod. */
const POD = "--max-old-space-size=96 --max-semi-space-size=8";
/** By how much the process may be larger at the end than after the warm-up: less than 50 octets a packet. */
const MARGIN = 32 * 1024 * 1024;

/** Packets that may be under way: they fit the socket's buffer, so that none is lost unread. */
const BATCH = 250;

test("a million hostile packets", { skip: skipWithout("dnsmasq") }, async (t) => {
  const seed = process.env.PORTOLAN_SEED;
  const random = new SeededRandom(seed === undefined ? undefined : Number(seed));
  t.diagnostic(`PORTOLAN_SEED=${random.seed}`);
  await using upstream = await Peer.dnsmasq(["host-record=www.example,192.0.2.1,300", "local=/#/"]);
  await using server = await Portolan.start(
    (port) => `.:${port("dns")} {
      bind 127.0.0.1
      errors
      prometheus 127.0.0.1:${port("metrics")}
      kubernetes cluster.local in-addr.arpa ip6.arpa {
        manifests ${join(projectRoot, "test/fixtures/kubernetes")}
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
      }
      forward . 127.0.0.1:${upstream.port} {
        prefer_udp
      }
      cache 30 {
        success 1000
        denial 1000
      }
      loadbalance
    }`,
    { env: { NODE_OPTIONS: POD } },
  );
  const seeds = seedMessages([
    "web.shop.svc.cluster.local",
    "_sql._tcp.db.shop.svc.cluster.local",
    "1-2-3-4.shop.pod.cluster.local",
    "5.20.96.10.in-addr.arpa",
    "www.example",
    "a.b.c.example",
    ".",
  ]);

  const atRest = await floodOverUdp(server, WARM_UP, random, seeds);
  await checkAnswers(server);
  await floodOverTcp(server, TCP_PACKETS, random, seeds);
  await checkAnswers(server);
  const atEnd = await floodOverUdp(server, PACKETS - WARM_UP - TCP_PACKETS, random, seeds);
  await checkAnswers(server);

  const grown = atEnd - atRest;
  t.diagnostic(`memory at rest ${atRest}, grown by ${grown}`);
  assert.ok(grown < MARGIN, `resident memory grew by ${grown} octets; PORTOLAN_SEED=${random.seed}`);
  const { body } = await server.page("metrics", "/metrics");
  assert.match(body, /^coredns_panics_total 0$/m);
  assert.deepEqual(unexpectedLines(server), []);
  assert.equal(server.program.errors, "");
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});

/** Errors that are not about one query that an upstream did not answer as it should. */
function unexpectedLines(server: Portolan): string[] {
  const errors = server.log.split("\n").filter((line) => /^\[(ERROR|FATAL)\]/.test(line));
  return errors.filter((line) => !line.startsWith("[ERROR] plugin/errors: ")).slice(0, 10);
}

/** @returns the resident memory in the last third, the least that was seen */
async function floodOverUdp(
  server: Portolan,
  count: number,
  random: SeededRandom,
  seeds: readonly Buffer[],
): Promise<number> {
  const socket = createSocket("udp4");
  let replies = 0;
  let fence: number | undefined;
  socket.on("message", (reply) => {
    replies++;
    if (fence !== undefined && reply.readUInt16BE(0) === fence && isFenceReply(reply)) socket.emit("fence");
    // One that cannot be read throws, and so fails the test.
    if (replies % 20 === 0) assert.ok(decodeMessage(reply).flags & 0x8000);
  });
  socket.connect(server.port, server.address);
  await once(socket, "connect");
  let least = Number.POSITIVE_INFINITY;
  try {
    for (let sent = 0; sent < count; sent += BATCH) {
      for (let n = 0; n < BATCH; n++) socket.send(hostilePacket(random, seeds));
      fence = random.below(0x10000);
      await untilFence(socket, queryOctets(FENCE, "A", fence), server);
      fence = undefined;
      if (sent % (40 * BATCH) === 0 && sent > (2 * count) / 3) least = Math.min(least, server.residentMemory);
    }
  } finally {
    socket.close();
  }
  assert.ok(replies > count / 4, `${replies} replies only`);
  return least;
}

/** A query that is answered once everything before it was read. */
const FENCE = "web.shop.svc.cluster.local";

function isFenceReply(reply: Buffer): boolean {
  return reply.readUInt16BE(6) === 1 && reply.subarray(-4).equals(Buffer.from([10, 96, 20, 5]));
}

async function untilFence(socket: Socket, query: Uint8Array, server: Portolan): Promise<void> {
  const seen = once(socket, "fence");
  const again = setInterval(() => socket.send(query), 1_000);
  socket.send(query);
  try {
    await Promise.race([seen, server.program.ended]);
    if (server.program.hasEnded)
      throw new Error(`the server ended:\n${server.program.describe().slice(-4000)}`);
  } finally {
    clearInterval(again);
  }
}

async function floodOverTcp(
  server: Portolan,
  count: number,
  random: SeededRandom,
  seeds: readonly Buffer[],
): Promise<void> {
  for (let sent = 0; sent < count; sent += BATCH) {
    await using client = await TcpClient.connect(server);
    const packets = Array.from({ length: BATCH }, () => framed(hostilePacket(random, seeds)));
    const stream = Buffer.concat(packets);
    // Every fourth time the framing is wrong too.
    if (sent % (4 * BATCH) === 0) stream[random.below(stream.length)] = random.below(256);
    client.socket.end(stream);
    for (let reply = await client.receive(); reply !== undefined; reply = await client.receive())
      assert.ok(decodeMessage(reply).flags & 0x8000);
  }
}

async function checkAnswers(server: Portolan): Promise<void> {
  for (const [name, type, expected] of [
    ["web.shop.svc.cluster.local", "A", "NOERROR 10.96.20.5"],
    ["5.20.96.10.in-addr.arpa", "PTR", "NOERROR web.shop.svc.cluster.local."],
    ["nosuch.shop.svc.cluster.local", "A", "NXDOMAIN"],
    ["www.example", "A", "NOERROR 192.0.2.1"],
    ["nosuch.example", "A", "NXDOMAIN"],
  ] as const) {
    const { rcode, answer } = await ask(server, name, type);
    assert.equal([rcodeName(rcode), ...answer.map(formatData)].join(" "), expected, `${name} ${type}`);
  }
}
