/** Clients that abuse a TCP connection wait in vain or are hung up on; no other client notices. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { decodeMessage } from "../../src/dns/message.ts";
import { ask, framed, queryOctets, TcpClient } from "../support/dns-client.ts";
import { Portolan } from "../support/portolan.ts";

const READ_TIMEOUT = 3_000;
const IDLE_TIMEOUT = 4_000;
/** By how much a busy machine may be late. */
const LATE = 15_000;

let server: Portolan;
before(async () => {
  server = await Portolan.start(
    (port) => `.:${port("dns")} {
      bind 127.0.0.1
      errors
      timeouts {
        read ${READ_TIMEOUT}ms
        idle ${IDLE_TIMEOUT}ms
      }
      erratic {
        drop 0
        large
      }
    }
    ordinary.example:${port("ordinary")} {
      bind 127.0.0.1
      whoami
    }`,
  );
});
after(() => server?.[Symbol.asyncDispose]());

async function checkAnswer(client: TcpClient, id: number): Promise<void> {
  const reply = await client.receive();
  assert.ok(reply, "no reply");
  assert.equal(decodeMessage(reply).id, id);
}

/** Waits for the server to close the connection, and checks that it did so after about this time. */
async function checkClosedAfter(client: TcpClient, since: number, milliseconds: number): Promise<void> {
  await client.closed;
  const elapsed = performance.now() - since;
  assert.ok(elapsed > milliseconds - 50, `closed after ${elapsed} ms already`);
  assert.ok(elapsed < milliseconds + LATE, `closed after ${elapsed} ms only`);
}

describe("a TCP client", { concurrency: true }, () => {
  test("that sends messages of no length is not answered, and its next query is", async () => {
    await using client = await TcpClient.connect(server);
    client.write(Buffer.alloc(20));
    client.send(queryOctets("a.example", "A", 1));
    await checkAnswer(client, 1);
  });

  test("that sends octet by octet is answered", async () => {
    await using client = await TcpClient.connect(server);
    for (const octet of framed(queryOctets("a.example", "A", 2))) {
      client.write(Buffer.from([octet]));
      // Each octet in a segment of its own.
      await new Promise(setImmediate);
    }
    await checkAnswer(client, 2);
  });

  test("that sends a thousand queries in one go gets an answer to each", async () => {
    await using client = await TcpClient.connect(server);
    const ids = Array.from({ length: 1000 }, (_, id) => id);
    client.write(Buffer.concat(ids.map((id) => framed(queryOctets("a.example", "A", id)))));
    const seen = new Set<number>();
    for (const _ of ids) {
      const reply = await client.receive();
      assert.ok(reply, `${seen.size} replies only`);
      seen.add(decodeMessage(reply).id);
    }
    assert.deepEqual(
      [...seen].sort((a, b) => a - b),
      ids,
    );
  });

  test("that closes its side behind a query still gets the answer, and then the server's end", async () => {
    await using client = await TcpClient.connect(server);
    client.socket.end(framed(queryOctets("a.example", "A", 3)));
    await checkAnswer(client, 3);
    assert.equal(await client.receive(), undefined);
  });

  for (const [title, octets] of [
    ["nothing", Buffer.alloc(0)],
    ["half a length", Buffer.from([0])],
    ["a length and no message", Buffer.from([0, 40])],
    ["a part of what it announced", Buffer.concat([Buffer.from([0xff, 0xff]), Buffer.alloc(300)])],
  ] as const) {
    test(`that sends ${title} is hung up on after the read time-out`, async () => {
      const start = performance.now();
      await using client = await TcpClient.connect(server);
      client.write(octets);
      await checkClosedAfter(client, start, READ_TIMEOUT);
    });
  }

  test("that drips octets gains no time by it", async () => {
    const start = performance.now();
    await using client = await TcpClient.connect(server);
    client.write(Buffer.from([0xff, 0xff]));
    const drip = setInterval(() => client.write(Buffer.from([0])), 100);
    await checkClosedAfter(client, start, READ_TIMEOUT).finally(() => clearInterval(drip));
  });

  test("that falls silent after a query is hung up on after the idle time-out", async () => {
    await using client = await TcpClient.connect(server);
    // The time runs from when the query was whole, which is before its answer is here.
    const start = performance.now();
    client.send(queryOctets("a.example", "A", 4));
    await checkAnswer(client, 4);
    client.write(Buffer.from([0, 30, 0]));
    await checkClosedAfter(client, start, IDLE_TIMEOUT);
  });

  test("that breaks off in the middle of a message leaves the others alone", async () => {
    await using other = await TcpClient.connect(server);
    for (let n = 0; n < 50; n++) {
      const client = await TcpClient.connect(server);
      client.write(framed(queryOctets("a.example")).subarray(0, 10 + (n % 20)));
      client.socket.resetAndDestroy();
      await client.closed;
    }
    other.send(queryOctets("a.example", "A", 5));
    await checkAnswer(other, 5);
  });

  test("is answered while 500 others hold connections and say nothing", async () => {
    const idle = await Promise.all(Array.from({ length: 500 }, () => TcpClient.connect(server)));
    try {
      await using client = await TcpClient.connect(server);
      client.send(queryOctets("a.example", "A", 6));
      await checkAnswer(client, 6);
      const start = performance.now();
      await Promise.all(idle.map(({ closed }) => closed));
      assert.ok(performance.now() - start < READ_TIMEOUT + LATE);
    } finally {
      await Promise.all(idle.map((client) => client[Symbol.asyncDispose]()));
    }
  });
});

