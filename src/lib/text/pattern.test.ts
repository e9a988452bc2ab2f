import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { compilePattern, PatternError } from "./pattern.ts";

describe("compilePattern", () => {
  it("refuses what Go refuses, with Go's reason", () => {
    const reasons: [pattern: string, reason: string][] = [
      ["(", "error parsing regexp: missing closing ): `(`"],
      ["a**", "error parsing regexp: invalid nested repetition operator: `**`"],
      ["(?=x)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"],
      ["\\1", "error parsing regexp: invalid escape sequence: `\\1`"],
      ["[z-a]", "error parsing regexp: invalid character class range: `z-a`"],
      ["a{1001}", "error parsing regexp: invalid repeat count: `{1001}`"],
      ["a\\", "error parsing regexp: trailing backslash at end of expression"],
    ];
    for (const [pattern, message] of reasons) {
      assert.throws(() => compilePattern(pattern), { name: "PatternError", pattern, message });
    }
  });

  it("refuses patterns over 10000 octets", () => {
    assert.ok(compilePattern("x".repeat(10_000)));
    const message = "regex pattern too long: 10001 > 10000";
    assert.throws(() => compilePattern("x".repeat(10_001)), { message });
    assert.throws(() => compilePattern(`x${"\u00fc".repeat(5000)}`), { message });
  });

  it("answers any text with a pattern or a PatternError", () => {
    const source = fc.oneof(
      fc.string(),
      fc.string({ unit: fc.constantFrom(...Array.from("ab()[]{}|*+?.^$\\-,19:PQE<>")) }),
    );
    fc.assert(
      fc.property(source, fc.string(), (text, subject) => {
        try {
          compilePattern(text).test(subject);
        } catch (error) {
          assert.ok(error instanceof PatternError);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("survives patterns that are made to explode", () => {
    assert.throws(() => compilePattern("(".repeat(5000) + ")".repeat(5000)), PatternError);
    assert.throws(() => compilePattern("((a{100}){100}){100}"), PatternError);
    const pattern = compilePattern("^(([a-z])+.)+[A-Z]([a-z])+$");
    assert.equal(pattern.test("a".repeat(5000)), false);
  });
});

describe("Pattern", () => {
  it("tells its source and its groups", () => {
    const pattern = compilePattern("^(?P<host>[^.]+)\\.(.*)$");
    assert.equal(pattern.source, "^(?P<host>[^.]+)\\.(.*)$");
    assert.equal(pattern.groupCount, 2);
    assert.deepEqual(pattern.groupNumbers, new Map([["host", 1]]));
  });

  it("matches anywhere, and hands out the groups", () => {
    const pattern = compilePattern("([a-z]+)-([0-9]+)|(none)");
    assert.equal(pattern.test("see web-12 there"), true);
    assert.deepEqual(pattern.match("see web-12 there"), { index: 4, groups: ["web-12", "web", "12", ""] });
    assert.equal(pattern.match("nothing"), undefined);
  });

  it("knows the flags and classes of RE2", () => {
    assert.equal(compilePattern("(?i)^EXAMPLE\\.org$").test("example.ORG"), true);
    assert.equal(compilePattern("^[[:alnum:]]+$").test("abc9"), true);
    assert.equal(compilePattern("\\Aa\\z").test("a\n"), false);
    assert.equal(compilePattern("a.b").test("a\nb"), false);
    assert.equal(compilePattern("(?s)a.b").test("a\nb"), true);
  });

  it("replaces every match, as Go does", () => {
    const bracket = (pattern: string, text: string) =>
      compilePattern(pattern).replace(text, ({ groups }) => `[${groups.join("|")}]`);
    assert.equal(bracket("(a)(b)?", "xabya"), "x[ab|a|b]y[a|a|]");
    assert.equal(bracket("z", "xyz-"), "xy[z]-");
    assert.equal(bracket("z", "none"), "none");
    // Examples whose results are known from Go: no empty match right behind another.
    assert.equal(bracket("x*", "axb"), "[]a[x]b[]");
    assert.equal(bracket("x*", ""), "[]");
    assert.equal(bracket("$", "ab"), "ab[]");
    assert.equal(bracket("", "ab"), "[]a[]b[]");
  });

  it("finds what RegExp finds, where both speak the same language", () => {
    const piece = fc.constantFrom(
      "a",
      "b",
      "[ab]",
      "(a)",
      "(b)?",
      "a*",
      "(ab|b)+",
      "(a|b)*?",
      "^",
      "$",
      "\\.",
      ".",
    );
    const source = fc.array(piece, { minLength: 1, maxLength: 6 }).map((pieces) => pieces.join(""));
    fc.assert(
      fc.property(
        source,
        fc.string({ unit: fc.constantFrom("a", "b", "."), maxLength: 12 }),
        (text, subject) => {
          const pattern = compilePattern(text);
          const expected = new RegExp(text).exec(subject);
          assert.equal(pattern.test(subject), expected !== null);
          const match = pattern.match(subject);
          assert.equal(match?.index, expected?.index);
          assert.equal(match?.groups[0], expected?.[0]);
        },
      ),
      { numRuns: 1000 },
    );
  });
});
