/** A flood of answers of 64 KiB over TCP, each for another name: what passes leaves nothing to hold. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { ask, framed, queryOctets } from "../support/dns-client.ts";
import { counted } from "../support/metrics.ts";
import { Portolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const THREADS = 2;
const CONNECTIONS = 16;
const PIPELINED = 16;
const ANSWERS = 4_000;
/** Milliseconds: a machine that gives fewer answers in that time has less to collect. */
const LONGEST = 8_000;
const HEADER = 12;
const TC = 0x02;
/** A TXT record of the question's name with 255 octets of text. */
const TEXT = Buffer.concat([Buffer.from("c00c00100001000000050100ff", "hex"), Buffer.alloc(255, "x")]);
const FILLING = Buffer.concat(Array.from({ length: Math.floor(65_000 / TEXT.length) }, () => TEXT));
/**
 * Octets that the process may have in memory beyond those at rest: two heaps, a cache that is full of large answers, what compilers need. With
 * buffers left to the garbage collector it was 160 MB on a quick machine.
 */
const MOST_GROWTH = 110e6;

/** One octet of length, then a label: the name ends in front of type and class. */
function replyTo(query: Uint8Array): Buffer {
  let end = HEADER;
  while ((query[end] ?? 0) !== 0) end += (query[end] ?? 0) + 1;
  const head = Buffer.from(query.subarray(0, end + 5));
  head[2] = 0x80 | (head[2] ?? 0);
  head.fill(0, 6, HEADER);
  return head;
}

async function startUpstream(): Promise<{ readonly port: number; close(): void }> {
  const sockets = new Set<Socket>();
  const tcp = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    let rest = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE(0)) {
        const query = rest.subarray(2, 2 + rest.readUInt16BE(0));
        rest = rest.subarray(2 + query.length);
        const head = replyTo(query);
        head.writeUInt16BE(FILLING.length / TEXT.length, 6);
        const length = Buffer.alloc(2);
        length.writeUInt16BE(head.length + FILLING.length);
        socket.write(Buffer.concat([length, head, FILLING]));
      }
    });
  });
  tcp.listen(0, "127.0.0.1");
  await once(tcp, "listening");
  const { port } = tcp.address() as AddressInfo;
  const udp = createSocket("udp4");
  udp.on("message", (query, client) => {
    const reply = replyTo(query);
    reply[2] = TC | (reply[2] ?? 0);
    udp.send(reply, client.port, client.address);
  });
  udp.bind(port, "127.0.0.1");
  await once(udp, "listening");
  return {
    port,
    close() {
      udp.close();
      tcp.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** @returns how many answers came, all of them large */
async function flood(server: Portolan): Promise<number> {
  let asked = 0;
  let octets = 0;
  const sockets = Array.from({ length: CONNECTIONS }, () => connect(server.port, server.address));
  for (const socket of sockets) {
    const send = (): void => {
      if (asked < ANSWERS) socket.write(framed(queryOctets(`n${asked++}.large.example.`, "TXT", 7)));
    };
    socket.on("error", () => socket.destroy());
    socket.on("connect", () => {
      for (let count = 0; count < PIPELINED; count++) send();
    });
    let own = 0;
    socket.on("data", (chunk) => {
      octets += chunk.length;
      own += chunk.length;
      for (; own >= FILLING.length; own -= FILLING.length) send();
    });
  }
  const end = performance.now() + LONGEST;
  while (octets < ANSWERS * FILLING.length && performance.now() < end) await delay(20);
  for (const socket of sockets) socket.destroy();
  return Math.floor(octets / FILLING.length);
}

test("answers of 64 KiB pass through two threads without filling the memory, and those at hand stay at hand", {
  timeout: 60_000,
}, async () => {
  const upstream = await startUpstream();
  try {
    await using server = await Portolan.start(
      (port) => `.:${port("dns")} {
        bind 127.0.0.1
        multisocket ${THREADS}
        prometheus 127.0.0.1:${port("metrics")}
        hosts {
          192.0.2.1 at.hand.example
          fallthrough
        }
        cache
        forward . 127.0.0.1:${upstream.port}
      }`,
    );
    const rest = server.residentMemory;
    let most = rest;
    const look = setInterval(() => {
      most = Math.max(most, server.residentMemory);
    }, 20);
    const answers = await flood(server);
    clearInterval(look);
    const growth = `${Math.round((most - rest) / 1e6)} MB more than ${Math.round(rest / 1e6)}, ${answers} answers`;
    assert.ok(most - rest < MOST_GROWTH, growth);
    assert.ok(answers > 10, growth);
    const reply = await ask(server, "at.hand.example.");
    assert.equal(reply.answer.length, 1);
    assert.equal(await counted(server, "portolan_dns_shed_total", /reason="unread"/), 0);
    // Gauges that each thread has its part of come to nothing once all is answered or its client seen to be gone.
    let body = "";
    await untilTrue(async () => {
      ({ body } = await server.page("metrics", "/metrics"));
      return /^portolan_memory_connections_bytes 0$/m.test(body);
    });
    assert.match(body, /^portolan_memory_cache_bytes{[^}]*type="success"[^}]*} [1-9]\d{5,7}$/m);
  } finally {
    upstream.close();
  }
});
