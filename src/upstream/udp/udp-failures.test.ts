import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { FakeClock, type Timer } from "../../lib/time/clock.ts";
import type { ExchangeError } from "../exchange/exchange-error.ts";
import { TestRequest } from "../fixtures/test-request.ts";
import { addressOf, Cleanup, portThat, replyWith } from "../fixtures/udp-bench.ts";
import type { DatagramListener } from "./datagram-port.ts";

const cleanup = new Cleanup();
afterEach(() => cleanup.run());

/** Milliseconds of work for each query that fails. */
const COST = 0.1;

/** Advances with each notified query; postponed work waits for {@link turn}. */
class TurnClock extends FakeClock {
  spent = 0;
  #later: (() => void)[] = [];

  override now(): number {
    return super.now() + this.spent;
  }

  override after(delayMs: number, callback: () => void): Timer {
    if (delayMs > 0) return super.after(delayMs, callback);
    this.#later.push(callback);
    const cancel = (): void => {
      this.#later = this.#later.filter((each) => each !== callback);
    };
    return { cancel };
  }

  get isBehind(): boolean {
    return this.#later.length > 0;
  }

  turn(): void {
    for (const callback of this.#later.splice(0)) callback();
  }
}

class CostlyRequest extends TestRequest {
  readonly #clock: TurnClock;

  constructor(clock: TurnClock) {
    super();
    this.#clock = clock;
  }

  override failed(error: ExchangeError): void {
    super.failed(error);
    this.#clock.spent += COST;
  }
}

/** This many queries in one socket. */
function waiting(count: number) {
  const clock = new TurnClock();
  const listeners: DatagramListener[] = [];
  const { exchange } = cleanup.bench({
    remote: addressOf("127.0.0.1", 53),
    clock,
    // The socket in the first place takes more than a thousand queries; the rest of each number is an id.
    random: { unpredictable: () => next++ & 0xffff },
    openPort: (_options, listener) => {
      listeners.push(listener);
      return portThat(() => undefined);
    },
  });
  let next = 0;
  const requests = Array.from({ length: count }, () => new CostlyRequest(clock));
  for (const request of requests) exchange.send(request, 2_000);
  const [listener] = listeners;
  assert.ok(listener !== undefined && listeners.length === 1);
  const failed = (): number => requests.filter(({ results }) => results.length > 0).length;
  const fail = (usable: boolean): void => listener.failed(new Error("connection refused"), usable);
  return { clock, exchange, listener, requests, failed, fail };
}

for (const usable of [true, false])
  test(`of a thousand queries of a failed socket, few are notified in one turn of the event loop (${usable})`, () => {
    const { clock, exchange, requests, failed, fail } = waiting(1_000);
    fail(usable);
    let before = 0;
    for (let turns = 0; ; turns++) {
      const told = failed() - before;
      assert.ok(told <= 8, `${told} in turn ${turns}`);
      before += told;
      if (!clock.isBehind) break;
      clock.turn();
    }
    assert.equal(failed(), 1_000);
    assert.ok(requests.every(({ results }) => results.length === 1));
    assert.equal(exchange.pending, 0);
    assert.equal(exchange.openSockets, usable ? 1 : 0);
  });

test("a query that is answered, abandoned or sent after a failure is not notified of it", () => {
  const { clock, exchange, listener, requests, fail } = waiting(20);
  fail(true);
  const [answered, abandoned] = requests.slice(-2);
  assert.ok(answered !== undefined && abandoned !== undefined);
  const reply = replyWith(answered, answered.id);
  listener.received(reply, reply.length);
  // Its object is reused for another query, in the same socket.
  abandoned.carrier?.letGo(abandoned);
  exchange.send(abandoned, 2_000);
  while (clock.isBehind) clock.turn();
  assert.deepEqual(
    requests.map(({ results }) => results[0]?.kind),
    [...Array.from({ length: 18 }, () => "failed"), "answered", undefined],
  );
  assert.equal(exchange.pending, 1);
});

test("a second failure of a socket also fails the queries sent after the first", () => {
  const { clock, exchange, requests, fail } = waiting(20);
  fail(true);
  const late = new TestRequest();
  exchange.send(late, 2_000);
  fail(true);
  while (clock.isBehind) clock.turn();
  assert.equal(late.results[0]?.kind, "failed");
  assert.ok(requests.every(({ results }) => results.length === 1));
  assert.equal(exchange.pending, 0);
});

test("closing an exchange notifies the remaining queries at once", () => {
  const { clock, exchange, requests, fail } = waiting(20);
  fail(true);
  exchange.close();
  assert.ok(requests.every(({ results }) => results.length === 1));
  clock.turn();
  assert.ok(requests.every(({ results }) => results.length === 1));
});
