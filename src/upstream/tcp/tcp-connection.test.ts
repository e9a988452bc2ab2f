import assert from "node:assert/strict";
import { afterEach, it } from "node:test";
import { BufferPool } from "../../lib/collections/buffer-pool.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { SharedTurns } from "../../lib/time/turn-share.ts";
import { frame, ScriptedServer, SILENT } from "../fixtures/scripted-server.ts";
import { until } from "../fixtures/test-request.ts";
import { TcpConnection } from "./tcp-connection.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(): Promise<ScriptedServer> {
  const server = await ScriptedServer.start(SILENT);
  cleanups.push(() => server.stop());
  return server;
}

const memory = () => ({ buffers: new BufferPool(), inbox: new Uint8Array(64 * 1024) });

it("gives no further query to a connection whose peer accepts no data", async () => {
  const server = await serve();
  let connected = (): void => undefined;
  const standing = new Promise<void>((resolve) => {
    connected = resolve;
  });
  const owner = {
    turns: new SharedTurns(new FakeClock(), 2),
    ...memory(),
    connected,
    received: () => undefined,
    timedOut: () => undefined,
    letGo: () => undefined,
    lost: () => undefined,
  };
  const connection = new TcpConnection(owner, server.address, undefined, 0);
  cleanups.push(() => connection.close());
  await Promise.all([standing, server.accepts(1)]);
  const [socket] = server.connections;
  socket?.pause();
  const message = new Uint8Array(65_535);
  for (let count = 0; count < 200; count++) connection.write(message, message.length, 17, count);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(connection.blocked, true);
  socket?.resume();
  await until(() => !connection.blocked, "the peer has taken all");
});

it("handles answers that arrive together in portions, all of them before the end of the connection", async () => {
  const server = await serve();
  const clock = new FakeClock();
  const total = 200;
  const turns = [0];
  const { promise: standing, resolve: connected } = Promise.withResolvers<void>();
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const connection = new TcpConnection(
    {
      turns: new SharedTurns(clock, 0.5),
      ...memory(),
      connected: () => connected(),
      received: () => {
        turns[turns.length - 1] = (turns.at(-1) ?? 0) + 1;
        clock.advance(1);
      },
      timedOut: () => undefined,
      letGo: () => undefined,
      lost: (_, error) => {
        assert.equal(error, undefined);
        end();
      },
    },
    server.address,
    undefined,
    0,
  );
  cleanups.push(() => connection.close());
  await Promise.all([standing, server.accepts(1)]);
  server.connections[0]?.end(Buffer.concat(Array.from({ length: total }, () => frame(new Uint8Array(12)))));
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  while (!isOver) {
    await new Promise((resolve) => setImmediate(resolve));
    turns.push(0);
  }
  assert.equal(
    turns.reduce((sum, count) => sum + count),
    total,
  );
  const most = Math.max(...turns);
  // Once when they arrive, and once in the immediates of the same turn.
  assert.ok(most <= 2, `${most} answers of 1 ms each in one turn`);
});
