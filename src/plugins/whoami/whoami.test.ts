import assert from "node:assert/strict";
import { test } from "node:test";
import { Rcode, RecordClass } from "../../dns/index.ts";
import { ConfigRefused, PluginTest, type QuestionOptions } from "../../plugin/testing.ts";
import whoami from "./index.ts";

const LONG_NAME = `${`${"a".repeat(63)}.`.repeat(3)}${"b".repeat(60)}.`;

const ANSWERS: readonly (readonly [string, QuestionOptions, readonly string[]])[] = [
  [
    "IPv4 over UDP",
    { name: "Example.org." },
    ["Example.org. 0 IN A 192.0.2.1", "_udp.Example.org. 0 IN SRV 0 0 40000 ."],
  ],
  [
    "IPv6 over TCP",
    { name: "example.org.", type: "MX", client: "2001:db8::1", clientPort: 1234, transport: "tcp" },
    ["example.org. 0 IN AAAA 2001:db8::1", "_tcp.example.org. 0 IN SRV 0 0 1234 ."],
  ],
  ["the root", { name: "." }, [". 0 IN A 192.0.2.1", "_udp. 0 IN SRV 0 0 40000 ."]],
  [
    "another class",
    { name: "a.", class: RecordClass.CH, transport: "tls" },
    ["a. 0 CH A 192.0.2.1", "_tcp.a. 0 CH SRV 0 0 40000 ."],
  ],
  [
    "QUIC counts as UDP",
    { name: "a.", transport: "quic" },
    ["a. 0 IN A 192.0.2.1", "_udp.a. 0 IN SRV 0 0 40000 ."],
  ],
  ["a name without room for a label", { name: LONG_NAME }, [`${LONG_NAME} 0 IN A 192.0.2.1`]],
];

for (const [title, question, expected] of ANSWERS) {
  test(`returns the client's address: ${title}`, async () => {
    const answer = await PluginTest.of(whoami, "whoami").ask(question);
    assert.equal(answer.rcode, Rcode.NOERROR);
    assert.equal(answer.reply.authoritative, true);
    assert.deepEqual([answer.answer, answer.authority], [[], []]);
    assert.deepEqual(answer.additional, expected);
  });
}

test("never calls the next plugin", async () => {
  const answer = await PluginTest.of(whoami, "whoami").ask({
    name: "a.",
    next: () => assert.fail("whoami ends the chain"),
  });
  assert.equal(answer.additional.length, 2);
});

for (const [text, code] of [
  ["whoami now", "PLUGIN_ARGUMENT_UNEXPECTED"],
  ["whoami {\n verbose\n}", "PLUGIN_UNKNOWN_PROPERTY"],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(whoami, text),
      (error) => error instanceof ConfigRefused && error.codes[0] === code,
    );
  });
}

test("a second whoami changes nothing", () => {
  assert.equal(PluginTest.of(whoami, "whoami\nwhoami").instances.length, 1);
});
