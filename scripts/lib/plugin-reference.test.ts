import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { currentPluginPage, PLUGIN_PAGE, withTables } from "./plugin-reference.ts";

const root = join(import.meta.dirname, "..", "..");

test("the page for authors lists what query, site and config offer", () => {
  const page = readFileSync(join(root, PLUGIN_PAGE), "utf8");
  const current = currentPluginPage(root);
  assert.ok(
    page === current,
    `${PLUGIN_PAGE} is out of date: run npx node scripts/write-plugin-reference.ts`,
  );
  for (const row of [
    "| `query.metadataValue(label)` | `string \\| undefined` |",
    "| `query.client` | `Endpoint` |",
    "| `site.metrics` | `MetricsRegistry` |",
    "| `site.block.zones` | `readonly Name[]` |",
    "| `domainName()` | a word | `Name` |",
    "| `fallthrough()` | a line of the block | `Fallthrough` |",
  ])
    assert.ok(current.includes(row), row);
  // What only the server uses is not for authors.
  assert.doesNotMatch(current, /`query\.(detach|abandon|waiter|#)/);
});

test("a table goes to its place, and a page without the place is refused", () => {
  const page = "before\n<!-- a: x -->\nold\n<!-- end of a -->\nafter\n";
  assert.match(
    withTables(page, { a: ["| new |"] }),
    /^before\n<!-- a: .*-->\n\n\| new \|\n\n<!-- end of a -->\nafter\n$/,
  );
  assert.throws(() => withTables(page, { b: [] }), /has no place for the table "b"/);
});
