/** `ttl`, `rcode` and `cname` rules. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EncodedSections, parseRcode, rcodeName } from "../../dns/index.ts";
import { Reply } from "../../plugin/index.ts";
import { NoNextPluginError } from "../../plugin/query/outcome.ts";
import { PluginTest, records } from "../../plugin/testing.ts";
import { type RewritingZone, rewritten } from "./fixtures/rewriting.ts";
import rewrite from "./index.ts";

const ZONE: RewritingZone = {
  "www.example.net. a": ["www.example.net. 300 IN A 192.0.2.10"],
  "ftp.example.net. a": ["ftp.example.net. 5 IN A 192.0.2.11"],
  "api.example.net. a": [
    "api.example.net. 900 IN CNAME www.example.net.",
    "www.example.net. 300 IN A 192.0.2.10",
  ],
  "wwwx.test. a": ["wwwx.test. 60 IN A 192.0.2.12"],
};

/** A rule, a name, and the TTLs of its addresses in the reply. */
const TTLS: readonly (readonly [string, string, readonly number[]])[] = [
  ["rewrite ttl www.example.net 42", "www.example.net.", [42]],
  ["rewrite ttl www.example.net 42", "WWW.example.net.", [42]],
  ["rewrite ttl exact www.example.net 42", "ftp.example.net.", [5]],
  ["rewrite ttl www.example.net 42", "api.example.net.", [900, 300]],
  ["rewrite ttl prefix www 33", "www.example.net.", [33]],
  ["rewrite ttl prefix www 33", "wwwx.test.", [60]],
  ["rewrite ttl suffix .example.net 10-30", "www.example.net.", [30]],
  ["rewrite ttl suffix .example.net 10-30", "ftp.example.net.", [10]],
  ["rewrite ttl suffix .example.net 10-30", "wwwx.test.", [60]],
  ["rewrite ttl suffix .example.net -600", "api.example.net.", [600, 300]],
  ["rewrite ttl suffix .example.net 600-", "api.example.net.", [900, 600]],
  ["rewrite ttl substring example 77", "www.example.net.", [77]],
  ["rewrite ttl substring xamp 77", "www.example.net.", [300]],
  ["rewrite ttl regex ^(w|f).*\\.net\\.$ 88", "ftp.example.net.", [88]],
  ["rewrite ttl regex ^(w|f).*\\.net\\.$ 88", "api.example.net.", [900, 300]],
  ["rewrite ttl www.example.net 0", "www.example.net.", [0]],
  ["rewrite ttl www.example.net 4294967295", "www.example.net.", [4_294_967_295]],
  [
    "rewrite continue ttl suffix .example.net 10-\nrewrite continue ttl suffix .example.net -20\nrewrite ttl www.example.net 99",
    "www.example.net.",
    [20],
  ],
  ["rewrite continue ttl a.test 11\nrewrite name a.test www.example.net", "a.test.", [11]],
  ["rewrite continue name a.test www.example.net\nrewrite ttl www.example.net 22", "a.test.", [22]],
];

describe("ttl", () => {
  for (const [rule, name, ttls] of TTLS) {
    test(`${rule.replaceAll("\n", "; ")}: ${name}`, async () => {
      const result = await rewritten(rule, { name }, ZONE);
      assert.deepEqual(
        result.records.map((record) => Number(record.split(" ")[1])),
        ttls,
      );
    });
  }

  test("clamps the one TTL that a cache shows for all records", async () => {
    const running = PluginTest.of(rewrite, "rewrite ttl www.example.net -20");
    const answer = records("www.example.net. 300 IN A 192.0.2.10");
    const outcome = await running.outcome({
      name: "www.example.net.",
      next: (query) => {
        const { encoded } = EncodedSections.encode(query.question, { answer, authority: [], additional: [] });
        return Reply.fromEncoded(query, encoded, 0, 0, 77);
      },
    });
    assert.ok(outcome.kind === "reply");
    assert.equal(outcome.uniformTtl, 20);
  });
});

