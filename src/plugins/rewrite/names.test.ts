import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type RewritingZone, rewritten } from "./fixtures/rewriting.ts";

/** A rule, a question, the rewritten question, and the records of the reply. */
type Row = readonly [rule: string, question: string, asked: string, records: readonly string[]];

const ZONE: RewritingZone = {
  "b.example.org. a": ["b.example.org. 60 IN A 192.0.2.1"],
  "b.example.org. aaaa": ["b.example.org. 60 IN AAAA 2001:db8::1"],
  "b.example.org. txt": ['b.example.org. 60 IN TXT "text of b.example.org."'],
  "b.example.org. mx": ["b.example.org. 60 IN MX 10 mail.b.example.org."],
  "b.example.org. ns": ["b.example.org. 60 IN NS ns.b.example.org."],
  "b.example.org. soa": ["b.example.org. 60 IN SOA ns.b.example.org. host.b.example.org. 1 2 3 4 60"],
  "b.example.org. srv": ["b.example.org. 60 IN SRV 1 2 3 srv.b.example.org."],
  "b.example.org. ptr": ["b.example.org. 60 IN PTR ptr.b.example.org."],
  "b.example.org. dname": ["b.example.org. 60 IN DNAME d.b.example.org."],
  "b.example.org. naptr": ['b.example.org. 60 IN NAPTR 1 2 "U" "sip" "!b.example.org!" nap.b.example.org.'],
  "b.example.org. rp": ["b.example.org. 60 IN RP mail.b.example.org. txt.b.example.org."],
  "b.example.org. https": ["b.example.org. 60 IN HTTPS 1 svc.b.example.org. alpn=h2"],
  "c.b.example.org. a": [
    "c.b.example.org. 30 IN CNAME d.b.example.org.",
    "d.b.example.org. 40 IN CNAME e.other.net.",
    "e.other.net. 50 IN A 192.0.2.3",
  ],
  "sub.b.example.org. a": ["sub.b.example.org. 120 IN A 192.0.2.2"],
  "www.example.net. a": ["www.example.net. 300 IN A 192.0.2.10"],
  "www.example.net. mx": [
    "www.example.net. 300 IN MX 5 mx1.example.net.",
    "www.example.net. 300 IN MX 20 mx2.www.example.net.",
  ],
  "wwwexample.net. a": ["wwwexample.net. 5 IN A 192.0.2.11"],
  "example.net. a": ["example.net. 5 IN A 192.0.2.12"],
  "bar.test. a": ["bar.test. 60 IN A 192.0.2.21"],
  "foo.bar.test. a": ["foo.bar.test. 60 IN A 192.0.2.20"],
  "bar.bar.test. a": ["bar.bar.test. 60 IN A 192.0.2.22"],
  "ftp.example.net. a": ["ftp.example.net. 5 IN A 192.0.2.11"],
  ". a": [". 60 IN A 192.0.2.99"],
  "a.test. a": ["a.test. 60 IN A 192.0.2.50"],
};

const EXACT = "rewrite name a.example.org b.example.org";
const SUFFIX = "rewrite name suffix .example.com .example.net answer auto";
const BLOCK = `rewrite stop {
  name regex (.*)\\.corp\\.test\\.$ {1}.b.example.org
  answer name (.*)\\.b\\.example\\.org {1}.corp.test
}`;

