import assert from "node:assert/strict";
import { test } from "node:test";
import { EdnsOptionCode, EncodedSections, ExtendedErrorCode, Rcode } from "../../dns/index.ts";
import { DROPPED, type Next, type ReplyContent } from "../../plugin/index.ts";
import { answering, ConfigRefused, PluginTest, records } from "../../plugin/testing.ts";
import minimal from "./index.ts";

const ANSWER = records("www.example.org. 60 IN A 192.0.2.1");
const NS = records("example.org. 60 IN NS ns.example.org.");
const SOA = records("example.org. 60 IN SOA ns.example.org. admin.example.org. 1 2 3 4 5");
const GLUE = records("ns.example.org. 60 IN A 192.0.2.2");

/** Number of records in answer, authority and additional. */
async function counts(next: Next): Promise<readonly number[]> {
  const { answer, authority, additional } = await PluginTest.of(minimal, "minimal").ask({
    name: "www.example.org.",
    next,
  });
  return [answer.length, authority.length, additional.length];
}

const CASES: readonly (readonly [string, ReplyContent, readonly number[]])[] = [
  ["an answer", { answer: ANSWER, authority: NS, additional: GLUE }, [1, 0, 0]],
  ["an answer alone", { answer: ANSWER }, [1, 0, 0]],
  ["glue without a delegation", { additional: GLUE }, [0, 0, 0]],
  ["a delegation", { authority: NS, additional: GLUE }, [0, 1, 1]],
  ["NODATA", { authority: SOA, additional: GLUE }, [0, 1, 1]],
  ["NXDOMAIN", { rcode: Rcode.NXDOMAIN, authority: SOA, additional: GLUE }, [0, 1, 1]],
  ["NXDOMAIN behind a CNAME", { rcode: Rcode.NXDOMAIN, answer: ANSWER, authority: SOA }, [1, 1, 0]],
  ["SERVFAIL", { rcode: Rcode.SERVFAIL, authority: NS }, [0, 1, 0]],
];

for (const [title, content, expected] of CASES) {
  test(`${title} keeps ${expected.join(", ")} records`, async () => {
    assert.deepEqual(await counts(answering(content)), expected);
    assert.deepEqual(await counts((query) => Promise.resolve(query.reply(content))), expected);
  });
}

test("works on encoded records, and does not change shared ones", async () => {
  const sections = { answer: ANSWER, authority: NS, additional: GLUE };
  const running = PluginTest.of(minimal, "minimal");
  const { question } = running.query({ name: "www.example.org." });
  const { encoded } = EncodedSections.encode(question, sections);
  const { reply } = await running.ask({ name: "www.example.org.", next: answering({ encoded }) });
  assert.equal(reply.isEncoded, true);
  assert.deepEqual([reply.encoded.count, encoded.count], [1, 3]);
  assert.equal(reply.encoded.bytes, encoded.bytes);
});

test("keeps flags, and does not touch OPT", async () => {
  const option = {
    code: EdnsOptionCode.EXTENDED_ERROR,
    data: Uint8Array.of(0, ExtendedErrorCode.STALE_ANSWER),
  };
  const { reply } = await PluginTest.of(minimal, "minimal").ask({
    name: "www.example.org.",
    edns: {},
    next: answering({
      answer: ANSWER,
      authoritative: true,
      recursionAvailable: true,
      edns: { udpSize: 1232, version: 0, dnssecOk: false, options: [option] },
    }),
  });
  assert.equal(reply.authoritative, true);
  assert.equal(reply.edns, undefined);
});

test("passes on failures and drops", async () => {
  const running = PluginTest.of(minimal, "minimal");
  const failed = await running.outcome({
    name: "example.org.",
    next: (query) => query.fail(Rcode.REFUSED, new Error("no")),
  });
  assert.equal(failed.kind === "failed" && failed.rcode, Rcode.REFUSED);
  assert.equal(await running.outcome({ name: "example.org.", next: () => DROPPED }), DROPPED);
});

for (const [text, code, message] of [
  ["minimal example.org", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after 'example\.org'/],
  ["minimal {\n answers on\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'answers'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(minimal, text),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}
