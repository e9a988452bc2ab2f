/**
 * The memory of pending queries, and that they leave nothing behind. Reads the heap of this process, with the server
 * in it.
 */
import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { queryObjects } from "node:v8";
import { createServer, type EmbeddedServer } from "../../src/index.ts";
import { LateOutcome } from "../../src/plugin/chain/late-outcome.ts";
import { Query } from "../../src/plugin/query/query.ts";
import { WaitingQuery } from "../../src/server/serving/waiting-queries.ts";
import { queryOctets } from "../support/dns-client.ts";
import { untilTrue } from "../support/until-true.ts";

/** The objects of a pending query: everything else it has refers to one of these. */
const CLASSES = [LateOutcome, Query, WaitingQuery];
/** Octets. Measured are 960 to 990, and a few more where the machine is busy. */
const MOST_A_QUERY = 1_088;
/** Queries in a row that no buffer on the way has to drop. */
const PORTION = 64;
const MOST_HELD = 5_000;
/** Octets of a query. */
const ROOM = 64;

/**
 * Answers each query with an empty NXDOMAIN: at once, or on request. Its memory for queries is allocated at the
 * start.
 */
class Upstream {
  holds = false;
  held = 0;
  readonly socket: Socket = createSocket("udp4");
  readonly #octets = Buffer.alloc(MOST_HELD * ROOM);
  readonly #ports = new Uint16Array(MOST_HELD);
  readonly #lengths = new Uint8Array(MOST_HELD);

  async open(): Promise<number> {
    this.socket.on("message", (query, { port }) => {
      query.writeUInt16BE(0x8183, 2);
      if (!this.holds) {
        this.socket.send(query, port, "127.0.0.1");
        return;
      }
      query.copy(this.#octets, this.held * ROOM);
      this.#ports[this.held] = port;
      this.#lengths[this.held++] = query.length;
    });
    this.socket.bind(0, "127.0.0.1");
    await once(this.socket, "listening");
    return this.socket.address().port;
  }

  answer(index: number): void {
    const start = index * ROOM;
    const reply = this.#octets.subarray(start, start + (this.#lengths[index] ?? 0));
    this.socket.send(reply, this.#ports[index] ?? 0, "127.0.0.1");
  }
}

const upstream = new Upstream();
const client = createSocket("udp4");
let replies = 0;
let asked = 0;
let server: EmbeddedServer;

before(async () => {
  const port = await upstream.open();
  server = await createServer({
    corefile: `.:0 {
      bind 127.0.0.1
      errors
      prometheus 127.0.0.1:0
      loadbalance
      cache 30
      forward . 127.0.0.1:${port} {
        max_fails 0
        read_timeout 10m
      }
    }`,
  });
  await server.start();
  const [address = assert.fail()] = server.addresses;
  client.on("message", () => replies++);
  client.connect(address.port, "127.0.0.1");
  await once(client, "connect");
});

after(async () => {
  client.close();
  await server.stop();
  upstream.socket.close();
});

const turn = () => new Promise(setImmediate);

/** Different names each time. Waits until all are answered, or have come to the upstream. */
async function ask(count: number): Promise<void> {
  let there = upstream.holds ? upstream.held : replies;
  for (const end = asked + count; asked < end; ) {
    const portion = Math.min(PORTION, end - asked);
    for (let sent = 0; sent < portion; sent++)
      client.send(queryOctets(`name-${asked}.outside.example.`, "A", asked++ & 0xffff));
    there += portion;
    await untilTrue(() => (upstream.holds ? upstream.held : replies) >= there, { between: turn });
  }
}

/** Counting the objects of a class collects all garbage first. */
function objects(): number[] {
  return CLASSES.map((type) => queryObjects(type as unknown as new () => unknown, { format: "count" }));
}

/** To be asked for right after {@link objects}. */
function octets(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test("a query that waits takes a kilobyte, and leaves nothing behind when it is answered", async () => {
  await ask(500);
  const before = objects();
  await ask(2_000);
  upstream.holds = true;
  // Code that the first pending queries compile does not count.
  await ask(MOST_HELD / 2);
  objects();
  const octetsBefore = octets();
  await ask(MOST_HELD / 2);
  const waiting = objects().map((count, index) => count - (before[index] ?? 0));
  const perQuery = (octets() - octetsBefore) / (MOST_HELD / 2);

  assert.ok(perQuery <= MOST_A_QUERY, `${perQuery} octets a query`);
  // The flight in the cache is a late outcome as well, and asks with a query of its own.
  assert.deepEqual(waiting, [2 * MOST_HELD, 2 * MOST_HELD, MOST_HELD]);

  replies = 0;
  for (let index = 0; index < MOST_HELD; ) {
    for (const end = Math.min(index + PORTION, MOST_HELD); index < end; index++) upstream.answer(index);
    await untilTrue(() => replies >= index, { between: turn });
  }
  assert.deepEqual(objects(), before);
});
