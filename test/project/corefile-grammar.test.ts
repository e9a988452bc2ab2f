/** The colors of Corefiles in editors: the TextMate grammar of the VS Code extension, in the engine that editors use. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import oniguruma from "vscode-oniguruma";
import textmate, { type IGrammar } from "vscode-textmate";
import { syntaxErrors } from "../../src/corefile/syntax-errors.ts";
import { lex } from "../../src/corefile/tokens.ts";
import { repositoryCorefiles } from "../support/corefiles.ts";
import { projectRoot } from "../support/portolan.ts";

const extension = join(projectRoot, "editors", "vscode");
const file = join(extension, "syntaxes", "corefile.tmLanguage.json");
await oniguruma.loadWASM(
  readFileSync(createRequire(import.meta.url).resolve("vscode-oniguruma/release/onig.wasm")),
);
const registry = new textmate.Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (patterns) => oniguruma.createOnigScanner(patterns),
    createOnigString: (text) => oniguruma.createOnigString(text),
  }),
  loadGrammar: async () => textmate.parseRawGrammar(readFileSync(file, "utf8"), file),
});
const loaded = await registry.loadGrammar("source.corefile");
assert.ok(loaded);
const grammar: IGrammar = loaded;

interface Scoped {
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly scopes: readonly string[];
}

function scopesOf(text: string): Scoped[] {
  let state = textmate.INITIAL;
  return text.split("\n").flatMap((line, index) => {
    const { tokens, ruleStack } = grammar.tokenizeLine(line.replace(/\r$/, ""), state);
    state = ruleStack;
    return tokens.map(({ startIndex, endIndex, scopes }) => ({
      line: index + 1,
      start: startIndex,
      end: endIndex,
      scopes,
    }));
  });
}

/** Each word with its innermost scope, without the name of the language. */
function words(text: string): [string, string][] {
  const lines = text.split("\n");
  return scopesOf(text).flatMap(({ line, start, end, scopes }): [string, string][] => {
    const word = lines[line - 1]?.slice(start, end).trim() ?? "";
    return word === "" ? [] : [[word, scopes.at(-1)?.replace(/\.corefile$/, "") ?? ""]];
  });
}

test("each kind of word has its scope", () => {
  const text = `# top
(common) {
    errors
}
example.org:53, tls://{$ZONE}:853 {
    import common
    forward . 192.0.2.53 tls://192.0.2.54:853 { # two
        max_fails 3
        health_check 5s
    }
    log "{name} \\"x\\"" {args[0]}
}
`;
  assert.deepEqual(words(text), [
    ["# top", "comment.line.number-sign"],
    ["(", "punctuation.definition.snippet.begin"],
    ["common", "entity.name.function.snippet"],
    [")", "punctuation.definition.snippet.end"],
    ["{", "punctuation.section.block.begin"],
    ["errors", "keyword.control.directive"],
    ["}", "punctuation.section.block.end"],
    ["example.org", "entity.name.section.zone"],
    [":53", "constant.numeric.port"],
    [",", "punctuation.separator"],
    ["tls://", "keyword.other.scheme"],
    ["{$ZONE}", "entity.name.section.zone"],
    [":853", "constant.numeric.port"],
    ["{", "punctuation.section.block.begin"],
    ["import", "keyword.control.import"],
    ["common", "entity.name.function.snippet"],
    ["forward", "keyword.control.directive"],
    [".", "string.unquoted"],
    ["192.0.2.53", "constant.other.address"],
    ["tls://192.0.2.54:853", "constant.other.address"],
    ["{", "punctuation.section.block.begin"],
    ["# two", "comment.line.number-sign"],
    ["max_fails", "support.type.property-name.option"],
    ["3", "constant.numeric"],
    ["health_check", "support.type.property-name.option"],
    ["5s", "constant.numeric.duration"],
    ["}", "punctuation.section.block.end"],
    ["log", "keyword.control.directive"],
    ['"', "string.quoted.double"],
    ["{name}", "variable.other.placeholder"],
    ['\\"', "constant.character.escape"],
    ["x", "string.quoted.double"],
    ['\\"', "constant.character.escape"],
    ['"', "string.quoted.double"],
    ["{args[0]}", "variable.parameter"],
    ["}", "punctuation.section.block.end"],
  ]);
});

test("in all Corefiles of the repository, braces, comments and first words have the scopes that the parser's words ask for", () => {
  let checked = 0;
  const wrong: string[] = [];
  for (const { place, text } of repositoryCorefiles()) {
    if (text.startsWith("\ufeff") || syntaxErrors(text, place).length > 0) continue;
    const scopes = scopesOf(text);
    const scopesAt = (line: number, column: number): string =>
      scopes
        .find((each) => each.line === line && each.start < column && column <= each.end)
        ?.scopes.join(" ") ?? "";
    const { tokens } = lex(text, place);
    let depth = 0;
    // The block of global options is the one at the beginning that has no key.
    let isGlobal = tokens[0]?.kind === "opening-brace";
    for (const { kind, span, startsLine, quoted, text: word } of tokens) {
      const found = scopesAt(span.line, span.column);
      const expect = (scope: string): void => {
        checked++;
        if (!found.includes(scope)) wrong.push(`${place}:${span.line}:${span.column} ${word}: ${found}`);
      };
      if (kind === "closing-brace" && --depth === 0) isGlobal = false;
      if (kind === "opening-brace") expect("punctuation.section.block.begin");
      else if (kind === "closing-brace") expect("punctuation.section.block.end");
      else if (quoted) expect("string.quoted");
      else if (startsLine && depth > 0 && word === "import") expect("keyword.control.import");
      else if (startsLine && depth === 1) expect(isGlobal ? "option.corefile" : "keyword.control.directive");
      if (kind === "opening-brace") depth++;
    }
  }
  assert.ok(checked > 900, `only ${checked} words`);
  assert.deepEqual(wrong, []);
});
