import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { FeedHub, type FeedSink, ReceivingFeeds } from "./feed.ts";

function collector(): {
  readonly sink: FeedSink;
  readonly received: unknown[];
} {
  const received: unknown[] = [];
  return {
    received,
    sink: {
      send: (messages) => void received.push(...messages.map(([, message]) => message)),
      taken: async () => void received.push("taken"),
    },
  };
}

const askNothing = () => Promise.reject(new Error("no answerer"));

describe("the hub", () => {
  test("sends what is published to all who are attached, in order", async () => {
    const hub = new FeedHub();
    const feed = hub.feed("0/told/0");
    feed.publish("before the first listener");
    const [one, other] = [collector(), collector()];
    await hub.attach(one, one.sink);
    feed.publish(1);
    feed.publish(2);
    await hub.attach(other, other.sink);
    feed.publish(3);
    await nextTurn();
    assert.deepEqual(one.received, [1, 2, 3]);
    assert.deepEqual(other.received, [3]);
    hub.detach(one);
    feed.publish(4);
    await nextTurn();
    assert.deepEqual([one.received.length, other.received.at(-1)], [3, 4]);
    hub.close();
    feed.publish(5);
    await nextTurn();
    assert.equal(other.received.at(-1), 4);
  });

  test("says when all who serve have taken what was published", async () => {
    const hub = new FeedHub();
    const feed = hub.feed("0/told/0");
    await feed.taken();
    const [one, fresh] = [collector(), collector()];
    await hub.attach(one, one.sink);
    feed.provide(() => ["snapshot", undefined]);
    const attached = hub.attach(fresh, fresh.sink);
    feed.publish("told");
    await feed.taken();
    assert.deepEqual(one.received, ["told", "taken"]);
    assert.ok(!fresh.received.includes("taken"));
    await attached;
    await feed.taken();
    assert.deepEqual(fresh.received, ["snapshot", "told", "taken"]);
  });

  test("sends the snapshot first, in portions, and behind it what was published meanwhile", async () => {
    const hub = new FeedHub();
    const feed = hub.feed("0/told/0");
    feed.provide(function* () {
      for (let at = 0; at < 2500; at++) yield at;
    });
    const { sink, received } = collector();
    const attached = hub.attach(received, sink);
    feed.publish("meanwhile");
    await nextTurn();
    feed.publish("later");
    await attached;
    await nextTurn();
    assert.deepEqual(received, [...Array(2500).keys(), "meanwhile", "later"]);
  });

  test("has the event loop take its turn where a snapshot says so", async () => {
    const hub = new FeedHub();
    const turns: number[] = [];
    let turn = 0;
    hub.feed("k").provide(function* () {
      for (let at = 0; at < 6; at++) {
        turns.push(turn);
        yield at % 2 === 0 ? undefined : at;
      }
    });
    const { sink, received } = collector();
    const attached = hub.attach(received, sink);
    for (; turn < 10; turn++) await nextTurn();
    await attached;
    assert.deepEqual(received, [1, 3, 5]);
    assert.ok(new Set(turns).size >= 3, `${turns}`);
  });

  test("stops a snapshot for a detached follower", async () => {
    const hub = new FeedHub();
    hub.feed("k").provide(() => Array(5000).keys());
    const { sink, received } = collector();
    const attached = hub.attach(received, sink);
    hub.detach(received);
    await attached;
    assert.ok(received.length > 0 && received.length <= 100, `${received.length} messages in one turn`);
  });
});

test("each channel delivers to its own listener, and a message without a listener is dropped", () => {
  const feeds = new ReceivingFeeds(askNothing);
  const heard: unknown[] = [];
  feeds.feed("a").receive((message) => void heard.push(["a", message]));
  feeds.feed("b").receive((message) => void heard.push(["b", message]));
  feeds.feed("c").publish("a follower has nothing to say");
  feeds.deliver([
    ["b", 1],
    ["c", 2],
    ["a", 3],
  ]);
  assert.deepEqual(heard, [
    ["b", 1],
    ["a", 3],
  ]);
});

test("a slow listener is waited for on request", async () => {
  const feeds = new ReceivingFeeds(askNothing);
  const { promise, resolve } = Promise.withResolvers<void>();
  feeds.feed("slow").receive(() => promise);
  feeds.feed("quick").receive(() => undefined);
  feeds.deliver([["quick", 1]]);
  await feeds.acted();
  feeds.deliver([["slow", 1]]);
  let hasActed = false;
  const acted = feeds.acted().then(() => {
    hasActed = true;
  });
  await nextTurn();
  assert.equal(hasActed, false);
  resolve();
  await acted;
});
