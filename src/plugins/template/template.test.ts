import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Flag, Rcode, rcodeName } from "../../dns/numbers.ts";
import { answering, ConfigRefused, PluginTest, type QuestionOptions, records } from "../../plugin/testing.ts";
import template from "./index.ts";

/** The outcome on one line: rcode, and the data of the answers. */
async function outcome(text: string, question: Partial<QuestionOptions> = {}): Promise<string> {
  const running = PluginTest.of(template, text, { keys: "example.org:53" });
  const next = answering({ answer: records("elsewhere. 5 IN A 192.0.2.99") });
  const found = await running.outcome({ name: "www.example.org.", next, ...question });
  if (found.kind === "dropped" || found.kind === "stream") return found.kind;
  if (found.kind === "failed") return `fails ${rcodeName(found.rcode)}`;
  const data = found.answer.map((record) => JSON.stringify(record.data));
  return [rcodeName(found.rcode), ...data].join(" ");
}

/** The data of the one TXT record that the template makes. */
async function written(
  inside: string,
  question: Partial<QuestionOptions> = {},
  options = "",
): Promise<string> {
  const text = `template ANY ANY {\n${options}\n answer "{{ .Name }} 60 IN TXT ${inside.replaceAll('"', '\\"')}"\n}`;
  const running = PluginTest.of(template, text, { keys: "example.org:53" });
  const found = await running.ask({ name: "ip-10-7.example.org.", type: "TXT", ...question });
  return found.answer.map((record) => record.replace(/^\S+ 60 IN TXT /, "")).join("; ");
}

