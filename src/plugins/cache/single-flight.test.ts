import assert from "node:assert/strict";
import { test } from "node:test";
import { Flag, Name, Rcode, RecordType } from "../../dns/index.ts";
import { DROPPED, type Next, type Outcome, type Query } from "../../plugin/index.ts";
import { Answer, makeTestQuery, PluginTest, type QuestionOptions, records } from "../../plugin/testing.ts";
import { makeCache } from "./fixtures/make-cache.ts";
import cache from "./index.ts";

const A = "www.example.org. 300 IN A 192.0.2.1";
const ANSWER = { answer: records(A), recursionAvailable: true };

/** A cache before an upstream that answers when the test says so. */
class Scene {
  readonly running: PluginTest<unknown>;
  readonly waiting: { readonly query: Query; readonly resolve: (outcome: Outcome) => void }[] = [];
  readonly next: Next;

  constructor(text = "cache") {
    this.running = PluginTest.of(cache, text);
    this.next = (query) => new Promise((resolve) => this.waiting.push({ query, resolve }));
  }

  ask(question: Partial<QuestionOptions> = {}, deadline = Infinity): Promise<Outcome> {
    const query = this.running.query({ name: "www.example.org.", ...question });
    query.deadline = deadline;
    return Promise.resolve(this.running.chain(this.next)(query));
  }

  /** Answers the upstream query with this index. */
  answer(index: number, answer: (query: Query) => Outcome = (query) => query.reply(ANSWER)): void {
    const { query, resolve } = this.waiting[index] ?? assert.fail(`no question ${index}`);
    resolve(answer(query));
  }

  get misses(): number {
    const labels = ["server", "zones", "view"];
    return this.running.metrics
      .counter({ name: "coredns_cache_misses_total", help: "-", labels })
      .slot("dns://:53", ".", "").value;
  }
}

test("identical questions in flight go upstream once, and each query has a reply of its own", async () => {
  const scene = new Scene();
  const asking = [
    scene.ask({ id: 1 }),
    scene.ask({ id: 2, name: "WWW.example.ORG." }),
    scene.ask({ id: 3, client: "192.0.2.9" }),
  ];
  assert.equal(scene.waiting.length, 1);
  assert.equal(scene.misses, 3);
  scene.answer(0);
  const replies = (await Promise.all(asking)).map(replyOf);
  assert.equal(new Set(replies).size, 3);
  assert.deepEqual(
    replies.map((reply) => reply.query.root.id),
    [1, 2, 3],
  );
  for (const reply of replies) {
    assert.equal(reply.uniformTtl, 300);
    assert.equal(reply.flags, Flag.RA);
    assert.equal(reply.answer.length, 1);
  }
  await scene.ask();
  assert.equal(scene.waiting.length, 1);
});

test("changes that a plugin makes to one reply do not affect the others", async () => {
  const scene = new Scene();
  const first = scene.ask().then((outcome) => {
    const reply = replyOf(outcome);
    reply.replaceRecords({ answer: [] });
    reply.rcode = Rcode.REFUSED;
    reply.setFlag(Flag.RA, false);
  });
  const second = scene.ask();
  scene.answer(0);
  await first;
  const reply = replyOf(await second);
  assert.deepEqual(new Answer(reply).answer, [A]);
  assert.equal(reply.rcode, Rcode.NOERROR);
  assert.equal(reply.flags, Flag.RA);
});

test("each waiting client gets AD only if it asked for it", async () => {
  const scene = new Scene();
  const asking = [scene.ask(), scene.ask({ flags: Flag.RD | Flag.AD }), scene.ask()];
  scene.answer(0, (query) => query.reply({ ...ANSWER, authenticData: true }));
  const replies = (await Promise.all(asking)).map(replyOf);
  assert.deepEqual(
    replies.map((reply) => (reply.flags & Flag.AD) !== 0),
    [false, true, false],
  );
});

test("different questions are sent upstream separately", () => {
  const scene = new Scene();
  for (const question of [
    {},
    { name: "mail.example.org." },
    { type: "AAAA" },
    { class: 3 },
    { flags: Flag.CD },
    { edns: { dnssecOk: true } },
  ])
    void scene.ask(question);
  assert.equal(scene.waiting.length, 6);
});

test("a reply that is not cacheable is still shared", async () => {
  const scene = new Scene();
  const asking = [scene.ask(), scene.ask()];
  scene.answer(0, (query) => query.reply({ rcode: Rcode.REFUSED }));
  for (const outcome of await Promise.all(asking)) assert.equal(replyOf(outcome).rcode, Rcode.REFUSED);
  assert.equal(scene.waiting.length, 1);
  void scene.ask();
  assert.equal(scene.waiting.length, 2);
});

