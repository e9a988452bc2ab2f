import assert from "node:assert/strict";
import { test } from "node:test";
import { Flag, Name, Rcode, RecordType } from "../../dns/index.ts";
import { optional, required, rest, zones } from "../config/arguments.ts";
import { fallthrough, flag, option, optionList, single } from "../config/options.ts";
import { directive } from "../config/schema.ts";
import { duration, integer, text } from "../config/values.ts";
import { Query } from "../query/query.ts";
import { Reply } from "../query/reply.ts";
import { answering, ConfigRefused, makeTestQuery, PluginTest, records } from "../testing.ts";
import { definePlugin } from "./define-plugin.ts";

const sample = definePlugin({
  name: "sample",
  summary: "for this test",
  config: directive({
    args: { size: optional(integer({ min: 1, max: 10 }), 5), zones: zones() },
    options: {
      wait: single(duration({ min: 0 }), 1000),
      pair: option({ left: required(text()), right: optional(text(), "none") }),
      many: optionList({ words: rest(text(), 1) }),
      on: flag(),
      fallthrough: fallthrough(),
    },
    check(config, report, at) {
      if (config.on && config.wait === 0) report.error("SAMPLE", at("on"), "on needs wait");
    },
  }),
  create: ({ size }) => ({
    handle: (query, next) =>
      size === 10 ? query.reply({ answer: records("a. 5 IN A 192.0.2.1") }) : next(query),
  }),
});

test("arguments, options, defaults and zones come out as declared", () => {
  const { configs } = PluginTest.of(
    sample,
    "sample 7 example.org 10.0.0.0/23 {\n wait 2s\n pair a\n many x y\n many z\n on\n fallthrough\n}",
  );
  const [config] = configs;
  assert.ok(config !== undefined);
  assert.equal(config.size, 7);
  assert.equal(String(config.zones), "example.org.,0.0.10.in-addr.arpa.,1.0.10.in-addr.arpa.");
  assert.equal(config.wait, 2000);
  assert.deepEqual(config.pair, { left: "a", right: "none" });
  assert.deepEqual(config.many, [{ words: ["x", "y"] }, { words: ["z"] }]);
  assert.equal(config.on, true);
  assert.ok(config.fallthrough.permits(Name.parse("anything.")));
  const [plain] = PluginTest.of(sample, "sample", { keys: "example.org:53" }).configs;
  assert.equal(plain?.size, 5);
  assert.equal(String(plain?.zones), "example.org.");
  assert.equal(plain?.pair, undefined);
});

const REFUSED_TEXTS: readonly (readonly [string, string, RegExp])[] = [
  ["sample 11", "PLUGIN_BAD_VALUE", /Corefile:2:8: error: '11' is not a whole number from 1 to 10/],
  [
    "sample {\n wiat 1s\n}",
    "PLUGIN_UNKNOWN_PROPERTY",
    /Corefile:3:2: error: unknown property 'wiat'[\s\S]*did you mean 'wait'/,
  ],
  [
    "sample {\n wait\n}",
    "PLUGIN_ARGUMENT_MISSING",
    /Wrong argument count or unexpected line ending after 'wait'/,
  ],
  ["sample {\n wait 5\n}", "PLUGIN_BAD_VALUE", /duration '5' has no unit[\s\S]*did you mean '5s'/],
  ["sample {\n on off\n}", "PLUGIN_ARGUMENT_UNEXPECTED", /expected no arguments after 'on'/],
  ["sample\nsample", "PLUGIN_REPEATED", /this plugin can only be used once per Server Block/],
  ["sample {\n wait 0s\n on\n}", "SAMPLE", /Corefile:4:2: error: on needs wait/],
];

