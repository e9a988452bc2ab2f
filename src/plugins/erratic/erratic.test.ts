import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Rcode } from "../../dns/index.ts";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import erratic from "./index.ts";

/** The outcomes of `count` A queries: `a`nswered, `t`runcated or `d`ropped. */
async function fates(text: string, count: number): Promise<string> {
  const plugin = PluginTest.of(erratic, text);
  let seen = "";
  for (let number = 0; number < count; number++) {
    const outcome = plugin.outcome({ name: "example.org." });
    assert.ok(!(outcome instanceof Promise));
    seen += outcome.kind === "dropped" ? "d" : outcome.kind === "reply" && outcome.truncated ? "t" : "a";
  }
  return seen;
}

describe("drop and truncate", () => {
  for (const [text, expected] of [
    ["erratic", "dadada"],
    ["erratic {\n drop\n}", "dadada"],
    ["erratic {\n drop 3\n}", "daadaa"],
    ["erratic {\n drop 0\n}", "aaaaaa"],
    ["erratic {\n truncate\n}", "tatata"],
    ["erratic {\n truncate 1\n}", "tttttt"],
    ["erratic {\n truncate 3\n}", "taataa"],
    ["erratic {\n truncate 3\n drop\n}", "dadtda"],
    ["erratic {\n large\n}", "dadada"],
    ["erratic {\n drop 2\n}\nerratic {\n drop 1\n}", "dddddd"],
  ] as const) {
    test(JSON.stringify(text), async () => assert.equal(await fates(text, 6), expected));
  }
});

describe("answers", () => {
  const quiet = "erratic {\n drop 0\n}";

  for (const [type, expected] of [
    ["A", ["Example.org. 0 IN A 192.0.2.53"]],
    ["AAAA", ["Example.org. 0 IN AAAA 2001:db8::53"]],
  ] as const) {
    test(type, async () => {
      const answer = await PluginTest.of(erratic, quiet).ask({ name: "Example.org.", type });
      assert.deepEqual(answer.answer, expected);
      assert.equal(answer.reply.authoritative, true);
    });
  }

  test("large", async () => {
    const answer = await PluginTest.of(erratic, "erratic {\n drop 0\n large\n}").ask({ name: "a." });
    assert.deepEqual(answer.answer, new Array(30).fill("a. 0 IN A 192.0.2.53"));
  });

  test("other types fail, and are counted", async () => {
    const plugin = PluginTest.of(erratic, "erratic {\n drop 2\n}");
    assert.equal((await plugin.outcome({ name: "a.", type: "MX" })).kind, "dropped");
    const outcome = await plugin.outcome({ name: "a.", type: "MX" });
    assert.ok(outcome.kind === "failed" && outcome.rcode === Rcode.SERVFAIL);
  });

  test("a transfer ends in the SOA record, unless it is truncated", async () => {
    const plugin = PluginTest.of(erratic, "erratic {\n truncate 2\n}");
    const types = async (): Promise<string> => {
      const { answer } = await plugin.ask({ name: "xx.", type: "AXFR", transport: "tcp" });
      return answer.map((record) => record.split(" ")[3]).join(" ");
    };
    assert.equal(await types(), "SOA NS A AAAA");
    assert.equal(await types(), "SOA NS A AAAA SOA");
  });
});

test("delays every n-th answer", async () => {
  const plugin = PluginTest.of(erratic, "erratic {\n delay 2 1s\n}");
  const delayed = plugin.outcome({ name: "a." });
  assert.ok(delayed instanceof Promise);
  assert.equal(plugin.clock.pendingTimers, 1);
  assert.ok(!(plugin.outcome({ name: "a." }) instanceof Promise));
  plugin.clock.advance(999);
  assert.equal(plugin.clock.pendingTimers, 1);
  plugin.clock.advance(1);
  assert.equal((await delayed).kind, "reply");
  assert.equal(plugin.clock.pendingTimers, 0);
});

test("delays by 100 ms by default", async () => {
  const plugin = PluginTest.of(erratic, "erratic {\n delay\n}");
  const delayed = plugin.outcome({ name: "a." });
  plugin.clock.advance(100);
  assert.equal((await delayed).kind, "reply");
});

test("is ready after the third query and before the fifth", () => {
  const plugin = PluginTest.of(erratic, "erratic");
  const [instance] = plugin.instances;
  const readiness: (boolean | undefined)[] = [];
  for (let number = 0; number < 6; number++) {
    readiness.push(instance?.ready?.());
    void plugin.outcome({ name: "a." });
  }
  assert.deepEqual(readiness, [false, false, false, true, true, false]);
});

describe("refuses", () => {
  for (const [text, code, message] of [
    ["erratic {\n drop -1\n}", "PLUGIN_BAD_VALUE", /3:7: error: illegal amount value given '-1'/],
    ["erratic {\n truncate some\n}", "PLUGIN_BAD_VALUE", /illegal amount value given 'some'/],
    ["erratic {\n delay 3 soon\n}", "PLUGIN_BAD_VALUE", /illegal duration value given 'soon'/],
    ["erratic {\n delay 3 1s 4\n}", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after '4'/],
    ["erratic {\n truncat\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'truncat'[\s\S]*'truncate'/],
  ] as const) {
    test(JSON.stringify(text), () => {
      assert.throws(
        () => PluginTest.of(erratic, text),
        (error) =>
          error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
      );
    });
  }
});
