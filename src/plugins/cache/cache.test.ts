import assert from "node:assert/strict";
import { test } from "node:test";
import { Flag, Opcode, Rcode } from "../../dns/index.ts";
import { DROPPED, type Next, type Outcome, type Query, type ReplyContent } from "../../plugin/index.ts";
import { answering, PluginTest, type QuestionOptions, records } from "../../plugin/testing.ts";
import cache from "./index.ts";

const SOA = "example.org. 300 IN SOA ns.example.org. admin.example.org. 1 7200 900 1209600 86400";
const A = "www.example.org. 300 IN A 192.0.2.1";

test("remaining TTLs count down in whole seconds until the upstream is queried again", async () => {
  const upstream = new Upstream({ answer: records(A.replace(" 300 ", " 10 ")) });
  const running = PluginTest.of(cache, "cache");
  const shown: number[] = [];
  for (const wait of [0, 999, 1, 5000, 3999, 1]) {
    running.clock.advance(wait);
    const { answer } = await running.ask({ name: "www.example.org.", next: upstream.next });
    shown.push(Number(answer[0]?.split(" ")[1]));
  }
  assert.deepEqual(shown, [10, 10, 9, 4, 1, 10]);
  assert.equal(upstream.asked.length, 2);
});

test("an answer younger than the query that finds it shows no more than its whole TTL", async () => {
  const running = PluginTest.of(cache, "cache");
  const chain = running.chain(answering({ answer: records(A) }));
  const early = running.query({ name: "www.example.org." });
  running.clock.advance(5000);
  await chain(running.query({ name: "www.example.org." }));
  const outcome = await chain(early);
  assert.equal(outcome.kind === "reply" && outcome.uniformTtl, 300);
});

test("a query derived by another plugin uses the clock, not the arrival time", async () => {
  const running = PluginTest.of(cache, "cache");
  const upstream = new Upstream({ answer: records(A) });
  const chain = running.chain(upstream.next);
  const early = running.query({ name: "www.example.org." });
  await chain(early);
  running.clock.advance(300_000);
  await chain(early.derive({}));
  assert.equal(upstream.asked.length, 2);
});

test("keepttl shows the TTL of the first reply until the end", async () => {
  const upstream = new Upstream({ answer: records(A.replace(" 300 ", " 10 ")) });
  const running = PluginTest.of(cache, "cache {\n keepttl\n}");
  await running.ask({ name: "www.example.org.", next: upstream.next });
  running.clock.advance(9999);
  const { answer } = await running.ask({ name: "www.example.org.", next: upstream.next });
  assert.deepEqual(answer, ["www.example.org. 10 IN A 192.0.2.1"]);
  running.clock.advance(1);
  await running.ask({ name: "www.example.org.", next: upstream.next });
  assert.equal(upstream.asked.length, 2);
});

test("the key is the name without regard to case, type, class, DO and CD", async () => {
  const upstream = new Upstream({ answer: records(A) });
  const running = PluginTest.of(cache, "cache");
  const ask = async (question: Partial<QuestionOptions>): Promise<number> => {
    await running.ask({ name: "www.example.org.", next: upstream.next, ...question });
    return upstream.asked.length;
  };
  assert.equal(await ask({}), 1);
  assert.equal(await ask({ name: "WWW.eXample.ORG." }), 1);
  assert.equal(await ask({ flags: Flag.AD, id: 9, client: "192.0.2.77", transport: "tcp" }), 1);
  assert.equal(await ask({ edns: { udpSize: 4096 } }), 1);
  assert.equal(await ask({ type: "AAAA" }), 2);
  assert.equal(await ask({ class: 3 }), 3);
  assert.equal(await ask({ edns: { dnssecOk: true } }), 4);
  assert.equal(await ask({ flags: Flag.RD | Flag.CD }), 5);
  assert.equal(await ask({ flags: Flag.CD, edns: { dnssecOk: true } }), 6);
  assert.equal(await ask({ name: "ww.example.org." }), 7);
  assert.equal(await ask({ name: "wwwx.example.org." }), 8);
  assert.equal(await ask({ flags: Flag.CD, edns: { dnssecOk: true }, name: "WWW.EXAMPLE.ORG." }), 8);
});

