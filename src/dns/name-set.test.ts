import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Name } from "./name.ts";
import { NameSet } from "./name-set.ts";

test("covers its names and all names below, in any case", () => {
  const set = new NameSet([Name.parse("Web.example.org."), Name.parse("net.")]);
  for (const name of ["web.example.org.", "a.b.WEB.example.org.", "net.", "x.net."])
    assert.ok(set.covers(Name.parse(name)), name);
  for (const name of [".", "example.org.", "aweb.example.org.", "web.example.com."])
    assert.ok(!set.covers(Name.parse(name)), name);
  assert.ok(new NameSet([Name.root]).covers(Name.parse("anything.")));
  assert.ok(!new NameSet().covers(Name.root));
});

test("agrees with a check of each name", () => {
  const label = fc.constantFrom("a", "b", "c", "A");
  const name = fc.array(label, { maxLength: 4 }).map((labels) => Name.fromLabels(labels));
  fc.assert(
    fc.property(fc.array(name), name, (names, asked) => {
      assert.equal(
        new NameSet(names).covers(asked),
        names.some((one) => asked.isAtOrBelow(one)),
      );
    }),
  );
});
