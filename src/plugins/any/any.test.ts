import assert from "node:assert/strict";
import { test } from "node:test";
import { Rcode } from "../../dns/index.ts";
import { answering, ConfigRefused, PluginTest, records } from "../../plugin/testing.ts";
import any from "./index.ts";

for (const name of ["Example.org.", "."]) {
  test(`ANY for ${name} gets one HINFO record`, async () => {
    const answer = await PluginTest.of(any, "any").ask({ name, type: "ANY" });
    assert.deepEqual(answer.answer, [`${name} 8482 IN HINFO "ANY obsoleted" "See RFC 8482"`]);
    assert.deepEqual([...answer.authority, ...answer.additional], []);
    assert.equal(answer.rcode, Rcode.NOERROR);
    assert.equal(answer.reply.authoritative, false);
  });
}

test("other types are passed on", async () => {
  const answer = await PluginTest.of(any, "any").ask({
    name: "example.org.",
    type: "HINFO",
    next: answering({ answer: records('example.org. 5 IN HINFO "a" "b"') }),
  });
  assert.deepEqual(answer.answer, ['example.org. 5 IN HINFO "a" "b"']);
});

for (const [text, code, message] of [
  ["any example.org", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after 'example\.org'/],
  ["any {\n ttl 5\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'ttl'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(any, text),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}