test("AA is always set, RA is kept, AD only for clients that set DO or AD", async () => {
  const upstream = new Upstream({ answer: records(A), recursionAvailable: true, authenticData: true });
  const running = PluginTest.of(cache, "cache");
  const flags = async (question: Partial<QuestionOptions>): Promise<number> =>
    (await running.ask({ name: "www.example.org.", next: upstream.next, ...question })).reply.flags;
  assert.equal(await flags({}), Flag.RA);
  assert.equal(await flags({}), Flag.AA | Flag.RA);
  assert.equal(await flags({ flags: Flag.AD }), Flag.AA | Flag.RA | Flag.AD);
  assert.equal(await flags({ edns: { dnssecOk: true } }), Flag.RA | Flag.AD);
  assert.equal(await flags({ edns: { dnssecOk: true } }), Flag.AA | Flag.RA | Flag.AD);
});

test("the rest of the chain sees AD set and everything else as the client sent it", async () => {
  const upstream = new Upstream({});
  const running = PluginTest.of(cache, "cache");
  const options = [{ code: 10, data: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) }];
  await running.ask({
    name: "Www.example.org.",
    id: 99,
    flags: Flag.CD,
    edns: { udpSize: 1400, options },
    next: upstream.next,
  });
  const [asked] = upstream.asked;
  assert.ok(asked !== undefined);
  assert.equal(asked.flags, Flag.CD | Flag.AD);
  assert.equal(asked.id, 99);
  assert.equal(asked.name.toString(), "Www.example.org.");
  assert.deepEqual(asked.edns, { udpSize: 1400, version: 0, dnssecOk: false, options });
  assert.equal(asked.root.flags, Flag.CD);
});

test("the OPT of the first reply is not cached", async () => {
  const upstream = new Upstream({
    answer: records(A),
    edns: { udpSize: 4096, version: 0, dnssecOk: false, options: [] },
  });
  const running = PluginTest.of(cache, "cache");
  const { reply } = await running.ask({ name: "www.example.org.", next: upstream.next });
  assert.equal(reply.edns, undefined);
});

test("changes that a plugin makes to the first reply do not affect the next", async () => {
  const running = PluginTest.of(cache, "cache");
  const next = answering({ answer: records(A) });
  const { reply } = await running.ask({ name: "www.example.org.", next });
  reply.replaceRecords({ answer: [] });
  reply.rcode = Rcode.REFUSED;
  const again = await running.ask({ name: "www.example.org.", next });
  assert.deepEqual(again.answer, [A]);
  assert.equal(again.rcode, Rcode.NOERROR);
});

test("names outside the zones are neither cached nor counted", async () => {
  const upstream = new Upstream({ answer: records("www.example.net. 7200 IN A 192.0.2.1") });
  const running = PluginTest.of(cache, "cache example.org");
  const { answer } = await running.ask({ name: "www.example.net.", next: upstream.next });
  assert.deepEqual(answer, ["www.example.net. 7200 IN A 192.0.2.1"]);
  assert.equal(upstream.asked[0]?.flags, Flag.RD);
  assert.equal(upstream.asked[0], upstream.asked[0]?.root);
  await running.ask({ name: "www.example.net.", next: upstream.next });
  assert.equal(upstream.asked.length, 2);
  assert.equal(counter(running, "requests_total", undefined, "example.org."), 0);
});

for (const question of [
  { type: "AXFR" },
  { type: "IXFR" },
  { type: "SOA", opcode: Opcode.NOTIFY },
  { type: "SOA", opcode: Opcode.UPDATE },
] as const) {
  test(`${JSON.stringify(question)} passes by untouched`, async () => {
    const upstream = new Upstream({ answer: records(SOA.replace(" 300 ", " 7200 ")) });
    const running = PluginTest.of(cache, "cache");
    await running.ask({ name: "example.org.", type: "SOA", next: upstream.next });
    const { answer, reply } = await running.ask({ name: "example.org.", next: upstream.next, ...question });
    assert.match(answer[0] ?? "", /^example.org. 7200 IN SOA/);
    assert.equal(reply.uniformTtl, -1);
    assert.equal(upstream.asked.length, 2);
    assert.equal(counter(running, "requests_total"), 1);
  });
}

