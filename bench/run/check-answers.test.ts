import assert from "node:assert/strict";
import { test } from "node:test";
import { A, makeQuery, Name, Rcode, RecordType } from "../../src/dns/index.ts";
import type { Check } from "../workloads.ts";
import { answerProblem } from "./check-answers.ts";

const CHECK: Check = { name: "www.example.org", type: "A", rcode: "NOERROR", addresses: ["192.0.2.1"] };
const name = Name.parse("www.example.org");
const query = makeQuery({ name, type: RecordType.A });
const answer = [A.create(name, 60, { address: "192.0.2.1" })];

test("an answer as expected is no problem", () => {
  assert.equal(answerProblem(CHECK, { ...query, answer }), undefined);
});

test("other rcodes, addresses and questions are", () => {
  assert.equal(
    answerProblem(CHECK, { ...query, answer, rcode: Rcode.NXDOMAIN }),
    "NXDOMAIN instead of NOERROR",
  );
  assert.equal(answerProblem(CHECK, query), '"" instead of "192.0.2.1"');
  const twice = [...answer, A.create(name, 60, { address: "192.0.2.2" })];
  assert.equal(
    answerProblem(CHECK, { ...query, answer: twice }),
    '"192.0.2.1 192.0.2.2" instead of "192.0.2.1"',
  );
  assert.match(
    answerProblem({ ...CHECK, name: "example.org" }, { ...query, answer }) ?? "",
    /answer is to www/,
  );
});