const RCODES: RewritingZone = Object.fromEntries(
  ["NOERROR", "NXDOMAIN", "SERVFAIL", "REFUSED", "NOTIMP", "FORMERR"].map((name) => [
    `${name.toLowerCase()}.fail.test. a`,
    { rcode: parseRcode(name) ?? -1 },
  ]),
);

const RCODE_TABLE: readonly (readonly [string, string, string])[] = [
  ["rewrite rcode nxdomain.fail.test NXDOMAIN NOERROR", "nxdomain.fail.test.", "NOERROR"],
  ["rewrite rcode nxdomain.fail.test nxdomain noerror", "NXDOMAIN.fail.test.", "NOERROR"],
  ["rewrite rcode nxdomain.fail.test SERVFAIL NOERROR", "nxdomain.fail.test.", "NXDOMAIN"],
  ["rewrite rcode servfail.fail.test 2 3", "servfail.fail.test.", "NXDOMAIN"],
  ["rewrite rcode suffix .fail.test REFUSED NXDOMAIN", "refused.fail.test.", "NXDOMAIN"],
  ["rewrite rcode suffix .fail.test REFUSED NXDOMAIN", "notimp.fail.test.", "NOTIMP"],
  ["rewrite rcode prefix refused. REFUSED NOERROR", "refused.fail.test.", "NOERROR"],
  ["rewrite rcode substring .fail. NOTIMP SERVFAIL", "notimp.fail.test.", "SERVFAIL"],
  ["rewrite rcode regex ^formerr\\..*$ FORMERR 23", "formerr.fail.test.", "BADCOOKIE"],
  ["rewrite rcode noerror.fail.test NOERROR YXDOMAIN", "noerror.fail.test.", "YXDOMAIN"],
  [
    "rewrite continue rcode nxdomain.fail.test NXDOMAIN SERVFAIL\nrewrite continue rcode nxdomain.fail.test SERVFAIL REFUSED",
    "nxdomain.fail.test.",
    "SERVFAIL",
  ],
];

describe("rcode", () => {
  for (const [rule, name, rcode] of RCODE_TABLE) {
    test(`${rule.replaceAll("\n", "; ")}: ${name}`, async () => {
      const result = await rewritten(rule, { name }, RCODES);
      assert.equal(result.outcome.kind, "reply");
      assert.equal(rcodeName(result.rcode), rcode);
    });
  }

  test("turns a failure into a reply if it matches the rcode", async () => {
    const changed = await rewritten("rewrite rcode x.test SERVFAIL NXDOMAIN", { name: "x.test." }, {});
    assert.deepEqual([changed.outcome.kind, changed.rcode], ["reply", 3]);
    const kept = await rewritten("rewrite rcode x.test REFUSED NXDOMAIN", { name: "x.test." }, {});
    assert.deepEqual([kept.outcome.kind, kept.rcode], ["failed", 2]);
  });
});

const CNAMES: RewritingZone = {
  "cdn.test. a": ["cdn.test. 60 IN CNAME target.one.test.", "target.one.test. 70 IN A 192.0.2.30"],
  "cdn.test. cname": ["cdn.test. 60 IN CNAME target.one.test."],
  "hop.test. a": [
    "hop.test. 60 IN CNAME cdn.test.",
    "cdn.test. 60 IN CNAME target.one.test.",
    "target.one.test. 70 IN A 192.0.2.30",
  ],
  "target.two.test. a": ["target.two.test. 80 IN A 192.0.2.31"],
  "target.two.test. cname": [],
  "other.one.test. a": ["other.one.test. 90 IN A 192.0.2.32"],
  "servfail.test. a": { rcode: 2 },
  "nx.test. a": { rcode: 3 },
  "plain.test. a": ["plain.test. 5 IN A 192.0.2.5"],
  "loop.test. a": ["loop.test. 5 IN CNAME target.one.test."],
};
const TWO = "target.two.test. 80 IN A 192.0.2.31";

