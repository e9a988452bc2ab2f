import assert from "node:assert/strict";
import { test } from "node:test";
import { Flag, Opcode, Rcode } from "../../dns/index.ts";
import { DROPPED, type Query } from "../../plugin/index.ts";
import { answering, ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import header from "./index.ts";

const { AA, RA, RD, CD, TC } = Flag;

for (const [rules, flags, expected] of [
  ["query set rd", 0, RD],
  ["query set rd", RD, RD],
  ["query clear rd", RD | CD, CD],
  ["query set aa ra", RD, RD | AA | RA],
  ["query clear RD", RD, 0],
  ["QUERY Clear RD", RD, 0],
  ["query set rd\n query clear rd", 0, 0],
  ["query clear rd\n query set rd", 0, RD],
  ["response set ra", RD, RD],
] as const) {
  test(`${JSON.stringify(rules)} gives a query ${expected} instead of ${flags}`, () => {
    let seen: Query | undefined;
    void PluginTest.of(header, `header {\n ${rules}\n}`).outcome({
      name: "example.org.",
      flags,
      opcode: Opcode.QUERY,
      next: (query) => {
        seen = query;
        return query.reply();
      },
    });
    assert.equal(seen?.flags, expected);
    assert.equal(seen?.root.flags, flags);
    assert.equal(seen === seen?.root, flags === expected);
  });
}

for (const [rules, expected] of [
  ["response set aa", AA | TC],
  ["response set ra", AA | TC | RA],
  ["response clear aa", TC],
  ["response clear Aa\n response set RA", TC | RA],
  ["response set ra aa\n response clear ra", AA | TC],
  ["query set ra", AA | TC],
] as const) {
  test(`${JSON.stringify(rules)} gives a reply ${expected} instead of ${AA | TC}`, async () => {
    for (const rcode of [Rcode.NOERROR, Rcode.NXDOMAIN, Rcode.SERVFAIL]) {
      const next = answering({ rcode, authoritative: true, truncated: true });
      const running = PluginTest.of(header, `header {\n ${rules}\n}`);
      const { reply } = await running.ask({ name: "example.org.", next });
      assert.equal(reply.flags, expected);
      assert.equal(reply.rcode, rcode);
    }
  });
}

test("changes late replies, and passes on failures and drops", async () => {
  const running = PluginTest.of(header, "header {\n response set ra\n}");
  const later = await running.ask({ name: "a.", next: (query) => Promise.resolve(query.reply()) });
  assert.equal(later.reply.flags, RA);
  const failed = await running.outcome({ name: "a.", next: (query) => query.fail(Rcode.REFUSED) });
  assert.equal(failed.kind === "failed" && failed.rcode, Rcode.REFUSED);
  assert.equal(await running.outcome({ name: "a.", next: () => DROPPED }), DROPPED);
});

test("of several directives the first that has rules counts", async () => {
  const text = "header {\n}\nheader {\n response set ra\n}\nheader {\n response set aa\n}";
  const running = PluginTest.of(header, text);
  assert.equal((await running.ask({ name: "a.", next: answering({}) })).reply.flags, RA);
  assert.match(running.warnings.join("\n"), /'header' appears 2 times: only the first counts/);
});

test("warns that rd is not changed in a response", () => {
  assert.match(
    PluginTest.of(header, "header {\n response set ra\n response clear rd\n}").warnings.join("\n"),
    /4:2: warning: 'rd' in a response has no effect: a reply repeats the flag of the query/,
  );
});

for (const [text, code, message] of [
  ["header", "PLUGIN_EMPTY", /2:1: error: header without any rule/],
  ["header {\n}\nheader", "PLUGIN_EMPTY", /header without any rule/],
  [
    "header {\n answer set ra\n}",
    "PLUGIN_UNKNOWN_PROPERTY",
    /unknown property 'answer'[\s\S]*query, response/,
  ],
  ["header {\n response\n}", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending after 'response'/],
  [
    "header {\n response set\n}",
    "PLUGIN_ARGUMENT_MISSING",
    /3:2: error: invalid length for flags, at least one should be provided/,
  ],
  [
    "header {\n query toggle rd\n}",
    "PLUGIN_BAD_VALUE",
    /3:8: error: unknown flag action=toggle, should be set or clear/,
  ],
  ["header {\n query set AD\n}", "PLUGIN_BAD_VALUE", /3:12: error: unknown\/unsupported flag=ad/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(header, text),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}
