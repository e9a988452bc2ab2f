import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { LanguageError } from "../values/language-error.ts";
import { compileTemplate, placeOf } from "./template.ts";
import type { TemplateObject } from "./template-value.ts";

const DATA: TemplateObject = {
  typeName: "test data",
  text: () => "{test}",
  field: (name) =>
    name === "Name"
      ? { parameters: 0, get: () => "lighthouse" }
      : name === "List"
        ? { parameters: 0, get: () => ["a", "b"] }
        : undefined,
};

/** The output of a template, or its fault with the place. */
function run(text: string): string {
  try {
    return compileTemplate(text).execute(DATA);
  } catch (error) {
    if (!(error instanceof LanguageError)) throw error;
    const { line, column } = placeOf(text, error);
    return `${error.stage} ${line}:${column} ${error.message}`;
  }
}

describe("a fault of a template has line and column", () => {
  for (const [text, expected] of [
    ["{{ .Name", "compile 1:1 unclosed action"],
    ["a\nb {{ nofunc }}", 'compile 2:6 function "nofunc" not defined'],
    ["{{ if true }}\n{{ else }}\n{{ else }}\n{{ end }}", "compile 3:4 expected end; found {{else}}"],
    ["é {{ end }}", "compile 1:6 unexpected {{end}}"],
    ["{{ range .List }}\n {{ .Nope }}{{ end }}", "run 2:5 can't evaluate field Nope in type string"],
    ["{{ index .List 7 }}", "run 1:4 error calling index: index out of range: 7"],
    ["{{ .Name.Nope }}", "run 1:9 can't evaluate field Nope in type string"],
    ["{{ $x }}", 'compile 1:4 undefined variable "$x"'],
    ["{{ template `x` }}", 'run 1:13 template "x" not defined'],
    ["{{ break }}", "compile 1:4 {{break}} outside {{range}}"],
    ["{{ 1 + 2 }}", 'compile 1:6 illegal number syntax: "+"'],
    ["{{ .Name == 1 }}", 'compile 1:10 unexpected "=" in command'],
  ] as const) {
    it(JSON.stringify(text), () => assert.equal(run(text), expected));
  }
});

describe("no template runs for long", () => {
  for (const text of [
    "{{ range 1000000000 }}x{{ end }}",
    "{{ range 9000 }}{{ range 9000 }}x{{ end }}{{ end }}",
    "{{ template `answer` }}",
    "{{ define `a` }}{{ template `b` }}{{ template `b` }}{{ end }}{{ define `b` }}{{ template `a` }}{{ end }}{{ template `a` }}",
    "{{ $s := .Name }}{{ range 60 }}{{ $s = print $s $s }}{{ end }}{{ $s }}",
    "{{ range 90000 }}{{ printf `%999s` .Name }}{{ end }}",
    "{{ printf `%999999999d` 1 }}{{ range 1000000 }}{{ end }}",
  ]) {
    it(text, () => {
      const started = performance.now();
      assert.match(run(text), /^run /);
      assert.ok(performance.now() - started < 10_000);
    });
  }

  it("nor is one nested without end", () => {
    for (const text of [
      "{{ if 1 }}".repeat(5_000),
      `{{ ${"(".repeat(5_000)} }}`,
      "{{ if 0 }}{{ else if 1 }}".repeat(3_000),
    ])
      assert.match(run(text), /^compile /);
  });
});

const WORDS = [
  ...Array.from("{}().|$,='\"` "),
  ...[
    "{{",
    "}}",
    "{{- ",
    " -}}",
    "/*",
    "*/",
    ":=",
    ".Name",
    ".List",
    "$x",
    "1",
    "0x1f",
    "1.5",
    "'a'",
    "nil",
    "true",
  ],
  ...[
    "if",
    "else",
    "end",
    "range",
    "with",
    "define",
    "template",
    "block",
    "break",
    "continue",
    "index",
    "printf",
    "`%[2]*.3d`",
  ],
];

it("any text compiles and runs, or has a fault with a place in it", () => {
  const words = fc.array(fc.constantFrom(...WORDS), { maxLength: 25 });
  const text = fc.oneof(
    words.map((found) => found.join(" ")),
    words.map((found) => `{{ ${found.join(" ")} }}`),
    fc.string({ maxLength: 40, unit: "binary" }).map((found) => `{{${found}}}`),
  );
  fc.assert(
    fc.property(text, (written) => {
      try {
        compileTemplate(written).execute(DATA);
      } catch (error) {
        assert.ok(error instanceof LanguageError, String(error));
        assert.ok(error.start >= 0 && error.start <= written.length, written);
      }
    }),
    { numRuns: 3_000 },
  );
});

it("any format and any arguments make a text", () => {
  const verb = fc
    .tuple(
      fc.constantFrom("", "-", "0", "+", "#", " ", "5", ".2", "[1]", "[9]", "*", "5.1"),
      fc.constantFrom(...Array.from("vTdboOxXcqUeEfFgGstp%!")),
    )
    .map(([flags, letter]) => `%${flags}${letter}`);
  const argument = fc.constantFrom(
    "1",
    "-7",
    "2.5",
    "`é`",
    "nil",
    "true",
    ".List",
    ".Name",
    "9223372036854775807",
    "'a'",
    ".",
  );
  fc.assert(
    fc.property(fc.array(verb, { maxLength: 4 }), fc.array(argument, { maxLength: 4 }), (verbs, args) => {
      const text = `{{ printf \`${verbs.join(" ")}\` ${args.join(" ")} }}`;
      assert.doesNotMatch(run(text), /^(compile|run) /, text);
    }),
    { numRuns: 2_000 },
  );
});
