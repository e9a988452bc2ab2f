import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import rewrite from "./index.ts";

/** Rules, and the message for each; `undefined` for valid rules. */
const TABLE: readonly (readonly [string, string | undefined])[] = [
  ["rewrite", "no rule type specified for rewrite"],
  ["rewrite name a", "too few arguments for a name rule"],
  ["rewrite foo a b", 'invalid rule type "foo"'],
  ["rewrite stop", "stop rule must begin with a rule type"],
  ["rewrite continue", "continue rule must begin with a rule type"],
  ["rewrite continue foo a b", 'invalid rule type "foo"'],
  ["rewrite stop a b", 'invalid rule type "a"'],
  ["rewrite class IN", "class rules must have exactly two arguments"],
  ["rewrite class IN CH HS", "class rules must have exactly two arguments"],
  ["rewrite class XX IN", 'invalid class "XX"'],
  ["rewrite type XX A", 'invalid type "XX"'],
  ["rewrite type A XX", 'invalid type "XX"'],
  ["rewrite type TYPE99 A", 'invalid type "TYPE99"'],
  ["rewrite name regex (?=a) b", "invalid regex matching pattern: (?=a)"],
  [
    "rewrite name regex a {1}",
    "the rewrite regex pattern ({1}) uses more subexpressions than its corresponding matching regex pattern (a)",
  ],
  [
    "rewrite name regex (a) {1}{2}",
    "the rewrite regex pattern ({1}{2}) uses more subexpressions than its corresponding matching regex pattern ((a))",
  ],
  ["rewrite name regex (a) {5}", undefined],
  ["rewrite name regex a b metadata", undefined],
  ["rewrite name regex (a) {0}.{1}.{a/b/c}.{x/y} metadata answer auto", undefined],
  ["rewrite name regex a {x/y}", undefined],
  ["rewrite name exact a b metadata", "metadata is only supported for regex name rules"],
  ["rewrite name suffix a b metadata answer auto", "metadata is only supported for regex name rules"],
  ["rewrite name regex ( b metadata", "invalid regex matching pattern: ("],
  ["rewrite name regex a {x} metadata", 'invalid metadata label "x" in name replacement'],
  ["rewrite name regex a {x/} metadata", 'invalid metadata label "x/" in name replacement'],
  ["rewrite name regex a {/x} metadata", 'invalid metadata label "/x" in name replacement'],
  ["rewrite name regex a {a/b metadata", "unclosed placeholder in metadata name replacement"],
  ["rewrite name regex a a/b} metadata", "unmatched closing brace in metadata name replacement"],
  ["rewrite name regex a {1} metadata", "capture group 1 does not exist in name matching pattern"],
  ["rewrite name regex a x metadata metadata", "invalid arguments for regex rule"],
  ["rewrite name regex a x metadata foo", "invalid arguments for regex rule"],
  ["rewrite name regex a x Metadata", "invalid arguments for regex rule"],
  ["rewrite name regex a x answer auto metadata", 'invalid type "metadata" for answer rule for regex rule'],
  ["rewrite name regex (a) {0}", undefined],
  ["rewrite name exact a b c", "invalid arguments for exact rule"],
  ["rewrite name exact a b answer auto extra", 'invalid type "extra" for answer rule for exact rule'],
  ["rewrite name exact a b answer name x", "name answer rule for exact rule: 2 arguments required"],
  ["rewrite name exact a b answer name x y z", 'invalid type "z" for answer rule for exact rule'],
  ["rewrite name exact a b answer bogus", 'invalid type "bogus" for answer rule for exact rule'],
  [
    "rewrite name exact a b answer auto answer name x y",
    "auto name answer rule cannot be combined with explicit name anwer rules",
  ],
  [
    "rewrite name suffix a b answer name x y answer auto",
    "auto name answer rule cannot be combined with explicit name anwer rules",
  ],
  [
    "rewrite name exact a b answer value ( y",
    "value answer rule for exact rule: invalid regex matching pattern: (",
  ],
  [
    "rewrite name exact a b answer value (x) {1}{2}",
    "value answer rule for exact rule: the rewrite regex pattern ({1}{2}) uses more subexpressions than its corresponding matching regex pattern ((x))",
  ],
  [
    "rewrite name suffix a b Answer auto",
    "exceeded the number of arguments for a non-answer rule argument for suffix rule",
  ],
  ["rewrite name a..b c", undefined],
  ["rewrite ttl", "too few (0) arguments for a ttl rule"],
  ["rewrite ttl a", "too few (1) arguments for a ttl rule"],
  ["rewrite ttl a b", "invalid TTL 'b' for a ttl rule"],
  ["rewrite ttl a 5-3-2", "invalid TTL '5-3-2' for a ttl rule"],
  ["rewrite ttl a 4294967296", "invalid TTL '4294967296' for a ttl rule"],
  ["rewrite ttl a -1s", "invalid TTL '-1s' for a ttl rule"],
  ["rewrite ttl regex ( 5", "invalid regex pattern in a ttl rule: ("],
  ["rewrite ttl exact a 5 6", "exceeded the number of arguments for a ttl rule: '6'"],
  [
    "rewrite ttl glob a 5",
    "ttl rule supports only exact, prefix, suffix, substring, and regex name matching",
  ],
  ["rewrite rcode a NXDOMAIN", "too few (2) arguments for a rcode rule"],
  ["rewrite rcode a 23 0", undefined],
  ["rewrite rcode regex ( 1 2", "invalid regex pattern in a rcode rule: ("],
  [
    "rewrite rcode glob a 1 2",
    "rcode rule supports only exact, prefix, suffix, substring, and regex name matching",
  ],
  ["rewrite rcode exact a 1 2 3", "exceeded the number of arguments for a rcode rule: '3'"],
  ["rewrite rcode a -1 0", "invalid matching RCODE '-1' for a rcode rule"],
  ["rewrite cname a", "too few (1) arguments for a cname rule"],
  ["rewrite cname exact a", undefined],
  ["rewrite cname regex (a) {1}{2}", undefined],
  ["rewrite edns0", "too few arguments for an EDNS0 rule"],
  ["rewrite edns0 local", "too few arguments for an EDNS0 rule"],
  ["rewrite edns0 local set 1", "EDNS0 local rules require three or four args"],
  ["rewrite edns0 local set x y", 'strconv.ParseUint: parsing "x": invalid syntax'],
  ["rewrite edns0 local set 65536 y", 'strconv.ParseUint: parsing "65536": value out of range'],
  ["rewrite edns0 local bogus 1 y", 'invalid action: "bogus"'],
  ["rewrite edns0 local set 1 0xabc", "encoding/hex: odd length hex string"],
  ["rewrite edns0 local set 1 a b", "EDNS0 local rules require three or four args"],
  ["rewrite edns0 local set 1 {nope}", 'unsupported variable name "{nope}"'],
  ["rewrite edns0 local set 1 {a/}", 'unsupported variable name "{a/}"'],
  ["rewrite edns0 local set 1 {a/b/c}", undefined],
  ["rewrite edns0 local unset", "local unset action requires exactly two arguments"],
  ["rewrite edns0 local unset 1 2", "local unset action requires exactly two arguments"],
  ["rewrite edns0 local unset 1 revert", "local unset action requires exactly two arguments"],
  ["rewrite edns0 nsid", "too few arguments for an EDNS0 rule"],
  ["rewrite edns0 nsid bogus", 'invalid action: "bogus"'],
  ["rewrite edns0 nsid set abc", "EDNS0 NSID rules can accept no more than one arg"],
  ["rewrite edns0 nsid set revert x", "EDNS0 NSID rules can accept no more than one arg"],
  ["rewrite edns0 nsid unset revert", "nsid unset action requires exactly one argument"],
  ["rewrite edns0 subnet set", "EDNS0 subnet rules require three or four args"],
  ["rewrite edns0 subnet set 24", "EDNS0 subnet rules require three or four args"],
  ["rewrite edns0 subnet set 33 56", "invalid IPv4 bit mask length 33"],
  ["rewrite edns0 subnet set 24 129", "invalid IPv6 bit mask length 129"],
  ["rewrite edns0 subnet set -1 56", 'strconv.ParseUint: parsing "-1": invalid syntax'],
  ["rewrite edns0 subnet set x 56", 'strconv.ParseUint: parsing "x": invalid syntax'],
  ["rewrite edns0 subnet set 24 56 foo", "EDNS0 subnet rules require three or four args"],
  ["rewrite edns0 bogus set 1 2", 'invalid rule type "bogus"'],
  ["rewrite stop {\n answer name a b\n name a b\n }", "response rewrites must begin with a name rule"],
  [
    "rewrite stop {\n name a b\n name c d\n }",
    "name rule supports only exact, prefix, suffix, substring, and regex name matching, received: a",
  ],
  ["rewrite stop stop name a b", 'invalid rule type "stop"'],
];

