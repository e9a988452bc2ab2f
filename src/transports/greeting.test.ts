/** Datagrams with and without greetings on their way to the receiver. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Greeting, GreetingError } from "../plugin/contract/greeting.ts";
import { FixedEndpoint } from "../plugin/message/endpoint.ts";
import { greetedReceiver } from "./greeting.ts";
import type { MessageReceiver, ReplyPort } from "./transport.ts";

const endpoint = new FixedEndpoint("192.0.2.1", 4242, Uint8Array.of(192, 0, 2, 1));

class Port implements ReplyPort {
  readonly client = endpoint;
  readonly local = endpoint;
  dropped = 0;

  keep(): ReplyPort {
    return this;
  }

  buffer(size: number): Uint8Array {
    return new Uint8Array(size);
  }

  send(): void {
    assert.fail("no answer is expected here");
  }

  drop(): void {
    this.dropped++;
  }
}

/** A greeting is one octet: 1. */
const GREETING: Greeting = {
  readStream: () => assert.fail("no stream"),
  readDatagram([first]) {
    if (first !== 1) throw new GreetingError("not greeted");
    return { length: 1 };
  },
};

function prepare() {
  const told: [length: number, together: boolean | undefined][] = [];
  const receiver: MessageReceiver = {
    receive: (_, length, __, together) => void told.push([length, together]),
    repeat: () => 7,
  };
  const state: { greeting: Greeting | undefined } = { greeting: GREETING };
  let refused = 0;
  const greeted = greetedReceiver(
    receiver,
    () => state.greeting,
    () => refused++,
  );
  const port = new Port();
  const give = (first: number, together: boolean): void =>
    greeted.receive(Uint8Array.of(first, 2, 3), 3, port, together);
  return { told, greeted, state, give, port, refused: () => refused };
}

test("the first datagram with a greeting in a batch has its time noted", () => {
  const { told, give, port, refused } = prepare();
  give(9, false);
  give(9, true);
  give(1, true);
  give(1, true);
  give(9, true);
  give(1, true);
  give(1, false);
  assert.deepEqual(told, [
    [2, false],
    [2, true],
    [2, true],
    [2, false],
  ]);
  assert.deepEqual([refused(), port.dropped], [3, 3]);
});

test("answers are repeated without a port while no greeting is expected", () => {
  const { told, greeted, state, give } = prepare();
  const repeat = (): number | undefined =>
    greeted.repeat?.(new Int32Array(4), 0, 12, 4, false, new Int32Array(4), 1);
  assert.equal(repeat(), undefined);
  state.greeting = undefined;
  assert.equal(repeat(), 7);
  give(9, true);
  assert.deepEqual(told, [[3, true]]);
  state.greeting = GREETING;
  assert.equal(repeat(), undefined);
});
