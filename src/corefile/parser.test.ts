import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { canonicalDump } from "./canonical-dump.ts";
import { memoryHost } from "./host.ts";
import { type ParseOptions, parseCorefile } from "./parser.ts";
import type { Directive } from "./tree.ts";

const host = memoryHost({
  environment: { ZONE: "example.org", PORT: "5353", TWO: "a b", NAME: "errors", COMMA: "x," },
});

function parse(text: string, options: Partial<ParseOptions> = {}) {
  return parseCorefile(text, { file: "Corefile", host, ...options });
}

/** `[keys, directives]` for each block, a nested block as an array at the end of its line. */
type Outline = [keys: string[], ...directives: unknown[]];

function outline(text: string, options: Partial<ParseOptions> = {}): { blocks: Outline[]; codes: string[] } {
  const { corefile, diagnostics } = parse(text, options);
  const dumped: { keys: string[]; directives: unknown[] }[] = JSON.parse(canonicalDump(corefile));
  return {
    blocks: dumped.map(({ keys, directives }) => [keys, ...directives]),
    codes: diagnostics.map(({ code }) => code),
  };
}

describe("parseCorefile", () => {
  const good: [what: string, text: string, blocks: Outline[]][] = [
    ["an empty text", "", []],
    ["only comments", "# nothing\n\n#\n", []],
    ["a block without directives", ". {\n}\n", [[["."]]]],
    ["a block that is opened and closed on one line", ". { }", [[["."]]]],
    [
      "directives with arguments",
      '.:53 {\n  errors\n  forward . 1.1.1.1 "8.8.8.8"\n}',
      [[[".:53"], ["errors"], ["forward", ".", "1.1.1.1", "8.8.8.8"]]],
    ],
    ["a first directive on the line of the brace", ". { errors\n log\n}\n", [[["."], ["errors"], ["log"]]]],
    [
      "a block of a directive",
      ". {\n forward . 1.1.1.1 {\n  max_fails 3\n  policy random\n }\n log\n}",
      [
        [
          ["."],
          [
            "forward",
            ".",
            "1.1.1.1",
            [
              ["max_fails", "3"],
              ["policy", "random"],
            ],
          ],
          ["log"],
        ],
      ],
    ],
    ["an empty block of a directive", ". {\n log {\n }\n}", [[["."], ["log", []]]]],
    [
      "blocks in blocks",
      ". {\n a {\n  b x {\n   c\n  }\n  d\n }\n}",
      [[["."], ["a", [["b", "x", [["c"]]], ["d"]]]]],
    ],
    [
      "a directive several times",
      ". {\n file a\n log\n file b\n}",
      [[["."], ["file", "a"], ["log"], ["file", "b"]]],
    ],
    ["several keys", "a.org b.org:53, tls://c.org {\n}", [[["a.org", "b.org:53", "tls://c.org"]]]],
    ["keys on several lines", "a.org,\n  b.org,\n\n# and\nc.org {\n}", [[["a.org", "b.org", "c.org"]]]],
    ["several blocks", "a {\n}\nb {\n log\n}", [[["a"]], [["b"], ["log"]]]],
    ["a block after another on one line", "a {\n} b {\n}", [[["a"]], [["b"]]]],
    ["a block without braces", "a.org\nerrors\nlog stdout\n", [[["a.org"], ["errors"], ["log", "stdout"]]]],
    [
      "a block without braces, with blocks of directives",
      "a.org, b.org\nlog {\n class error\n}\nerrors",
      [[["a.org", "b.org"], ["log", [["class", "error"]]], ["errors"]]],
    ],
    ["a block without braces and without directives", "a.org:53", [[["a.org:53"]]]],
    ["a block without braces after others", "a {\n}\nb\nlog", [[["a"]], [["b"], ["log"]]]],
    [
      "arguments with line breaks",
      '. {\n log "a\nb" c\n errors\n}',
      [[["."], ["log", "a\nb", "c"], ["errors"]]],
    ],
    ["quoted braces as arguments", '. {\n log "{" "}"\n}', [[["."], ["log", "{", "}"]]]],
    [
      "words with braces in them",
      ". {\n log {combined} {{ x}} a{2}\n}",
      [[["."], ["log", "{combined}", "{{", "x}}", "a{2}"]]],
    ],
    ["the word import as an argument", ". {\n log import x\n}", [[["."], ["log", "import", "x"]]]],
    ["carriage returns", ". {\r\n errors\r\n}\r\n", [[["."], ["errors"]]]],
    ["an environment variable in a key", "{$ZONE}:{%PORT%} {\n}", [[["example.org:5353"]]]],
    ["an environment variable as directive", ". {\n {$NAME}\n}", [[["."], ["errors"]]]],
    ["a value with a space as one word", ". {\n log {$TWO} x{$TWO}\n}", [[["."], ["log", "a b", "xa b"]]]],
    [
      "an environment variable within quotes",
      '. {\n log "<{$ZONE}>"\n}',
      [[["."], ["log", "<example.org>"]]],
    ],
    ["a value that ends in a comma as a key with a comma", "{$COMMA} y {\n}", [[["x", "y"]]]],
  ];
  for (const [what, text, blocks] of good) {
    it(`reads ${what}`, () => assert.deepEqual(outline(text), { blocks, codes: [] }));
  }

  it("records the place of every word", () => {
    const { corefile } = parse(
      "# x\na.org,\nb.org c.org {\n  forward . 1.1.1.1 {\n    policy random\n  }\n}\n",
    );
    const [block] = corefile.blocks;
    assert.deepEqual(block?.span, { file: "Corefile", line: 2, column: 1, length: 5 });
    assert.deepEqual(
      block?.keys.map(({ span }) => `${span.line}:${span.column}+${span.length}`),
      ["2:1+5", "3:1+5", "3:7+5"],
    );
    assert.equal(block?.closingBrace?.span.line, 7);
    const [forward] = block?.directives ?? [];
    assert.deepEqual(forward?.name.span, { file: "Corefile", line: 4, column: 3, length: 7 });
    assert.deepEqual(forward?.args[1]?.span, { file: "Corefile", line: 4, column: 13, length: 7 });
    assert.deepEqual(forward?.closingBrace?.span, { file: "Corefile", line: 6, column: 3, length: 1 });
    assert.deepEqual(forward?.block?.[0]?.args[0]?.span, {
      file: "Corefile",
      line: 5,
      column: 12,
      length: 6,
    });
  });

  it("spans the keys of one line", () => {
    const { corefile } = parse("tls://a.org b.org:53, c.org {\n}");
    assert.deepEqual(corefile.blocks[0]?.span, { file: "Corefile", line: 1, column: 1, length: 27 });
  });

  it("keeps the text of a word before the environment was filled in", () => {
    const { corefile } = parse(". {\n log x{$PORT} y\n}");
    const args = corefile.blocks[0]?.directives[0]?.args.map(({ text, raw }) => [text, raw]);
    assert.deepEqual(args, [
      ["x5353", "x{$PORT}"],
      ["y", "y"],
    ]);
  });

  it("does not take the value of a variable for a brace", () => {
    const braces = memoryHost({ environment: { OPEN: "{", CLOSE: "}" } });
    assert.deepEqual(outline(". {\n log {$OPEN} {$CLOSE}\n}", { host: braces }), {
      blocks: [[["."], ["log", "{", "}"]]],
      codes: [],
    });
  });

  it("accepts any name as a directive unless it has a list", () => {
    assert.deepEqual(outline(". {\n whatever\n}").codes, []);
    assert.deepEqual(outline(". {\n whatever\n}", { directives: ["log"] }).codes, [
      "COREFILE_UNKNOWN_DIRECTIVE",
    ]);
  });

  it("does not check whether the options in a directive's block are directives", () => {
    assert.deepEqual(outline(". {\n log {\n  class error\n }\n}", { directives: ["log"] }).codes, []);
  });

  it("serves a zone that has the name of a directive", () => {
    const { blocks, codes } = outline("local {\n tls a b\n whoami\n}", {
      directives: ["local", "tls", "whoami"],
    });
    assert.deepEqual(blocks, [[["local"], ["tls", "a", "b"], ["whoami"]]]);
    assert.deepEqual(codes, []);
  });

  for (const text of ["local {\n}", "forward . 192.0.2.53 {\n tls a b\n}"]) {
    it(`warns that it reads ${JSON.stringify(text)} as a server block`, () => {
      const { blocks, codes } = outline(text, { directives: ["forward", "local", "tls"] });
      assert.equal(blocks.length, 1);
      assert.deepEqual(codes, ["COREFILE_KEY_IS_DIRECTIVE_NAME"]);
    });
  }

  it("reports only once per file that braces are on lines of their own", () => {
    const host = memoryHost({ files: { part: "a\n{\n log\n}\nb\n{\n log\n}\n" } });
    const { diagnostics } = parseCorefile("c\n{\n log\n}\nd\n{\n log\n}\nimport part\n", {
      file: "Corefile",
      host,
    });
    assert.deepEqual(
      diagnostics.map(({ code, span }) => `${code} ${span.file}:${span.line}`),
      ["COREFILE_BRACE_ON_NEXT_LINE Corefile:2", "COREFILE_BRACE_ON_NEXT_LINE part:2"],
    );
  });

  it("refuses blocks nested too deep, however deep, and continues after them", () => {
    const deep = `${"a {\n".repeat(50_000)}${"}\n".repeat(50_000)}`;
    const { blocks, codes } = outline(`. {\n ${deep} log\n}`, { directives: ["a", "log"] });
    assert.deepEqual(codes, ["COREFILE_NESTING_TOO_DEEP"]);
    assert.deepEqual(blocks[0]?.at(-1), ["log"]);
  });

  it("survives opening braces alone", () => {
    const { diagnostics } = parse("{".repeat(3).split("").join("\n ").repeat(20_000));
    assert.ok(diagnostics.length > 0);
  });

  it("refuses a text with too many words, and reports only that", () => {
    const { codes } = outline(". {\n log a b c d\n", { limits: { tokens: 5 } });
    assert.deepEqual(codes, ["COREFILE_TOO_LARGE"]);
    assert.deepEqual(outline("a b c {\n}", { limits: { tokens: 5 } }).codes, []);
  });

  it("stops after many errors, and reports only that", () => {
    const { corefile, diagnostics } = parse(`. {\n${"x\n".repeat(1_000)}}`, {
      directives: ["log"],
      limits: { errors: 10 },
    });
    // The parser reads one word ahead of the last error.
    assert.equal(diagnostics.length, 10 + 1 + 1);
    assert.equal(diagnostics.at(-1)?.code, "COREFILE_TOO_MANY_ERRORS");
    assert.equal(corefile.blocks.length, 1);
  });

  it("names the main file as read", () => {
    assert.deepEqual(parse("").corefile.files, ["Corefile"]);
  });

  it("continues after each fault and reports all of them, in the order of the text", () => {
    const { blocks, codes } = outline(
      [
        "a.org, {",
        "    forwrad . 1.1.1.1",
        "    log {",
        "        class error",
        "    } extra",
        "    errors",
        "    import missing.conf",
        "}",
        "b.org{",
        "    whoami }",
        "forward . 8.8.8.8",
        "}",
        "c.org {",
        "    lgo",
      ].join("\n"),
      { directives: ["forward", "log", "errors", "whoami"] },
    );
    assert.deepEqual(codes, [
      "COREFILE_EXTRA_COMMA",
      "COREFILE_UNKNOWN_DIRECTIVE",
      "COREFILE_TEXT_AFTER_CLOSING_BRACE",
      "COREFILE_UNKNOWN_DIRECTIVE",
      "COREFILE_IMPORT_NOT_FOUND",
      "COREFILE_MISSING_SPACE_BEFORE_BRACE",
      "COREFILE_CLOSING_BRACE_NOT_ON_OWN_LINE",
      "COREFILE_DIRECTIVE_OUTSIDE_BLOCK",
      "COREFILE_UNEXPECTED_CLOSING_BRACE",
      "COREFILE_UNKNOWN_DIRECTIVE",
      "COREFILE_MISSING_CLOSING_BRACE",
    ]);
    assert.deepEqual(
      blocks.map(([keys]) => keys),
      [["a.org"], ["b.org"], ["c.org"]],
    );
  });
});

