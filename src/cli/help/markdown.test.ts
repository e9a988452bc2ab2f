import assert from "node:assert/strict";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { paint } from "../terminal.ts";
import { renderMarkdown } from "./markdown.ts";

const PAGE = `# cache

Keeps **answers** for \`ttl\`; see [the page](x.md).

\`\`\`txt
cache [TTL] {
    success **N**

}
\`\`\`

| Name | Type |
|---|---|
| \`a\` | b |
`;

test("without colours", () => {
  assert.equal(
    renderMarkdown(PAGE, false),
    "cache\n\nKeeps answers for ttl; see the page.\n\n    cache [TTL] {\n        success **N**\n\n    }\n\n| Name | Type |\n| a | b |\n",
  );
});

test("colours change nothing but colours", () => {
  const text = renderMarkdown(PAGE, true);
  assert.ok(
    text.startsWith(
      `${paint("cache", "bold")}\n\nKeeps ${paint("answers", "bold")} for ${paint("ttl", "cyan")}`,
    ),
  );
  assert.equal(stripVTControlCharacters(text), renderMarkdown(PAGE, false));
});
