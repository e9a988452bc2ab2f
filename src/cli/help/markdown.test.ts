import assert from "node:assert/strict";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { paint } from "../terminal.ts";
import { renderMarkdown } from "./markdown.ts";

const PAGE = `# cache

Keeps **answers** for \`ttl\`; see [the page](x.md)
and [the RFC](https://rfc.example/1).

\`\`\`txt
cache [TTL] {
    success **N**

}
\`\`\`

- one item that goes on
  - and an inner one
- two

| Name | Type |
|---|---|
| \`a\` | b |
`;

test("a page without colours", () => {
  assert.equal(
    renderMarkdown(PAGE, false, 50),
    `cache

Keeps answers for ttl; see the page and the RFC
(https://rfc.example/1).

    cache [TTL] {
        success **N**

    }

- one item that goes on

  - and an inner one
- two

Name  Type
a     b
`,
  );
});

test("a code span between two backticks may have single ones", () => {
  assert.equal(renderMarkdown("``a `b' c`` and `d`\n", false, 50), "a `b' c and d\n");
});

test("a table that does not fit becomes a list of terms", () => {
  assert.equal(
    renderMarkdown(PAGE.slice(PAGE.indexOf("|")).replace("b", "some long words"), false, 12),
    "Name: Type\n\na\n    some\n    long\n    words\n",
  );
});

test("colours change only colours", () => {
  const text = renderMarkdown(PAGE, true, 50);
  assert.ok(
    text.startsWith(
      `${paint("cache", "bold")}\n\nKeeps ${paint("answers", "bold")} for ${paint("ttl", "cyan")}`,
    ),
  );
  assert.equal(stripVTControlCharacters(text), renderMarkdown(PAGE, false, 50));
});
