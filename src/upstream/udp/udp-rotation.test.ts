import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { HONEST } from "../fixtures/scripted-server.ts";
import { TestRequest } from "../fixtures/test-request.ts";
import { addressOf, Cleanup, portThat, replyWith } from "../fixtures/udp-bench.ts";
import type { DatagramListener } from "./datagram-port.ts";
import {
  MAX_OPEN_SOCKETS,
  MAX_PENDING_DATAGRAMS,
  QUERIES_PER_SOCKET,
  SOCKET_COUNT,
  SOCKET_LIFETIME,
} from "./udp-exchange.ts";

const cleanup = new Cleanup();
afterEach(() => cleanup.run());

describe("the sockets of a UDP exchange", () => {
  it("use ids that look random", () => {
    const ids: number[] = [];
    const { exchange } = cleanup.bench({
      remote: addressOf("192.0.2.1", 53),
      openPort: () => portThat((_bytes, _length, id) => ids.push(id)),
    });
    for (let count = 0; count < 4_096; count++) exchange.send(new TestRequest(), 2_000);
    assert.equal(new Set(ids).size, 4_096);
    for (let bit = 0; bit < 16; bit++) {
      const set = ids.filter((id) => (id & (1 << bit)) !== 0).length;
      assert.ok(set > 1_800 && set < 2_300, `bit ${bit} is set in ${set} of 4096 ids`);
    }
  });

  it("are replaced after their share of queries, and close after their last answer", () => {
    const opened: { listener: DatagramListener; sent: number; closed: boolean; waiting: TestRequest }[] = [];
    let current = new TestRequest();
    const { exchange } = cleanup.bench({
      remote: addressOf("192.0.2.1", 53),
      // All queries to the first place.
      random: { unpredictable: sequence() },
      openPort: (_options, listener) => {
        const port = { listener, sent: 0, closed: false, waiting: current };
        opened.push(port);
        return {
          send: () => void port.sent++,
          localText: () => "",
          close: () => {
            port.closed = true;
          },
        };
      },
    });
    const answer = (listener: DatagramListener | undefined, request: TestRequest): void => {
      const reply = replyWith(request, request.id);
      listener?.received(reply, reply.length);
    };
    for (let count = 0; count < 3 * 2 * QUERIES_PER_SOCKET; count++) {
      current = new TestRequest();
      exchange.send(current, 2_000);
      const port = opened.at(-1);
      // The first query of each socket stays pending, the others are answered.
      if (port !== undefined && port.sent > 1) answer(port.listener, current);
    }
    assert.ok(opened.length >= 3, `${opened.length} sockets`);
    assert.ok(opened.every(({ closed }) => !closed));
    for (const port of opened.slice(0, -1)) {
      assert.ok(
        port.sent >= QUERIES_PER_SOCKET && port.sent < 2 * QUERIES_PER_SOCKET,
        `${port.sent} queries`,
      );
      answer(port.listener, port.waiting);
      assert.equal(port.waiting.results[0]?.kind, "answered");
      assert.equal(port.closed, true);
    }
    assert.equal(exchange.openSockets, 1);
    exchange.close();
    assert.equal(opened.at(-1)?.closed, true);
  });

  it("are drawn again as time passes, but not while queries wait to be sent together", () => {
    const sent: number[] = [];
    let gathering = -1;
    const { exchange, clock } = cleanup.bench({
      remote: addressOf("192.0.2.1", 53),
      openPort: () => {
        const number = sent.push(0) - 1;
        return {
          get gathers() {
            return gathering === number;
          },
          send: () => {
            sent[number] = (sent[number] ?? 0) + 1;
            gathering = number;
          },
          localText: () => "",
          close: () => undefined,
        };
      },
    });
    for (let turn = 0; turn < 200; turn++) {
      const before = [...sent];
      // The clock is read with each batch of a turn.
      for (let batch = 0; batch < 3; batch++) {
        clock.advance(0.01);
        exchange.send(new TestRequest(), 2_000);
        exchange.send(new TestRequest(), 2_000);
      }
      const used = sent.filter((count, number) => count !== (before[number] ?? 0));
      assert.equal(used.length, 1);
      gathering = -1;
    }
    assert.equal(sent.length, SOCKET_COUNT);
    assert.ok(Math.min(...sent) > 120, `${sent.join(", ")} queries`);
  });

  it("are replaced when they are old, even if little used", async () => {
    const server = await cleanup.serve(HONEST);
    const { exchange, clock } = cleanup.bench({ remote: server.address, random: { unpredictable: () => 7 } });
    const ask = async (): Promise<void> => {
      const request = new TestRequest();
      exchange.send(request, 60_000);
      assert.equal((await request.result()).kind, "answered");
    };
    for (let second = 0; second < 2 * (SOCKET_LIFETIME / 1_000); second++) {
      await ask();
      clock.advance(1_000);
    }
    assert.equal(new Set(server.asked.map(({ sourcePort }) => sourcePort)).size, 2);
  });

  it("close when unused, and the timer ends with the last one", async () => {
    const server = await cleanup.serve(HONEST);
    const { exchange, clock } = cleanup.bench({ remote: server.address, expire: 2_000 });
    const request = new TestRequest();
    exchange.send(request, 2_000);
    await request.result();
    assert.equal(exchange.openSockets, 1);
    clock.advance(4_000);
    assert.equal(exchange.openSockets, 0);
    assert.equal(clock.pendingTimers, 0);
  });

  it("stay no longer than max_age", async () => {
    const server = await cleanup.serve(HONEST);
    const { exchange, clock } = cleanup.bench({ remote: server.address, expire: 1_000, maxAge: 1_000 });
    const request = new TestRequest();
    exchange.send(request, 2_000);
    await request.result();
    clock.advance(1_000);
    assert.equal(exchange.openSockets, 0);
  });

  it("are limited in number, as are the queries in flight", async () => {
    let opened = 0;
    const { exchange } = cleanup.bench({
      remote: addressOf("192.0.2.1", 53),
      openPort: () => {
        opened++;
        return portThat(() => undefined);
      },
    });
    for (let count = 0; count < MAX_PENDING_DATAGRAMS; count++) exchange.send(new TestRequest(), 2_000);
    assert.equal(exchange.pending, MAX_PENDING_DATAGRAMS);
    assert.ok(opened <= MAX_OPEN_SOCKETS + SOCKET_COUNT, `${opened} sockets`);
    const request = new TestRequest();
    exchange.send(request, 2_000);
    assert.equal(request.results.length, 0);
    const result = await request.result();
    assert.ok(result.kind === "failed");
    assert.equal(result.error.fault, "busy");
    assert.equal(
      result.error.message,
      `${MAX_PENDING_DATAGRAMS} queries wait for 192.0.2.1:53 over udp already`,
    );
  });

  it("are counted when found open and when opened", async () => {
    const server = await cleanup.serve(HONEST);
    const { exchange, metrics } = cleanup.bench({
      remote: server.address,
      random: { unpredictable: () => 1 },
    });
    for (let count = 0; count < 5; count++) {
      const request = new TestRequest();
      exchange.send(request, 2_000);
      await request.result();
    }
    assert.equal(metrics.misses.value, 1);
    assert.equal(metrics.hits.value, 4);
  });
});

/** Low bits that count up, high bits that stay. */
function sequence(): () => number {
  let next = 0;
  return () => next++ & 0xffff;
}
