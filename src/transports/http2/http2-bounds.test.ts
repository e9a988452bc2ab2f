import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { untilTrue } from "../../../test/support/until-true.ts";
import { data, frame, get, MESSAGE, number, post, scene, settings } from "./fixtures/raw-client.ts";
import { ErrorCode, FrameType, Setting } from "./http2-frames.ts";

describe("streams", () => {
  test("above the limit are refused, and reset ones count until their queries are settled", async () => {
    await scene(async ({ connect, receiver }) => {
      receiver.answers = false;
      const client = (await connect()).greet();
      client.send(get(1), get(3), frame(FrameType.RST_STREAM, 0, 1, number(ErrorCode.CANCEL)), get(5));
      assert.equal(await client.resetOf(5), ErrorCode.REFUSED_STREAM);
      assert.equal(receiver.received, 2);
      for (const port of receiver.waiting) receiver.answer(port);
      await client.first(FrameType.DATA, 3);
      client.send(get(7), get(9));
      await client.ping();
      assert.equal(receiver.received, 4);
      // The reset stream got no response.
      assert.equal(client.body(1).length, 0);
    }, 2);
  });

  test("that are not whole in time are reset", async () => {
    await scene(async ({ connect, clock, timeouts, receiver }) => {
      const client = (await connect()).greet().send(post(1), data(1, MESSAGE.subarray(0, 9), 0), get(3));
      await client.ping();
      receiver.answers = false;
      client.send(get(5));
      await client.ping();
      clock.advance(1300);
      assert.equal(await client.resetOf(1), ErrorCode.CANCEL);
      assert.deepEqual(timeouts, ["request"]);
      // A query with the receiver may take any time.
      for (const port of receiver.waiting) receiver.answer(port);
      await client.first(FrameType.DATA, 5);
    });
  });

  test("that became whole while the process was paused are answered", async () => {
    await scene(async ({ connect, clock, timeouts, receiver }) => {
      const client = (await connect()).greet().send(post(1));
      await client.ping();
      // In a timer, as the session's: the kernel has the rest of the request, and the process has not read it yet.
      setTimeout(() => {
        client.send(data(1, MESSAGE));
        clock.advance(1300);
      });
      await client.first(FrameType.DATA, 1);
      assert.deepEqual([receiver.received, timeouts], [1, []]);
    });
  });

  test("send what the client's windows allow, and the rest when they open", async () => {
    await scene(async ({ connect, receiver, budget }) => {
      receiver.replyLength = 1000;
      const client = (await connect()).greet([Setting.INITIAL_WINDOW_SIZE, 300]).send(get(1), get(3));
      await client.ping();
      assert.deepEqual([client.body(1).length, client.body(3).length], [300, 300]);
      assert.equal(budget.unsent, 1400);
      client.send(frame(FrameType.WINDOW_UPDATE, 0, 1, number(600)));
      await client.ping();
      assert.equal(client.body(1).length, 900);
      client.send(settings([Setting.INITIAL_WINDOW_SIZE, 1000]));
      await client.ping();
      assert.deepEqual([client.body(1), client.body(3)], [Buffer.alloc(1000, 7), Buffer.alloc(1000, 7)]);
      assert.equal(budget.unsent, 0);
    });
  });

  test("share the window of the connection", async () => {
    await scene(async ({ connect, receiver, budget }) => {
      receiver.replyLength = 50_000;
      const client = (await connect()).greet([Setting.INITIAL_WINDOW_SIZE, 100_000]).send(get(1), get(3));
      await client.ping();
      assert.equal(client.body(1).length + client.body(3).length, 65_535);
      client.send(frame(FrameType.WINDOW_UPDATE, 0, 0, number(100_000)));
      await client.ping();
      assert.equal(client.body(1).length + client.body(3).length, 100_000);
      assert.equal(budget.unsent, 0);
    });
  });

  test("of a client that opens no window end in time, and keep limited memory", async () => {
    await scene(async ({ connect, clock, receiver, timeouts, budget, unread }) => {
      receiver.replyLength = 10_000;
      const client = (await connect()).greet([Setting.INITIAL_WINDOW_SIZE, 0]);
      for (let id = 1; id < 400; id += 2) client.send(get(id));
      await client.ping();
      const refused = client.frames.filter(({ type }) => type === FrameType.RST_STREAM).length;
      assert.ok(refused > 150, String(refused));
      assert.ok(budget.unsent <= 512 * 1024);
      clock.advance(2500);
      await client.ping();
      assert.deepEqual(new Set(timeouts), new Set(["response"]));
      assert.equal(timeouts.length + refused, 200);
      assert.equal(budget.unsent, 0);
      assert.equal(unread(), 0);
    });
  });
});

