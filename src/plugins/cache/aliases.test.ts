/** A changed name drops the cached answers whose aliases lead to it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Name, Rcode } from "../../dns/index.ts";
import type { Next, Outcome } from "../../plugin/index.ts";
import { makeTestQuery, records } from "../../plugin/testing.ts";
import { EntrySlab } from "./entry-slab.ts";
import { makeCache } from "./fixtures/make-cache.ts";
import { mention } from "./fixtures/mention.ts";

const SERVICE = "web.default.svc.cluster.local.";

function makeAliases(text = "cache", zones: readonly string[] = ["cluster.local."]) {
  const made = makeCache(text);
  made.running.changingNames.addZones(zones.map((zone) => Name.parse(zone)));
  /** @param answer empty for an answer that is not cacheable */
  const ask = (name: string, ...answer: readonly string[]): "asked" | "kept" => {
    let asked = 0;
    void made.handler.handle(made.running.query({ name }), (query) => {
      asked++;
      return query.reply(answer.length === 0 ? { rcode: Rcode.REFUSED } : { answer: records(...answer) });
    });
    return asked > 0 ? "asked" : "kept";
  };
  const drop = (name: string): number => made.handler.drop([Name.parse(name)]);
  return { ...made, ask, drop };
}

function aliasOf(name: string, target = SERVICE): string[] {
  return [`${name} 300 IN CNAME ${target}`, `${target} 300 IN A 10.96.0.1`];
}

for (const [what, dropped] of [
  ["the Service", SERVICE],
  ["the Service in other letters", "WEB.default.svc.CLUSTER.local."],
  ["its namespace", "default.svc.cluster.local."],
  ["the zone", "cluster.local."],
] as const)
  test(`an alias is dropped with ${what}`, () => {
    const { ask, drop } = makeAliases();
    assert.equal(ask("www.example.", ...aliasOf("www.example.")), "asked");
    assert.equal(ask("www.example."), "kept");
    assert.equal(drop("other.default.svc.cluster.local."), 0);
    assert.equal(drop("x.web.default.svc.cluster.local."), 0);
    assert.equal(ask("www.example."), "kept");
    assert.equal(drop(dropped), 1);
    assert.equal(ask("www.example.", ...aliasOf("www.example.")), "asked");
    assert.equal(drop(dropped), 1);
  });

test("an alias to a name in a zone without a source of changes stays", () => {
  const { ask, drop } = makeAliases("cache", ["other.example."]);
  assert.equal(ask("www.example.", ...aliasOf("www.example.")), "asked");
  assert.equal(drop(SERVICE), 0);
  assert.equal(ask("www.example."), "kept");
});

test("each name of a chain counts, and so do additional addresses", () => {
  const { ask, drop } = makeAliases("cache", ["a.", "b.", "c."]);
  const chain = ["www.example. 60 IN CNAME x.a.", "x.a. 60 IN CNAME x.b.", "x.b. 60 IN A 192.0.2.1"];
  for (const name of ["x.a.", "x.b."]) {
    assert.equal(ask("www.example.", ...chain), "asked");
    assert.equal(drop(name), 1, name);
  }
  const { running, handler } = makeAliases("cache", ["c."]);
  const next: Next = (query) =>
    query.reply({
      answer: records("mail.example. 60 IN MX 1 x.c."),
      additional: records("x.c. 60 IN A 192.0.2.1"),
    });
  void handler.handle(running.query({ name: "mail.example.", type: "MX" }), next);
  assert.equal(handler.drop([Name.parse("x.c.")]), 1);
});

test("an alias that leads to no records is denied until its target changes", () => {
  const { running, handler } = makeAliases();
  let asked = 0;
  const ask = (): void =>
    void handler.handle(running.query({ name: "www.example." }), (query) => {
      asked++;
      return query.reply({
        answer: records(`www.example. 300 IN CNAME ${SERVICE}`),
        authority: records(
          "cluster.local. 300 IN SOA ns.cluster.local. h.cluster.local. 1 7200 1800 86400 30",
        ),
      });
    });
  ask();
  ask();
  assert.equal(asked, 1);
  assert.equal(handler.store.denial.size, 1);
  assert.equal(handler.drop([Name.parse(SERVICE)]), 1);
  assert.equal(handler.store.denial.size, 0);
});

