/** Runs the rules of the Kubernetes DNS specification against the plugin. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { type Expectation, titleOf, wholeOf } from "../../../test/fixtures/kubernetes/rule-case.ts";
import { OUTSIDE, RULE_GROUPS } from "../../../test/fixtures/kubernetes/rules.ts";
import { Rcode, rcodeName } from "../../dns/numbers.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { Outcome, Query } from "../../plugin/index.ts";
import { makeTestQuery, PluginTest, records, recordText } from "../../plugin/testing.ts";
import kubernetes from "./index.ts";

const fixture = fileURLToPath(new URL("../../../test/fixtures/kubernetes", import.meta.url));

const outside = records(...OUTSIDE);

function askOutside(query: Query): Outcome {
  const named = outside.filter(({ name }) => name.equals(query.name));
  if (named.length === 0) return query.reply({ rcode: Rcode.NXDOMAIN });
  return query.reply({ answer: named.filter(({ type }) => type === query.type) });
}

function absolute(name: string): string {
  return name.endsWith(".") ? name : `${name}.cluster.local.`;
}

/** `OWNER TTL TYPE DATA` as in the table. */
function describeRecord(record: ResourceRecord, asked: string): string {
  const [owner = "", ttl = "", , type = "", ...data] = recordText(record).split(" ");
  if (type === "SOA") data[2] = "SERIAL";
  const words = [owner === asked ? "" : owner, ttl === "5" ? "" : ttl, type, ...data];
  return words
    .filter((word) => word !== "")
    .map((word) => word.replace(/\.cluster\.local\.$/, ""))
    .join(" ");
}

function checkOutcome(outcome: Outcome, asked: string, expected: Expectation): void {
  if (expected === "REFUSED") {
    assert.equal(outcome.kind === "failed" && rcodeName(outcome.rcode), "REFUSED");
    return;
  }
  if (outcome.kind !== "reply") assert.fail(`no reply but ${outcome.kind}`);
  assert.ok(outcome.authoritative, "AA is not set");
  const texts = (section: readonly ResourceRecord[]) =>
    section.map((record) => describeRecord(record, asked));
  const whole = wholeOf(expected);
  assert.equal(rcodeName(outcome.rcode), whole.rcode ?? "NOERROR");
  assert.deepEqual(texts(outcome.answer).sort(), [...whole.answer].sort());
  assert.deepEqual(texts(outcome.additional).sort(), [...whole.additional].sort());
  if (whole.authority !== undefined) assert.deepEqual(texts(outcome.authority), whole.authority);
  else if (whole.answer.length === 0)
    assert.deepEqual(
      outcome.authority.map(({ type }) => type),
      [RecordType.SOA],
    );
  const aliases = outcome.answer.filter(({ type }) => type === RecordType.CNAME).length;
  assert.ok(
    outcome.answer.slice(0, aliases).every(({ type }) => type === RecordType.CNAME),
    "a CNAME comes late",
  );
}

for (const { title, options, zones = "cluster.local in-addr.arpa ip6.arpa", cases } of RULE_GROUPS) {
  describe(`the specification: ${title}`, () => {
    const lines = [`manifests ${fixture}`, ...options].join("\n");
    const plugin = PluginTest.of(kubernetes, `kubernetes ${zones} {\n${lines}\n}`);
    before(() => plugin.start());
    after(() => plugin.stop());

    for (const { name, type, expected } of cases) {
      it(titleOf({ name, type, expected }), async () => {
        const query = makeTestQuery({ name: absolute(name), type }, 0, plugin.chain(askOutside));
        checkOutcome(await plugin.chain(askOutside)(query), absolute(name), expected);
      });
    }
  });
}
