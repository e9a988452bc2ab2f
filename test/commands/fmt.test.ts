/** `portolan fmt` as its users run it. */
import assert from "node:assert/strict";
import { lstatSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { canonicalDump } from "../../src/corefile/canonical-dump.ts";
import { formatCorefile } from "../../src/corefile/format.ts";
import { memoryHost } from "../../src/corefile/host.ts";
import { parseCorefile } from "../../src/corefile/parser.ts";
import { syntaxErrors } from "../../src/corefile/syntax-errors.ts";
import { lex } from "../../src/corefile/tokens.ts";
import { repositoryCorefiles } from "../support/corefiles.ts";
import { runPortolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const UGLY = ".:53 {\nerrors # first\n\tforward  .   192.0.2.53 {\nmax_fails 3\n}\n}";
const NEAT = ".:53 {\n    errors # first\n    forward . 192.0.2.53 {\n        max_fails 3\n    }\n}\n";

test("prints the formatted text of files and of standard input, and changes nothing", async (t) => {
  const cwd = makeTree(t, { Corefile: UGLY, other: NEAT });
  for (const words of [[], ["Corefile"], ["other"], ["-"], ["stdin"]]) {
    const { code, output, errors } = await runPortolan(["fmt", ...words], { cwd, input: UGLY });
    assert.deepEqual([code, output, errors], [0, NEAT, ""], words.join(" "));
  }
  assert.equal(readFileSync(join(cwd, "Corefile"), "utf8"), UGLY);
});

test("-check names the files that are not formatted, and ends with 1", async (t) => {
  const cwd = makeTree(t, { one: UGLY, two: NEAT, "etc/three": UGLY });
  const mixed = await runPortolan(["fmt", "-check", "one", "two", "etc/three"], { cwd });
  assert.deepEqual([mixed.code, mixed.output, mixed.errors], [1, "one\netc/three\n", ""]);
  const clean = await runPortolan(["fmt", "-check", "two"], { cwd });
  assert.deepEqual([clean.code, clean.output], [0, ""]);
});

test("-diff prints a patch that git applies", { skip: skipWithout("git") }, async (t) => {
  const cwd = makeTree(t, { Corefile: UGLY });
  const { code, output } = await runPortolan(["fmt", "-diff"], { cwd });
  assert.equal(code, 0);
  assert.match(output, /^--- Corefile\n\+\+\+ Corefile\n@@ -1,6 \+1,6 @@\n/);
  assert.equal((await runPortolan(["fmt", "-check", "-diff"], { cwd })).code, 1);
  writeFileSync(join(cwd, "patch"), output);
  const applied = await run("git", ["apply", "-p0", "patch"], { cwd });
  assert.equal(applied.code, 0, applied.errors);
  assert.equal(readFileSync(join(cwd, "Corefile"), "utf8"), NEAT);
});

test("-write changes files in place, names the changed ones, and keeps symbolic links", async (t) => {
  const cwd = makeTree(t, { real: UGLY, neat: NEAT });
  symlinkSync("real", join(cwd, "link"));
  const { code, output } = await runPortolan(["fmt", "-write", "link", "neat"], { cwd });
  assert.deepEqual([code, output], [0, "link\n"]);
  assert.ok(lstatSync(join(cwd, "link")).isSymbolicLink());
  assert.equal(readFileSync(join(cwd, "real"), "utf8"), NEAT);
});

for (const [what, text, place] of [
  ["a block that is not closed", ". {\n    errors\n", /^Corefile:1:3: error: .*\n/],
  ["a brace too many", ". {\n}\n}\n", /^Corefile:3:1: error: Unexpected '\}'/],
  ["a quotation mark that is not closed", '. {\n    log "a\n}\n', /^Corefile:2:9: error: the quotation mark/],
  ["a brace glued to a word", ".:53{\n    errors\n}\n", /^Corefile:1:5: error: the brace is part of the key/],
] as const) {
  test(`${what} is an error with its place, and the file stays as it was`, async (t) => {
    const cwd = makeTree(t, { Corefile: text, other: UGLY });
    const { code, output, errors } = await runPortolan(["fmt", "-write", "Corefile", "other"], { cwd });
    assert.equal(code, 2);
    assert.match(errors, place);
    assert.match(errors, /\nCorefile: not formatted: 1 error\n$/);
    assert.equal(readFileSync(join(cwd, "Corefile"), "utf8"), text);
    assert.equal(output, "other\n", "other files are formatted");
  });
}

test("YAML, missing files and contradicting flags are refused", async (t) => {
  const yaml = "apiVersion: v1\nkind: ConfigMap\ndata:\n  Corefile: |\n    . {\n    errors\n    }\n";
  const cwd = makeTree(t, {
    "map.yaml": yaml,
    "other.yaml": "apiVersion: v1\nkind: Service\n",
    Corefile: UGLY,
  });
  for (const [words, message] of [
    [["-write", "map.yaml"], /^map\.yaml: YAML, not a Corefile/],
    [["-write", "other.yaml"], /^other\.yaml: YAML, not a Corefile/],
    [["nowhere"], /^cannot read the Corefile nowhere: no such file/],
    [["-write", "-check", "Corefile"], /^-write changes files and -check does not/],
    [["-write", "-"], /^-write needs a file/],
    [["-bogus"], /^flag provided but not defined: -bogus\n/],
  ] as const) {
    const { code, output, errors } = await runPortolan(["fmt", ...words], { cwd });
    assert.deepEqual([code, output], [2, ""]);
    assert.match(errors, message);
  }
  assert.equal(readFileSync(join(cwd, "map.yaml"), "utf8"), yaml);
  const elsewhere = await runPortolan(["fmt"], { cwd: makeTree(t, {}) });
  assert.equal(elsewhere.code, 2);
  assert.match(elsewhere.errors, /^there is no Corefile here: name the file to format\n/);
});

test("a part that a Corefile imports is formatted", async () => {
  const input = "errors\nlog {\nclass error\n}\nimport /nowhere/*.override\nforward . {$UPSTREAM}\n";
  const { code, output, errors } = await runPortolan(["fmt", "-"], { input });
  assert.deepEqual(
    [code, output, errors],
    [0, "errors\nlog {\n    class error\n}\nimport /nowhere/*.override\nforward . {$UPSTREAM}\n", ""],
  );
});

test("no Corefile of this repository changes its meaning or loses a comment", () => {
  let count = 0;
  for (const { place, text } of repositoryCorefiles()) {
    if (syntaxErrors(text, place).length > 0) continue;
    count++;
    const formatted = formatCorefile(text);
    assert.equal(formatCorefile(formatted), formatted, place);
    const meaning = (corefile: string): string =>
      canonicalDump(parseCorefile(corefile, { file: "Corefile", host: memoryHost() }).corefile);
    assert.equal(meaning(formatted), meaning(text), place);
    const comments = (corefile: string): string[] =>
      lex(corefile, "").comments.map((comment) => comment.text.trimEnd());
    assert.deepEqual(comments(formatted), comments(text), place);
  }
  assert.ok(count > 120, `only ${count} Corefiles`);
});