const WRITTEN: readonly (readonly [
  template: string,
  text: string,
  question?: Partial<QuestionOptions>,
  options?: string,
])[] = [
  ["{{ .Name }}", '"ip-10-7.example.org."'],
  ["{{ .Name }}", '"ip-10-7.example.org."', { name: "IP-10-7.Example.ORG." }],
  ["{{ .Question.Name }}", '"IP-10-7.Example.ORG."', { name: "IP-10-7.Example.ORG." }],
  ["{{ .Zone }}", '"example.org."'],
  ["{{ .Type }} {{ .Class }}", '"TXT" "IN"'],
  ["{{ .Type }}", '"MX"', { type: "MX" }],
  ['"<{{ .Type }}>"', '"<>"', { type: "TYPE65280" }],
  ["{{ .Remote }}", '"192.0.2.1"'],
  ["{{ .Remote }}", '"2001:db8::7"', { client: "2001:db8::7" }],
  ["{{ .Regex }}", '".*"'],
  ["{{ index .Match 0 }}", '"ip-10-7.example.org."'],
  ["{{ index .Match 1 }}.{{ index .Match 2 }}", '"10.7"', {}, " match ^ip-(\\d+)-(\\d+)"],
  ["{{ .Group.a }}", '"10"', {}, " match ^ip-(?P<a>\\d+)"],
  ["{{ .Group.b }}", '"<no" "value>"', {}, " match ^ip-(?P<a>\\d+)"],
  ['"<{{ index .Group `b` }}>"', '"<>"', {}, " match ^ip-(?P<a>\\d+)"],
  ["{{ index .Group `1` }}", '"10"', {}, " match ^ip-(\\d+)"],
  ['"{{ .Meta `a/b` }}"', '""'],
  ["{{ .Message.Id }}", '"4711"'],
  ["{{ .Message.RecursionDesired }}", '"true"'],
  ["{{ .Question.Qtype }}", '"16"'],
  ["{{ .Var.n }}", '"11"', {}, " match ^ip-(\\d+)\n var n int(group(1)) + 1"],
  ["{{ .Var.n }}", '"22"', {}, " match ^ip-(\\d+)\n var m int(group(1)) + 1\n var n m * 2"],
  ["{{ .Var.t }}", '"true"', {}, " var t type() == 'TXT'"],
  [
    "{{ range .Var.l }}{{ . }} {{ end }}",
    '"ip-10-7" "example" "org"',
    {},
    " var l split(trimSuffix(name(), '.'), '.')",
  ],
  ["{{ .Var.m.a }}", '"1"', {}, " var m {'a': 1}"],
  ["{{ .Var.f }}", '"2.5"', {}, " var f 5 / 2"],
  ["{{ .Var.f }}", '"1e+06"', {}, " var f 1e6"],
  ["{{ .Var.g }}", '"10"', {}, " match ^ip-(?P<a>\\d+)\n var g group('a')"],
  ["{{ if eq .Type `TXT` }}text{{ else }}other{{ end }}", '"text"'],
  ["{{ if eq .Type `A` }}4{{ else if eq .Type `AAAA` }}6{{ else }}0{{ end }}", '"0"'],
  ["{{ with .Meta `a/b` }}{{ . }}{{ else }}none{{ end }}", '"none"'],
  ["{{ with $z := .Zone }}{{ $z }}{{ end }}", '"example.org."'],
  [
    "{{ range $i, $m := .Match }}{{ $i }}={{ $m }} {{ end }}",
    '"0=ip-10-7" "1=10" "2=7"',
    {},
    " match ^ip-(\\d+)-(\\d+)",
  ],
  ["{{ range 3 }}{{ . }}{{ end }}", '"012"'],
  ["{{ range .Match }}{{ break }}{{ end }}x", '"x"'],
  ["{{ range 4 }}{{ if eq . 2 }}{{ continue }}{{ end }}{{ . }}{{ end }}", '"013"'],
  ["{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }}", '"2"'],
  ["{{ define `d` }}[{{ . }}]{{ end }}{{ template `d` .Type }}", '"[TXT]"'],
  ["{{ block `d` .Type }}<{{ . }}>{{ end }}", '"<TXT>"'],
  ["a {{- ` b ` -}} c", '"a" "b" "c"'],
  ["{{/* nothing */}}x", '"x"'],
  ["{{ .Name | len }}", '"20"'],
  ["{{ len `é` }}", '"2"'],
  ["{{ slice .Name 0 5 }}", '"ip-10"'],
  ["{{ printf `%03d-%x-%s` 7 255 `z` }}", '"007-ff-z"'],
  ["{{ printf `%q` `a` }}", '"a"'],
  ["{{ print 1 2 `a` 3 }}", '"1" "2a3"'],
  ["{{ parseInt `7f` 16 8 }}", '"127"'],
  ["{{ parseInt (index .Match 1) 10 8 }}", '"10"', {}, " match ^ip-(\\d+)"],
  ["{{ and .Name `x` }} {{ or `` `y` }} {{ not true }}", '"x" "y" "false"'],
  ["{{ lt 1 2 }} {{ ge 2 2 }} {{ ne `a` `b` }}", '"true" "true" "true"'],
  ["{{ html `<a>` | len }} {{ urlquery `a b` }}", '"9" "a+b"'],
  ["{{ `}}` }}", '"}}"'],
  ["{{ 0x1F }} {{ 'a' }} {{ 1.5 }}", '"31" "97" "1.5"'],
];

describe("template writes", () => {
  for (const [inside, text, question, options] of WRITTEN) {
    it(`${inside}${options === undefined ? "" : ` with${options.replaceAll("\n", ";")}`}`, async () => {
      assert.equal(await written(inside, question, options), text);
    });
  }
});

const A = 'answer "{{ .Name }} 60 IN A 192.0.2.1"';
const OWN = 'NOERROR {"address":"192.0.2.1"}';
const NEXT = 'NOERROR {"address":"192.0.2.99"}';

