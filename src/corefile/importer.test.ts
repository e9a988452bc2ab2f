import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { canonicalDump } from "./canonical-dump.ts";
import { type Diagnostic, formatDiagnostic } from "./diagnostic.ts";
import { memoryHost } from "./host.ts";
import { type ParseLimits, parseCorefile } from "./parser.ts";
import type { Corefile } from "./tree.ts";

interface Parsed {
  readonly corefile: Corefile;
  readonly diagnostics: readonly Diagnostic[];
  readonly messages: string[];
}

function parse(files: Record<string, string>, main = "etc/Corefile", limits?: Partial<ParseLimits>): Parsed {
  const host = memoryHost({
    files,
    environment: { SNIPPET: "common", EMPTY: "", ARGUMENT: "1.1.1.1 8.8.8.8" },
  });
  const result = parseCorefile(files[main] ?? "", { file: main, host, limits });
  return {
    ...result,
    messages: result.diagnostics.map((diagnostic) => `${diagnostic.code}: ${diagnostic.message}`),
  };
}

function same(files: Record<string, string>, expected: string): Parsed {
  const parsed = parse(files);
  assert.deepEqual(parsed.messages, []);
  assert.equal(canonicalDump(parsed.corefile), canonicalDump(parse({ "etc/Corefile": expected }).corefile));
  return parsed;
}