const TABLE: readonly Row[] = [
  // exact
  [EXACT, "a.example.org. A", "b.example.org. A", ["a.example.org. 60 IN A 192.0.2.1"]],
  [EXACT, "a.example.org. AAAA", "b.example.org. AAAA", ["a.example.org. 60 IN AAAA 2001:db8::1"]],
  [EXACT, "a.example.org. TXT", "b.example.org. TXT", ['a.example.org. 60 IN TXT "text of b.example.org."']],
  [EXACT, "a.example.org. MX", "b.example.org. MX", ["a.example.org. 60 IN MX 10 mail.a.example.org."]],
  [EXACT, "a.example.org. NS", "b.example.org. NS", ["a.example.org. 60 IN NS ns.a.example.org."]],
  [
    EXACT,
    "a.example.org. SOA",
    "b.example.org. SOA",
    ["a.example.org. 60 IN SOA ns.a.example.org. host.b.example.org. 1 2 3 4 60"],
  ],
  [EXACT, "a.example.org. SRV", "b.example.org. SRV", ["a.example.org. 60 IN SRV 1 2 3 srv.a.example.org."]],
  [EXACT, "a.example.org. PTR", "b.example.org. PTR", ["a.example.org. 60 IN PTR ptr.a.example.org."]],
  [EXACT, "a.example.org. DNAME", "b.example.org. DNAME", ["a.example.org. 60 IN DNAME d.a.example.org."]],
  [
    EXACT,
    "a.example.org. NAPTR",
    "b.example.org. NAPTR",
    ['a.example.org. 60 IN NAPTR 1 2 "U" "sip" "!b.example.org!" nap.a.example.org.'],
  ],
  [
    EXACT,
    "a.example.org. RP",
    "b.example.org. RP",
    ["a.example.org. 60 IN RP mail.b.example.org. txt.b.example.org."],
  ],
  [
    EXACT,
    "a.example.org. HTTPS",
    "b.example.org. HTTPS",
    ['a.example.org. 60 IN HTTPS 1 svc.b.example.org. alpn="h2"'],
  ],
  [EXACT, "A.eXample.ORG. A", "b.example.org. A", ["A.eXample.ORG. 60 IN A 192.0.2.1"]],
  [EXACT, "x.a.example.org. A", "x.a.example.org. A", []],
  [EXACT, "b.example.org. MX", "b.example.org. MX", ["b.example.org. 60 IN MX 10 mail.b.example.org."]],
  [
    "rewrite name exact a.example.org b.example.org",
    "a.example.org. A",
    "b.example.org. A",
    ["a.example.org. 60 IN A 192.0.2.1"],
  ],
  [
    "rewrite NAME Exact A.example.org. B.example.org.",
    "a.example.org. A",
    "b.example.org. A",
    ["a.example.org. 60 IN A 192.0.2.1"],
  ],
  [
    "rewrite name b.example.org b.example.org",
    "B.Example.org. A",
    "b.example.org. A",
    ["B.Example.org. 60 IN A 192.0.2.1"],
  ],
  ["rewrite name a.test .", "a.test. A", ". A", ["a.test. 60 IN A 192.0.2.99"]],
  ["rewrite name . a.test", ". A", "a.test. A", [". 60 IN A 192.0.2.50"]],
  [
    "rewrite name q.test c.b.example.org",
    "q.test. A",
    "c.b.example.org. A",
    [
      "q.test. 30 IN CNAME d.b.example.org.",
      "d.b.example.org. 40 IN CNAME e.other.net.",
      "e.other.net. 50 IN A 192.0.2.3",
    ],
  ],
  [
    "rewrite name a\\046b.test b.example.org",
    "a\\.b.test. A",
    "b.example.org. A",
    ["a\\.b.test. 60 IN A 192.0.2.1"],
  ],
  ["rewrite name a\\046b.test b.example.org", "a.b.test. A", "a.b.test. A", []],
  [
    "rewrite name bücher.test b.example.org",
    "b\\195\\188cher.test. A",
    "b.example.org. A",
    ["b\\195\\188cher.test. 60 IN A 192.0.2.1"],
  ],
  // prefix
  [
    "rewrite name prefix foo ftp",
    "foo.example.net. A",
    "ftp.example.net. A",
    ["ftp.example.net. 5 IN A 192.0.2.11"],
  ],
  ["rewrite name prefix foo ftp", "foobar.test. A", "foobar.test. A", []],
  ["rewrite name prefix foo ftp", "x.foo.test. A", "x.foo.test. A", []],
  [
    "rewrite name prefix foo. www. answer auto",
    "foo.example.net. MX",
    "www.example.net. MX",
    ["foo.example.net. 300 IN MX 5 mx1.example.net.", "foo.example.net. 300 IN MX 20 mx2.foo.example.net."],
  ],
  [
    "rewrite name prefix FOO. www. answer auto",
    "fOO.example.net. A",
    "www.example.net. A",
    ["fOO.example.net. 300 IN A 192.0.2.10"],
  ],
  [
    "rewrite name prefix a.b. www",
    "a.b.example.net. A",
    "www.example.net. A",
    ["www.example.net. 300 IN A 192.0.2.10"],
  ],
  // suffix
  [SUFFIX, "www.example.com. A", "www.example.net. A", ["www.example.com. 300 IN A 192.0.2.10"]],
  [
    SUFFIX,
    "www.example.com. MX",
    "www.example.net. MX",
    ["www.example.com. 300 IN MX 5 mx1.example.com.", "www.example.com. 300 IN MX 20 mx2.www.example.com."],
  ],
  [SUFFIX, "WWW.Example.COM. A", "www.example.net. A", ["WWW.Example.COM. 300 IN A 192.0.2.10"]],
  [SUFFIX, "example.com. A", "example.com. A", []],
  [SUFFIX, "xexample.com. A", "xexample.com. A", []],
  [SUFFIX, "www.example.net. A", "www.example.net. A", ["www.example.net. 300 IN A 192.0.2.10"]],
  [
    "rewrite name suffix .example.com .example.net",
    "www.example.com. A",
    "www.example.net. A",
    ["www.example.net. 300 IN A 192.0.2.10"],
  ],
  [
    "rewrite name suffix example.com example.net answer auto",
    "wwwexample.com. A",
    "wwwexample.net. A",
    ["wwwexample.com. 5 IN A 192.0.2.11"],
  ],
  [
    "rewrite name suffix example.com example.net answer auto",
    "example.com. A",
    "example.net. A",
    ["example.com. 5 IN A 192.0.2.12"],
  ],
  [
    "rewrite name suffix . .b.example.org answer auto",
    "c. A",
    "c.b.example.org. A",
    ["c. 30 IN CNAME d.", "d. 40 IN CNAME e.other.net.", "e.other.net. 50 IN A 192.0.2.3"],
  ],
  [
    "rewrite name suffix .b.example.org . answer auto",
    "a.test.b.example.org. A",
    "a.test. A",
    ["a.test.b.example.org. 60 IN A 192.0.2.50"],
  ],
  // substring
  ["rewrite name substring foo. bar.", "foo.test. A", "bar.test. A", ["bar.test. 60 IN A 192.0.2.21"]],
  [
    "rewrite name substring foo. bar.",
    "foo.foo.test. A",
    "bar.bar.test. A",
    ["bar.bar.test. 60 IN A 192.0.2.22"],
  ],
  [
    "rewrite name substring foo. bar. answer auto",
    "foo.foo.test. A",
    "bar.bar.test. A",
    ["foo.foo.test. 60 IN A 192.0.2.22"],
  ],
  ["rewrite name substring foo. bar.", "foobar.test. A", "foobar.test. A", []],
  [
    "rewrite name substring .x. .",
    "foo.X.bar.test. A",
    "foo.bar.test. A",
    ["foo.bar.test. 60 IN A 192.0.2.20"],
  ],
  [
    "rewrite name substring . .",
    "b.example.org. A",
    "b.example.org. A",
    ["b.example.org. 60 IN A 192.0.2.1"],
  ],
  // regex
  [
    "rewrite name regex ^(.+)-(.+)\\.svc\\.$ {2}.{1}.example.org answer auto",
    "b-sub.svc. A",
    "sub.b.example.org. A",
    ["b-sub.svc. 120 IN A 192.0.2.2"],
  ],
  ["rewrite name regex ^(.+)-(.+)\\.svc\\.$ {2}.{1}.example.org", "bad.svc. A", "bad.svc. A", []],
  ["rewrite name regex ^(a)(b)\\.test\\.$ {0}{2}.x", "ab.test. A", "ab.test.b.x. A", []],
  [
    "rewrite name regex ^q\\. www.example.net.",
    "q.anything. A",
    "www.example.net. A",
    ["www.example.net. 300 IN A 192.0.2.10"],
  ],
  ["rewrite name regex ^Q\\. www.example.net.", "q.anything. A", "q.anything. A", []],
  [BLOCK, "sub.corp.test. A", "sub.b.example.org. A", ["sub.corp.test. 120 IN A 192.0.2.2"]],
  [
    BLOCK,
    "c.corp.test. A",
    "c.b.example.org. A",
    [
      "c.corp.test. 30 IN CNAME d.b.example.org.",
      "d.corp.test. 40 IN CNAME e.other.net.",
      "e.other.net. 50 IN A 192.0.2.3",
    ],
  ],
  [BLOCK, "SUB.Corp.Test. A", "sub.b.example.org. A", ["SUB.Corp.Test. 120 IN A 192.0.2.2"]],
  // answers
  [
    "rewrite stop {\n name exact a.example.org b.example.org\n answer value (.*)\\.b\\.example\\.org {1}.value.test\n}",
    "a.example.org. MX",
    "b.example.org. MX",
    ["a.example.org. 60 IN MX 10 mail.value.test."],
  ],
  [
    "rewrite stop {\n name suffix .a.test .b.example.org\n answer value (.+)\\.b\\.example\\.org\\.$ {1}.zz.test\n answer value (.+)\\.zz\\.test\\.$ {1}.yy.test\n}",
    "c.a.test. A",
    "c.b.example.org. A",
    [
      "c.b.example.org. 30 IN CNAME d.zz.test.",
      "d.b.example.org. 40 IN CNAME e.other.net.",
      "e.other.net. 50 IN A 192.0.2.3",
    ],
  ],
  [
    "rewrite stop {\n name suffix .a.test .b.example.org\n answer name (.*)\\.b\\.example\\.org {1}.n1.test\n answer name (.*)\\.other\\.net {1}.n2.test\n answer name ^c(.*)$ k{1}\n}",
    "c.a.test. A",
    "c.b.example.org. A",
    [
      "k.n1.test. 30 IN CNAME d.b.example.org.",
      "d.n1.test. 40 IN CNAME e.other.net.",
      "e.n2.test. 50 IN A 192.0.2.3",
    ],
  ],
  [
    "rewrite name suffix .a.test .b.example.org answer auto answer value (.*)\\.other\\.net {1}.hidden.test",
    "c.a.test. A",
    "c.b.example.org. A",
    [
      "c.a.test. 30 IN CNAME d.a.test.",
      "d.a.test. 40 IN CNAME e.hidden.test.",
      "e.other.net. 50 IN A 192.0.2.3",
    ],
  ],
  [
    "rewrite name regex ^q\\.test\\.$ www.example.net answer name ^(w+)\\.(.*)$ {2}{1}.x answer value ^(mx)(\\d)\\.(.*)$ {3}{2}{1}",
    "q.test. MX",
    "www.example.net. MX",
    [
      "example.net.www.x. 300 IN MX 5 example.net.1mx.",
      "example.net.www.x. 300 IN MX 20 www.example.net.2mx.",
    ],
  ],
  [
    "rewrite name regex ^q\\.test\\.$ www.example.net answer name ^zzz$ yyy",
    "q.test. A",
    "www.example.net. A",
    ["www.example.net. 300 IN A 192.0.2.10"],
  ],
  [
    "rewrite name regex ^q\\.test\\.$ www.example.net answer name . a..b",
    "q.test. A",
    "www.example.net. A",
    ["www.example.net. 300 IN A 192.0.2.10"],
  ],
  // several rules
  [
    "rewrite continue name a.test www.example.net\nrewrite continue name www.example.net ftp.example.net",
    "a.test. A",
    "ftp.example.net. A",
    ["a.test. 5 IN A 192.0.2.11"],
  ],
  [
    "rewrite name a.test www.example.net\nrewrite name www.example.net ftp.example.net",
    "a.test. A",
    "www.example.net. A",
    ["a.test. 300 IN A 192.0.2.10"],
  ],
  [
    "rewrite continue name suffix .one.test .two.test answer auto\nrewrite continue name suffix .two.test .example.net answer auto",
    "www.one.test. MX",
    "www.example.net. MX",
    ["www.one.test. 300 IN MX 5 mx1.one.test.", "www.one.test. 300 IN MX 20 mx2.www.one.test."],
  ],
  [
    "rewrite continue name prefix a. www.\nrewrite stop name suffix .test .net\nrewrite continue name suffix .net .org",
    "a.example.test. A",
    "www.example.net. A",
    ["www.example.net. 300 IN A 192.0.2.10"],
  ],
  [
    "rewrite continue name prefix a. www.\nrewrite stop name suffix .test .net\nrewrite continue name suffix .net .org",
    "b.example.net. A",
    "b.example.org. A",
    ["b.example.org. 60 IN A 192.0.2.1"],
  ],
  [
    "rewrite continue name prefix a. www.\nrewrite name www.example.net ftp.example.net",
    "a.example.net. A",
    "ftp.example.net. A",
    ["www.example.net. 5 IN A 192.0.2.11"],
  ],
  // type and class
  ["rewrite type ANY A", "b.example.org. ANY", "b.example.org. A", ["b.example.org. 60 IN A 192.0.2.1"]],
  [
    "rewrite type any a",
    "b.example.org. AAAA",
    "b.example.org. AAAA",
    ["b.example.org. 60 IN AAAA 2001:db8::1"],
  ],
  [
    "rewrite type A AAAA",
    "b.example.org. A",
    "b.example.org. AAAA",
    ["b.example.org. 60 IN AAAA 2001:db8::1"],
  ],
  ["rewrite class IN CH", "b.example.org. A", "b.example.org. A", ["b.example.org. 60 IN A 192.0.2.1"]],
];