for (const [corefile, code, message] of REFUSED_TEXTS) {
  test(`refuses ${JSON.stringify(corefile)}`, () => {
    assert.throws(
      () => PluginTest.of(sample, corefile),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}

test("a faulty argument is one fault, whatever stands behind it", () => {
  assert.throws(
    () => PluginTest.of(sample, "sample 11 example.org"),
    (error) => error instanceof ConfigRefused && error.codes.join() === "PLUGIN_BAD_VALUE",
  );
});

test("a query derived without a new name shares the question, and with one does not", () => {
  const query = makeTestQuery({ name: "WWW.Example.org.", edns: { udpSize: 4096, dnssecOk: true } });
  const signed = query.derive({ flags: query.flags | Flag.AD });
  assert.equal(signed.questionOwner, query);
  assert.equal(signed.root, query);
  assert.ok(signed.authenticData && !query.authenticData && signed.dnssecOk);
  const small = query.derive({ edns: { udpSize: 1232, version: 0, dnssecOk: true, options: [] } });
  assert.equal(small.udpSize, 1232);
  assert.equal(small.name.toString(), "WWW.Example.org.");
  const renamed = query.derive({ name: Name.parse("other."), type: RecordType.AAAA });
  assert.equal(renamed.questionOwner, renamed);
  assert.equal(renamed.type, RecordType.AAAA);
  assert.ok(renamed.dnssecOk);
});

test("a changed OPT keeps the rest of the message, where its options stay", () => {
  const query = makeTestQuery({
    name: "a.",
    edns: { udpSize: 4096, dnssecOk: true, options: [{ code: 10, data: new Uint8Array(8) }] },
  });
  assert.ok(query.edns !== undefined);
  const smaller = query.derive({ edns: { ...query.edns, udpSize: 1232, dnssecOk: false } });
  assert.equal(smaller.length, query.length);
  assert.equal(smaller.udpSize, 1232);
  assert.equal(smaller.dnssecOk, false);
  assert.deepEqual(smaller.edns?.options, query.edns.options);
  assert.equal(query.derive({ edns: undefined }).hasEdns, false);
});

test("the size of a reply is what will be sent, with the options that the listener sends back, and OPT only if the client sent one", () => {
  const edns = {
    options: [
      { code: 10, data: new Uint8Array(8) },
      { code: 65001, data: new Uint8Array(4) },
    ],
  };
  assert.equal(makeTestQuery({ name: "a.", edns, echoedOptions: [65001] }).reply().size, 12 + 7 + 11 + 8);
  const own = { udpSize: 1232, version: 0, dnssecOk: true, options: edns.options };
  assert.equal(makeTestQuery({ name: "a." }).reply({ edns: own }).size, 12 + 7);
});

test("copies of a query stand alone, also where its octets are a Buffer", () => {
  const model = makeTestQuery({ name: "www.example.org.", edns: { udpSize: 4096 } });
  const received = Buffer.from(model.packet);
  const query = Query.read(received, received.length, model);
  assert.ok(query !== undefined);
  const derived = query.derive({ type: RecordType.AAAA, flags: query.flags | Flag.AD });
  assert.deepEqual(new Uint8Array(received), new Uint8Array(model.packet));
  const { name } = query;
  query.detach();
  received.fill(0xff);
  assert.deepEqual(new Uint8Array(query.packet), new Uint8Array(model.packet));
  assert.equal(`${name} ${derived.name} ${derived.type}`, "www.example.org. www.example.org. 28");
});

test("a query that is asked on with other flags keeps its own, though both have the same octets", () => {
  const model = makeTestQuery({ name: "WWW.example.org.", edns: { udpSize: 4096 } });
  const received = Buffer.from(model.packet);
  const query = Query.read(received, received.length, model);
  assert.ok(query !== undefined);
  const derived = query.derive({ flags: query.flags | Flag.AD });
  query.detach();
  received.fill(0xff);
  assert.deepEqual(new Uint8Array(query.packet), new Uint8Array(model.packet));
  assert.deepEqual([derived.flags, derived.decode().flags], [model.flags | Flag.AD, model.flags | Flag.AD]);
  for (const later of [{ type: RecordType.AAAA }, { name: Name.parse("b.") }, { edns: undefined }])
    assert.equal(query.derive(later).decode().flags, model.flags);
  query.shrink();
  assert.equal(`${query.name} ${derived.name} ${query.udpSize}`, "WWW.example.org. WWW.example.org. 4096");
});

test("a reply made of octets is the one that the constructor makes", () => {
  const query = makeTestQuery({ name: "a." });
  const { encoded } = query.reply({ answer: records("a. 300 IN A 192.0.2.1") });
  const usual = query.reply({ encoded, rcode: Rcode.NXDOMAIN, authoritative: true, authenticData: true });
  assert.deepEqual(Reply.fromEncoded(query, encoded, Rcode.NXDOMAIN, Flag.AA | Flag.AD), usual);
  const shown = Reply.fromEncoded(query, encoded, Rcode.NOERROR, 0, 7);
  assert.equal(shown.uniformTtl, 7);
  assert.equal(shown.answer[0]?.ttl, 7);
  assert.equal(shown.encoded, encoded);
});

test("the TTL override shows on values and leaves the shared octets alone", async () => {
  const query = makeTestQuery({ name: "a." });
  const reply = query.reply({ answer: records("a. 300 IN A 192.0.2.1") });
  const shared = reply.encoded;
  const copy = query.reply({ encoded: shared });
  copy.setUniformTtl(7);
  assert.equal(copy.answer[0]?.ttl, 7);
  assert.equal(shared.ttlAt(0), 300);
  assert.equal(copy.size, reply.size);
});

test("queries pass through the chain to next", async () => {
  const plugin = PluginTest.of(sample, "sample");
  const answer = await plugin.ask({ name: "x.", next: answering({ rcode: Rcode.NXDOMAIN }) });
  assert.equal(answer.rcode, Rcode.NXDOMAIN);
  assert.deepEqual((await PluginTest.of(sample, "sample 10").ask({ name: "a." })).answer, [
    "a. 5 IN A 192.0.2.1",
  ]);
});

test("of a directive that may stand several times, the last one counts where it says so", () => {
  const last = definePlugin({
    name: "sample",
    summary: "for this test",
    config: directive({ args: { size: required(integer()) }, occurrences: "last" }),
  });
  const plugin = PluginTest.of(last, "sample 1\nsample 2");
  assert.deepEqual(plugin.configs, [{ size: 2 }]);
  assert.match(plugin.warnings.join(), /2:1: warning: 'sample' is repeated on line 3: only the last counts/);
  assert.throws(() => PluginTest.of(last, "sample x\nsample 2"), ConfigRefused);
});

test("blocks of one configuration share what they make by key", () => {
  const sharing = definePlugin({
    name: "sample",
    summary: "for this test",
    config: directive({}),
    create(_config, site) {
      site.shared("blocks", () => [] as string[]).push(site.block.keys[0]?.zone ?? "");
      return {};
    },
  });
  const shared = new Map<string, unknown>();
  PluginTest.of(sharing, "sample", { keys: "a:53", shared });
  PluginTest.of(sharing, "sample", { keys: "b:53", shared });
  assert.deepEqual([...shared], [["blocks", ["a.", "b."]]]);
});
