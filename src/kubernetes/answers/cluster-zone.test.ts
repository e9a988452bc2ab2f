import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Name } from "../../dns/name.ts";
import { joinDotted, joinLabels } from "./cluster-zone.ts";

test("labels with dots between them make the name that they make one by one, or none", () => {
  const label = fc.oneof(
    fc.stringMatching(/^[A-Za-z0-9_-]{1,12}$/),
    fc.constantFrom("", "x".repeat(63), "x".repeat(64), "ÿ", "Ā"),
  );
  const suffix = fc.constantFrom(
    ...[".", "svc.cluster.local.", `${"a.".repeat(90)}`].map((text) => Name.parse(text)),
  );
  fc.assert(
    fc.property(fc.array(label, { minLength: 1, maxLength: 5 }), suffix, (labels, below) => {
      const joined = joinDotted(labels.join("."), below);
      const expected = joinLabels(labels, below);
      assert.deepEqual(joined?.wire, expected?.wire);
      assert.equal(joined?.hash, expected?.hash);
    }),
  );
});

test("a name of 255 octets is the longest", () => {
  const below = Name.parse(`${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(63)}.`);
  assert.equal(joinDotted("a".repeat(61), below)?.wire.length, 255);
  assert.equal(joinDotted("a".repeat(62), below), undefined);
});
