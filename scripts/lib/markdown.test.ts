import assert from "node:assert/strict";
import { test } from "node:test";
import { fencedBlocks, localLinks, sections } from "./markdown.ts";

const PAGE = `# Title

Do this:

\`\`\`sh
one
  two
\`\`\`

\`\`\`
three
\`\`\`

## First

A [link](docs/a.md#part), [another](https://example.org), [\`code\`](b.md) and \`[not](c.md)\`.

\`\`\`\`md
## Inside

\`\`\`txt
[no](d.md)
\`\`\`
\`\`\`\`

### Below

- An item:

  \`\`\`ts
  four();
  \`\`\`

## Second

last
`;

test("finds blocks with language, line and what stands in front", () => {
  assert.deepEqual(fencedBlocks(PAGE), [
    { language: "sh", text: "one\n  two\n", line: 5, introduction: "Do this:" },
    { language: "", text: "three\n", line: 10, introduction: "" },
    {
      language: "md",
      text: "## Inside\n\n```txt\n[no](d.md)\n```\n",
      line: 18,
      introduction:
        "A [link](docs/a.md#part), [another](https://example.org), [`code`](b.md) and `[not](c.md)`.",
    },
    { language: "ts", text: "four();\n", line: 30, introduction: "- An item:" },
  ]);
  assert.throws(() => fencedBlocks("a\n```\nb\n"), /the block of line 2 has no end/);
});

test("finds sections, with the deeper ones in them and without those in blocks", () => {
  const [first, second] = sections(PAGE, 2);
  assert.equal(first?.title, "First");
  assert.match(first?.text ?? "", /^A \[link\][\s\S]*## Inside[\s\S]*### Below[\s\S]*four\(\);\n {2}```$/);
  assert.deepEqual(second, { title: "Second", text: "last" });
  assert.deepEqual(
    sections(PAGE, 3).map(({ title }) => title),
    ["Below"],
  );
});

test("finds links to files, outside of code", () => {
  assert.deepEqual(localLinks(PAGE), ["docs/a.md", "b.md"]);
});
