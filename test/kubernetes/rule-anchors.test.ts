/** Each rule of `docs/spec/kubernetes-dns.md` has a test, and each test is of one of its rules. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { CHANGES, nameServerChange } from "../fixtures/kubernetes/changes.ts";
import { NOT_ABOUT_SERVERS, SHOWN_ELSEWHERE } from "../fixtures/kubernetes/rule-anchors.ts";
import { RULE_GROUPS } from "../fixtures/kubernetes/rules.ts";
import { projectRoot } from "../support/portolan.ts";

const page = readFileSync(join(projectRoot, "docs/spec/kubernetes-dns.md"), "utf8");
const rules = Array.from(
  page.matchAll(/^(\d+)\. <a id="([a-z0-9-]+)"><\/a>\S/gm),
  ([, number, anchor = ""]) => ({
    number: Number(number),
    anchor,
  }),
);

const shown = new Set([
  ...RULE_GROUPS.flatMap(({ cases }) => cases.map(({ rule }) => rule)),
  ...[...CHANGES, nameServerChange(["192.0.2.1"])].flatMap(({ rules }) => rules),
  ...Object.values(SHOWN_ELSEWHERE).flatMap((titles) => Object.keys(titles)),
]);

it("the page counts its rules without a gap, each with an anchor of its own", () => {
  assert.ok(rules.length > 100);
  assert.deepEqual(
    rules.map(({ number }) => number),
    rules.map((_, index) => index + 1),
  );
  assert.equal(new Set(rules.map(({ anchor }) => anchor)).size, rules.length);
});

it("each rule has a test, and no test is of another rule", () => {
  assert.deepEqual(
    [...shown, ...Object.keys(NOT_ABOUT_SERVERS)].sort(),
    rules.map(({ anchor }) => anchor).sort(),
  );
});

for (const [file, titles] of Object.entries(SHOWN_ELSEWHERE)) {
  it(`${file} has the tests that show its rules`, () => {
    const text = readFileSync(join(projectRoot, file), "utf8");
    for (const title of Object.values(titles))
      assert.ok(text.includes(`it("${title}`) || text.includes(`it(\`${title}`), title);
  });
}