test("failures without reply and dropped queries pass, and are not cached", async () => {
  const running = PluginTest.of(cache, "cache");
  const error = new Error("no upstream");
  const outcomes: Outcome[] = [];
  for (const outcome of ["failed", "dropped", "failed"] as const) {
    const next: Next = (query) => (outcome === "failed" ? query.fail(Rcode.SERVFAIL, error) : DROPPED);
    outcomes.push(await running.outcome({ name: "www.example.org.", next }));
  }
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.kind === "failed" ? [outcome.rcode, outcome.error] : outcome.kind)),
    [[Rcode.SERVFAIL, error], "dropped", [Rcode.SERVFAIL, error]],
  );
  assert.equal(counter(running, "misses_total"), 3);
});

test("a hit sets the wildcard metadata of its answer", async () => {
  const running = PluginTest.of(cache, "cache");
  const chain = running.chain((query) => {
    query.setMetadata("zone/wildcard", "*.example.org.");
    return query.reply({ answer: records(A) });
  });
  const seen = [];
  for (let count = 0; count < 2; count++) {
    const query = running.query({ name: "www.example.org." });
    query.metadata = new Map();
    await chain(query);
    seen.push(query.metadataValue("zone/wildcard"));
  }
  assert.deepEqual(seen, ["*.example.org.", "*.example.org."]);
});

test("a denial replaces an answer, and an answer a denial", async () => {
  const running = PluginTest.of(cache, "cache {\n denial 1000 10 10\n}");
  let reply: ReplyContent = { answer: records(A.replace(" 300 ", " 20 ")) };
  const next: Next = (query) => query.reply(reply);
  const ask = async (): Promise<number> => (await running.ask({ name: "www.example.org.", next })).rcode;
  assert.equal(await ask(), Rcode.NOERROR);
  reply = { rcode: Rcode.NXDOMAIN, authority: records(SOA) };
  running.clock.advance(20_000);
  assert.equal(await ask(), Rcode.NXDOMAIN);
  assert.deepEqual(await entries(running), { success: 0, denial: 1 });
  reply = { answer: records(A) };
  running.clock.advance(10_000);
  assert.equal(await ask(), Rcode.NOERROR);
  assert.deepEqual(await entries(running), { success: 1, denial: 0 });
});

test("every counter has its labels and counts", async () => {
  const running = PluginTest.of(cache, "cache example.org 10.0.0.0/24");
  const chain = running.chain(answering({ answer: records(A) }));
  for (const view of ["", "", "inside"]) {
    const query = running.query({ name: "www.example.org." });
    query.view = view;
    await chain(query);
  }
  const { body } = await running.metrics.expose();
  const lines = body.split("\n").filter((line) => line.startsWith("coredns_cache_") && !line.endsWith(" 0"));
  const labels = 'zones="example.org.,0.0.10.in-addr.arpa."';
  const expected = [
    `coredns_cache_entries{server="dns://:53",type="success",${labels},view="inside"} 1`,
    `coredns_cache_entries{server="dns://:53",type="success",${labels},view=""} 1`,
    `coredns_cache_hits_total{server="dns://:53",type="success",${labels},view="inside"} 1`,
    `coredns_cache_hits_total{server="dns://:53",type="success",${labels},view=""} 1`,
    `coredns_cache_misses_total{server="dns://:53",${labels},view=""} 1`,
    `coredns_cache_requests_total{server="dns://:53",${labels},view="inside"} 1`,
    `coredns_cache_requests_total{server="dns://:53",${labels},view=""} 2`,
  ];
  assert.deepEqual(lines.sort(), expected.sort());
});

test("stop removes the collectors and the entries", async () => {
  const running = PluginTest.of(cache, "cache");
  await running.ask({ name: "www.example.org.", next: answering({ answer: records(A) }) });
  assert.deepEqual(await entries(running), { success: 1, denial: 0 });
  await running.stop();
  assert.deepEqual(await entries(running), { success: 0, denial: 0 });
  assert.equal(running.clock.pendingTimers, 0);
});

test("a traced query tells how old the answer is", async () => {
  const running = PluginTest.of(cache, "cache");
  const chain = running.chain(answering({ answer: records(A) }));
  const notes: string[] = [];
  for (const wait of [0, 20_000]) {
    running.clock.advance(wait);
    const query = running.query({ name: "www.example.org." });
    query.trace = {
      note: (text) => void notes.push(text),
      enter: () => assert.fail("the chain calls it"),
      leave: () => assert.fail("the chain calls it"),
    };
    await chain(query);
  }
  assert.deepEqual(notes, [
    "not in the cache",
    "caches the answer for 300 s",
    "cached 20 s ago; valid for 280 s more",
  ]);
});