describe("snippets", () => {
  it("are inserted wherever they are imported", () => {
    same(
      {
        "etc/Corefile":
          "(common) {\n log\n errors {\n  x 1\n }\n}\na {\n import common\n}\nb {\n cache\n import common\n import common\n}",
      },
      "a {\n log\n errors {\n  x 1\n }\n}\nb {\n cache\n log\n errors {\n  x 1\n }\n log\n errors {\n  x 1\n }\n}",
    );
  });

  it("make no server block of their own", () => {
    assert.deepEqual(parse({ "etc/Corefile": "(common) {\n log\n}" }).corefile.blocks, []);
  });

  it("can hold options, whole server blocks, keys, and nothing", () => {
    same(
      {
        "etc/Corefile":
          "(options) {\n max_fails 3\n}\n(blocks) {\n a {\n  log\n }\n b {\n }\n}\n(empty) {\n}\n(keys) {\n x.org,\n}\n" +
          "import blocks\nimport empty\nimport keys\ny.org {\n forward . 1.1.1.1 {\n  import options\n  import empty\n  policy random\n }\n}",
      },
      "a {\n log\n}\nb {\n}\nx.org, y.org {\n forward . 1.1.1.1 {\n  max_fails 3\n  policy random\n }\n}",
    );
  });

  it("can import other snippets", () => {
    same(
      { "etc/Corefile": "(a) {\n log\n}\n(b) {\n import a\n errors\n}\n. {\n import b\n}" },
      ". {\n log\n errors\n}",
    );
  });

  it("can be named by the environment", () => {
    same({ "etc/Corefile": "(common) {\n log\n}\n. {\n import {$SNIPPET}\n}" }, ". {\n log\n}");
  });

  it("that are written on one line still end where their line ends", () => {
    same(
      { "etc/Corefile": "(a) { log }\n. {\n import a\n import a\n errors\n}" },
      ". {\n log\n log\n errors\n}",
    );
  });

  it("are distinguished from a file of the same name", () => {
    same({ "etc/Corefile": "(a) {\n log\n}\n. {\n import a\n}", "etc/a": "errors" }, ". {\n log\n}");
  });

  it("from an imported file are known afterwards", () => {
    same(
      { "etc/Corefile": "import snippets\n. {\n import a\n}", "etc/snippets": "(a) {\n log\n}" },
      ". {\n log\n}",
    );
  });

  it("cannot be declared twice, nor without braces", () => {
    const { diagnostics, messages } = parse({ "etc/Corefile": "(a) {\n}\n(a) {\n}\n" });
    assert.deepEqual(messages, [
      "COREFILE_SNIPPET_REDEFINED: redeclaration of previously declared snippet a",
    ]);
    assert.deepEqual(diagnostics[0]?.notes, ["the snippet is first declared at etc/Corefile:1:1"]);
    assert.deepEqual(parse({ "etc/Corefile": "(a)\n log\n" }).messages, [
      "COREFILE_SNIPPET_WITHOUT_BRACES: Syntax error: Unexpected token 'log', expecting '{': snippet '(a)' has no braces",
    ]);
  });

  it("cannot be imported before they are declared", () => {
    const { diagnostics, messages } = parse({ "etc/Corefile": ". {\n import a\n}\n(a) {\n log\n}\n" });
    assert.deepEqual(messages, ["COREFILE_IMPORT_NOT_FOUND: File to import not found: a"]);
    assert.deepEqual(diagnostics[0]?.notes, [
      "looked for 'etc/a'",
      "snippet 'a' is declared at etc/Corefile:4:1: it must come before its imports",
    ]);
  });

  it("are suggested for a misspelled name", () => {
    const { diagnostics } = parse({ "etc/Corefile": "(common) {\n}\n. {\n import comon\n}" });
    assert.equal(diagnostics[0]?.suggestion, "common");
  });

  it("cannot import themselves, directly or through others", () => {
    assert.deepEqual(parse({ "etc/Corefile": "(a) {\n log\n import a\n}\n. {\n import a\n}" }).messages, [
      "COREFILE_IMPORT_LIMIT: maximum snippet import depth (10000) exceeded: snippet 'a' imports itself",
    ]);
    const { corefile, diagnostics, messages } = parse({
      "etc/Corefile": "(a) {\n import b\n}\n(b) {\n import a\n log\n}\n. {\n import a\n}",
    });
    assert.deepEqual(messages, [
      "COREFILE_IMPORT_LIMIT: maximum snippet import depth (10000) exceeded: snippet 'a' imports itself",
    ]);
    assert.equal(diagnostics[0]?.span.line, 5);
    assert.deepEqual(
      corefile.blocks[0]?.directives.map(({ name }) => name.text),
      ["log"],
    );
  });

  it("that grow with each other are stopped by the limits", () => {
    let text = "(s0) {\n log\n}\n";
    for (let index = 1; index <= 30; index++)
      text += `(s${index}) {\n import s${index - 1}\n import s${index - 1}\n}\n`;
    const bomb = { "etc/Corefile": `${text}. {\n import s30\n}` };
    assert.deepEqual(parse(bomb).messages, [
      "COREFILE_IMPORT_LIMIT: maximum snippet import depth (10000) exceeded: snippets are imported too often",
    ]);
    assert.deepEqual(parse(bomb, "etc/Corefile", { tokens: 1_000 }).messages, [
      "COREFILE_TOO_LARGE: the Corefile has more than 1000 words",
    ]);
  });
});