test("where success is not cached each query has an answer of its own", () => {
  const scene = new Scene("cache {\n disable success example.org\n}");
  void scene.ask();
  void scene.ask();
  assert.equal(scene.waiting.length, 2);
  void scene.ask({ name: "www.example.net." });
  void scene.ask({ name: "www.example.net." });
  assert.equal(scene.waiting.length, 3);
});

test("a failure reaches all waiting queries", async () => {
  const scene = new Scene();
  const asking = [scene.ask(), scene.ask(), scene.ask()];
  const error = new Error("no upstream");
  scene.answer(0, (query) => query.fail(Rcode.REFUSED, error));
  const outcomes = await Promise.all(asking);
  assert.equal(new Set(outcomes).size, 3);
  for (const outcome of outcomes) {
    assert.ok(outcome.kind === "failed");
    assert.equal(outcome.rcode, Rcode.REFUSED);
    assert.equal(outcome.error, error);
  }
  assert.equal(scene.waiting.length, 1);
});

test("a query that was dropped does not affect the others, which are sent themselves", async () => {
  const scene = new Scene();
  const asking = [scene.ask(), scene.ask(), scene.ask()];
  scene.answer(0, () => DROPPED);
  await turn();
  assert.equal(scene.waiting.length, 3);
  scene.answer(1);
  scene.answer(2, () => DROPPED);
  assert.deepEqual(
    (await Promise.all(asking)).map(({ kind }) => kind),
    ["dropped", "reply", "dropped"],
  );
});

test("a reply to another question is not shared", async () => {
  const scene = new Scene();
  const asking = [scene.ask(), scene.ask()];
  const other = makeTestQuery({ name: "a-much-longer-name.example.org." });
  scene.answer(0, () =>
    other.reply({ answer: records("a-much-longer-name.example.org. 300 IN A 192.0.2.9") }),
  );
  await turn();
  scene.answer(1);
  const [first, second] = (await Promise.all(asking)).map(replyOf);
  assert.equal(first?.query, other);
  assert.deepEqual(second && new Answer(second).answer, [A]);
});

test("no query waits beyond its own deadline", async () => {
  const scene = new Scene();
  const patient = scene.ask();
  const hurried = scene.ask({}, 2000);
  let settled = false;
  const watched = hurried.then((outcome) => {
    settled = true;
    return outcome;
  });
  await scene.running.clock.settle(1999);
  assert.equal(settled, false);
  await scene.running.clock.settle(1);
  const outcome = await watched;
  assert.ok(outcome.kind === "failed");
  assert.equal(outcome.rcode, Rcode.SERVFAIL);
  assert.match(
    outcome.error?.message ?? "",
    /deadline exceeded while waiting for an identical query for www.example.org/,
  );
  scene.answer(0);
  assert.equal((await patient).kind, "reply");
  assert.equal(scene.running.clock.pendingTimers, 0);
});

test("when the first client runs out of time, a query with more time is sent again for all", async () => {
  const scene = new Scene();
  const asking = [scene.ask({}, 1000), scene.ask({}, 3000), scene.ask()];
  await scene.running.clock.settle(1000);
  scene.answer(0, (query) => query.fail());
  await turn();
  assert.equal(scene.waiting.length, 2);
  await scene.running.clock.settle(2500);
  scene.answer(1, (query) => query.fail());
  assert.deepEqual(
    (await Promise.all(asking)).map(({ kind }) => kind),
    ["failed", "failed", "failed"],
  );
  assert.equal(scene.waiting.length, 2);
  assert.equal(scene.running.clock.pendingTimers, 0);
});

test("a client with a larger UDP size does not wait for an answer truncated for another", async () => {
  const scene = new Scene();
  const small = scene.ask();
  const large = scene.ask({ edns: { udpSize: 4096 } });
  const stream = scene.ask({ transport: "tcp" });
  const joined = scene.ask({ edns: { udpSize: 1232 } });
  assert.equal(scene.waiting.length, 3);
  scene.answer(2);
  assert.equal(replyOf(await joined).truncated, false);
  scene.answer(0, (query) => query.reply({ truncated: true }));
  scene.answer(1);
  const replies = (await Promise.all([small, large, stream])).map(replyOf);
  assert.deepEqual(
    replies.map(({ truncated }) => truncated),
    [true, false, false],
  );
});

