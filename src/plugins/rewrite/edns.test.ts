import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Edns } from "../../dns/index.ts";
import type { Query } from "../../plugin/index.ts";
import { makeTestQuery, PluginTest, type QuestionOptions } from "../../plugin/testing.ts";
import rewrite from "./index.ts";

/** Options as "code=hex", after the size; "none" without OPT. */
function words(edns: Edns | undefined): string {
  if (edns === undefined) return "none";
  return [
    edns.udpSize,
    ...edns.options.map(({ code, data }) => `${code}=${Buffer.from(data).toString("hex")}`),
  ].join(" ");
}

function optionsOf(text: string): Partial<Edns> | undefined {
  if (text === "none") return undefined;
  const [size, ...options] = text.split(" ");
  return {
    udpSize: Number(size),
    options: options.map((option) => {
      const [code, hex = ""] = option.split("=");
      return { code: Number(code), data: Buffer.from(hex, "hex") };
    }),
  };
}

async function seen(
  rule: string,
  edns: string,
  question: Partial<QuestionOptions> = {},
  prepare: (query: Query) => void = () => undefined,
): Promise<{ readonly asked: string; readonly shown: string }> {
  const running = PluginTest.of(rewrite, rule);
  let asked: Query | undefined;
  const chain = running.chain((query) => {
    asked = query;
    return query.reply();
  });
  const sent = optionsOf(edns);
  const { echoedOptions } = running.settings;
  const own = sent !== undefined && { edns: sent };
  const query = makeTestQuery({ name: "x.Test.", ...own, echoedOptions, ...question });
  prepare(query);
  const outcome = await chain(query);
  assert.ok(outcome.kind === "reply");
  return { asked: words(asked?.edns), shown: words(outcome.edns) };
}

/** A rule, the options of the client, and the options that the plugins behind see. */
const TABLE: readonly (readonly [string, string, string])[] = [
  ["local set 0xffee 0x0102", "none", "4096 65518=0102"],
  ["local set 0xffee 0x0102", "1232", "1232 65518=0102"],
  ["local set 0xffee 0x0102", "1232 65518=00", "1232 65518=0102"],
  ["local set 0xffee 0x0102", "1232 10=aabb 65518=00 65518=01", "1232 10=aabb 65518=0102 65518=01"],
  ["local append 0xffee hello", "none", "4096 65518=68656c6c6f"],
  ["local append 0xffee hello", "1232 65518=00", "1232 65518=00 65518=68656c6c6f"],
  ["local replace 0xffee hello", "none", "4096"],
  ["local replace 0xffee hello", "1232", "1232"],
  ["local replace 0xffee hello", "1232 65518=00 65518=01", "1232 65518=68656c6c6f 65518=01"],
  ["local unset 65001", "none", "4096"],
  ["local unset 65001", "1232 65001=00 65002=aa 65001=01", "1232 65002=aa"],
  ['local set 65003 "two words"', "1232", "1232 65003=74776f20776f726473"],
  ["local set 65004 0x", "1232", "1232 65004="],
  ["local set 1 {qname", "1232", "1232 1=7b716e616d65"],
  ["local set 65010 {qname}", "1232", "1232 65010=782e546573742e"],
  ["local append 65010 {qname}", "1232 65010=00", "1232 65010=00"],
  ["local replace 65010 {qname}", "1232 65010=00", "1232 65010=782e546573742e"],
  ["local set 65010 {qtype}", "1232", "1232 65010=0001"],
  ["local set 65010 {client_ip}", "1232", "1232 65010=c0000201"],
  ["local set 65010 {client_port}", "1232", "1232 65010=9c40"],
  ["local set 65010 {server_ip}", "1232", "1232 65010=c0000235"],
  ["local set 65010 {server_port}", "1232", "1232 65010=0035"],
  ["local set 65010 {protocol}", "1232", "1232 65010=756470"],
  ["local set 65010 {nope/label}", "none", "none"],
  ["local set 65010 {nope/label}", "1232 65010=00", "1232 65010=00"],
  ["nsid set", "none", "4096 3="],
  ["nsid set", "1232 3=6162", "1232 3="],
  ["nsid append", "1232 3=6162", "1232 3=6162 3="],
  ["nsid replace", "1232", "1232"],
  ["nsid replace", "1232 3=6162", "1232 3="],
  ["nsid unset", "1232 3=6162", "1232"],
  ["subnet set 24 56", "none", "4096 8=00011800c00002"],
  ["subnet set 24 56", "1232 8=00011800c63364", "1232 8=00011800c00002"],
  ["subnet append 24 56", "1232 8=00011800c63364", "1232 8=00011800c63364"],
  ["subnet replace 24 56", "1232", "1232"],
  ["subnet set 0 0", "1232", "1232 8=00010000"],
  ["subnet set 31 127", "1232", "1232 8=00011f00c0000200"],
  ["subnet unset", "1232 8=00011800c63364 3=", "1232 3="],
];