describe("Corefiles of clusters", () => {
  const directives =
    "bind errors health ready kubernetes prometheus forward cache loop reload loadbalance log rewrite template hosts";
  const corefiles: [what: string, text: string, lines: string[]][] = [
    [
      "of a cluster's DNS",
      `.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
`,
      [
        "errors",
        "health",
        "ready",
        "kubernetes cluster.local in-addr.arpa ip6.arpa",
        "prometheus :9153",
        "forward . /etc/resolv.conf",
        "cache 30",
        "loop",
        "reload",
        "loadbalance",
      ],
    ],
    [
      "with rewriting, templates and inline hosts",
      `example.org:53, internal.example.org:53 {
    log . "{remote} {name} {rcode}" {
        class denial error
    }
    rewrite {
        name regex (.*).old.example.org {1}.example.org
        answer auto
    }
    template IN A {
        match "^ip-(?P<a>[0-9]{1,3})[.]example[.]org[.]$"
        answer "{{ .Name }} 60 IN A 10.0.0.{{ .Group.a }}"
        fallthrough
    }
    hosts /etc/hosts.custom {
        10.0.0.1 one.example.org # the first
        fallthrough
    }
}
`,
      ["log . {remote} {name} {rcode}", "rewrite", "template IN A", "hosts /etc/hosts.custom"],
    ],
  ];
  for (const [what, text, lines] of corefiles) {
    it(`are read without diagnostics: one ${what}`, () => {
      const { corefile, diagnostics } = parse(text, { directives: directives.split(" ") });
      assert.deepEqual(diagnostics, []);
      assert.deepEqual(
        corefile.blocks[0]?.directives.map(({ name, args }) =>
          [name, ...args].map((word) => word.text).join(" "),
        ),
        lines,
      );
    });
  }
});