test("an internal lookup never waits for the question that it serves", async () => {
  const scene = new Scene();
  const alias = Name.parse("www.example.org.");
  let lookups = 0;
  const chain = scene.running.chain(async (query) => {
    // An alias that leads to itself.
    lookups++;
    const outcome = await query.lookup(alias, RecordType.A);
    return outcome.kind === "reply" ? query.reply(ANSWER) : query.fail();
  });
  const query = makeTestQuery({ name: "www.example.org." }, 0, chain);
  const outcome = await chain(query);
  assert.equal(outcome.kind, "failed");
  assert.equal(lookups, 9);
});

test("two questions that depend on each other do not deadlock", async () => {
  const scene = new Scene();
  const chain = scene.running.chain(async (query) => {
    if (query.depth > 1) return query.reply(ANSWER);
    await turn();
    const other = String(query.name) === "a." ? "b." : "a.";
    const outcome = await query.lookup(Name.parse(other), RecordType.A);
    return outcome.kind === "reply" ? query.reply(ANSWER) : query.fail();
  });
  const outcomes = await Promise.all(
    ["a.", "b."].map((name) => Promise.resolve(chain(makeTestQuery({ name }, 0, chain)))),
  );
  assert.deepEqual(
    outcomes.map(({ kind }) => kind),
    ["reply", "reply"],
  );
});

test("the probe of loop comes round each time", () => {
  const scene = new Scene();
  for (let round = 0; round < 3; round++) void scene.ask({ name: "1.2.example.org.", type: "HINFO" });
  assert.equal(scene.waiting.length, 3);
});

test("a waiting query does not depend on the buffer that it arrived in", async () => {
  const scene = new Scene();
  const leader = scene.ask();
  const query = scene.running.query({ name: "www.example.org." });
  const received = query.bytes;
  const outcome = scene.running.chain(scene.next)(query);
  received.fill(0xff);
  scene.answer(0, () => DROPPED);
  await leader;
  await turn();
  assert.equal(scene.waiting[1]?.query.name.toString(), "www.example.org.");
  scene.answer(1);
  assert.deepEqual(new Answer(replyOf(await outcome)).answer, [A]);
});

test("ten thousand queries wait for one answer, and further ones are sent themselves", async () => {
  const scene = new Scene();
  const asking = Array.from({ length: 10_002 }, (_, id) => scene.ask({ id }));
  assert.equal(scene.waiting.length, 2);
  scene.answer(1);
  scene.answer(0);
  for (const outcome of await Promise.all(asking)) assert.equal(outcome.kind, "reply");
  void scene.ask({ type: "AAAA" });
  void scene.ask({ type: "AAAA" });
  assert.equal(scene.waiting.length, 3);
});

for (const others of [0, 1_000])
  test(`an answer in flight when its name was dropped with ${others} others is served but not cached`, async () => {
    const { running, handler } = makeCache("cache");
    const waiting: (() => void)[] = [];
    const next: Next = (query) =>
      new Promise((resolve) =>
        waiting.push(() => resolve(query.reply({ answer: records(`${query.name} 300 IN A 192.0.2.1`) }))),
      );
    const ask = (name: string): Outcome | Promise<Outcome> => handler.handle(running.query({ name }), next);
    const asking = [ask("a.b.example."), ask("b.example."), ask("xb.example.")];
    assert.equal(handler.drop([Name.parse("B.example."), ...numbered(others)]), 0);
    asking.push(ask("b.example."));
    assert.equal(waiting.length, 4, "no query joins an outdated flight");
    for (const answer of waiting) answer();
    for (const outcome of asking) assert.equal((await outcome).kind, "reply");
    assert.equal(handler.store.success.size, 2);
    assert.equal(handler.drop([Name.parse("b.example.")]), 1);
    assert.ok(!(ask("xb.example.") instanceof Promise));
    assert.ok(ask("b.example.") instanceof Promise);
  });

test("an outdated flight for a larger size does not keep smaller queries from sharing", () => {
  const { running, handler } = makeCache("cache");
  let asked = 0;
  const next: Next = () => {
    asked++;
    return new Promise<Outcome>(() => undefined);
  };
  const ask = (transport: "udp" | "tcp") =>
    void handler.handle(running.query({ name: "b.example.", transport }), next);
  ask("tcp");
  handler.drop([Name.parse("example.")]);
  ask("udp");
  assert.equal(asked, 2);
  ask("udp");
  assert.equal(asked, 2);
});

function numbered(count: number): Name[] {
  return Array.from({ length: count }, (_, number) => Name.parse(`n${number}.example.`));
}

function replyOf(outcome: Outcome): Extract<Outcome, { kind: "reply" }> {
  assert.ok(outcome.kind === "reply");
  return outcome;
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