/** Octets of queries, whose answers are 17 times as long: more than any buffer between the two holds. */
const FLOOD = 32 * 1024 * 1024;

test("a TCP client that reads no replies is read no further, and costs no memory", async () => {
  await using client = await TcpClient.connect(server);
  client.socket.pause();
  const memoryBefore = server.residentMemory;
  const query = framed(queryOctets("a.example", "A", 7));
  const queries = Buffer.concat(Array(2048).fill(query));
  let sent = 0;
  for (let flowing = true; flowing && sent < FLOOD; sent += queries.length) {
    if (client.socket.write(queries)) continue;
    // Where nothing moves for a second and a half, the server has stopped reading.
    flowing = await Promise.race([
      once(client.socket, "drain").then(() => true),
      sleep(1_500, false, { ref: false }),
    ]);
  }
  assert.ok(sent < FLOOD, "the server took everything");
  const grown = server.residentMemory - memoryBefore;
  assert.ok(grown < 48 * 1024 * 1024, `memory grew by ${grown} octets`);
  const ordinary = { address: server.address, port: server.portOf("ordinary") };
  assert.equal((await ask(ordinary, "a.ordinary.example")).additional.length, 2);

  client.socket.resume();
  for (let n = 0; n < 10_000; n++) await checkAnswer(client, 7);
});

const HAS_ACCOUNTS = existsSync("/proc/self/io");

test("answers to queries that came together leave together", {
  skip: !HAS_ACCOUNTS && "no /proc/PID/io",
}, async () => {
  const writes = (): number =>
    Number(/^syscw: (\d+)$/m.exec(readFileSync(`/proc/${server.program.pid}/io`, "latin1"))?.[1]);
  const ordinary = { address: "127.0.0.1", port: server.portOf("ordinary") };
  await using client = await TcpClient.connect(ordinary);
  client.send(queryOctets("www.ordinary.example", "A", 0));
  await checkAnswer(client, 0);
  const before = writes();
  const queries = Array.from({ length: 1000 }, (_, id) =>
    framed(queryOctets("www.ordinary.example", "A", id + 1)),
  );
  client.write(Buffer.concat(queries));
  for (let id = 1; id <= 1000; id++) await checkAnswer(client, id);
  // One for each part that the queries came in, and what the compiler's threads write to wake the main one.
  assert.ok(writes() - before < 300, `${writes() - before} system calls`);
});