for (const [rule, message] of TABLE) {
  test(`${rule.replaceAll(/\s*\n\s*/g, "; ")}: ${message ?? "starts"}`, () => {
    if (message === undefined) {
      PluginTest.of(rewrite, rule);
      return;
    }
    assert.throws(
      () => PluginTest.of(rewrite, rule),
      (error) => error instanceof ConfigRefused && error.message.includes(message),
    );
  });
}

test("an expression may have 10,000 characters, but no more", () => {
  PluginTest.of(rewrite, `rewrite name regex ${"a".repeat(10_000)} b`);
  assert.throws(
    () => PluginTest.of(rewrite, `rewrite name regex ${"a".repeat(10_001)} b`),
    /regex pattern too long: 10001 > 10000/,
  );
});

test("invalid names get a warning", () => {
  const { warnings } = PluginTest.of(rewrite, "rewrite name a..b c\nrewrite name c a..b");
  assert.equal(warnings.length, 2);
  assert.match(warnings[0] ?? "", /'a\.\.b' is not a domain name: the rule never matches/);
  assert.match(
    warnings[1] ?? "",
    /'a\.\.b' is not a domain name: queries that the rule matches fail with SERVFAIL/,
  );
});

test("every faulty rule is reported, at its place", () => {
  assert.throws(
    () => PluginTest.of(rewrite, "rewrite foo a b\nrewrite name a b\nrewrite ttl a x"),
    (error) =>
      error instanceof ConfigRefused &&
      error.codes.length === 2 &&
      error.message.includes("Corefile:2:9") &&
      error.message.includes("Corefile:4:15"),
  );
});
