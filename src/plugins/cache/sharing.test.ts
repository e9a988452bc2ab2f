/** Queries share an answer only if their own answer could not differ. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type EdnsOption, Flag, Rcode } from "../../dns/index.ts";
import type { Next, Outcome, Query } from "../../plugin/index.ts";
import { PluginTest, type QuestionOptions, records } from "../../plugin/testing.ts";
import cache from "./index.ts";

const NAME = "www.example.org.";
const A = { answer: records(`${NAME} 300 IN A 192.0.2.1`) };

const COOKIE: EdnsOption = { code: 10, data: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) };
const PRIVATE: EdnsOption = { code: 65_001, data: Uint8Array.of(1) };

/** 192.0.2.0/24, with the scope of the reply. */
function subnet(scope: number): EdnsOption {
  return { code: 8, data: Uint8Array.of(0, 1, 24, scope, 192, 0, 2) };
}

function withOptions(...options: EdnsOption[]): { udpSize: number; options: EdnsOption[] } {
  return { udpSize: 1232, options };
}

class Scene {
  readonly running: PluginTest<unknown>;
  readonly waiting: { readonly query: Query; readonly resolve: (outcome: Outcome) => void }[] = [];
  readonly next: Next = (query) => new Promise((resolve) => this.waiting.push({ query, resolve }));

  constructor(options = "") {
    this.running = PluginTest.of(cache, `cache {\n${options}\n}`);
  }

  ask(question: Partial<QuestionOptions> = {}): Promise<Outcome> {
    return Promise.resolve(this.running.outcome({ name: NAME, ...question, next: this.next }));
  }

  answer(index: number, answer: (query: Query) => Outcome = (query) => query.reply(A)): void {
    const { query, resolve } = this.waiting[index] ?? assert.fail(`no question ${index}`);
    resolve(answer(query));
  }

  /** Sends a query, and answers it if it goes upstream. */
  async round(
    question: Partial<QuestionOptions>,
    answer?: (query: Query) => Outcome,
  ): Promise<"asked" | "kept"> {
    const before = this.waiting.length;
    const asking = this.ask(question);
    const asked = this.waiting.length > before;
    if (asked) this.answer(before, answer);
    await asking;
    return asked ? "asked" : "kept";
  }
}

test("an answer obtained without recursion does not serve a query with RD", async () => {
  const scene = new Scene();
  const referral = (query: Query) => query.reply({ authority: records("org. 300 IN NS ns.org.") });
  assert.equal(await scene.round({ flags: 0 }, referral), "asked");
  assert.equal(await scene.round({ flags: 0 }), "kept");
  assert.equal(await scene.round({ flags: Flag.RD }), "asked");
  assert.equal(await scene.round({ flags: Flag.RD }), "kept");
});

test("an answer obtained with recursion serves all queries until it expires", async () => {
  const scene = new Scene("serve_stale 1h\nprefetch 1 1m 90%");
  assert.equal(await scene.round({ flags: Flag.RD }), "asked");
  await scene.running.clock.settle(200_000);
  assert.equal(await scene.round({ flags: 0 }), "kept");
  assert.equal(scene.waiting.length, 1, "who does not desire recursion has nothing fetched with it");
  await scene.running.clock.settle(100_000);
  assert.equal(await scene.round({ flags: 0 }), "asked");
  assert.equal(scene.waiting[1]?.query.recursionDesired, false);
});

test("a query with RD does not wait for one without it, nor the other way round", () => {
  const scene = new Scene();
  void scene.ask({ flags: 0 });
  void scene.ask({ flags: Flag.RD });
  void scene.ask({ flags: 0 });
  void scene.ask({ flags: Flag.RD });
  assert.deepEqual(
    scene.waiting.map(({ query }) => query.recursionDesired),
    [false, true],
  );
});

test("flags that are not part of the key are not sent upstream", () => {
  const scene = new Scene();
  const { AA, TC, RA, RD, CD } = Flag;
  void scene.ask({ flags: AA | TC | RA | 0x40 | RD | CD });
  assert.equal(scene.waiting[0]?.query.flags, RD | CD | Flag.AD);
});

test("a query that names a client subnet waits for no other query, and no other query for it", () => {
  const scene = new Scene();
  void scene.ask({ edns: withOptions(subnet(0)) });
  void scene.ask({ edns: withOptions() });
  void scene.ask({ edns: withOptions(subnet(0)) });
  void scene.ask({ edns: withOptions(COOKIE) });
  assert.equal(scene.waiting.length, 3);
});

for (const [what, scope, kept] of [
  ["everybody", 0, true],
  ["a client subnet", 24, false],
] as const) {
  test(`an answer for ${what} is ${kept ? "" : "not "}cached`, async () => {
    const scene = new Scene();
    const answer = (query: Query): Outcome =>
      query.reply({
        ...A,
        edns: { udpSize: 1232, version: 0, dnssecOk: false, options: [subnet(scope)] },
      });
    assert.equal(await scene.round({ edns: withOptions(subnet(0)) }, answer), "asked");
    assert.equal(await scene.round({}), kept ? "kept" : "asked");
    assert.equal(await scene.round({ edns: withOptions(subnet(0)) }), "kept");
  });
}

for (const [what, rcode, leader, follower, asksAgain] of [
  ["FORMERR for an option that another has not", Rcode.FORMERR, [PRIVATE], [], true],
  ["BADCOOKIE for a cookie that another has not", Rcode.BADCOOKIE, [COOKIE], [], true],
  ["SERVFAIL for an option that another has not", Rcode.SERVFAIL, [PRIVATE], [COOKIE], true],
  ["REFUSED for the options that both have", Rcode.REFUSED, [COOKIE], [COOKIE], false],
  ["NXDOMAIN", Rcode.NXDOMAIN, [PRIVATE], [COOKIE], false],
] as const) {
  test(`${what} is ${asksAgain ? "not " : ""}shared`, async () => {
    const scene = new Scene();
    const first = scene.ask({ edns: withOptions(...leader) });
    const second = scene.ask({ edns: withOptions(...follower) });
    assert.equal(scene.waiting.length, 1);
    scene.answer(0, (query) => query.reply({ rcode }));
    const own = await first;
    assert.ok(own.kind === "reply" && own.rcode === rcode);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(scene.waiting.length, asksAgain ? 2 : 1);
    if (asksAgain) scene.answer(1);
    const shared = await second;
    assert.ok(shared.kind === "reply" && shared.rcode === (asksAgain ? Rcode.NOERROR : rcode));
  });
}

test("FORMERR to a query with OPT does not affect one without", async () => {
  const scene = new Scene();
  void scene.ask({ edns: withOptions() });
  const plain = scene.ask({});
  scene.answer(0, (query) => query.reply({ rcode: Rcode.FORMERR }));
  await new Promise((resolve) => setImmediate(resolve));
  scene.answer(1);
  assert.equal((await plain).kind, "reply");
});

for (const [option, kept] of [
  [PRIVATE, false],
  [subnet(0), false],
  [COOKIE, true],
] as const) {
  test(`SERVFAIL for a query with option ${option.code} is ${kept ? "" : "not "}cached for others`, async () => {
    const scene = new Scene();
    await scene.round({ edns: withOptions(option) }, (query) => query.reply({ rcode: Rcode.SERVFAIL }));
    assert.equal(await scene.round({}), kept ? "kept" : "asked");
  });
}