const OUTCOMES: readonly (readonly [text: string, outcome: string, question?: Partial<QuestionOptions>])[] = [
  [`template IN A {\n ${A}\n}`, OWN],
  [`template IN A {\n ${A}\n}`, NEXT, { type: "AAAA" }],
  [`template IN A {\n ${A}\n}`, NEXT, { class: 3 }],
  [`template IN A {\n ${A}\n}`, NEXT, { name: "www.example.net." }],
  [`template IN A {\n ${A}\n}`, OWN, { type: "ANY" }],
  [`template ANY ANY {\n ${A}\n}`, OWN, { type: "MX" }],
  [`template CH A {\n ${A}\n}`, OWN, { class: 3 }],
  [`template IN A sub.example.org {\n ${A}\n}`, NEXT],
  [`template IN A sub.example.org {\n ${A}\n}`, OWN, { name: "a.Sub.example.org." }],
  ["template IN AAAA", "NOERROR", { type: "AAAA" }],
  ["template ANY ANY {\n rcode NXDOMAIN\n}", "NXDOMAIN"],
  ["template ANY ANY {\n rcode REFUSED\n}", "REFUSED"],
  [`template ANY ANY {\n rcode SERVFAIL\n ${A}\n}`, "fails SERVFAIL"],
  [`template IN A {\n match ^ftp\n ${A}\n}`, "fails SERVFAIL"],
  [`template IN A {\n match ^ftp\n ${A}\n fallthrough\n}`, NEXT],
  [`template IN A {\n match ^ftp\n ${A}\n fallthrough example.net\n}`, "fails SERVFAIL"],
  [`template IN A {\n match ^ftp ^www\n ${A}\n}`, OWN],
  [`template IN A {\n match ^ftp\n match ^www\n ${A}\n}`, OWN],
  [`template IN A {\n expr client_ip() == '192.0.2.1'\n ${A}\n}`, OWN],
  [`template IN A {\n expr client_ip() == '192.0.2.2'\n ${A}\n}`, "fails SERVFAIL"],
  [`template IN A {\n expr client_ip() == '192.0.2.2'\n ${A}\n fallthrough\n}`, NEXT],
  [`template IN A {\n expr name()\n ${A}\n fallthrough\n}`, NEXT],
  [`template IN A {\n expr group(1) in ['w', 'x']\n match ^(.)\n ${A}\n}`, OWN],
  [`template IN A {\n expr ['a'][5] == 'a'\n ${A}\n fallthrough\n}`, "fails SERVFAIL"],
  [`template IN A {\n var n int('x')\n ${A}\n fallthrough\n}`, "fails SERVFAIL"],
  [`template IN A {\n match ^ftp\n fallthrough\n}\ntemplate IN A {\n ${A}\n}`, OWN],
  [`template IN A {\n match ^ftp\n}\ntemplate IN A {\n ${A}\n}`, "fails SERVFAIL"],
  ['template IN A {\n answer "{{ .Name }} 60 IN A nonsense"\n}', "fails SERVFAIL"],
  ['template IN A {\n answer "{{ index .Match 9 }}"\n}', "fails SERVFAIL"],
  ['template IN A {\n answer "{{ .Nope }}"\n}', "fails SERVFAIL"],
  ['template IN A {\n answer ""\n}', "fails SERVFAIL"],
  ['template IN A {\n answer "{{ range 1000000 }}x{{ end }}"\n}', "fails SERVFAIL"],
  ['template IN A {\n answer "{{ template `answer` }}"\n}', "fails SERVFAIL"],
  [
    'template IN A {\n answer "{{ .Name }} 60 IN A 192.0.2.1" "{{ .Name }} 60 IN A 192.0.2.2"\n}',
    `${OWN} {"address":"192.0.2.2"}`,
  ],
];

