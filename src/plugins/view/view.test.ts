import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ConfigRefused, PluginTest, type QuestionOptions } from "../../plugin/testing.ts";
import view from "./index.ts";

/** A query from 192.0.2.10 for `www.example.org.` A over UDP, unless given otherwise. */
const QUESTION: QuestionOptions = { name: "www.example.org.", client: "192.0.2.10", id: 4242 };

function accepts(
  expressions: readonly string[],
  question: Partial<QuestionOptions> = {},
): boolean | undefined {
  const lines = expressions.map((expression) => ` expr ${expression}`).join("\n");
  const running = PluginTest.of(view, `view inside {\n${lines}\n}`);
  return running.instances[0]?.accepts?.(running.query({ ...QUESTION, ...question }));
}

const TAKEN: readonly (readonly [expression: string, question?: Partial<QuestionOptions>])[] = [
  ["true"],
  ["client_ip() == '192.0.2.10'"],
  ["client_ip() == '2001:db8::7'", { client: "2001:db8::7" }],
  ["incidr(client_ip(), '192.0.2.0/24')"],
  ["incidr(client_ip(), '192.0.2.99/24')"],
  ["incidr(client_ip(), '0.0.0.0/0')"],
  ["incidr(client_ip(), '2001:db8::/32')", { client: "2001:db8::7" }],
  ["incidr(client_ip(), '192.0.2.0/24')", { client: "::ffff:192.0.2.10" }],
  ["incidr(client_ip(), '192.0.2.8/29')"],
  ["incidr(client_ip(), lower('192.0.2.0/24'))"],
  ["not incidr(client_ip(), '10.0.0.0/8')"],
  ["!incidr(client_ip(), '::/0')"],
  ["\"any(['10.0.0.0/8', '192.0.2.0/24'], incidr(client_ip(), #))\""],
  ["incidr(server_ip(), '192.0.2.53/32')"],
  ["name() == 'www.example.org.'", { name: "WWW.Example.ORG." }],
  ["name() startsWith 'www.'"],
  ["name() endsWith '.org.'"],
  ["name() contains 'example'"],
  ["name() matches '^w{3}[.]'"],
  ["name() matches '(?i)EXAMPLE'"],
  ["not (name() matches '^ftp')"],
  ["name() not in ['a.', 'b.']"],
  ["name() in ['a.', 'www.example.org.']"],
  ["len(split(name(), '.')) == 4"],
  ["split(name(), '.')[0] == 'www'"],
  ["trimSuffix(name(), '.') | split('.') | last() == 'org'"],
  ["type() == 'A'"],
  ["type() in ['A', 'AAAA']", { type: "AAAA" }],
  ["type() != 'AAAA'"],
  ["class() == 'IN'"],
  ["class() == 'CH'", { class: 3 }],
  ["proto() == 'udp'"],
  ["proto() == 'tcp'", { transport: "tcp" }],
  ["proto() == 'tcp'", { transport: "https" }],
  ["proto() == 'udp'", { transport: "quic" }],
  ["do()", { edns: { dnssecOk: true } }],
  ["not do()"],
  ["bufsize() == 512"],
  ["bufsize() == 1232", { edns: {} }],
  ["bufsize() == 512", { edns: { udpSize: 100 } }],
  ["bufsize() == 65535", { transport: "tcp" }],
  ["size() == 33"],
  ["size() > 40", { edns: {} }],
  ["id() == 4242"],
  ["id() % 2 == 0"],
  ["id() in 4000..5000"],
  ["4000 < id() < 5000"],
  ["opcode() == 0"],
  ["opcode() == 4", { opcode: 4 }],
  ["port() == '40000'"],
  ["int(port()) > 1024"],
  ["server_port() == '53'"],
  ["metadata('no/such') == ''"],
  ["(metadata('no/such') ?? 'x') == ''"],
  ["type() == 'A' ? true : false"],
  ['"if do() { false } else { true }"'],
  ["let n = name(); n == 'www.example.org.' and len(n) > 3"],
  ["{a: 1}.a == 1"],
  ["{a: 1}.b?.c == nil"],
  ["1 + 2 * 3 == 7"],
  ["7 / 2 == 3.5"],
  ["2 ** 10 == 1024"],
  ["upper('ä') == 'Ä'"],
  ["$env.name() == name()"],
];

