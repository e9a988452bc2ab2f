/** Explain notes about changes to replies. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EncodedSections, parseRecord } from "../../dns/index.ts";
import { makeTestQuery, PluginTest } from "../../plugin/testing.ts";
import rewrite from "./index.ts";

async function notes(rules: string, name: string, answer: readonly string[] | number): Promise<string[]> {
  const texts: string[] = [];
  const chain = PluginTest.of(rewrite, rules).chain((query) => {
    if (typeof answer === "number") return query.fail(answer);
    const records = answer.map((line) => parseRecord(line));
    const { encoded } = EncodedSections.encode(query.question, {
      answer: records,
      authority: [],
      additional: [],
    });
    return query.reply({ encoded });
  });
  const query = makeTestQuery({ name, type: "A" });
  query.trace = { note: (text) => texts.push(text), enter: () => undefined, leave: () => undefined };
  await chain(query);
  return texts.slice(1);
}

const ROWS: readonly {
  rules: string;
  name: string;
  answer: readonly string[] | number;
  told: readonly string[];
}[] = [
  {
    rules: "rewrite name exact old.test new.test",
    name: "old.test",
    answer: ["new.test. 60 IN A 192.0.2.1"],
    told: [
      "the question in the reply is old.test. again",
      "the owner new.test. becomes old.test. in the reply",
    ],
  },
  {
    rules: "rewrite stop {\nname suffix .ext.test .in.test answer auto\n}",
    name: "www.ext.test",
    answer: ["www.in.test. 60 IN CNAME a.in.test.", "a.in.test. 60 IN A 192.0.2.1"],
    told: [
      "the question in the reply is www.ext.test. again",
      "the owner www.in.test. becomes www.ext.test. in the reply",
      "the CNAME data a.in.test. becomes a.ext.test. in the reply",
      "the owner a.in.test. becomes a.ext.test. in the reply",
    ],
  },
  {
    rules: "rewrite ttl exact a.test 5",
    name: "a.test",
    answer: ["a.test. 60 IN A 192.0.2.1", "a.test. 60 IN A 192.0.2.2"],
    told: ["the TTL 60 becomes 5 in the reply"],
  },
  { rules: "rewrite ttl exact a.test 60", name: "a.test", answer: ["a.test. 60 IN A 192.0.2.1"], told: [] },
  {
    rules: "rewrite rcode exact a.test SERVFAIL NOERROR",
    name: "a.test",
    answer: 2,
    told: ["SERVFAIL becomes NOERROR in the reply"],
  },
  {
    rules: "rewrite name regex (.*)\\.ext\\.test {1}.in.test answer value (.*)\\.in\\.test {1}.ext.test",
    name: "www.ext.test",
    answer: Array.from({ length: 12 }, (_, n) => `www.in.test. ${n} IN CNAME a${n}.in.test.`),
    told: [],
  },
];

describe("a followed query is told what becomes of its reply", () => {
  for (const { rules, name, answer, told } of ROWS)
    test(rules.replaceAll("\n", " "), async () => {
      const texts = await notes(rules, name, answer);
      if (told.length > 0 || typeof answer === "number" || answer.length < 12) assert.deepEqual(texts, told);
      else {
        assert.equal(texts.length, 9);
        assert.equal(texts[8], "and 5 more changes in the reply");
      }
    });
});
