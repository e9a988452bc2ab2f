import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { parseTestFile, TestFileError } from "./test-file.ts";

const WHOLE = `
corefile: Corefile
fixtures:
  manifests: [cluster, more.yaml]
  hosts: 192.0.2.1 a
  time: 2026-03-04T05:06:07Z
  upstreams:
    192.0.2.1: a.example. 60 IN A 192.0.2.9
    "*": { rcode: refused, down: true }
cases:
  - name: everything
    query: a.example aaaa
    from: 2001:db8::1
    tcp: true
    dnssec: true
    listener: dns://:53
    advance: 1m30s
    expect:
      rcode: nxdomain
      answer: |
        a.example. 5-10 IN A 192.0.2.9
        ; a comment
        a.example A 192.0.2.10
      flags: AA rd
      ttl: 1-30
      plugin: cache
      upstream: none
  - query: b.example.
    expect: {}
`;

describe("parseTestFile", () => {
  it("reads all keys of a test file", () => {
    const { corefile, fixtures, cases } = parseTestFile(WHOLE, "dns-test.yaml");
    assert.equal(corefile, "Corefile");
    assert.deepEqual(fixtures.manifests, ["cluster", "more.yaml"]);
    assert.equal(fixtures.time, Date.UTC(2026, 2, 4, 5, 6, 7));
    assert.deepEqual(
      [...fixtures.upstreams].map(([word, { isDown }]) => [word, isDown]),
      [
        ["192.0.2.1", false],
        ["*", true],
      ],
    );
    const [first, second] = cases;
    assert.equal(first?.line, 11);
    assert.equal(first?.name.toString(), "a.example.");
    assert.equal(first?.type, 28);
    assert.equal(first?.advance, 90_000);
    const { answer, ...rest } = first?.expect ?? assert.fail("no case");
    assert.deepEqual(rest, {
      rcode: "NXDOMAIN",
      authority: undefined,
      additional: undefined,
      flags: ["aa", "rd"],
      ttl: { least: 1, most: 30 },
      plugin: "cache",
      upstreams: [],
    });
    assert.deepEqual(
      answer?.map(({ key, ttl }) => [key, ttl]),
      [
        ["a.example. IN A 192.0.2.9", { least: 5, most: 10 }],
        ["a.example. IN A 192.0.2.10", undefined],
      ],
    );
    assert.equal(second?.title, "b.example.");
    assert.equal(second?.expect.rcode, "NOERROR");
  });

  for (const [text, faults] of [
    ["", ["1: a test file: expected a mapping"]],
    ["[]", ["1: a test file: expected a mapping"]],
    ["corefile: [", ["1: not valid YAML"]],
    ["cases: []", ["1: corefile is missing", "1: cases: expected a list with one case or more"]],
    ["corefile: a\ncase: []", ['2: unknown key "case": did you mean "cases"?', "1: cases: expected a list"]],
    [
      "corefile: a\ncases: [{query: a, expect: {}}]\nfixtures: {time: noon}",
      ['3: time: "noon" is not a time'],
    ],
    ["corefile: a\ncases:\n  - expect: {}", ["3: query: expected NAME, or NAME TYPE"]],
    ["corefile: a\ncases:\n  - query: a b c\n    expect: {}", ["3: query: expected NAME, or NAME TYPE"]],
    ["corefile: a\ncases:\n  - query: a AB\n    expect: {}", ["3: query: AB is not a record type"]],
    [`corefile: a\ncases:\n  - query: ${"a".repeat(64)}\n    expect: {}`, ["3: query: "]],
    ["corefile: a\ncases:\n  - query: a", ["3: expect is missing"]],
    ["corefile: a\ncases:\n  - query: a\n    from: b\n    expect: {}", ['4: from: "b" is not an IP address']],
    [
      "corefile: a\ncases:\n  - query: a\n    advance: -1s\n    expect: {}",
      ['4: advance: "-1s" is not a duration'],
    ],
    [
      "corefile: a\ncases:\n  - query: a\n    tcp: perhaps\n    expect: {}",
      ["4: tcp: expected true or false"],
    ],
    [
      "corefile: a\ncases:\n  - query: a\n    expect:\n      rcode: BAD\n      flags: ab\n      ttl: x\n      answer: a A b",
      [
        '8: "a A b": ',
        '6: flags: unknown flag "ab", expected some of aa tc rd ra ad cd',
        '5: rcode: "BAD" is not an rcode',
        '7: ttl: "x" is neither',
      ],
    ],
    [
      "corefile: a\nfixtures: {upstreams: {b: a.example.}}\ncases: [{query: a, expect: {}}]",
      ['2: "a.example.": '],
    ],
  ] as const) {
    it(`refuses ${JSON.stringify(text.slice(0, 70))}`, () => {
      assert.throws(
        () => parseTestFile(text, "t.yaml"),
        (error) => {
          if (!(error instanceof TestFileError)) return false;
          const lines = error.message.split("\n");
          for (const fault of faults)
            assert.ok(
              lines.some((line) => line.startsWith(`t.yaml:${fault}`)),
              `${fault} is not in ${error.message}`,
            );
          return true;
        },
      );
    });
  }

  it("refuses any other text with a message", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        try {
          parseTestFile(text, "t.yaml");
        } catch (error) {
          return error instanceof TestFileError;
        }
        return true;
      }),
      { numRuns: 300 },
    );
  });
});
