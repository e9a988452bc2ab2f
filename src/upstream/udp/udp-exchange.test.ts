import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { afterEach, describe, it } from "node:test";
import { decodeMessage } from "../../dns/message.ts";
import { NoForeignFunctions } from "../../runtime/linux/libc.ts";
import { linuxSockets } from "../../runtime/linux/linux-sockets.ts";
import { HONEST, type Script, ScriptedServer, SILENT } from "../fixtures/scripted-server.ts";
import { TestRequest, until } from "../fixtures/test-request.ts";
import { addressOf, Cleanup, portThat, replyWith } from "../fixtures/udp-bench.ts";
import { batchedDatagramPorts } from "./batched-datagram-port.ts";
import { type DatagramListener, openDgramPort } from "./datagram-port.ts";
import { SOCKET_COUNT } from "./udp-exchange.ts";

const sockets = await linuxSockets();
const ways = [
  ["dgram", openDgramPort],
  [
    "batches",
    sockets instanceof NoForeignFunctions
      ? undefined
      : batchedDatagramPorts(sockets, () => performance.now()),
  ],
] as const;

for (const [way, openPort] of ways) {
  describe(`UDP exchange by ${way}`, {
    skip: openPort === undefined && "koffi is not available here",
  }, () => {
    behaves(new Cleanup(openPort));
  });
}