describe("imported files", () => {
  it("are inserted at the top, in a block, and in a directive's block", () => {
    const { corefile } = same(
      {
        "etc/Corefile":
          "import blocks\n. {\n import directives\n forward . 1.1.1.1 {\n  import options\n }\n}",
        "etc/blocks": "a {\n log\n}\n",
        "etc/directives": "cache 30\nerrors",
        "etc/options": "max_fails 3\npolicy random",
      },
      "a {\n log\n}\n. {\n cache 30\n errors\n forward . 1.1.1.1 {\n  max_fails 3\n  policy random\n }\n}",
    );
    assert.deepEqual(corefile.files, ["etc/Corefile", "etc/blocks", "etc/directives", "etc/options"]);
  });

  it("are relative to the directory of the importing file", () => {
    same(
      {
        "etc/Corefile": ". {\n import sub/a\n import ../other/c\n import /abs/d\n import ./sub/../e\n}",
        "etc/sub/a": "import b",
        "etc/sub/b": "b",
        "other/c": "c",
        "/abs/d": "import e",
        "/abs/e": "abs-e",
        "etc/e": "e",
      },
      ". {\n b\n c\n abs-e\n e\n}",
    );
  });

  it("imported by a snippet are relative to the file that declares the snippet", () => {
    same(
      {
        "etc/Corefile": "import lib/s\n. {\n import s\n}",
        "etc/lib/s": "(s) {\n import x\n}",
        "etc/lib/x": "log",
      },
      ". {\n log\n}",
    );
  });

  it("can be empty, and end without a line break", () => {
    same(
      { "etc/Corefile": ". {\n import a\n import b\n errors\n}", "etc/a": "", "etc/b": "log # x" },
      ". {\n log\n errors\n}",
    );
  });

  it("are read once however often they are imported", () => {
    const { corefile } = same(
      { "etc/Corefile": ". {\n import a\n import a\n}", "etc/a": "log" },
      ". {\n log\n log\n}",
    );
    assert.deepEqual(corefile.files, ["etc/Corefile", "etc/a"]);
  });

  it("keep the place of their import, through every step", () => {
    const files = {
      "etc/Corefile": ". {\n    import one\n}",
      "etc/one": "import two\n",
      "etc/two": "log\n  forwrad .\n",
    };
    const host = memoryHost({ files });
    const { diagnostics } = parseCorefile(files["etc/Corefile"], {
      file: "etc/Corefile",
      host,
      directives: ["log", "forward"],
    });
    assert.deepEqual(
      diagnostics.map((diagnostic) => formatDiagnostic(diagnostic, files["etc/two"])),
      [
        [
          "etc/two:2:3: error: Unknown directive 'forwrad'",
          "  2 |   forwrad .",
          "    |   ^^^^^^^",
          "  help: did you mean 'forward'?",
          "  note: imported at etc/one:1:1",
          "  note: imported at etc/Corefile:2:5",
        ].join("\n"),
      ],
    );
  });

  it("cannot import themselves, directly or through others", () => {
    assert.deepEqual(parse({ "etc/Corefile": "import Corefile" }).messages, [
      "COREFILE_IMPORT_LIMIT: maximum file import depth (100000) exceeded: file 'etc/Corefile' imports itself",
    ]);
    assert.deepEqual(
      parse({ "etc/Corefile": "import a", "etc/a": "import b", "etc/b": "import ../etc/a\nx" }).messages,
      ["COREFILE_IMPORT_LIMIT: maximum file import depth (100000) exceeded: file 'etc/a' imports itself"],
    );
  });

  it("cannot be imported without limit", () => {
    const files = { "etc/Corefile": `. {\n${" import a\n".repeat(20)}}`, "etc/a": "log" };
    const { corefile, messages } = parse(files, "etc/Corefile", { fileExpansions: 5 });
    assert.deepEqual(messages, [
      "COREFILE_IMPORT_LIMIT: maximum file import depth (5) exceeded: files are imported too often",
    ]);
    assert.equal(corefile.blocks[0]?.directives.length, 5);
  });

  it("that do not exist, or are not files, are errors", () => {
    const { diagnostics, messages } = parse({
      "etc/Corefile": ". {\n import no/such\n import dir\n log\n}",
      "etc/dir/x": "",
    });
    assert.deepEqual(messages, [
      "COREFILE_IMPORT_NOT_FOUND: File to import not found: no/such",
      "COREFILE_IMPORT_UNREADABLE: Could not import etc/dir: is a directory",
    ]);
    assert.deepEqual(diagnostics[1]?.notes, ["'etc/dir/*' imports all files in it"]);
  });

  it("that cannot be read are errors with the reason", () => {
    const { diagnostics } = parseCorefile("import x", {
      file: "Corefile",
      host: { ...memoryHost(), readFile: () => ({ kind: "unreadable", reason: "permission denied" }) },
    });
    assert.equal(diagnostics[0]?.message, "Could not import x: permission denied");
  });

  it("with an unclosed quotation mark are errors, once", () => {
    const { messages } = parse({ "etc/Corefile": ". {\n import a\n import a\n}", "etc/a": 'log "x' });
    assert.deepEqual(messages, [
      "COREFILE_UNTERMINATED_QUOTE: the quotation mark is never closed, so all text after it is one word",
    ]);
  });
});

