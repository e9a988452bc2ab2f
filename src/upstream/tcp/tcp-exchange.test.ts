import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { decodeMessage } from "../../dns/message.ts";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { TimeoutWheel } from "../../lib/time/timeout-wheel.ts";
import type { ExchangeError } from "../exchange/exchange-error.ts";
import { UpstreamMetrics } from "../exchange/upstream-metrics.ts";
import {
  frame,
  HONEST,
  type Script,
  type ScriptedQuestion,
  ScriptedServer,
  SILENT,
  startDeafListener,
} from "../fixtures/scripted-server.ts";
import { type RequestResult, TestRequest, TRUE_RANDOM, until } from "../fixtures/test-request.ts";
import {
  MAX_CONNECTIONS,
  PIPELINE_DEPTH,
  SHARED_CONNECTIONS,
  TcpExchange,
  type TcpExchangeOptions,
} from "./tcp-exchange.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

class Bench {
  readonly clock = new FakeClock();
  readonly metrics: ReturnType<UpstreamMetrics["exchange"]>;
  readonly exchange: TcpExchange;

  constructor(options: Partial<TcpExchangeOptions> & Pick<TcpExchangeOptions, "remote">) {
    const metrics = new UpstreamMetrics(new MetricsRegistry(), "forward");
    this.metrics = metrics.exchange(options.remote.text, "tcp");
    this.exchange = new TcpExchange({
      clock: this.clock,
      wheel: new TimeoutWheel(this.clock, 50),
      random: TRUE_RANDOM,
      metrics: this.metrics,
      expire: 10_000,
      maxAge: 0,
      maxIdle: 0,
      ...options,
    });
    cleanups.push(() => this.exchange.close());
  }

  send(name?: string, type?: string): TestRequest {
    const request = new TestRequest(name, type);
    this.exchange.send(request, 2_000, 5_000);
    return request;
  }

  async ask(name?: string): Promise<RequestResult> {
    return await this.send(name).result();
  }
}

async function serve(script: Script, host?: string): Promise<ScriptedServer> {
  const server = await ScriptedServer.start(script, host);
  cleanups.push(() => server.stop());
  return server;
}

function assertAnswered(result: RequestResult): void {
  assert.equal(result.kind, "answered", result.kind === "failed" ? result.error.message : undefined);
}

