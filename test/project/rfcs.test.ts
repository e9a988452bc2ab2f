/** docs/rfcs.md: the tests that it names exist, and it has each RFC that the sources cite. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { hasTest, namedTests } from "../../scripts/lib/named-tests.ts";
import { projectRoot } from "../support/portolan.ts";

const page = readFileSync(join(projectRoot, "docs/rfcs.md"), "utf8");

const rows = Array.from(page.matchAll(/^\| ([\d, ]+) \|(.*)\|$/gm), ([, numbers = "", rest = ""]) => ({
  numbers: numbers.split(", "),
  rest,
}));

test("each test that docs/rfcs.md names is there, under its title", () => {
  const named = namedTests(page);
  assert.ok(named.length > 60);
  for (const { title, file } of named) {
    const path = join(projectRoot, "docs", file);
    assert.ok(existsSync(path), file);
    assert.ok(hasTest(readFileSync(path, "utf8"), title), `${file}: ${title}`);
  }
});

test("an RFC has one row, and what is supported has a test", () => {
  const numbers = rows.flatMap((row) => row.numbers);
  assert.deepEqual(
    numbers.filter((number, index) => numbers.indexOf(number) !== index),
    [],
  );
  for (const { numbers: row, rest } of rows)
    if (/\| (?:yes|in part)/.test(rest)) assert.ok(namedTests(rest).length > 0, `RFC ${row}`);
});

test("each RFC that the sources cite is on the page", () => {
  const known = new Set(rows.flatMap((row) => row.numbers));
  const missing = globSync("src/**/*.{ts,tsx}", { cwd: projectRoot })
    .filter((file) => !/(?:\.test\.ts|\/fixtures\/)/.test(file.replace(/\\/g, "/")))
    .flatMap((file) => {
      const text = readFileSync(join(projectRoot, file), "utf8");
      return Array.from(text.matchAll(/\bRFC ?(\d{3,5})\b/g), ([, number = ""]) => `${number} in ${file}`);
    })
    .filter((citation) => !known.has(citation.split(" ")[0] ?? ""));
  assert.deepEqual(missing, [], "add a row to docs/rfcs.md, or a line at its end");
});