describe("template answers", () => {
  for (const [text, expected, question] of OUTCOMES) {
    it(`${JSON.stringify(text)} to ${JSON.stringify(question ?? {})} with ${expected}`, async () => {
      const found = await outcome(text, question);
      assert.equal(
        found.replaceAll(/\{"address":\{[^}]*\}\}/g, (data) => data),
        expected,
      );
    });
  }

  it("with authority and additional records, a TTL of an hour unless written, and AA", async () => {
    const text =
      'template IN A {\n authority "example.org. IN NS ns.example.org."\n additional "ns.example.org. 7 IN A 192.0.2.3"\n}';
    const found = await PluginTest.of(template, text).ask({ name: "a.example.org." });
    assert.deepEqual(found.authority, ["example.org. 3600 IN NS ns.example.org."]);
    assert.deepEqual(found.additional, ["ns.example.org. 7 IN A 192.0.2.3"]);
    assert.ok(found.reply.authoritative);
  });

  it("names in UTF-8, in owners and in data", async () => {
    const text =
      'template IN PTR example.org {\n answer "{{ .Name }} 60 IN PTR Büro\\0321._ipp.example.org."\n' +
      ' additional "Büro\\0321._ipp.example.org. 60 IN HTTPS 1 grüße.example.org."\n}';
    const running = PluginTest.of(template, text, { keys: "example.org:53" });
    const found = await running.ask({ name: "_ipp.example.org.", type: "PTR" });
    assert.deepEqual(found.answer, ["_ipp.example.org. 60 IN PTR B\\195\\188ro\\0321._ipp.example.org."]);
    assert.deepEqual(found.additional, [
      "B\\195\\188ro\\0321._ipp.example.org. 60 IN HTTPS 1 gr\\195\\188\\195\\159e.example.org.",
    ]);
  });

  it("with the records that the server finds for an alias, and with TC if those are truncated", async () => {
    const text = 'template IN A t.example {\n answer "{{ .Name }} 60 IN CNAME x.example."\n}';
    const running = PluginTest.of(template, text);
    const query = running.query({ name: "a.t.example." });
    const next = answering({ answer: records("x.example. 30 IN A 192.0.2.5"), truncated: true });
    Object.assign(query.listener, { resolve: next });
    const found = await running.chain(next)(query);
    assert.ok(found.kind === "reply");
    assert.equal(found.answer.length, 2);
    assert.ok(found.truncated);
    const other = running.query({ name: "a.t.example.", type: "ANY" });
    const alone = await running.chain(next)(other);
    assert.ok(alone.kind === "reply" && alone.answer.length === 1);
  });

  it("without following aliases that multiply", async () => {
    const target = '"{{ .Name }} 60 IN CNAME x.t.example."';
    const running = PluginTest.of(
      template,
      `template IN A t.example {\n answer ${Array(20).fill(target).join(" ")}\n}`,
    );
    let lookups = 0;
    const handle = running.chain((query) => query.fail());
    const query = running.query({ name: "a.t.example." });
    Object.assign(query.listener, {
      resolve: (inner: Parameters<typeof handle>[0]) => {
        lookups++;
        return handle(inner);
      },
    });
    const found = await handle(query);
    assert.equal(found.kind, "reply");
    assert.ok(lookups <= 64, `${lookups} lookups`);
  });

  it("with an extended error", async () => {
    const found = await PluginTest.of(template, 'template IN A {\n ederror 15 "no entry"\n}').ask({
      name: "a.",
    });
    assert.deepEqual(
      found.reply.edns?.options.map(({ code, data }) => [code, Buffer.from(data.subarray(2)).toString()]),
      [[15, "no entry"]],
    );
  });

  it("and counts", async () => {
    const text = `template IN A {\n match ^ok\n ${A}\n fallthrough\n}\ntemplate IN A {\n match ^bad\n answer "{{ .Nope }}"\n fallthrough\n}\ntemplate IN A {\n answer "x"\n}`;
    const running = PluginTest.of(template, text);
    for (const name of ["ok.", "ok.", "bad.", "other."]) await running.outcome({ name });
    const { body } = await running.metrics.expose();
    const labels = 'server="dns://:53",zone=".",view="",class="IN",type="A"';
    assert.ok(body.includes(`coredns_template_matches_total{${labels}} 4`), body);
    assert.ok(
      body.includes(
        `coredns_template_template_failures_total{${labels},section="answer",template="{{ .Nope }}"} 1`,
      ),
      body,
    );
    assert.ok(
      body.includes(`coredns_template_rr_failures_total{${labels},section="answer",template="x"} 1`),
      body,
    );
  });

  it("and its error names the place in the template", async () => {
    const running = PluginTest.of(
      template,
      'template IN A {\n answer "{{ .Name }} 60 IN\n {{ index .Match 9 }}"\n}',
    );
    const found = await running.outcome({ name: "a." });
    assert.ok(found.kind === "failed");
    assert.match(found.error?.message ?? "", /line 2, column 5 of .*index out of range: 9/s);
  });

  it("does not change the flags of the query", async () => {
    const found = await PluginTest.of(template, `template IN A {\n ${A}\n}`).ask({ name: "a." });
    assert.equal(found.reply.flags, Flag.AA);
    assert.equal(found.rcode, Rcode.NOERROR);
  });
});

