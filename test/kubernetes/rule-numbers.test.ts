/** No rule of the specification is without a test. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { CHANGES, nameServerChange } from "../fixtures/kubernetes/changes.ts";
import { LAST_RULE, NOT_ABOUT_SERVERS, SHOWN_ELSEWHERE } from "../fixtures/kubernetes/rule-numbers.ts";
import { RULE_GROUPS } from "../fixtures/kubernetes/rules.ts";
import { projectRoot } from "../support/portolan.ts";

const asked = RULE_GROUPS.flatMap(({ cases }) => cases.map(({ rule }) => rule));
const changed = [...CHANGES, nameServerChange(["192.0.2.1"])].flatMap(({ rules }) => rules);
const elsewhere = Object.values(SHOWN_ELSEWHERE).flat();
const notAboutServers = Object.keys(NOT_ABOUT_SERVERS).map(Number);

it("every number is accounted for, and no other one is in use", () => {
  const numbers = new Set([...asked, ...changed, ...elsewhere, ...notAboutServers]);
  const all = Array.from({ length: LAST_RULE }, (_, index) => index + 1);
  assert.deepEqual(
    [...numbers].sort((left, right) => left - right),
    all,
  );
});

it("a rule that no server can break has no test", () => {
  const shown = new Set([...asked, ...changed, ...elsewhere]);
  assert.deepEqual(
    notAboutServers.filter((rule) => shown.has(rule)),
    [],
  );
});

for (const [file, rules] of Object.entries(SHOWN_ELSEWHERE)) {
  it(`${file} names the rules that it shows`, () => {
    const text = readFileSync(join(projectRoot, file), "utf8");
    const named = Array.from(text.matchAll(/\brules? \d+(?:(?:, | and )\d+)*/g), ([words]) => words)
      .flatMap((words) => words.match(/\d+/g) ?? [])
      .map(Number);
    assert.deepEqual(
      rules.filter((rule) => !named.includes(rule)),
      [],
    );
  });
}
