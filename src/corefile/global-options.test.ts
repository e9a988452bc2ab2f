import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { canonicalDump } from "./canonical-dump.ts";
import { memoryHost } from "./host.ts";
import { type ParseOptions, type ParseResult, parseCorefile } from "./parser.ts";

function parse(text: string, options: Partial<ParseOptions> = {}): ParseResult {
  return parseCorefile(text, { file: "Corefile", host: memoryHost(), ...options });
}

describe("global options", () => {
  const directives = ["log"];
  const codesOf = (text: string): string[] => parse(text, { directives }).diagnostics.map(({ code }) => code);

  it("a block without key before all others adds directives", () => {
    const text = "(s) {\n log\n}\n{\n plugin greet ./greet.ts before log\n}\n. {\n greet a\n import s\n}\n";
    const { corefile, diagnostics } = parse(text, { directives });
    assert.deepEqual(diagnostics, []);
    const words = corefile.globalOptions.map(({ name, args }) => [name, ...args].map((token) => token.text));
    assert.deepEqual(words, [["plugin", "greet", "./greet.ts", "before", "log"]]);
    assert.equal(corefile.blocks.length, 1);
  });

  it("may be imported", () => {
    const { corefile, diagnostics } = parse("import options\n. {\n greet\n}\n", {
      directives,
      host: memoryHost({ files: { options: "{\n plugin greet greet.ts\n}\n" } }),
    });
    assert.deepEqual(diagnostics, []);
    assert.equal(corefile.globalOptions[0]?.name.span.file, "options");
  });

  for (const [what, text, codes] of [
    ["a block that lost its key", "{\n log\n}\n", ["COREFILE_MISSING_KEY"]],
    ["after a server block", ". {\n}\n{\n plugin a ./a.ts\n}\n", ["COREFILE_GLOBAL_OPTIONS_PLACE"]],
    ["a block that is not closed", "{\n plugin a ./a.ts\n. {\n", ["COREFILE_MISSING_CLOSING_BRACE"]],
    ["a name that no option adds", "{\n plugin a ./a.ts\n}\n. {\n b\n}\n", ["COREFILE_UNKNOWN_DIRECTIVE"]],
  ] as const) {
    it(what, () =>
      assert.ok(
        codes.every((code) => codesOf(text).includes(code)),
        `${codesOf(text)}`,
      ),
    );
  }

  it("count for the canonical dump", () => {
    const dump = (text: string): string => canonicalDump(parse(text, { directives }).corefile);
    const [one, same, other, none] = [
      "{\n plugin a a.ts\n}",
      "{\n\n  plugin  a a.ts # a\n}",
      "{\n plugin a b.ts\n}",
      "",
    ].map((options) => dump(`${options}\n. {\n log\n}\n`));
    assert.equal(one, same);
    assert.notEqual(one, other);
    assert.notEqual(one, none);
    assert.equal(none, '[{"keys":["."],"directives":[["log"]]}]');
  });
});