const REFUSED: readonly (readonly [text: string, message: RegExp])[] = [
  ["template", /unexpected line ending after 'template'/],
  ["template IN", /unexpected line ending after 'IN'/],
  ["template in A", /invalid query class in/],
  ["template IN a", /invalid RR class a/],
  ["template IN FOO", /invalid RR class FOO/],
  ["template IN A {\n bogus\n}", /unknown property 'bogus'/],
  ["template IN A {\n match\n}", /unexpected line ending after 'match'/],
  ["template IN A {\n match (\n}", /could not parse regex: \(, .*missing closing/],
  ["template IN A {\n answer\n}", /unexpected line ending after 'answer'/],
  [
    'template IN A {\n answer "{{ .Name "\n}',
    /could not compile template: line 1, column 1: unclosed action/,
  ],
  [
    'template IN A {\n answer "a {{ nofunc }}"\n}',
    /3:15: error: .*line 1, column 6: function "nofunc" not defined/,
  ],
  ['template IN A {\n answer "a\n{{ end }}"\n}', /4:4: error: .*line 2, column 4: unexpected \{\{end\}\}/],
  ['template IN A {\n authority "{{ if }}"\n}', /missing value for if/],
  ["template IN A {\n rcode nxdomain\n}", /unknown rcode nxdomain/],
  ["template IN A {\n rcode BADVERS\n}", /unknown rcode BADVERS/],
  ["template IN A {\n ederror x\n}", /error parsing extended DNS error code x/],
  ["template IN A {\n ederror 1 a b\n}", /unexpected line ending after 'b'/],
  ["template IN A {\n var x\n}", /unexpected line ending after 'x'/],
  ["template IN A {\n var 1x 5\n}", /invalid variable name "1x"/],
  ["template IN A {\n var name 5\n}", /variable name "name" is reserved/],
  ["template IN A {\n var len 5\n}", /variable name "len" is reserved/],
  ["template IN A {\n var let 5\n}", /variable name "let" is reserved/],
  ["template IN A {\n var x 1\n var x 2\n}", /4:6: error: variable name "x" is reserved/],
  ["template IN A {\n var x y + 1\n}", /3:8: error: could not compile expression: x: unknown name y/],
  ["template IN A {\n expr x == 1\n var x 1\n}", /unknown name x/],
  ["template IN A {\n expr 1 +\n}", /could not compile expression: unexpected the end/],
  ["template IN A {\n expr type(1)\n}", /too many arguments to call type/],
];

describe("template refuses", () => {
  for (const [text, message] of REFUSED) {
    it(JSON.stringify(text), () => {
      assert.throws(
        () => PluginTest.of(template, text),
        (error) => {
          assert.ok(error instanceof ConfigRefused);
          assert.match(error.message, message);
          return true;
        },
      );
    });
  }
});
