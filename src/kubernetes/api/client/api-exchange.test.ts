import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiExchange } from "./api-exchange.ts";

/** What undici has of a request, as far as it is used. */
class Controller {
  readonly calls: string[] = [];
  readonly aborted = false;
  readonly paused = false;
  readonly reason = null;
  readonly rawHeaders = null;
  readonly rawTrailers = null;

  pause(): void {
    this.calls.push("pause");
  }

  resume(): void {
    this.calls.push("resume");
  }

  abort(): void {
    this.calls.push("abort");
  }
}

function prepare(): {
  exchange: ApiExchange;
  controller: Controller;
  giveUp: AbortController;
  read: number[];
} {
  const giveUp = new AbortController();
  const controller = new Controller();
  const read: number[] = [];
  const exchange = new ApiExchange({
    signal: giveUp.signal,
    brokeOff: (error) => new Error("broke off", { cause: error }),
    read: (octets) => read.push(octets),
  });
  exchange.onRequestStart(controller);
  return { exchange, controller, giveUp, read };
}

const octets = (length: number): Uint8Array => new Uint8Array(length);

test("a chunk goes to the reader that waits for it, and is counted when the next one is asked for", async () => {
  const { exchange, controller, read } = prepare();
  exchange.onResponseStart(controller, 103, {});
  exchange.onResponseStart(controller, 200, { "content-type": "text/plain" });
  assert.deepEqual(await exchange.head, { statusCode: 200, contentType: "text/plain", retryAfter: "" });
  const first = exchange.next();
  exchange.onResponseData(controller, octets(3));
  assert.equal((await first).value?.length, 3);
  assert.deepEqual(read, []);
  const second = exchange.next();
  assert.deepEqual(read, [3]);
  exchange.onResponseEnd();
  assert.deepEqual(await second, { done: true, value: undefined });
  assert.deepEqual(await exchange.next(), { done: true, value: undefined });
});

test("the connection is held back while much waits, and what has come is read to its end", async () => {
  const { exchange, controller } = prepare();
  for (let chunk = 0; chunk < 3; chunk++) exchange.onResponseData(controller, octets(16 * 1024));
  assert.deepEqual(controller.calls, ["pause", "pause"]);
  exchange.onResponseEnd();
  let length = 0;
  for await (const chunk of exchange) length += chunk.length;
  assert.equal(length, 48 * 1024);
  assert.deepEqual(controller.calls, ["pause", "pause", "resume"]);
});

test("a body that breaks off says so behind what has come, once", async () => {
  const { exchange, controller } = prepare();
  exchange.onResponseStart(controller, 200, {});
  exchange.onResponseData(controller, octets(5));
  exchange.onResponseError(controller, new Error("reset"));
  assert.equal((await exchange.next()).value?.length, 5);
  await assert.rejects(exchange.next(), /^Error: broke off$/);
  assert.equal((await exchange.next()).done, true);
});

test("who gives up hears the reason at once, also while there is no connection yet", async () => {
  const { exchange, controller, giveUp } = prepare();
  const reason = new Error("stopped");
  giveUp.abort(reason);
  await assert.rejects(exchange.head, reason);
  await assert.rejects(exchange.next(), reason);
  assert.deepEqual(controller.calls, ["abort"]);

  const later = new ApiExchange({ signal: giveUp.signal, brokeOff: () => reason, read: () => undefined });
  await assert.rejects(later.head, reason);
  later.onRequestStart(controller);
  assert.deepEqual(controller.calls, ["abort", "abort"]);
});

test("a reader that leaves early ends the request", async () => {
  const { exchange, controller } = prepare();
  exchange.onResponseStart(controller, 200, {});
  exchange.onResponseData(controller, octets(1));
  for await (const _ of exchange) break;
  assert.deepEqual(controller.calls, ["resume", "abort"]);
  exchange.onResponseData(controller, octets(1));
  assert.equal((await exchange.next()).done, true);
});