const CNAME_TABLE: readonly (readonly [string, string, readonly string[]])[] = [
  [
    "rewrite cname exact target.one.test. target.two.test.",
    "cdn.test. A",
    ["cdn.test. 60 IN CNAME target.two.test.", TWO],
  ],
  [
    "rewrite cname target.one.test target.two.test",
    "cdn.test. A",
    ["cdn.test. 60 IN CNAME target.two.test.", TWO],
  ],
  [
    "rewrite cname TARGET.one.test target.two.TEST",
    "cdn.test. A",
    ["cdn.test. 60 IN CNAME target.two.test.", TWO],
  ],
  [
    "rewrite cname exact target.one.test target.two.test",
    "hop.test. A",
    ["hop.test. 60 IN CNAME cdn.test.", "cdn.test. 60 IN CNAME target.two.test.", TWO],
  ],
  [
    "rewrite cname exact cdn.test plain.test",
    "hop.test. A",
    ["hop.test. 60 IN CNAME plain.test.", "plain.test. 5 IN A 192.0.2.5"],
  ],
  [
    "rewrite cname suffix .one.test. .two.test.",
    "cdn.test. A",
    ["cdn.test. 60 IN CNAME target.two.test.", TWO],
  ],
  [
    "rewrite cname suffix one.test two.test",
    "cdn.test. A",
    ["cdn.test. 60 IN CNAME target.one.test.", "target.one.test. 70 IN A 192.0.2.30"],
  ],
  [
    "rewrite cname prefix target. other.",
    "cdn.test. A",
    ["cdn.test. 60 IN CNAME other.one.test.", "other.one.test. 90 IN A 192.0.2.32"],
  ],
  ["rewrite cname substring .one. .two.", "cdn.test. A", ["cdn.test. 60 IN CNAME target.two.test.", TWO]],
  [
    "rewrite cname regex ^(.*)\\.one\\.test\\.$ {1}.two.test.",
    "cdn.test. A",
    ["cdn.test. 60 IN CNAME target.two.test.", TWO],
  ],
  [
    "rewrite cname target.one.test target.two.test",
    "cdn.test. CNAME",
    ["cdn.test. 60 IN CNAME target.two.test."],
  ],
  ["rewrite cname target.one.test servfail.test", "cdn.test. A", ["cdn.test. 60 IN CNAME servfail.test."]],
  ["rewrite cname target.one.test nx.test", "cdn.test. A", ["cdn.test. 60 IN CNAME nx.test."]],
  [
    "rewrite cname target.one.test unknown.test",
    "cdn.test. A",
    ["cdn.test. 60 IN CNAME target.one.test.", "target.one.test. 70 IN A 192.0.2.30"],
  ],
  ["rewrite cname target.one.test target.two.test", "plain.test. A", ["plain.test. 5 IN A 192.0.2.5"]],
  [
    "rewrite continue name suffix .corp .test answer auto\nrewrite cname target.one.test target.two.test",
    "cdn.corp. A",
    ["cdn.corp. 60 IN CNAME target.two.corp.", "target.two.corp. 80 IN A 192.0.2.31"],
  ],
];

for (const late of [false, true]) {
  describe(late ? "cname, late" : "cname", () => {
    for (const [rule, question, expected] of CNAME_TABLE) {
      test(`${rule.replaceAll("\n", "; ")}: ${question}`, async () => {
        const [name = "", type = ""] = question.split(" ");
        const result = await rewritten(rule, { name, type }, CNAMES, late);
        assert.deepEqual(result.records, expected);
      });
    }

    test("a target that leads back to its own rule terminates", async () => {
      const result = await rewritten(
        "rewrite cname target.one.test loop.test",
        { name: "loop.test." },
        CNAMES,
        late,
      );
      assert.equal(result.asked.length, 9);
      assert.equal(`${result.outcome.kind} ${result.rcode}`, "failed 2");
    });

    test("an alias stays in the reply if no plugin answers for its target", async () => {
      const result = await rewritten(
        "rewrite cname target.one.test elsewhere.test",
        { name: "cdn.test." },
        { ...CNAMES, "elsewhere.test. a": { error: new NoNextPluginError("rewrite") } },
        late,
      );
      assert.deepEqual(result.records, ["cdn.test. 60 IN CNAME elsewhere.test."]);
    });
  });
}