describe("patterns of files", () => {
  const files = {
    "etc/b.conf": "b",
    "etc/a.conf": "a",
    "etc/ab.conf": "ab",
    "etc/a.txt": "txt",
    "etc/.hidden.conf": "hidden",
    "etc/d1/x.conf": "d1x",
    "etc/d2/x.conf": "d2x",
    "etc/d2/y.conf": "d2y",
    "etc/d3/other": "other",
  };
  const cases: [pattern: string, directives: string][] = [
    ["*.conf", "hidden\na\nab\nb"],
    ["?.conf", "a\nb"],
    ["a?.conf", "ab"],
    ["a*", "a\ntxt\nab"],
    ["d*/x.conf", "d1x\nd2x"],
    ["d?/*.conf", "d1x\nd2x\nd2y"],
    ["../etc/*.txt", "txt"],
    ["./*.txt", "txt"],
  ];
  for (const [pattern, directives] of cases) {
    it(`returns the files of ${pattern} in order`, () => {
      same({ ...files, "etc/Corefile": `. {\nimport ${pattern}\n}` }, `. {\n${directives}\n}`);
    });
  }

  it("may be absolute", () => {
    same(
      { "etc/Corefile": ". {\n import /conf.d/*\n}", "/conf.d/1": "a", "/conf.d/2": "b" },
      ". {\n a\n b\n}",
    );
  });

  it("take dots and other characters literally", () => {
    same(
      { "etc/Corefile": ". {\n import a.b+*\n}", "etc/a.b+c": "x", "etc/aXb+c": "y", "etc/a.bbc": "z" },
      ". {\n x\n}",
    );
  });

  it("that match nothing cause a warning and import nothing", () => {
    const { diagnostics, messages } = parse({ "etc/Corefile": "import none/*\nimport no-?.conf\n. {\n}" });
    assert.deepEqual(messages, [
      "COREFILE_IMPORT_NO_MATCH: No files matching import glob pattern: none/*",
      "COREFILE_IMPORT_NO_MATCH: No files matching import glob pattern: no-?.conf",
    ]);
    assert.ok(diagnostics.every(({ severity }) => severity === "warning"));
  });

  for (const pattern of ["*/*.conf", "a??", "[ab].conf"]) {
    it(`may not be as wide as ${pattern}`, () => {
      const { messages } = parse({ ...files, "etc/Corefile": `import ${pattern}` });
      assert.deepEqual(messages, [
        `COREFILE_IMPORT_GLOB: Glob pattern may only contain one wildcard (*), but has others: ${pattern}`,
      ]);
    });
  }

  it("that match their own file do not loop, and still import the others", () => {
    const { corefile, messages } = parse({
      "etc/Corefile": ". {\n import *.conf\n}",
      "etc/a.conf": "a\nimport *.conf",
      "etc/b.conf": "b",
    });
    assert.deepEqual(messages, [
      "COREFILE_IMPORT_LIMIT: maximum file import depth (100000) exceeded: file 'etc/a.conf' imports itself",
    ]);
    assert.deepEqual(
      corefile.blocks[0]?.directives.map(({ name }) => name.text),
      ["a", "b", "b"],
    );
  });

  it("may match a file that an earlier match imports", () => {
    same(
      { "etc/Corefile": ". {\n import *.conf\n}", "etc/a.conf": "import b.conf\na", "etc/b.conf": "b" },
      ". {\n b\n a\n b\n}",
    );
  });
});