for (const late of [false, true]) {
  describe(late ? "replies that come later" : "replies at hand", () => {
    for (const [rule, question, asked, records] of TABLE) {
      test(`${rule.replaceAll(/\s*\n\s*/g, "; ")}: ${question}`, async () => {
        const [name = "", type = ""] = question.split(" ");
        const result = await rewritten(rule, { name, type }, ZONE, late);
        assert.deepEqual(result.asked, [asked]);
        assert.deepEqual(result.records, records);
        assert.equal(`${result.query.name}`, name);
      });
    }
  });
}

for (const [rule, name, text] of [
  [
    `rewrite name suffix .s.test .${"l".repeat(60)}.${"m".repeat(60)}.${"n".repeat(60)}.test`,
    `${"b".repeat(63)}.${"c".repeat(9)}.s.test.`,
    /bbb/,
  ],
  ["rewrite name substring bar.test. .", "foo.bar.test.", /foo\.bar\.test/],
  ["rewrite name regex ^q x..y", "q.test.", /x\.\.y/],
  [`rewrite name a.test ${"a".repeat(64)}.test`, "a.test.", /a{64}/],
] as const) {
  test(`${rule.slice(0, 40)} makes no name of ${name.slice(0, 20)}`, async () => {
    const { outcome, asked } = await rewritten(rule, { name }, ZONE);
    assert.deepEqual(asked, []);
    assert.ok(outcome.kind === "failed" && outcome.rcode === 2);
    assert.match(outcome.error?.message ?? "", /^invalid name after rewrite: /);
    assert.match(outcome.error?.message ?? "", text);
  });
}

