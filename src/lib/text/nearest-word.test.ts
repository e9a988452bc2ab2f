import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { nearestWord } from "./nearest-word.ts";

const directives = [
  "errors",
  "log",
  "health",
  "ready",
  "kubernetes",
  "prometheus",
  "forward",
  "cache",
  "loop",
  "reload",
  "loadbalance",
  "hosts",
  "any",
  "acl",
  "k8s_external",
];

describe("nearestWord", () => {
  const near: [word: string, nearest: string][] = [
    ["forwrad", "forward"],
    ["foward", "forward"],
    ["forwards", "forward"],
    ["Forward", "forward"],
    ["FORWARD", "forward"],
    ["error", "errors"],
    ["kuberentes", "kubernetes"],
    ["kubernets", "kubernetes"],
    ["promethues", "prometheus"],
    ["relaod", "reload"],
    ["lop", "log"],
    ["host", "hosts"],
    ["k8s-external", "k8s_external"],
    ["load_balance", "loadbalance"],
    ["cahce", "cache"],
  ];
  for (const [word, nearest] of near) {
    it(`takes ${word} for ${nearest}`, () => assert.equal(nearestWord(word, directives), nearest));
  }

  for (const word of ["", "a", "x", "zz", "example.org", "policy", "stacktrace", "e".repeat(100)]) {
    it(`finds nothing near ${JSON.stringify(word.slice(0, 12))}`, () => {
      assert.equal(nearestWord(word, directives), undefined);
    });
  }

  it("prefers the nearer candidate, then the first", () => {
    assert.equal(nearestWord("cat", ["car", "cat", "can"]), "cat");
    assert.equal(nearestWord("cap", ["car", "cat", "can"]), "car");
  });

  it("finds every candidate by its own name and after one swap of neighbours in a long word", () => {
    fc.assert(
      fc.property(fc.constantFrom(...directives), fc.nat(), (directive, seed) => {
        assert.equal(nearestWord(directive, directives), directive);
        if (directive.length < 6) return;
        const at = seed % (directive.length - 1);
        const swapped = `${directive.slice(0, at)}${directive[at + 1]}${directive[at]}${directive.slice(at + 2)}`;
        assert.equal(nearestWord(swapped, directives), directive);
      }),
    );
  });

  it("ends and never throws on arbitrary words", () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.array(fc.string()),
        (word, candidates) => void nearestWord(word, candidates),
      ),
    );
  });
});
