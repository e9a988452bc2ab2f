import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { decodeMessage, encodeMessage, makeQuery } from "../../dns/message.ts";
import { Name } from "../../dns/name.ts";
import { RecordType } from "../../dns/type-names.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { ExchangeError } from "../exchange/exchange-error.ts";
import {
  type Script,
  type ScriptedQuestion,
  ScriptedServer,
  SILENT,
  startDeafListener,
} from "../fixtures/scripted-server.ts";
import { until } from "../fixtures/test-request.ts";
import { type MessageGuard, type MessageStreamOptions, messagesFor } from "./message-stream.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(script: Script): Promise<ScriptedServer> {
  const server = await ScriptedServer.start(script);
  cleanups.push(() => server.stop());
  return server;
}

const query = encodeMessage({
  ...makeQuery({ name: Name.parse("example."), type: RecordType.AXFR }),
  id: 4711,
});

function ask(
  server: Pick<ScriptedServer, "address">,
  options: Partial<MessageStreamOptions> = {},
): AsyncGenerator<Uint8Array, void, undefined> {
  const clock = new FakeClock();
  return messagesFor(query, {
    remote: server.address,
    clock,
    connectTimeout: 1_000,
    messageTimeout: 2_000,
    ...options,
  });
}

async function fault(stream: AsyncGenerator<Uint8Array, void, undefined>): Promise<ExchangeError> {
  try {
    for await (const _ of stream);
  } catch (error) {
    assert.ok(error instanceof ExchangeError, String(error));
    return error;
  }
  return assert.fail("it did not fail");
}

const send = (asked: ScriptedQuestion, count: number): void => {
  for (let n = 0; n < count; n++) asked.answer({ answer: [`n${n}.example. 60 IN A 192.0.2.1`] });
};

describe("messages for one query", () => {
  it("arrive in order until the caller has enough, and then the connection ends", async () => {
    const server = await serve((asked) => send(asked, 50));
    const names: (string | undefined)[] = [];
    for await (const message of ask(server)) {
      names.push(decodeMessage(message).answer[0]?.name.toString());
      if (names.length === 50) break;
    }
    assert.deepEqual(
      names,
      Array.from({ length: 50 }, (_, n) => `n${n}.example.`),
    );
    assert.equal(server.asked[0]?.message.id, 4711);
    await until(() => server.connections[0]?.destroyed === true, "the connection is closed");
  });

  it("are read no faster than they are consumed", async () => {
    let written = 0;
    const server = await serve((asked) => {
      const more = (): void => {
        if (asked.socket?.destroyed !== false || written >= 4_000) return;
        written++;
        asked.answer({
          answer: Array.from({ length: 200 }, (_, n) => `n${n}.example. 60 IN TXT "${"x".repeat(200)}"`),
        });
        if ((asked.socket?.writableLength ?? 0) > 0) asked.socket?.once("drain", more);
        else setImmediate(more);
      };
      more();
    });
    const stream = ask(server);
    await stream.next();
    // The buffers of sockets and a few messages, not everything that the server has to send.
    for (let turn = 0; turn < 500; turn++) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(written < 1_000, `${written} messages were taken`);
    await stream.return();
  });

  it("may end before the caller has enough", async () => {
    const server = await serve((asked) => {
      send(asked, 2);
      asked.socket?.end();
    });
    const stream = ask(server);
    await stream.next();
    await stream.next();
    const error = await fault(stream);
    assert.equal(error.message, "EOF");
    assert.equal(error.fault, "broken");
  });

  it("fail if another message takes too long", async () => {
    const clock = new FakeClock();
    const server = await serve((asked) => send(asked, 1));
    const stream = ask(server, { clock });
    await stream.next();
    const failing = fault(stream);
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(2_000);
    assert.match((await failing).message, /^read tcp 127\.0\.0\.1:\d+->127\.0\.0\.1:\d+: i\/o timeout$/);
    assert.equal(clock.pendingTimers, 0);
  });

  it("fail if no server accepts, or none listens", async () => {
    const clock = new FakeClock();
    const deaf = await startDeafListener();
    cleanups.push(() => deaf.stop());
    const failing = fault(ask(deaf, { clock }));
    clock.advance(1_000);
    assert.equal((await failing).message, `dial tcp ${deaf.address.text}: i/o timeout`);
    const gone = await ScriptedServer.start(SILENT);
    await gone.stop();
    const error = await fault(ask(gone));
    assert.equal(error.message, `dial tcp ${gone.text}: connect: connection refused`);
    assert.equal(error.fault, "connect");
  });

  const strangers: Readonly<Record<string, Script>> = {
    "another id": (asked) => asked.answer({ message: { id: 1 } }),
    "a query": (asked) => asked.send(asked.bytes),
    "another opcode": (asked) => {
      const reply = asked.encode();
      reply[2] = 0x80 | (5 << 3);
      asked.send(reply);
    },
    "fewer octets than a header": (asked) => asked.send(asked.bytes.subarray(0, 2)),
    "no octets": (asked) => asked.send(new Uint8Array(0)),
  };
  for (const [what, script] of Object.entries(strangers)) {
    it(`are refused with ${what}`, async () => {
      const error = await fault(ask(await serve(script)));
      assert.equal(error.fault, "malformed");
    });
  }

  it("pass a guard, which signs the query", async () => {
    const seen: number[] = [];
    const guard: MessageGuard = {
      sign: (octets) => {
        const signed = octets.slice();
        signed[2] = 0x01;
        return signed;
      },
      verify: (message, index) => {
        seen.push(index);
        if (index === 2) throw new Error("tsig verify failure");
        return message.subarray(0, 12);
      },
    };
    const server = await serve((asked) => send(asked, 5));
    const stream = ask(server, { guard });
    assert.equal((await stream.next()).value?.length, 12);
    await stream.next();
    await assert.rejects(stream.next(), /tsig verify failure/);
    assert.deepEqual(seen, [0, 1, 2]);
    assert.equal(server.asked[0]?.bytes[2], 0x01);
    await until(() => server.connections[0]?.destroyed === true, "the connection is closed");
  });

  it("end with the signal", async () => {
    const server = await serve(SILENT);
    const controller = new AbortController();
    const stream = ask(server, { signal: controller.signal });
    const next = stream.next();
    await server.receives(1);
    controller.abort(new Error("the server stops"));
    await assert.rejects(next, /the server stops/);
    await assert.rejects(ask(server, { signal: controller.signal }).next(), /the server stops/);
    await until(() => server.connections[0]?.destroyed === true, "the connection is closed");
  });
});
