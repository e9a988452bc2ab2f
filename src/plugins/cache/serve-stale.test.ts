import assert from "node:assert/strict";
import { test } from "node:test";
import { Flag, Rcode } from "../../dns/index.ts";
import { DROPPED, type Next, type Outcome, type Query, type ReplyContent } from "../../plugin/index.ts";
import { Answer, PluginTest, records } from "../../plugin/testing.ts";
import cache from "./index.ts";

const SOA = "example.org. 300 IN SOA ns.example.org. admin.example.org. 1 7200 900 1209600 86400";
const OLD: ReplyContent = { answer: records("www.example.org. 10 IN A 192.0.2.1") };
const NEW: ReplyContent = { answer: records("www.example.org. 10 IN A 192.0.2.2") };
const NXDOMAIN: ReplyContent = { rcode: Rcode.NXDOMAIN, authority: records(SOA) };
const EMPTY: ReplyContent = {};
const SERVFAIL: ReplyContent = { rcode: Rcode.SERVFAIL };

type Behaviour = ReplyContent | "fail" | "drop";

/** A cache before an upstream whose behaviour can be changed, including its delay. */
class Scene {
  readonly running: PluginTest<unknown>;
  readonly asked: Query[] = [];
  behaviour: Behaviour = OLD;
  /** Delay of the upstream in seconds. */
  delay = 0;
  readonly #next: Next;

