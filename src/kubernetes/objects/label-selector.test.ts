import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { LabelSelector, LabelSelectorError } from "./label-selector.ts";

const web = new Map([
  ["app", "web"],
  ["tier", "front"],
  ["replicas", "3"],
]);

describe("LabelSelector", () => {
  const cases: [selector: string, selected: boolean][] = [
    ["", true],
    ["app", true],
    ["!app", false],
    ["!owner", true],
    ["app=web", true],
    ["app==web", true],
    ["app = web , tier = front", true],
    ["app=web,tier=back", false],
    ["app!=web", false],
    ["owner!=me", true],
    ["app in (web, api)", true],
    ["app in (api)", false],
    ["app notin (api,db)", true],
    ["owner notin (me)", true],
    ["owner=", false],
    ["replicas>2", true],
    ["replicas<3", false],
    ["app>2", false],
    ["example.com/part in (a,b),!app", false],
  ];
  for (const [selector, selected] of cases) {
    it(`"${selector}" ${selected ? "selects" : "leaves out"} the object`, () => {
      assert.equal(LabelSelector.parse(selector).matches(web), selected);
    });
  }

  it("selects an empty value", () => {
    assert.ok(LabelSelector.parse("owner=").matches(new Map([["owner", ""]])));
    assert.ok(LabelSelector.parse("owner in (,me)").matches(new Map([["owner", ""]])));
  });

  it("selects what carries every label of a map", () => {
    const selector = LabelSelector.ofLabels([
      ["app", "web"],
      ["tier", "front"],
    ]);
    assert.ok(selector.matches(web));
    assert.ok(!selector.matches(new Map([["app", "web"]])));
  });

  const faults: [selector: string, reason: RegExp][] = [
    [",", /"," is not a label's key/],
    ["app=web,", /ends where a label's key is expected/],
    ["app web", /expected an operator .* found "web"/],
    ["app in web", /expected "\(" and values/],
    ["app in (web", /expected "\)" after the values/],
    ["app=web tier", /expected "," or the end, found "tier"/],
    ["-app=web", /"-app" is not a label's key/],
    ["app=$x", /"\$x" is not a label's value/],
    ["app>many", /"many" is not a whole number/],
  ];
  for (const [selector, reason] of faults) {
    it(`refuses "${selector}"`, () => {
      assert.throws(
        () => LabelSelector.parse(selector),
        (error) => {
          assert.ok(error instanceof LabelSelectorError);
          assert.match(error.reason, reason);
          return true;
        },
      );
    });
  }

  it("throws nothing but its own error", () => {
    const piece = fc.constantFrom(
      "a",
      "b/c",
      "=",
      "==",
      "!=",
      "!",
      "in",
      "notin",
      "(",
      ")",
      ",",
      "<",
      ">",
      "7",
      " ",
      "é",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        try {
          LabelSelector.parse(pieces.join("")).matches(web);
        } catch (error) {
          assert.ok(error instanceof LabelSelectorError);
        }
      }),
    );
  });
});

it("is written as it was read", () => {
  assert.equal(String(LabelSelector.parse("app in (a, b),!tier")), "app in (a, b),!tier");
  assert.equal(
    String(
      LabelSelector.ofLabels([
        ["app", "web"],
        ["tier", "a"],
      ]),
    ),
    "app=web,tier=a",
  );
});