describe("import arguments", () => {
  it("fill the placeholders of a snippet, in both spellings, in words and quotes", () => {
    same(
      {
        "etc/Corefile":
          '(up) {\n forward {args[0]} {args.1}:53 "<{args[0]} {args[1]}>" {\n  policy {args.2}\n }\n}\n' +
          '. {\n import up a.org 1.1.1.1 random\n import up "b c" {$ARGUMENT} first\n}',
      },
      '. {\n forward a.org 1.1.1.1:53 "<a.org 1.1.1.1>" {\n  policy random\n }\n' +
        ' forward "b c" "1.1.1.1 8.8.8.8:53" "<b c 1.1.1.1 8.8.8.8>" {\n  policy first\n }\n}',
    );
  });

  it("fill the placeholders of files, keys and further imports", () => {
    same(
      {
        "etc/Corefile": "import site a.org 1.1.1.1",
        "etc/site": "{args[0]} {\n import up {args[1]}\n}",
        "etc/up": "forward . {args[0]}",
      },
      "a.org {\n forward . 1.1.1.1\n}",
    );
  });

  it("are never more than text: no braces, no imports, no placeholders", () => {
    same(
      { "etc/Corefile": '(s) {\n log {args[0]} {args[1]}\n}\n. {\n import s "{" "{args[0]}"\n}' },
      '. {\n log "{" "{args[0]}"\n}',
    );
  });

  it("can be left empty", () => {
    same({ "etc/Corefile": '(s) {\n log a{args[0]}b\n}\n. {\n import s ""\n}' }, ". {\n log ab\n}");
  });

  it("are refused if nothing uses them", () => {
    const { diagnostics, messages } = parse({
      "etc/Corefile": "(s) {\n log {args[0]}\n}\n. {\n import s a b c\n import x y\n}",
      "etc/x": "log",
    });
    assert.deepEqual(messages, [
      "COREFILE_IMPORT_SYNTAX: Import takes only one argument (glob pattern or file): nothing uses 'b'",
      "COREFILE_IMPORT_SYNTAX: Import takes only one argument (glob pattern or file): nothing uses 'y'",
    ]);
    assert.deepEqual(diagnostics[0]?.notes, [
      "more arguments have a meaning only where the imported text contains {args[1]}",
    ]);
  });

  it("are reported if they are not given, and placeholders of another kind are refused", () => {
    assert.deepEqual(
      parse({
        "etc/Corefile": "(s) {\n log {args[1]} {args[x]} {args.-1}\n}\n. {\n import s a b\n import s a\n}",
      }).messages,
      [
        "COREFILE_IMPORT_ARGUMENT: '{args[x]}' is not an import argument",
        "COREFILE_IMPORT_ARGUMENT: '{args.-1}' is not an import argument",
        "COREFILE_IMPORT_ARGUMENT: '{args[1]}' has no value: the import at etc/Corefile:6:2 gives 1 argument(s)",
        "COREFILE_IMPORT_ARGUMENT: '{args[x]}' is not an import argument",
        "COREFILE_IMPORT_ARGUMENT: '{args.-1}' is not an import argument",
      ],
    );
  });

  it("do not exist in the main file, where their spelling is ordinary text", () => {
    same({ "etc/Corefile": ". {\n log {args[0]}\n}" }, ". {\n log {args[0]}\n}");
  });
});

describe("invalid imports", () => {
  const cases: [text: string, message: string][] = [
    [
      ". {\n import\n log\n}",
      "COREFILE_IMPORT_SYNTAX: Wrong argument count or unexpected line ending after 'import'",
    ],
    ["import", "COREFILE_IMPORT_SYNTAX: Wrong argument count or unexpected line ending after 'import'"],
    ['import ""', "COREFILE_IMPORT_SYNTAX: Import requires a non-empty filepath"],
    [". {\n import {$EMPTY}\n}", "COREFILE_IMPORT_SYNTAX: Import requires a non-empty filepath"],
    ["import }{$", "COREFILE_IMPORT_NOT_FOUND: File to import not found: }{$"],
  ];
  for (const [text, message] of cases) {
    it(`are refused: ${JSON.stringify(text)}`, () => {
      const { messages, corefile } = parse({ "etc/Corefile": text });
      assert.deepEqual(messages, [message]);
      if (text.includes("log")) assert.equal(corefile.blocks[0]?.directives[0]?.name.text, "log");
    });
  }
});