  constructor(options: string) {
    this.running = PluginTest.of(cache, `cache {\n${options}\n}`);
    this.#next = (query) => {
      this.asked.push(query);
      const outcome = (): Outcome =>
        this.behaviour === "fail"
          ? query.fail()
          : this.behaviour === "drop"
            ? DROPPED
            : query.reply(this.behaviour);
      if (this.delay === 0) return outcome();
      return new Promise((resolve) => {
        this.running.clock.after(this.delay * 1000, () => resolve(outcome()));
      });
    };
  }

  outcome(): Outcome | Promise<Outcome> {
    return this.running.outcome({ name: "www.example.org.", next: this.#next });
  }

  /** "TTL address", or the rcode's number for an answer without records. */
  async ask(): Promise<string> {
    return describe(await this.outcome());
  }

  wait(seconds: number): Promise<void> {
    return this.running.clock.settle(seconds * 1000);
  }

  count(name: string): number {
    const labels = ["server", "zones", "view"];
    return this.running.metrics
      .counter({ name: `coredns_cache_${name}`, help: "-", labels })
      .slot("dns://:53", ".", "").value;
  }
}

function describe(outcome: Outcome): string {
  if (outcome.kind !== "reply") return outcome.kind;
  const [record] = new Answer(outcome).answer;
  return record?.replace(/^\S+ (\d+) IN A /, "$1 ") ?? `rcode ${outcome.rcode}`;
}

test("without serve_stale an expired answer is not served", async () => {
  const scene = new Scene("");
  assert.equal(await scene.ask(), "10 192.0.2.1");
  scene.behaviour = "fail";
  await scene.wait(10);
  assert.equal(await scene.ask(), "failed");
});

test("immediate gives an expired answer with TTL 0 and refreshes it in the background", async () => {
  const scene = new Scene("serve_stale 1h");
  await scene.ask();
  scene.behaviour = NEW;
  await scene.wait(100);
  assert.equal(await scene.ask(), "0 192.0.2.1");
  assert.equal(scene.asked.length, 2);
  assert.equal(await scene.ask(), "10 192.0.2.2");
  assert.equal(scene.count("served_stale_total"), 1);
  assert.equal(scene.count("prefetch_total"), 1);
  assert.equal(scene.count("misses_total"), 1);
});

test("no answer is served after the window of serve_stale", async () => {
  const scene = new Scene("serve_stale 1m");
  await scene.ask();
  scene.behaviour = "fail";
  await scene.wait(69.999);
  assert.equal(await scene.ask(), "0 192.0.2.1");
  await scene.wait(0.001);
  assert.equal(await scene.ask(), "failed");
});

test("expired answers show RESPONSE_TTL, also with keepttl", async () => {
  for (const options of ["serve_stale 1h immediate 30s", "serve_stale 1h immediate 30\nkeepttl"]) {
    const scene = new Scene(options);
    await scene.ask();
    scene.behaviour = "fail";
    await scene.wait(11);
    assert.equal(await scene.ask(), "30 192.0.2.1");
  }
});

test("an expired denial is served as well, an expired SERVFAIL is not", async () => {
  const scene = new Scene("serve_stale 1h");
  scene.behaviour = NXDOMAIN;
  await scene.ask();
  scene.behaviour = "fail";
  await scene.wait(301);
  assert.equal(await scene.ask(), "rcode 3");
  const failing = new Scene("serve_stale 1h");
  failing.behaviour = SERVFAIL;
  await failing.ask();
  failing.behaviour = NEW;
  await failing.wait(6);
  assert.equal(await failing.ask(), "10 192.0.2.2");
});

test("one background refresh at a time for each answer", async () => {
  const scene = new Scene("serve_stale 1h");
  await scene.ask();
  await scene.wait(11);
  scene.behaviour = NEW;
  scene.delay = 2;
  assert.deepEqual(await Promise.all([scene.ask(), scene.ask(), scene.ask()]), [
    "0 192.0.2.1",
    "0 192.0.2.1",
    "0 192.0.2.1",
  ]);
  assert.equal(scene.asked.length, 2);
  await scene.wait(2);
  assert.equal(await scene.ask(), "10 192.0.2.2");
  assert.equal(scene.asked.length, 2);
});

for (const behaviour of ["fail", "drop", SERVFAIL, { rcode: Rcode.REFUSED }] as const) {
  test(`a background refresh that brings ${JSON.stringify(behaviour)} leaves the answer as it was`, async () => {
    const scene = new Scene("serve_stale 1h");
    await scene.ask();
    scene.behaviour = behaviour;
    await scene.wait(11);
    for (const count of [2, 3, 4]) {
      assert.equal(await scene.ask(), "0 192.0.2.1");
      assert.equal(scene.asked.length, count);
    }
    scene.behaviour = NEW;
    assert.equal(await scene.ask(), "0 192.0.2.1");
    assert.equal(await scene.ask(), "10 192.0.2.2");
  });
}

test("a background refresh with NXDOMAIN replaces the answer", async () => {
  const scene = new Scene("serve_stale 1h");
  await scene.ask();
  scene.behaviour = NXDOMAIN;
  await scene.wait(11);
  assert.equal(await scene.ask(), "0 192.0.2.1");
  assert.equal(await scene.ask(), "rcode 3");
});

test("FAILURE_RECHECK lets the upstream rest after a failed refresh", async () => {
  for (const [mode, shown] of [
    ["immediate 0s 30s", "0 192.0.2.1"],
    ["verify 0s 0s 30s", "0 192.0.2.1"],
  ] as const) {
    const scene = new Scene(`serve_stale 1h ${mode}`);
    await scene.ask();
    scene.behaviour = "fail";
    await scene.wait(11);
    assert.equal(await scene.ask(), shown);
    assert.equal(scene.asked.length, 2);
    await scene.wait(29.999);
    assert.equal(await scene.ask(), shown);
    assert.equal(scene.asked.length, 2);
    await scene.wait(0.001);
    assert.equal(await scene.ask(), shown);
    assert.equal(scene.asked.length, 3);
  }
});

test("a background refresh uses a stream, without a client's options, and repeats the question", async () => {
  const scene = new Scene("serve_stale 1h");
  await scene.ask();
  await scene.wait(11);
  const query = scene.running.query({ name: "WWW.example.org.", edns: { udpSize: 1300 } });
  query.view = "inside";
  query.metadata = new Map([["plugin/label", "of the client"]]);
  query.deadline = scene.running.clock.now() + 1;
  const { bytes } = query;
  const seen: Query[] = [];
  const outcome = await scene.running.chain((asked) => {
    seen.push(asked);
    return asked.reply(NEW);
  })(query);
  assert.equal(describe(outcome), "0 192.0.2.1");
  // The transport reuses its buffer.
  bytes.fill(0xff);
  const [asked] = seen;
  assert.ok(asked !== undefined);
  assert.equal(asked.root, asked);
  assert.equal(asked.transport, "tcp");
  assert.equal(asked.overStream, true);
  assert.equal(asked.name.toString(), "WWW.example.org.");
  assert.equal(asked.flags, Flag.RD | Flag.AD);
  assert.equal(asked.udpSize, 1300);
  assert.equal(asked.view, "inside");
  assert.equal(asked.deadline, Infinity);
  assert.equal(asked.client.address, "192.0.2.1");
  assert.deepEqual(asked.metadata, new Map());
  assert.equal(asked.receivedAt, 11_000);
});

const VERIFIED: readonly (readonly [string, Behaviour, string, string])[] = [
  ["an answer", NEW, "10 192.0.2.2", "10 192.0.2.2"],
  ["NXDOMAIN", NXDOMAIN, "rcode 3", "rcode 3"],
  ["NODATA", { authority: records(SOA) }, "rcode 0", "rcode 0"],
  ["an empty NOERROR", EMPTY, "rcode 0", "rcode 0"],
  ["SERVFAIL", SERVFAIL, "0 192.0.2.1", "0 192.0.2.1"],
  ["REFUSED", { rcode: Rcode.REFUSED }, "0 192.0.2.1", "0 192.0.2.1"],
  ["a truncated reply", { ...NEW, truncated: true }, "0 192.0.2.1", "0 192.0.2.1"],
  ["NXDOMAIN with an answer", { ...NEW, rcode: Rcode.NXDOMAIN }, "0 192.0.2.1", "0 192.0.2.1"],
  ["nothing", "drop", "0 192.0.2.1", "0 192.0.2.1"],
  ["a failure", "fail", "0 192.0.2.1", "0 192.0.2.1"],
];

for (const [title, behaviour, first, second] of VERIFIED) {
  for (const delay of [0, 1]) {
    test(`verify asks first and gets ${title} after ${delay} s`, async () => {
      const scene = new Scene("serve_stale 1h verify");
      await scene.ask();
      await scene.wait(11);
      scene.behaviour = behaviour;
      scene.delay = delay;
      for (const expected of [first, second]) {
        const asking = scene.ask();
        await scene.wait(delay);
        assert.equal(await asking, expected);
      }
      assert.equal(scene.asked.length, first === "0 192.0.2.1" ? 3 : 2);
      assert.equal(scene.count("served_stale_total"), first === "0 192.0.2.1" ? 2 : 0);
    });
  }
}

test("VERIFY_TIMEOUT ends the wait, and a late answer is cached", async () => {
  const scene = new Scene("serve_stale 1h verify 1800ms 7s");
  await scene.ask();
  await scene.wait(11);
  scene.behaviour = NEW;
  scene.delay = 3;
  let shown = "";
  const asking = scene.ask().then((text) => {
    shown = text;
  });
  await scene.wait(1.799);
  assert.equal(shown, "");
  await scene.wait(0.001);
  assert.equal(shown, "7 192.0.2.1");
  await asking;
  await scene.wait(1.2);
  assert.equal(await scene.ask(), "10 192.0.2.2");
  assert.equal(scene.asked.length, 2);
  assert.equal(scene.running.clock.pendingTimers, 0);
});

test("a failure that comes after VERIFY_TIMEOUT counts for FAILURE_RECHECK", async () => {
  const scene = new Scene("serve_stale 1h verify 1s 0s 30s");
  await scene.ask();
  await scene.wait(11);
  scene.behaviour = "fail";
  scene.delay = 2;
  const asking = scene.ask();
  await scene.wait(2);
  assert.equal(await asking, "0 192.0.2.1");
  assert.equal(await scene.ask(), "0 192.0.2.1");
  assert.equal(scene.asked.length, 2);
});

test("an answer in time stops the timer of VERIFY_TIMEOUT", async () => {
  const scene = new Scene("serve_stale 1h verify 5s");
  await scene.ask();
  await scene.wait(11);
  scene.behaviour = NEW;
  scene.delay = 1;
  const asking = scene.ask();
  await scene.wait(1);
  assert.equal(await asking, "10 192.0.2.2");
  assert.equal(scene.running.clock.pendingTimers, 0);
});

test("equal questions verify an expired answer together", async () => {
  const scene = new Scene("serve_stale 1h verify 5s");
  await scene.ask();
  await scene.wait(11);
  scene.behaviour = NEW;
  scene.delay = 1;
  const asking = Promise.all([scene.ask(), scene.ask(), scene.ask()]);
  await scene.wait(1);
  assert.deepEqual(await asking, ["10 192.0.2.2", "10 192.0.2.2", "10 192.0.2.2"]);
  assert.equal(scene.asked.length, 2);
  scene.behaviour = "fail";
  await scene.wait(10);
  const again = Promise.all([scene.ask(), scene.ask()]);
  await scene.wait(1);
  assert.deepEqual(await again, ["0 192.0.2.2", "0 192.0.2.2"]);
  assert.equal(scene.asked.length, 3);
  assert.equal(scene.running.clock.pendingTimers, 0);
});

test("a cached SERVFAIL yields to a cached answer", async () => {
  const scene = new Scene("serve_stale 1h");
  scene.behaviour = SERVFAIL;
  scene.delay = 2;
  const slow = scene.ask();
  const small = scene.running.outcome({
    name: "www.example.org.",
    edns: { udpSize: 4096 },
    next: (query) => query.reply(OLD),
  });
  assert.equal(describe(await small), "10 192.0.2.1");
  await scene.wait(2);
  assert.equal(await slow, "rcode 2");
  assert.equal(await scene.ask(), "8 192.0.2.1");
});

for (const [title, behaviour] of [
  ["NXDOMAIN", NXDOMAIN],
  ["NODATA", { authority: records(SOA) }],
  ["an empty NOERROR", EMPTY],
] as const) {
  for (const mode of ["immediate", "verify"]) {
    test(`prefer_positive does not give up an expired answer for ${title} (${mode})`, async () => {
      const scene = new Scene(`serve_stale 1h ${mode}\nserve_stale_policy prefer_positive`);
      await scene.ask();
      scene.behaviour = behaviour;
      await scene.wait(11);
      assert.equal(await scene.ask(), "0 192.0.2.1");
      assert.equal(await scene.ask(), "0 192.0.2.1");
      assert.equal(scene.asked.length, 3);
      scene.behaviour = NEW;
      await scene.ask();
      assert.equal(await scene.ask(), "10 192.0.2.2");
    });
  }
}

test("prefer_positive keeps an answer that a slower denial would have replaced", async () => {
  const scene = new Scene("serve_stale 1h\nserve_stale_policy prefer_positive");
  scene.behaviour = NXDOMAIN;
  scene.delay = 2;
  const slow = scene.ask();
  const quick = scene.running.outcome({
    name: "www.example.org.",
    edns: { udpSize: 4096 },
    next: (query) => query.reply(OLD),
  });
  assert.equal(describe(await quick), "10 192.0.2.1");
  await scene.wait(2);
  assert.equal(await slow, "rcode 3");
  assert.equal(await scene.ask(), "8 192.0.2.1");
});

test("prefer_positive gives a denial when there is no answer, and lets an answer replace it", async () => {
  const scene = new Scene("serve_stale 1h verify\nserve_stale_policy prefer_positive");
  scene.behaviour = NXDOMAIN;
  assert.equal(await scene.ask(), "rcode 3");
  assert.equal(await scene.ask(), "rcode 3");
  assert.equal(scene.asked.length, 1);
  scene.behaviour = NEW;
  await scene.wait(301);
  assert.equal(await scene.ask(), "10 192.0.2.2");
});

test("after stop a refresh in flight changes nothing", async () => {
  const scene = new Scene("serve_stale 1h verify 10s");
  await scene.ask();
  await scene.wait(11);
  scene.behaviour = NEW;
  scene.delay = 3;
  const asking = scene.ask();
  await scene.running.stop();
  assert.equal(scene.running.clock.pendingTimers, 1, "the upstream's own");
  await scene.wait(3);
  assert.equal(await asking, "10 192.0.2.2");
  assert.equal(scene.running.clock.pendingTimers, 0);
});
