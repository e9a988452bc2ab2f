import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Name } from "../../dns/name.ts";
import { OutdatedNames } from "./outdated-names.ts";

const LABELS = ["a", "B", "web", "svc"];
const name = fc
  .array(fc.constantFrom(...LABELS), { maxLength: 4 })
  .map((labels) => Name.parse(`${labels.join(".")}.`));
const step = fc.oneof(
  fc.record({ outdated: fc.array(name, { maxLength: 3 }) }),
  fc.record({ asked: name }),
  fc.constant({ clear: true } as const),
);

test("a question is outdated when its name or an ancestor became outdated after it was sent", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const names = new OutdatedNames();
      let open: { asked: Name; askedAt: number; isOutdated: boolean }[] = [];
      for (const each of steps) {
        if ("outdated" in each) {
          names.add(each.outdated);
          for (const question of open)
            if (each.outdated.some((outdated) => question.asked.isAtOrBelow(outdated)))
              question.isOutdated = true;
        } else if ("asked" in each) open.push({ asked: each.asked, askedAt: names.time, isOutdated: false });
        else {
          names.clear();
          open = [];
        }
        for (const { asked, askedAt, isOutdated } of open)
          assert.equal(names.covers(asked, askedAt), isOutdated, asked.toString());
      }
    }),
  );
});

test("too many names outdate all earlier questions and no later one", () => {
  const names = new OutdatedNames();
  const before = names.time;
  for (let round = 0; round < 20; round++)
    names.add(Array.from({ length: 1_000 }, (_, index) => Name.parse(`n${index}.r${round}.example.`)));
  assert.equal(names.covers(Name.parse("other.example."), before), true);
  const after = names.time;
  assert.equal(names.covers(Name.parse("n1.r1.example."), after), false);
  names.add([Name.parse("example.")]);
  assert.equal(names.covers(Name.parse("n1.r1.example."), after), true);
  assert.equal(names.covers(Name.parse("n1.r1.example.org."), after), false);
});