test("an answer that replaces an alias is found by its own target only", () => {
  const { ask, drop, running } = makeAliases("cache {\n success 9984 10\n}");
  // Of equal length, so that one overwrites the other.
  const [one, two] = ["web.cluster.local.", "api.cluster.local."];
  ask("www.example.", ...aliasOf("www.example.", one));
  running.clock.advance(20_000);
  assert.equal(ask("www.example.", ...aliasOf("www.example.", two)), "asked");
  assert.equal(drop(one), 0);
  assert.equal(drop(two), 1);
});

test("an expired alias is served, but not once its Service has changed", () => {
  const { ask, drop, running } = makeAliases("cache {\n success 9984 10\n serve_stale 1h verify\n}");
  ask("www.example.", ...aliasOf("www.example."));
  running.clock.advance(20_000);
  assert.equal(drop(SERVICE), 1);
  assert.equal(ask("www.example.", ...aliasOf("www.example.")), "asked");
});

test("an alias in flight when its Service changed is answered but not cached", async () => {
  const { running, handler } = makeAliases();
  const waiting: (() => void)[] = [];
  const next: Next = (query) =>
    new Promise((resolve) =>
      waiting.push(() => resolve(query.reply({ answer: records(...aliasOf(`${query.name}`)) }))),
    );
  const ask = (name: string): Outcome | Promise<Outcome> => handler.handle(running.query({ name }), next);
  const before = ask("before.example.");
  handler.drop([Name.parse(SERVICE)]);
  const after = ask("after.example.");
  for (const answer of waiting) answer();
  for (const outcome of [before, after]) assert.equal((await outcome).kind, "reply");
  assert.equal(handler.store.success.size, 1);
  assert.ok(!(ask("after.example.") instanceof Promise));
});

test("thousands of aliases of one Service are dropped in portions, hidden from the start", async () => {
  const { ask, drop, running, handler } = makeAliases();
  const names = Array.from({ length: 5_000 }, (_, index) => `host-${index}.example.`);
  for (const name of names) assert.equal(ask(name, ...aliasOf(name)), "asked");
  assert.equal(handler.store.success.size, 5_000);
  assert.equal(drop(SERVICE), 2_000);
  for (const name of names) assert.equal(ask(name), "asked");
  await running.clock.settle(10);
  assert.equal(handler.store.success.size, 0);
  assert.equal(running.clock.pendingTimers, 0);
});

test("an answer that mentions too many changing names is not cached", () => {
  const { ask } = makeAliases();
  const chain = (length: number): string[] => [
    "www.example. 60 IN CNAME n0.cluster.local.",
    ...Array.from(
      { length },
      (_, index) => `n${index}.cluster.local. 60 IN CNAME n${index + 1}.cluster.local.`,
    ),
    `n${length}.cluster.local. 60 IN A 192.0.2.1`,
  ];
  assert.equal(ask("www.example.", ...chain(15)), "asked");
  assert.equal(ask("www.example.", ...chain(14)), "asked");
  assert.equal(ask("www.example."), "kept");
});

test("aliases of names without common ancestors evict each other without leaks", () => {
  const capacity = 100;
  const slab = new EntrySlab({ capacity, regions: 2 }, false, 4711);
  let evicted = 0;
  for (let index = 0; index < 2_000; index++) {
    const asked = makeTestQuery({ name: `host-${index}.example.` });
    const targets = Array.from(
      { length: 15 },
      (_, target) => `${"a.b.c.d.e.f.g.h.i.j.k.l.m".replaceAll(".", `.t${index}-${target}.`)}.`,
    );
    evicted += slab.put(
      { hash: index, traits: 0 },
      {
        ...{ asked, rcode: 0, flags: 0, ttl: 300, expiresAt: 300_000, error: false, answers: true },
        ...{ wildcard: undefined, hits: undefined, mentioned: mention(asked, targets) },
        sections: asked.reply({ answer: records(`${asked.name} 300 IN A 192.0.2.1`) }).encoded,
      },
    );
    assert.ok(slab.find(index, 0, asked) >= 0);
    assert.ok(slab.size <= capacity);
  }
  assert.equal(evicted + slab.size, 2_000);
  assert.equal(slab.dropAtOrBelow(Name.root, 2 * capacity), 2_000 - evicted);
  assert.deepEqual([slab.size, slab.octets], [0, 0]);
});