test("a name that is too long for its original suffix stays unchanged", async () => {
  const long = `${"x".repeat(60)}.${"y".repeat(60)}.${"z".repeat(60)}`;
  const zone: RewritingZone = { "b. a": [`${long}.b. 60 IN A 192.0.2.1`] };
  const from = `${"p".repeat(60)}.${"q".repeat(60)}`;
  const { records } = await rewritten(`rewrite name ${from} b`, { name: `${from}.` }, zone);
  assert.deepEqual(records, [`${long}.b. 60 IN A 192.0.2.1`]);
});

describe("metadata in the new name", () => {
  const rule =
    "rewrite name regex ^([^.]+)\\.example\\.$ {1}.{kubernetes/client-namespace}.svc.test metadata";
  const next = "rewrite name regex (.*)\\.example\\.$ fallback.test";
  const zone: RewritingZone = {
    "web.team-a.svc.test. a": ["web.team-a.svc.test. 60 IN A 192.0.2.1"],
    "fallback.test. a": ["fallback.test. 60 IN A 192.0.2.2"],
  };
  const ask = (text: string, metadata?: Readonly<Record<string, string>>, name = "Web.example.") =>
    rewritten(text, { name }, zone, false, metadata);

  test("stands for its label, in lower case, and answer auto leads back", async () => {
    const { asked, records } = await ask(`${rule} answer auto`, { "kubernetes/client-namespace": "Team-A" });
    assert.deepEqual(asked, ["web.team-a.svc.test. A"]);
    assert.deepEqual(records, ["Web.example. 60 IN A 192.0.2.1"]);
  });

  for (const [title, metadata] of [
    ["no metadata at all", undefined],
    ["a label without a value", { "kubernetes/client-namespace": "" }],
    ["other labels, in other letters", { "kubernetes/Client-Namespace": "team-a" }],
  ] as const) {
    test(`with ${title}, the rule does not match, and the next rule applies`, async () => {
      assert.deepEqual((await ask(`${rule}\n${next}`, metadata)).asked, ["fallback.test. A"]);
      assert.deepEqual((await ask(rule, metadata)).asked, ["Web.example. A"]);
    });
  }

  test("is plain text; an invalid name fails", async () => {
    const { asked } = await ask("rewrite name regex . {a/b}.test metadata", { "a/b": "{0}" });
    assert.deepEqual(asked, ["{0}.test. A"]);
    const { rcode } = await ask("rewrite name regex . {a/b}.test metadata", { "a/b": "a..b" });
    assert.equal(rcode, 2);
  });

  test("without the word 'metadata', braces are text", async () => {
    const { asked } = await ask("rewrite name regex . {a/b}.test", { "a/b": "c" });
    assert.deepEqual(asked, ["{a/b}.test. A"]);
  });
});
