import assert from "node:assert/strict";
import { test } from "node:test";
import { Name, Rcode } from "../../dns/index.ts";
import type { Next } from "../../plugin/index.ts";
import { Answer, ConfigRefused, makeTestQuery, PluginTest, records } from "../../plugin/testing.ts";
import federation from "./index.ts";

const neighbours = [{ name: "kubernetes", instance: {} }];
const DIRECTIVE = (node = "node_labels testcontinent-testreg-testzone testcontinent-testreg") =>
  `federation cluster.local {\n myfederation example.com\n ${node}\n}`;

/** A cluster with one service; outside it there is one address. */
const elsewhere: Next = (query) => {
  const name = query.name.toString();
  if (name === "web.shop.svc.cluster.local.")
    return query.reply({ authoritative: true, answer: records(`${name} 5 IN A 10.0.0.1`) });
  if (name.endsWith("example.com.")) return query.reply({ answer: records(`${name} 60 IN A 192.0.2.1`) });
  return query.reply({ rcode: Rcode.NXDOMAIN, authoritative: true });
};

async function ask(name: string, text = DIRECTIVE(), around: typeof neighbours = neighbours) {
  const plugin = PluginTest.of(federation, text, { neighbours: around });
  const outcome = await plugin.chain(elsewhere)(makeTestQuery({ name }, 0, plugin.chain(elsewhere)));
  return outcome.kind === "reply" ? new Answer(outcome) : outcome;
}

test("a service of this cluster answers under its name in the federation", async () => {
  const answer = await ask("web.shop.myfederation.svc.cluster.local.");
  assert.ok(answer instanceof Answer);
  assert.deepEqual(answer.answer, ["web.shop.myfederation.svc.cluster.local. 5 IN A 10.0.0.1"]);
});

test("any other is an alias into the domain of the federation", async () => {
  const answer = await ask("mysvc.myns.myfederation.svc.cluster.local.");
  assert.ok(answer instanceof Answer);
  const target =
    "mysvc.myns.myfederation.svc.testcontinent-testreg-testzone.testcontinent-testreg.example.com.";
  assert.deepEqual(answer.answer, [
    `mysvc.myns.myfederation.svc.cluster.local. 0 IN CNAME ${target}`,
    `${target} 60 IN A 192.0.2.1`,
  ]);
});

test("without the labels of the node it fails", async () => {
  const outcome = await ask("mysvc.myns.myfederation.svc.cluster.local.", DIRECTIVE(""));
  assert.ok(!(outcome instanceof Answer) && outcome.kind === "failed");
  assert.equal(outcome.rcode, Rcode.SERVFAIL);
});

test("names of a federation change with those of the cluster, each once", () => {
  const told: string[] = [];
  const cache = {
    name: "cache",
    instance: { forget: (names: readonly Name[]) => void told.push(names.join()) },
  };
  const { changingNames } = PluginTest.of(
    federation,
    "federation cluster.local {\n one example.com\n two example.com\n}",
    { neighbours: [...neighbours, cache] },
  );
  const long = `${"x".repeat(63)}.${"y".repeat(63)}.${"z".repeat(63)}.${"w".repeat(40)}.svc.cluster.local.`;
  for (const [name, expected] of [
    ["web.shop.svc.cluster.local.", "web.shop.one.svc.cluster.local.,web.shop.two.svc.cluster.local."],
    ["shop.svc.cluster.local.", "shop.one.svc.cluster.local.,shop.two.svc.cluster.local."],
    // Everything below goes with these anyway.
    ["svc.cluster.local.", undefined],
    ["cluster.local.", undefined],
    ["shop.svc.example.", undefined],
    // The names of the federations are longer than a name can be.
    [long, undefined],
  ] as const) {
    told.length = 0;
    changingNames.tell([Name.parse(name)]);
    assert.deepEqual(told.sort(), [name, ...(expected === undefined ? [] : [expected])].sort(), name);
  }
});

test("names of no federation, and servers without cluster, are left alone", async () => {
  for (const name of [
    "a.b.other.svc.cluster.local.",
    "myfederation.svc.cluster.local.",
    "a.myfederation.svc.cluster.local.",
  ]) {
    const answer = await ask(name);
    assert.ok(answer instanceof Answer);
    assert.equal(answer.rcode, Rcode.NXDOMAIN);
  }
  const alone = await ask("mysvc.myns.myfederation.svc.cluster.local.", DIRECTIVE(), []);
  assert.ok(alone instanceof Answer);
  assert.equal(alone.rcode, Rcode.NXDOMAIN);
});

for (const [text, message] of [
  ["federation cluster.local", /at least one name=domain federation expected/],
  ["federation {\n a\n}", /'a' needs one domain/],
  ["federation {\n a b c\n}", /'a' needs one domain/],
  ["federation {\n a.b example.com\n}", /'a\.b' needs one domain/],
  ["federation {\n a example.com\n node_labels one\n}", /node_labels takes a zone and a region/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () =>
    assert.throws(
      () => PluginTest.of(federation, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    ));
}
