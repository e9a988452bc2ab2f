import assert from "node:assert/strict";
import { test } from "node:test";
import { EncodedSections } from "../../dns/index.ts";
import { writeU16 } from "../../dns/octets.ts";
import { makeTestQuery, records } from "../../plugin/testing.ts";
import { reachesType } from "./cname-chain.ts";

const CASES: readonly (readonly [string, string, readonly string[], boolean])[] = [
  ["records of the name", "A", ["www.test. 5 IN A 192.0.2.1", "www.test. 5 IN A 192.0.2.2"], true],
  ["spelled in another way", "A", ["WWW.Test. 5 IN A 192.0.2.1"], true],
  ["records of another name", "A", ["w.test. 5 IN A 192.0.2.1"], false],
  ["records of another type", "A", ["www.test. 5 IN TXT a"], false],
  ["a signature beside", "A", ["www.test. 5 IN A 192.0.2.1", "www.test. 5 IN TXT a"], true],
  ["a chain", "A", ["www.test. 5 IN CNAME a.", "a. 5 IN CNAME b.", "b. 5 IN A 192.0.2.1"], true],
  ["a chain upside down", "A", ["b. 5 IN A 192.0.2.1", "a. 5 IN CNAME b.", "www.test. 5 IN CNAME a."], true],
  ["a chain with a gap", "A", ["www.test. 5 IN CNAME a.", "b. 5 IN A 192.0.2.1"], false],
  ["a chain that does not begin at the name", "A", ["a. 5 IN CNAME b.", "b. 5 IN A 192.0.2.1"], false],
  ["a circle", "A", ["www.test. 5 IN CNAME a.", "a. 5 IN CNAME WWW.test."], false],
  [
    "a circle behind the name",
    "A",
    ["www.test. 5 IN CNAME a.", "a. 5 IN CNAME b.", "b. 5 IN CNAME a."],
    false,
  ],
  ["an alias of itself", "A", ["www.test. 5 IN CNAME www.test."], false],
  ["a fork", "A", ["www.test. 5 IN CNAME a.", "www.test. 5 IN CNAME b.", "a. 5 IN A 192.0.2.1"], false],
  [
    "the same alias twice",
    "A",
    ["www.test. 5 IN CNAME a.", "www.test. 6 IN CNAME A.", "a. 5 IN A 192.0.2.1"],
    true,
  ],
  [
    "a fork that is not passed",
    "A",
    ["www.test. 5 IN A 192.0.2.1", "a. 5 IN CNAME b.", "a. 5 IN CNAME c."],
    true,
  ],
  ["a CNAME asked for", "CNAME", ["www.test. 5 IN CNAME a."], true],
  ["a CNAME of another name asked for", "CNAME", ["a. 5 IN CNAME www.test."], false],
  [
    "a DNAME with the CNAME made of it",
    "A",
    ["test. 5 IN DNAME t.", "www.test. 5 IN CNAME www.t.", "www.t. 5 IN A 192.0.2.1"],
    true,
  ],
  ["anything for ANY", "ANY", ["a. 5 IN TXT a"], true],
  ["nothing", "A", [], false],
];

for (const [title, type, answer, reached] of CASES) {
  test(`${title}: ${reached ? "the type is reached" : "the type is not reached"}`, () => {
    const query = makeTestQuery({ name: "www.test.", type });
    assert.equal(reachesType(query.reply({ answer: records(...answer) }).encoded, query), reached);
  });
}

test("a chain of thousands of aliases is followed in one pass", () => {
  const query = makeTestQuery({ name: "n0.", type: "A" });
  const links = Array.from({ length: 2500 }, (_, index) => `n${index}. 5 IN CNAME n${index + 1}.`).reverse();
  const { encoded } = query.reply({ answer: records("n2500. 5 IN A 192.0.2.1", ...links) });
  assert.ok(encoded.answerCount > 2000);
  const started = performance.now();
  assert.equal(reachesType(encoded, query), encoded.answerCount === 2501);
  assert.ok(performance.now() - started < 5_000);
});

test("an alias to invalid octets leads nowhere", () => {
  const query = makeTestQuery({ name: "www.test.", type: "A" });
  const { encoded } = query.reply({ answer: records("www.test. 5 IN TYPE65280 \\# 2 C0FF") });
  const bytes = encoded.bytes.slice();
  writeU16(bytes, 4, 1);
  writeU16(bytes, 6, 1);
  writeU16(bytes, encoded.typeOffsets[0] ?? 0, 5);
  assert.equal(reachesType(EncodedSections.scan(bytes, bytes.length).encoded, query), false);
});