test("an unseen query is answered as any other, without side effects", async () => {
  const running = PluginTest.of(cache, "cache {\n prefetch 1\n serve_stale\n}");
  const upstream = new Upstream({ answer: records(A) });
  const notes: string[] = [];
  const unseen = (): Query => {
    const query = running.query({ name: "www.example.org." });
    query.trace = {
      leavesNoMark: true,
      note: (text) => void notes.push(text),
      aside: (text) => void notes.push(text),
      enter: () => undefined,
      leave: () => undefined,
    };
    return query;
  };
  const chain = running.chain(upstream.next);
  const answers = async (query: Query): Promise<number> => {
    const outcome = await chain(query);
    assert.ok(outcome.kind === "reply");
    return outcome.answer[0]?.ttl ?? -1;
  };
  assert.equal(await answers(unseen()), 300);
  assert.equal(await answers(unseen()), 300, "nothing was kept");
  assert.equal(upstream.asked.length, 2);
  await chain(running.query({ name: "www.example.org." }));
  running.clock.advance(295_000);
  assert.equal(await answers(unseen()), 5);
  running.clock.advance(15_000);
  assert.equal(await answers(unseen()), 0);
  // Each looks behind the cache once.
  assert.equal(upstream.asked.length, 5);
  running.clock.advance(0);
  assert.equal(await answers(unseen()), 0, "nothing was prefetched or renewed");
  assert.deepEqual(notes, [
    "not in the cache",
    "a client's query would have cached this answer for 300 s",
    "not in the cache",
    "a client's query would have cached this answer for 300 s",
    "cached 295 s ago; valid for 5 s more",
    BEHIND,
    "expired 10 s ago; served stale",
    BEHIND,
    "expired 10 s ago; served stale",
    BEHIND,
  ]);
  const { body } = await running.metrics.expose();
  assert.match(body, /^coredns_cache_requests_total\{[^}]*\} 1$/m);
  assert.doesNotMatch(body, /^coredns_cache_hits_total\{[^}]*\} [1-9]/m);
  assert.doesNotMatch(body, /^coredns_cache_served_stale_total\{[^}]*\} [1-9]/m);
});

const BEHIND = "behind the cache: what would be answered now, without the cached answer";

test("an unseen query does not wait without end for what is behind a cached answer", async () => {
  const running = PluginTest.of(cache, "cache");
  const outcomes: (Outcome | Promise<Outcome>)[] = [];
  let silent = false;
  const chain = running.chain((query) => {
    const outcome = silent ? new Promise<Outcome>(() => undefined) : query.reply({ answer: records(A) });
    outcomes.push(outcome);
    return outcome;
  });
  await chain(running.query({ name: "www.example.org." }));
  silent = true;
  const query = running.query({ name: "www.example.org." });
  query.trace = { leavesNoMark: true, note: () => undefined, enter: () => undefined, leave: () => undefined };
  const answer = chain(query);
  running.clock.advance(5_000);
  const outcome = await answer;
  assert.ok(outcome.kind === "reply");
  assert.equal(outcome.answer[0]?.ttl, 300);
  assert.equal(outcomes.length, 2);
});

/** The rest of the chain: returns the same reply to every query, and records the queries. */
class Upstream {
  readonly asked: Query[] = [];
  readonly next: Next;

  constructor(content: ReplyContent) {
    this.next = (query) => {
      this.asked.push(query);
      return query.reply(content);
    };
  }
}

function counter(running: PluginTest<unknown>, name: string, type?: string, zones = "."): number {
  const labels = type === undefined ? ["server", "zones", "view"] : ["server", "type", "zones", "view"];
  const values = type === undefined ? ["dns://:53", zones, ""] : ["dns://:53", type, zones, ""];
  return running.metrics.counter({ name: `coredns_cache_${name}`, help: "-", labels }).slot(...values).value;
}

async function entries(running: PluginTest<unknown>): Promise<{ success: number; denial: number }> {
  await running.metrics.expose();
  const family = running.metrics.gauge({
    name: "coredns_cache_entries",
    help: "-",
    labels: ["server", "type", "zones", "view"],
  });
  return {
    success: family.slot("dns://:53", "success", ".", "").value,
    denial: family.slot("dns://:53", "denial", ".", "").value,
  };
}
