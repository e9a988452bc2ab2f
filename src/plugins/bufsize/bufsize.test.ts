import assert from "node:assert/strict";
import { test } from "node:test";
import { EdnsOptionCode, Name, RecordType } from "../../dns/index.ts";
import type { Query } from "../../plugin/index.ts";
import { ConfigRefused, PluginTest, type QuestionOptions } from "../../plugin/testing.ts";
import bufsize from "./index.ts";

/** The query that the next plugin sees. */
function behind(text: string, question: Partial<QuestionOptions>): Query {
  let seen: Query | undefined;
  void PluginTest.of(bufsize, text).outcome({
    name: "Example.org.",
    next: (query) => {
      seen = query;
      return query.reply();
    },
    ...question,
  });
  assert.ok(seen !== undefined);
  return seen;
}

for (const [text, advertised, expectedSize, expectedLimit] of [
  ["bufsize", 4096, 1232, 1232],
  ["bufsize", 1233, 1232, 1232],
  ["bufsize", 1232, 1232, 0xffff],
  ["bufsize", 512, 512, 0xffff],
  ["bufsize", 100, 512, 0xffff],
  ["bufsize 512", 1232, 512, 512],
  ["bufsize 4096", 0xffff, 4096, 4096],
  ["bufsize 1400\nbufsize 600", 4096, 1400, 1400],
] as const) {
  test(`${JSON.stringify(text)} makes ${expectedSize} of ${advertised}`, () => {
    const query = behind(text, { edns: { udpSize: advertised } });
    assert.equal(query.udpSize, expectedSize);
    assert.equal(query.root.replyLimit, expectedLimit);
  });
}

test("does not change a query without OPT", () => {
  const query = behind("bufsize 512", {});
  assert.equal(query, query.root);
  assert.equal(query.hasEdns, false);
  assert.equal(query.replyLimit, 0xffff);
});

test("changes only the size", () => {
  const options = [{ code: EdnsOptionCode.COOKIE, data: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) }];
  const query = behind("bufsize", { type: "MX", id: 77, edns: { udpSize: 4096, dnssecOk: true, options } });
  assert.equal(query.name.toString(), "Example.org.");
  assert.equal(query.type, RecordType.MX);
  assert.equal(query.id, 77);
  assert.equal(query.questionOwner, query.root);
  assert.equal(query.dnssecOk, true);
  assert.deepEqual(query.edns?.options, options);
});

test("an internal lookup does not limit the reply to the client", async () => {
  const running = PluginTest.of(bufsize, "bufsize 600");
  const client = running.query({ name: "a.example.", edns: { udpSize: 4096 } });
  await client.lookup(Name.parse("b.example."), RecordType.A);
  assert.equal(client.replyLimit, 0xffff);
});

test("warns about a second line", () => {
  assert.match(
    PluginTest.of(bufsize, "bufsize 1400\nbufsize 600").warnings.join("\n"),
    /'bufsize' appears 2 times: only the first counts/,
  );
});

for (const [text, code, message] of [
  ["bufsize 511", "PLUGIN_BAD_VALUE", /2:9: error: must be within 512 - 4096/],
  ["bufsize 4097", "PLUGIN_BAD_VALUE", /must be within 512 - 4096/],
  ["bufsize -1", "PLUGIN_BAD_VALUE", /must be within 512 - 4096/],
  ["bufsize big", "PLUGIN_BAD_VALUE", /must be within 512 - 4096[\s\S]*a whole number from 512 to 4096/],
  ["bufsize 512 513", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after '513'/],
  ["bufsize {\n size 512\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'size'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(bufsize, text),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}