describe("edns0", () => {
  for (const [rule, sent, asked] of TABLE) {
    test(`${rule}: ${sent} becomes ${asked}`, async () => {
      assert.equal((await seen(`rewrite edns0 ${rule}`, sent)).asked, asked);
    });
  }

  test("IPv6 clients, and TCP", async () => {
    const v6 = { client: "2001:db8:1:2:3::4" };
    assert.equal(
      (await seen("rewrite edns0 subnet set 24 56", "1232", v6)).asked,
      "1232 8=0002380020010db8000100",
    );
    const bits = await seen("rewrite edns0 local set 9 {client_ip}", "1232", v6);
    assert.equal(bits.asked, "1232 9=20010db8000100020003000000000004");
    const tcp = await seen("rewrite edns0 local set 9 {protocol}", "1232", { transport: "tcp" });
    assert.equal(tcp.asked, "1232 9=746370");
  });

  test("metadata", async () => {
    const rule = "rewrite edns0 local set 65010 {kubernetes/client-namespace}";
    const { asked } = await seen(rule, "1232", {}, (query) => {
      query.metadata = new Map([["kubernetes/client-namespace", () => "shop"]]);
    });
    assert.equal(asked, "1232 65010=73686f70");
  });

  test("after a rule that finds nothing to replace the next rule applies", async () => {
    const { asked } = await seen(
      "rewrite edns0 nsid replace\nrewrite edns0 local set 9 a\nrewrite edns0 local set 10 b",
      "1232",
    );
    assert.equal(asked, "1232 9=61");
  });

  for (const [rule, sent, shown] of [
    ["nsid set", "1232", "1232"],
    ["nsid set", "1232 3=61", "1232 3="],
    ["local set 9 x", "1232", "1232"],
    ["subnet set 24 56", "1232", "1232"],
    ["subnet set 24 56", "1232 8=00011800c63364", "1232"],
    ["subnet set 24 56 revert", "1232", "none"],
    ["nsid set revert", "1232", "none"],
    ["nsid unset", "1232 3=61", "1232"],
    ["nsid append revert", "1232 3=61", "none"],
    ["subnet set 24 56", "1232 10=0102030405060708", "1232"],
    ["nsid set", "none", "none"],
    ["local set 3 x", "512 3=", "512 3=78"],
  ] as const) {
    test(`${rule}: the client that sent ${sent} gets ${shown}`, async () => {
      assert.equal((await seen(`rewrite edns0 ${rule}`, sent)).shown, shown);
    });
  }

  for (const [rule, sent, replied, shown] of [
    ["subnet set 24 56", "1232", "1232 8=00011818c00002 15=0004", "1232 15=0004"],
    ["subnet set 24 56 revert", "1232", "1232 8=00011818c00002", "1232"],
    ["subnet set 24 56", "1232 8=00011800c63364", "1232 8=00011818c00002", "1232"],
    // The client's own subnet leaves its answer unchanged.
    [
      "subnet append 24 56\nrewrite edns0 local set 9 x",
      "1232 8=00011800c63364",
      "1232 8=00011818c63364",
      "1232 8=00011818c63364",
    ],
    ["nsid set", "1232", "1232 3=6e73", "1232"],
    ["nsid set", "1232 3=", "1232 3=6e73", "1232 3=6e73"],
    ["local set 9 x", "1232", "1232 9=79", "1232"],
    ["local set 9 x", "none", "1232 9=79", "none"],
    ["local set 9 x", "1232", "1232 15=0004", "1232 15=0004"],
  ] as const) {
    test(`${rule}: of ${replied}, the client that sent ${sent} gets ${shown}`, async () => {
      const running = PluginTest.of(rewrite, `rewrite edns0 ${rule}`);
      const edns = optionsOf(replied);
      const own = optionsOf(sent);
      const chain = running.chain((query) =>
        query.reply({ edns: { udpSize: 1232, version: 0, dnssecOk: false, options: [], ...edns } }),
      );
      const question = { name: "x.Test.", ...(own !== undefined && { edns: own }) };
      const outcome = await chain(makeTestQuery(question));
      assert.ok(outcome.kind === "reply");
      assert.equal(words(outcome.edns), shown);
    });
  }

  test("the listener echoes the codes of local rules", () => {
    const running = PluginTest.of(
      rewrite,
      "rewrite edns0 local set 0xffee a\nrewrite edns0 local unset 65001\nrewrite edns0 subnet set 24 56",
    );
    assert.deepEqual(running.settings.echoedOptions, [65518, 65001]);
  });
});