describe("parseCorefile on arbitrary text", () => {
  const word = fc.constantFrom(
    ...[
      "{",
      "}",
      "\n",
      "\n",
      " ",
      "import",
      "import ",
      "(a)",
      "(b) {\n",
      "a",
      "b",
      ".",
      "x.org",
      ",",
      '"',
      "#",
      "log",
    ],
    ...[
      "{$A}",
      "{$B}",
      "{args[0]}",
      "{args.1}",
      "{args[",
      "*",
      "f",
      "g",
      "x{",
      "}x",
      "\r",
      "\t",
      "\\",
      "tls://.:53",
      "{}",
    ],
  );
  const soup = fc.array(fc.tuple(word, fc.constantFrom("", " ", "\n")), { maxLength: 60, size: "max" });
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    soup.map((parts) => parts.flat().join("")),
  );
  const limits = { tokens: 2_000, snippetExpansions: 50, fileExpansions: 50, nesting: 4, errors: 30 };

  it("ends, never throws, and returns a tree whose blocks have keys", () => {
    fc.assert(
      fc.property(text, text, text, fc.boolean(), (main, f, g, known) => {
        const { corefile, diagnostics } = parse(main, {
          host: memoryHost({ files: { f, "dir/g": g }, environment: { A: "{$B}", B: main.slice(0, 20) } }),
          directives: known ? ["log", "a", "forward"] : undefined,
          limits,
        });
        for (const block of corefile.blocks) {
          assert.ok(block.keys.length > 0);
          for (const key of block.keys) assert.notEqual(key.text, "");
          assert.ok(depth(block.directives) <= limits.nesting + 1);
        }
        for (const { span, message } of diagnostics) {
          assert.ok(span.line > 0 && span.column > 0 && span.length >= 0);
          assert.doesNotMatch(message, /undefined|\[object/);
        }
        assert.equal(typeof canonicalDump(corefile), "string");
      }),
      { numRuns: 2_000 },
    );
  });

  function depth(directives: readonly Directive[]): number {
    return Math.max(0, ...directives.map(({ block }) => 1 + depth(block ?? [])));
  }
});
