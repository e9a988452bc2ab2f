import assert from "node:assert/strict";
import { test } from "node:test";
import { maskSecrets } from "./configuration-facts.ts";

for (const [line, shown] of [
  ["    secret NoTQJBP5WyHBaDBZWQ==", "    secret ********"],
  ["    credentials me myself", "    credentials ********"],
  ['        header Authorization "Bearer abc"', "        header Authorization ********"],
  ["\theader x-honeycomb-team abc", "\theader x-honeycomb-team ********"],
  ["  3 |     header Authorization abc", "  3 |     header Authorization ********"],
  ["    header {", "    header {"],
  ["        response set aa", "        response set aa"],
  ["    secretly {", "    secretly {"],
] as const) {
  test(`shows '${line.trim()}' as '${shown.trim()}'`, () => {
    assert.equal(maskSecrets(`.:53 {\n${line}\n}\n`), `.:53 {\n${shown}\n}\n`);
  });
}