describe("TCP exchange", () => {
  it("reuses a connection after its query is answered", async () => {
    const server = await serve(HONEST);
    const bench = new Bench({ remote: server.address });
    for (let count = 0; count < 5; count++) assertAnswered(await bench.ask());
    assert.equal(server.connections.length, 1);
    assert.equal(bench.metrics.misses.value, 1);
    assert.equal(bench.metrics.hits.value, 4);
    assert.equal(server.asked[0]?.protocol, "tcp");
  });

  it("works over IPv6 and from a given address", async () => {
    const six = await serve(HONEST, "::1");
    assertAnswered(await new Bench({ remote: six.address }).ask());
    const four = await serve(HONEST);
    assertAnswered(await new Bench({ remote: four.address, sourceAddress: "127.0.0.3" }).ask());
    assert.equal(four.asked[0]?.sourceAddress, "127.0.0.3");
  });

  it("sends many queries over few connections, and matches answers in another order", async () => {
    const server = await serve(SILENT);
    const bench = new Bench({ remote: server.address });
    const requests = Array.from({ length: 1_000 }, (_, index) => bench.send(`host-${index}.example.org.`));
    const asked = await server.receives(1_000);
    assert.equal(server.connections.length, SHARED_CONNECTIONS);
    for (const one of [...asked].reverse()) {
      const index = Number(/^host-(\d+)/.exec(one.name)?.[1]);
      one.answer({ answer: [`${one.name} 60 IN A 10.0.${index >> 8}.${index & 255}`] });
    }
    for (const [index, request] of requests.entries()) {
      const result = await request.result();
      assert.ok(result.kind === "answered");
      const [record] = decodeMessage(result.reply).answer;
      assert.deepEqual(record?.data, { address: `10.0.${index >> 8}.${index & 255}` });
    }
    assert.equal(bench.exchange.pending, 0);
  });

  it("reads replies that arrive octet by octet, and several in one chunk", async () => {
    const server = await serve((asked) => {
      const octets = frame(asked.encode({ answer: [`${asked.name} 60 IN A 192.0.2.1`] }));
      const sendFrom = (at: number): void => {
        if (at < octets.length) asked.socket?.write(octets.subarray(at, at + 1), () => sendFrom(at + 1));
      };
      sendFrom(0);
    });
    const bench = new Bench({ remote: server.address });
    assertAnswered(await bench.ask());
    const together: ScriptedQuestion[] = [];
    server.script = (asked) => {
      together.push(asked);
      if (together.length < 9) return;
      const bySocket = Map.groupBy(together, ({ socket }) => socket);
      for (const [socket, queries] of bySocket)
        socket?.write(Buffer.concat(queries.map((query) => frame(query.encode()))));
    };
    const requests = Array.from({ length: 9 }, () => bench.send());
    for (const request of requests) assertAnswered(await request.result());
  });

  it("drops another question, an unknown id, and less than a header", async () => {
    const server = await serve((asked) => {
      asked.send(Uint8Array.of(1, 2, 3));
      asked.send(new Uint8Array(0));
      asked.answer({ message: { id: asked.message.id ^ 1 } });
      asked.answer({ message: { questions: [] } });
      HONEST(asked);
    });
    const bench = new Bench({ remote: server.address });
    assertAnswered(await bench.ask());
    assert.equal(bench.metrics.short.value, 2);
    assert.equal(bench.metrics.unknownId.value, 1);
    assert.equal(bench.metrics.otherQuestion.value, 1);
  });

  describe("a connection that its peer closed", () => {
    const endings: Readonly<Record<string, (asked: ScriptedQuestion | undefined) => void>> = {
      "in good order": (asked) => asked?.socket?.end(),
      "by reset": (asked) => asked?.socket?.resetAndDestroy(),
    };
    for (const [how, end] of Object.entries(endings)) {
      it(`${how} after it had served is replaced silently`, async () => {
        const server = await serve((asked) => {
          if (asked.name === "last.example.org.") end(asked);
          else HONEST(asked);
        });
        const bench = new Bench({ remote: server.address });
        assertAnswered(await bench.ask());
        server.script = (asked) => {
          server.script = HONEST;
          end(asked);
        };
        assertAnswered(await bench.ask("again.example.org."));
        assert.equal(server.connections.length, 2);
      });

      it(`${how} before it served at all is a failure`, async () => {
        const server = await serve(end);
        const bench = new Bench({ remote: server.address });
        const result = await bench.ask();
        assert.ok(result.kind === "failed");
        assert.equal(result.error.fault, "broken");
        assert.match(
          result.error.message,
          how === "by reset"
            ? /^read tcp 127\.0\.0\.1:\d+->127\.0\.0\.1:\d+: read: connection reset by peer$/
            : /^EOF$/,
        );
        assert.equal(bench.exchange.openConnections, 0);
      });
    }

    it("while idle is not reused", async () => {
      const server = await serve(HONEST);
      const bench = new Bench({ remote: server.address });
      assertAnswered(await bench.ask());
      server.connections[0]?.end();
      await until(() => bench.exchange.openConnections === 0, "the pool sees the end");
      assertAnswered(await bench.ask());
      assert.equal(server.connections.length, 2);
    });

    it("in the middle of a reply returns no answer from it", async () => {
      const server = await serve((asked) => {
        asked.socket?.write(frame(asked.encode()).subarray(0, 20));
        asked.socket?.end();
      });
      const bench = new Bench({ remote: server.address });
      const result = await bench.ask();
      assert.ok(result.kind === "failed");
      assert.match(result.error.message, /EOF$/);
    });

    it("again and again fails in the end", async () => {
      let answers = 0;
      const server = await serve((asked) => {
        // After one answer the connection counts as one that has served; the following query breaks it.
        if (asked.name === "first.example.org.") {
          answers++;
          HONEST(asked);
        } else {
          asked.socket?.resetAndDestroy();
        }
      });
      const bench = new Bench({ remote: server.address });
      assertAnswered(await bench.ask("first.example.org."));
      const result = await bench.ask("second.example.org.");
      assert.equal(result.kind, "failed");
      assert.equal(answers, 1);
    });
  });

  it("serves all queries of a peer that answers one per connection", async () => {
    const server = await serve((asked) => {
      if (asked.socket?.writableEnded === true) return;
      HONEST(asked);
      asked.socket?.end();
    });
    const bench = new Bench({ remote: server.address });
    const first = Array.from({ length: 20 }, () => bench.send());
    for (const request of first) assertAnswered(await request.result());
    const second = Array.from({ length: 40 }, () => bench.send());
    for (const request of second) assertAnswered(await request.result());
  });

  it("lets each query on a dead connection wait for its own timeout, and sends no other over it", async () => {
    const server = await serve(SILENT);
    const bench = new Bench({ remote: server.address });
    const silent = bench.send("silent.example.org.");
    await server.receives(1);
    await server.accepts(1);
    await until(() => bench.exchange.openConnections === 1, "the connection stands");
    // The other connections are busy, so the second query shares the first one's.
    const [asked] = server.asked;
    bench.clock.advance(1_000);
    const later = Array.from({ length: SHARED_CONNECTIONS }, (_, index) =>
      bench.send(`later-${index}.example.org.`),
    );
    await server.receives(1 + SHARED_CONNECTIONS);
    const sharing = server.asked.slice(1).filter(({ socket }) => socket === asked?.socket);
    assert.equal(sharing.length, 1);
    server.script = HONEST;
    bench.clock.advance(1_101);
    const result = await silent.result();
    assert.ok(result.kind === "failed");
    assert.equal(result.error.fault, "timeout");
    assert.match(result.error.message, /^read tcp .*: i\/o timeout$/);
    const name = sharing[0]?.name ?? "";
    const shares = later.find((_, index) => name === `later-${index}.example.org.`);
    assert.ok(shares !== undefined);
    assert.equal(shares.results.length, 0);
    assertAnswered(await bench.ask("next.example.org."));
    assert.notEqual(server.asked.at(-1)?.socket, asked?.socket);
    bench.clock.advance(1_000);
    assert.equal((await shares.result()).kind, "failed");
    // Nothing was resent.
    assert.equal(server.asked.filter(({ name: other }) => other === name).length, 1);
    assert.ok(bench.exchange.openConnections >= 1);
  });

  it("avoids idle connections whose last message is older than another's silence", async () => {
    const server = await serve(HONEST);
    const bench = new Bench({ remote: server.address });
    for (const request of [bench.send(), bench.send(), bench.send()]) assertAnswered(await request.result());
    assert.equal(server.connections.length, 3);
    server.script = SILENT;
    const lost = bench.send();
    await server.receives(4);
    bench.clock.advance(2_101);
    assert.equal((await lost.result()).kind, "failed");
    assert.equal(bench.exchange.openConnections, 0);
  });

  it("does not extend the timeout of a query whose connection closes", async () => {
    const server = await serve(HONEST);
    const bench = new Bench({ remote: server.address });
    assertAnswered(await bench.ask());
    server.script = SILENT;
    const request = bench.send("moved.example.org.");
    const [, asked] = await server.receives(2);
    bench.clock.advance(1_500);
    asked?.socket?.end();
    await server.receives(3);
    bench.clock.advance(601);
    assert.equal((await request.result()).kind, "failed");
  });

  it("reports only a few of many lost queries in one turn of the event loop", async () => {
    const server = await serve(SILENT);
    const bench = new Bench({ remote: server.address });
    let inTurn = 0;
    let most = 0;
    class CostlyRequest extends TestRequest {
      override failed(error: ExchangeError): void {
        super.failed(error);
        bench.clock.advance(0.1);
        if (inTurn++ > 0) return;
        setImmediate(() => {
          most = Math.max(most, inTurn);
          inTurn = 0;
        });
      }
    }
    const requests = Array.from({ length: 400 }, () => new CostlyRequest());
    for (const request of requests) bench.exchange.send(request, 2_000, 5_000);
    await server.receives(requests.length);
    for (const socket of server.connections) socket.destroy();
    for (const request of requests) assert.equal((await request.result()).kind, "failed");
    assert.ok(most > 0 && most <= 20, `${most} at once`);
    assert.ok(requests.every(({ results }) => results.length === 1));
    assert.equal(bench.exchange.pending, 0);
  });

  it("keeps a connection that answers other queries while one times out", async () => {
    const server = await serve((asked) => {
      if (asked.name !== "slow.example.org.") HONEST(asked);
    });
    const bench = new Bench({ remote: server.address });
    assertAnswered(await bench.ask());
    const slow = bench.send("slow.example.org.");
    const others = Array.from({ length: 2 * SHARED_CONNECTIONS }, () => bench.send());
    for (const request of others) assertAnswered(await request.result());
    const before = bench.exchange.openConnections;
    bench.clock.advance(2_101);
    assert.equal((await slow.result()).kind, "failed");
    assert.equal(bench.exchange.openConnections, before);
  });

  it("reports that nothing listens", async () => {
    const server = await ScriptedServer.start(SILENT);
    await server.stop();
    const bench = new Bench({ remote: server.address });
    const result = await bench.ask();
    assert.ok(result.kind === "failed");
    assert.equal(result.error.fault, "connect");
    assert.equal(result.error.message, `dial tcp ${server.text}: connect: connection refused`);
    assert.equal(bench.exchange.openConnections, 0);
  });

  it("limits the wait for a connection, and the time of the connection itself", async () => {
    const deaf = await startDeafListener();
    cleanups.push(() => deaf.stop());
    const bench = new Bench({ remote: deaf.address });
    const request = new TestRequest();
    bench.exchange.send(request, 2_000, 700);
    const patient = new TestRequest();
    bench.exchange.send(patient, 2_000, 60_000);
    bench.clock.advance(801);
    assert.equal(patient.results.length, 0);
    bench.clock.advance(30_000);
    assert.equal(bench.exchange.openConnections, 0);
    for (const one of [request, patient]) {
      assert.equal(one.results.length, 1);
      const [result] = one.results;
      assert.ok(result?.kind === "failed");
      assert.equal(result.error.message, `dial tcp ${deaf.address.text}: i/o timeout`);
      assert.equal(result.error.fault, "connect");
    }
  });

  it("closes unused connections, and its timer with the last one", async () => {
    const server = await serve(HONEST);
    const bench = new Bench({ remote: server.address, expire: 3_000 });
    assertAnswered(await bench.ask());
    bench.clock.advance(2_000);
    assert.equal(bench.exchange.openConnections, 1);
    bench.clock.advance(2_000);
    assert.equal(bench.exchange.openConnections, 0);
    assert.equal(bench.clock.pendingTimers, 0);
    assertAnswered(await bench.ask());
    assert.equal(server.connections.length, 2);
  });

  it("gives no query to a connection past max_age", async () => {
    const server = await serve(HONEST);
    const bench = new Bench({ remote: server.address, expire: 3_000, maxAge: 3_000 });
    for (let second = 0; second < 6; second++) {
      assertAnswered(await bench.ask());
      bench.clock.advance(1_000);
    }
    assert.equal(server.connections.length, 2);
  });

  it("keeps as many idle connections as configured", async () => {
    const server = await serve(SILENT);
    const bench = new Bench({ remote: server.address, maxIdle: 2 });
    const requests = Array.from({ length: 6 }, () => bench.send());
    const asked = await server.receives(6);
    assert.equal(bench.exchange.openConnections, 6);
    for (const one of asked) HONEST(one);
    for (const request of requests) assertAnswered(await request.result());
    assert.equal(bench.exchange.openConnections, 2);
  });

  it("uses a connection that carries a transfer for nothing else", async () => {
    const server = await serve((asked) => {
      HONEST(asked);
      HONEST(asked);
    });
    const bench = new Bench({ remote: server.address });
    assertAnswered(await bench.send("example.org.", "AXFR").result());
    assert.equal(bench.exchange.openConnections, 0);
    assertAnswered(await bench.ask());
    assert.equal(server.connections.length, 2);
  });

  it("limits connections and queries in flight", async () => {
    const server = await serve(SILENT);
    const bench = new Bench({ remote: server.address });
    const limit = SHARED_CONNECTIONS * PIPELINE_DEPTH;
    for (let count = 0; count < limit; count++) bench.send();
    assert.equal(bench.exchange.pending, limit);
    assert.ok(bench.exchange.openConnections <= MAX_CONNECTIONS);
    const result = await bench.ask();
    assert.ok(result.kind === "failed");
    assert.equal(result.error.fault, "busy");
    assert.equal(result.error.message, `${limit} queries wait for ${server.text} over tcp already`);
  });

  it("fails pending queries when it is closed, and all later ones", async () => {
    const server = await serve(SILENT);
    const bench = new Bench({ remote: server.address });
    const waiting = bench.send();
    bench.exchange.close();
    const late = bench.send();
    for (const request of [waiting, late]) {
      const result = await request.result();
      assert.ok(result.kind === "failed");
      assert.equal(result.error.fault, "closed");
    }
    bench.clock.advance(1_000);
    assert.equal(bench.clock.pendingTimers, 0);
  });
});