const LEFT: readonly (readonly [expression: string, question?: Partial<QuestionOptions>])[] = [
  ["false"],
  ["client_ip() == '192.0.2.11'"],
  ["incidr(client_ip(), '198.51.100.0/24')"],
  ["incidr(client_ip(), '::/0')"],
  ["incidr(client_ip(), '0.0.0.0/0')", { client: "2001:db8::7" }],
  ["incidr(client_ip(), '192.0.2.0')"],
  ["incidr(client_ip(), 'bad')"],
  ["incidr('bad', '192.0.2.0/24')"],
  ["name() == 'www.example.org'"],
  ["name() == 'WWW.example.org.'"],
  ["type() == 'a'"],
  ["id()"],
  ["name()"],
  ["nil"],
  ["1 == 1 and name() == ''"],
  ["['a'][3] == 'a'"],
  ["all(1..400, all(1..400, true))"],
  ["len(repeat('a', id() * 100000)) > 0"],
];

describe("view takes a query whose expression is true", () => {
  for (const [expression, question] of TAKEN) {
    it(`${expression}${question === undefined ? "" : ` of ${JSON.stringify(question)}`}`, () => {
      assert.equal(accepts([expression], question), true);
    });
  }
});

describe("view leaves a query for everything else", () => {
  for (const [expression, question] of LEFT) {
    it(`${expression}${question === undefined ? "" : ` of ${JSON.stringify(question)}`}`, () => {
      assert.equal(accepts([expression], question), false);
    });
  }
});

describe("view", () => {
  it("requires all its expressions to be true", () => {
    assert.equal(accepts(["type() == 'A'", "proto() == 'udp'"]), true);
    assert.equal(accepts(["type() == 'A'", "proto() == 'tcp'"]), false);
    assert.equal(accepts([]), true);
  });

  it("sets its name on the queries that it accepts", () => {
    const running = PluginTest.of(view, "view inside {\n expr type() == 'A'\n}");
    const [instance] = running.instances;
    const [taken, left] = ["A", "AAAA"].map((type) => running.query({ name: "a.", type }));
    assert.ok(taken !== undefined && left !== undefined);
    instance?.accepts?.(taken);
    instance?.accepts?.(left);
    assert.deepEqual([taken.view, left.view], ["inside", ""]);
  });

  it("sets its name as metadata, which its own expression can read", () => {
    const running = PluginTest.of(view, "view inside {\n expr metadata('view/name') == 'inside'\n}");
    const query = running.query({ name: "a." });
    query.metadata = new Map();
    running.instances[0]?.provideMetadata?.(query);
    assert.equal(running.instances[0]?.accepts?.(query), true);
  });
});

const REFUSED: readonly (readonly [text: string, code: string, message: RegExp])[] = [
  ["view", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending after 'view'/],
  ["view a b", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after 'b'/],
  ["view a {\n expr\n}", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending after 'expr'/],
  ["view a {\n bogus\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'bogus'/],
  ["view a\nview b", "PLUGIN_REPEATED", /can only be used once/],
  [
    "view a {\n expr nam() == 'x'\n}",
    "EXPRESSION_SYNTAX",
    /3:7: error: .*unknown name nam.*did you mean 'name'/s,
  ],
  ["view a {\n expr client_ip() ==\n}", "EXPRESSION_SYNTAX", /unexpected the end of the expression/],
  ["view a {\n expr port() > 5\n}", "EXPRESSION_SYNTAX", /3:7: error: .*mismatched types string and int/],
  ["view a {\n expr name() == 'a' and upper(1) == 'b'\n}", "EXPRESSION_SYNTAX", /cannot use int as argument/],
  ["view a {\n expr name() matches '('\n}", "EXPRESSION_SYNTAX", /3:22: error: .*missing closing \)/],
  ["view a {\n expr incidr(client_ip())\n}", "EXPRESSION_SYNTAX", /not enough arguments to call incidr/],
  ['view a {\n expr "now() > 1"\n}', "EXPRESSION_SYNTAX", /3:8: error: .*now\(\) is not available/],
  ['view a {\n expr client_ip() == "127.0.0.1"\n}', "EXPRESSION_SYNTAX", /in single quotes/],
];

describe("view refuses", () => {
  for (const [text, code, message] of REFUSED) {
    it(JSON.stringify(text), () => {
      assert.throws(
        () => PluginTest.of(view, text),
        (error) => {
          assert.ok(error instanceof ConfigRefused);
          assert.deepEqual(error.codes, [code]);
          assert.match(error.message, message);
          return true;
        },
      );
    });
  }
});