function behaves(cleanup: Cleanup): void {
  afterEach(() => cleanup.run());

  it("returns the answer to a query with an id of its own", async () => {
    const server = await cleanup.serve(HONEST);
    const { exchange } = cleanup.bench({ remote: server.address });
    const request = new TestRequest("Example.ORG.");
    exchange.send(request, 2_000);
    assert.equal(request.results.length, 0);
    const result = await request.result();
    assert.equal(result.kind, "answered");
    assert.ok(result.kind === "answered");
    const reply = decodeMessage(result.reply);
    assert.equal(reply.id, server.asked[0]?.message.id);
    assert.equal(reply.answer.length, 1);
    assert.equal(server.asked[0]?.name, "Example.ORG.");
    assert.equal(exchange.pending, 0);
  });

  it("works over IPv6", async () => {
    const server = await cleanup.serve(HONEST, "::1");
    const { exchange } = cleanup.bench({ remote: server.address });
    const request = new TestRequest();
    exchange.send(request, 2_000);
    assert.equal((await request.result()).kind, "answered");
    assert.equal(server.asked[0]?.sourceAddress, "::1");
  });

  it("sends from the given address", async () => {
    const server = await cleanup.serve(HONEST);
    const { exchange } = cleanup.bench({ remote: server.address, sourceAddress: "127.0.0.3" });
    const request = new TestRequest();
    exchange.send(request, 2_000);
    assert.equal((await request.result()).kind, "answered");
    assert.equal(server.asked[0]?.sourceAddress, "127.0.0.3");
  });

  it("fails if the source address does not belong to this machine, and never uses another one", async () => {
    const server = await cleanup.serve(HONEST);
    const { exchange } = cleanup.bench({ remote: server.address, sourceAddress: "192.0.2.77" });
    const request = new TestRequest();
    exchange.send(request, 2_000);
    const result = await request.result();
    assert.ok(result.kind === "failed");
    assert.match(result.error.message, /cannot assign requested address/);
    assert.equal(result.error.fault, "broken");
    assert.equal(exchange.openSockets, 0);
    assert.equal(server.asked.length, 0);
  });

  it("accepts the question in another spelling, as some servers answer in lower case", async () => {
    const server = await cleanup.serve((asked) => {
      const reply = asked.encode();
      for (let at = 12; at < 12 + 12; at++) {
        const octet = reply[at] ?? 0;
        if (octet >= 0x41 && octet <= 0x5a) reply[at] = octet + 0x20;
      }
      asked.send(reply);
    });
    const { exchange, metrics } = cleanup.bench({ remote: server.address });
    const request = new TestRequest("eXaMpLe.OrG.");
    exchange.send(request, 2_000);
    assert.equal((await request.result()).kind, "answered");
    assert.equal(metrics.otherCase.value, 1);
  });

  it("accepts an error without a question from a server that could not parse the query", async () => {
    const server = await cleanup.serve((asked) =>
      asked.send(changed(changed(asked.encode(), 5, 0), 3, 0x81).slice(0, 12)),
    );
    const { exchange } = cleanup.bench({ remote: server.address });
    const request = new TestRequest();
    exchange.send(request, 2_000);
    assert.equal((await request.result()).kind, "answered");
  });

  it("reuses no id before a late answer to its last query could have come", async () => {
    const server = await cleanup.serve(HONEST);
    const { exchange, clock } = cleanup.bench({
      remote: server.address,
      random: { unpredictable: () => 5 },
    });
    const ask = async (): Promise<number> => {
      const request = new TestRequest();
      exchange.send(request, 2_000);
      const { id } = request;
      await request.result();
      return id;
    };
    assert.equal(await ask(), 5);
    clock.advance(1_999);
    assert.notEqual(await ask(), 5);
    clock.advance(1);
    assert.equal(await ask(), 5);
  });

  describe("refuses", () => {
    const lies: Readonly<Record<string, Script>> = {
      "another name": (asked) => asked.send(changed(asked.encode(), 13, 0x7a)),
      "another type": (asked) => asked.send(changed(asked.encode(), 12 + 13 + 1, 28)),
      "another class": (asked) => asked.send(changed(asked.encode(), 12 + 13 + 3, 3)),
      "a message without QR": (asked) => asked.send(changed(asked.encode(), 2, 0x01)),
      "no question": (asked) => asked.answer({ message: { questions: [] } }),
      "a bare header": (asked) => asked.send(changed(asked.encode(), 5, 0).slice(0, 12)),
      "another opcode": (asked) => asked.send(changed(asked.encode(), 2, 0x81 | (5 << 3))),
      "two questions": (asked) => {
        const { questions } = asked.message;
        asked.answer({ message: { questions: [...questions, ...questions] } });
      },
    };
    for (const [what, script] of Object.entries(lies)) {
      it(`${what} under the right id, and waits for the right answer`, async () => {
        const server = await cleanup.serve((asked) => {
          script(asked);
          HONEST(asked);
        });
        const { exchange, metrics } = cleanup.bench({ remote: server.address });
        const request = new TestRequest("example.org.");
        exchange.send(request, 2_000);
        assert.equal((await request.result()).kind, "answered");
        assert.equal(request.mismatches.length, 1);
        assert.equal(metrics.otherQuestion.value, 1);
      });
    }

    it("a type that differs from the right one as a capital differs from its letter", async () => {
      // HTTPS is 65, and 97 is 65 with the bit that ASCII case changes.
      const server = await cleanup.serve((asked) => {
        asked.send(changed(asked.encode(), 12 + 13 + 1, 97));
        asked.answer();
      });
      const { exchange } = cleanup.bench({ remote: server.address });
      const request = new TestRequest("example.org.", "HTTPS");
      exchange.send(request, 2_000);
      assert.equal((await request.result()).kind, "answered");
      assert.equal(request.mismatches.length, 1);
    });

    it("another spelling if the case was randomized", async () => {
      const server = await cleanup.serve((asked) => {
        asked.send(changed(asked.encode(), 13, 0x45));
        HONEST(asked);
      });
      const { exchange, metrics } = cleanup.bench({ remote: server.address });
      const request = new TestRequest("example.org.");
      Object.defineProperty(request, "exactCase", { value: true });
      exchange.send(request, 2_000);
      assert.equal((await request.result()).kind, "answered");
      assert.equal(request.mismatches.length, 1);
      assert.equal(metrics.otherCase.value, 1);
    });

    it("a wrong id, and accepts the right answer after it", async () => {
      const server = await cleanup.serve((asked) => {
        for (let wrong = 1; wrong <= 20; wrong++)
          asked.answer({
            message: { id: (asked.message.id + wrong) & 0xffff },
            answer: ["evil. 60 IN A 192.0.2.66"],
          });
        asked.send(Uint8Array.of(1, 2, 3));
        asked.send(new Uint8Array(0));
        HONEST(asked);
      });
      const { exchange, metrics } = cleanup.bench({ remote: server.address });
      const request = new TestRequest();
      exchange.send(request, 2_000);
      const result = await request.result();
      assert.ok(result.kind === "answered");
      assert.equal(decodeMessage(result.reply).answer.length, 1);
      assert.equal(metrics.unknownId.value, 20);
      assert.equal(metrics.short.value, 2);
    });

    it("another source port or address, even with the right id and question", async () => {
      const server = await cleanup.serve(SILENT);
      const { exchange, metrics } = cleanup.bench({ remote: server.address });
      const request = new TestRequest();
      exchange.send(request, 2_000);
      const [asked] = await server.receives(1);
      assert.ok(asked !== undefined);
      for (const address of ["127.0.0.1", "127.0.0.2"]) {
        const forger = createSocket("udp4");
        cleanup.later(() => forger.close());
        await new Promise<void>((resolve) => forger.bind({ address, port: 0 }, resolve));
        const forged = asked.encode({ answer: ["example.org. 60 IN A 192.0.2.66"] });
        await new Promise<void>((resolve) =>
          forger.send(forged, asked.sourcePort, "127.0.0.1", () => resolve()),
        );
      }
      HONEST(asked);
      const result = await request.result();
      assert.ok(result.kind === "answered");
      const [record] = decodeMessage(result.reply).answer;
      assert.deepEqual(record?.data, { address: "192.0.2.1" });
      assert.equal(request.results.length, 1);
      assert.equal(metrics.unknownId.value, 0);
    });

    it("an answer that belongs to another of its own sockets", async () => {
      const ports: { listener: DatagramListener; ids: number[] }[] = [];
      const { exchange, metrics } = cleanup.bench({
        remote: addressOf("192.0.2.1", 53),
        openPort: (_options, listener) => {
          const port = { listener, ids: [] as number[] };
          ports.push(port);
          return portThat((_bytes, _length, id) => port.ids.push(id));
        },
      });
      const requests: TestRequest[] = [];
      while (ports.length < 2) {
        const request = new TestRequest();
        requests.push(request);
        exchange.send(request, 2_000);
      }
      const [one, other] = ports;
      const id = one?.ids[0] ?? 0;
      const [first] = requests;
      assert.ok(first !== undefined);
      const reply = replyWith(first, id);
      other?.listener.received(reply, reply.length);
      assert.equal(first.results.length, 0);
      assert.equal(metrics.unknownId.value, 1);
      one?.listener.received(reply, reply.length);
      assert.equal(first.results[0]?.kind, "answered");
    });
  });

  it("times out, and counts an answer that comes too late", async () => {
    const server = await cleanup.serve(SILENT);
    const { exchange, clock, metrics } = cleanup.bench({ remote: server.address });
    const request = new TestRequest();
    exchange.send(request, 2_000);
    const [asked] = await server.receives(1);
    clock.advance(1_999);
    assert.equal(request.results.length, 0);
    clock.advance(101);
    const [result] = request.results;
    assert.ok(result?.kind === "failed");
    assert.equal(result.error.fault, "timeout");
    assert.equal(
      result.error.message,
      `read udp 127.0.0.1:${asked?.sourcePort}->${server.text}: i/o timeout`,
    );
    asked?.answer();
    await until(() => metrics.unknownId.value === 1, "the late answer is counted");
    assert.equal(request.results.length, 1);
    assert.equal(exchange.pending, 0);
  });

  it("fails at once if nothing listens at the port", async () => {
    const server = await ScriptedServer.start(SILENT);
    const { address } = server;
    await server.stop();
    const { exchange } = cleanup.bench({ remote: address });
    for (let attempt = 0; attempt < 3; attempt++) {
      const request = new TestRequest();
      exchange.send(request, 2_000);
      const result = await request.result();
      assert.ok(result.kind === "failed");
      assert.equal(result.error.fault, "broken");
      assert.match(
        result.error.message,
        /^read udp 127\.0\.0\.1:\d+->127\.0\.0\.1:\d+: read: connection refused$/,
      );
    }
  });

  it("keeps 1000 queries in flight apart", async () => {
    const server = await cleanup.serve(SILENT);
    const { exchange, clock } = cleanup.bench({ remote: server.address });
    const requests = Array.from(
      { length: 1_000 },
      (_, index) => new TestRequest(`host-${index}.example.org.`),
    );
    const ids = new Set<number>();
    for (const [index, request] of requests.entries()) {
      exchange.send(request, 2_000);
      ids.add(request.id);
      // Queries at the same time, or of one turn, share a socket.
      if (index % 10 === 9) clock.advance(1);
      // More at once than the server's socket holds would be lost.
      if (index % 100 === 99) await server.receives(index + 1);
    }
    assert.equal(ids.size, 1_000);
    assert.equal(exchange.pending, 1_000);
    const asked = await server.receives(1_000);
    for (const one of [...asked].reverse()) {
      const index = Number(/^host-(\d+)/.exec(one.name)?.[1]);
      one.answer({ answer: [`${one.name} 60 IN A 10.0.${index >> 8}.${index & 255}`] });
    }
    const results = await Promise.all(requests.map((request) => request.result()));
    for (const [index, result] of results.entries()) {
      assert.ok(result.kind === "answered");
      const [record] = decodeMessage(result.reply).answer;
      assert.deepEqual(record?.data, { address: `10.0.${index >> 8}.${index & 255}` });
    }
    assert.equal(exchange.pending, 0);
    // Drawn at random at least ten times.
    const ports = new Set(asked.map(({ sourcePort }) => sourcePort)).size;
    assert.ok(ports > 1 && ports <= SOCKET_COUNT, `${ports} sockets`);
  });

  it("refuses a query that is too long for a datagram", async () => {
    const { exchange } = cleanup.bench({ remote: addressOf("127.0.0.1", 53) });
    const request = new TestRequest();
    Object.defineProperty(request, "length", { value: 65_508 });
    exchange.send(request, 2_000);
    const result = await request.result();
    assert.ok(result.kind === "failed");
    assert.equal(result.error.message, "write udp 127.0.0.1:53: message too long");
  });

  it("fails pending queries when it is closed, and all later ones", async () => {
    const server = await cleanup.serve(SILENT);
    const { exchange, clock } = cleanup.bench({ remote: server.address });
    const waiting = new TestRequest();
    exchange.send(waiting, 2_000);
    exchange.close();
    const late = new TestRequest();
    exchange.send(late, 2_000);
    for (const request of [waiting, late]) {
      const result = await request.result();
      assert.ok(result.kind === "failed");
      assert.equal(result.error.fault, "closed");
    }
    clock.advance(1_000);
    assert.equal(clock.pendingTimers, 0);
    assert.equal(exchange.openSockets, 0);
  });
}

function changed(bytes: Uint8Array, at: number, octet: number): Uint8Array {
  const copy = bytes.slice();
  copy[at] = octet;
  return copy;
}