describe("a connection", () => {
  test("whose client does not read is no longer read, and closed in time", async () => {
    await scene(async ({ connect, clock, receiver, timeouts, budget }) => {
      receiver.replyLength = 60_000;
      const client = (await connect()).greet([Setting.INITIAL_WINDOW_SIZE, 0x7fff_ffff]);
      client.send(frame(FrameType.WINDOW_UPDATE, 0, 0, number(0x7000_0000)));
      await client.ping();
      client.socket.pause();
      const closed = new Promise((resolve) => client.socket.once("close", resolve));
      let id = 1;
      for (let behind = false; !behind; await nextTurn()) {
        for (let count = 0; count < 20; count++, id += 2) client.send(get(id));
        behind = budget.unsent > 0 && client.socket.writableLength > 0;
      }
      for (let before = -1; before !== receiver.received; await nextTurn()) before = receiver.received;
      assert.ok(budget.unsent < 1024 * 1024, String(budget.unsent));
      for (let count = 0; count < 12; count++) {
        clock.advance(500);
        await nextTurn();
      }
      client.socket.resume();
      await closed;
      assert.ok(timeouts.includes("response"));
      assert.equal(budget.unsent, 0);
    });
  });

  test("gets GOAWAY when it has been idle, and is closed", async () => {
    await scene(async ({ connect, clock, faults }) => {
      const client = (await connect()).greet().send(get(1));
      await client.ping();
      clock.advance(39_000);
      client.send(get(3));
      await client.ping();
      clock.advance(39_000);
      await client.ping();
      const closed = once(client.socket, "close");
      clock.advance(1500);
      assert.equal(await client.goodbye(), ErrorCode.NO_ERROR);
      await closed;
      assert.equal(faults(), 0);
    });
  });

  test("that is ending answers requests in flight, and accepts no more", async () => {
    await scene(async ({ connect, receiver, pause, faults }) => {
      receiver.answers = false;
      const client = (await connect()).greet().send(get(1));
      await client.ping();
      pause();
      const goodbye = await client.first(FrameType.GOAWAY);
      assert.equal(goodbye.payload.readUInt32BE(0), 1);
      client.send(get(3), post(5), data(5, MESSAGE), frame(FrameType.RST_STREAM, 0, 3, number(8)));
      await client.ping();
      assert.equal(receiver.received, 1);
      const closed = once(client.socket, "close");
      for (const port of receiver.waiting) receiver.answer(port);
      await closed;
      assert.equal(client.body(1).length, 40);
      assert.equal(faults(), 0);
    });
  });

  test("that the client half-closes still delivers the answers", async () => {
    await scene(async ({ connect, receiver }) => {
      receiver.answers = false;
      const client = (await connect()).greet().send(get(1), post(3));
      await client.ping();
      client.socket.end();
      const closed = once(client.socket, "close");
      await untilTrue(() => receiver.waiting.length > 0, { between: () => nextTurn() });
      for (const port of receiver.waiting) receiver.answer(port);
      await closed;
      assert.equal(client.body(1).length, 40);
    });
  });

  test("that is gone does not disturb late answers", async () => {
    await scene(async ({ connect, receiver, statuses, budget }) => {
      receiver.answers = false;
      const client = (await connect()).greet().send(get(1), post(3), data(3, MESSAGE.subarray(0, 9), 0));
      await client.ping();
      client.socket.resetAndDestroy();
      await untilTrue(() => budget.connections === 0, { between: () => nextTurn() });
      for (const port of receiver.waiting) receiver.answer(port);
      assert.deepEqual(statuses, []);
      assert.equal(budget.unsent, 0);
    });
  });
});
