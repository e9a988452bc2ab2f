import assert from "node:assert/strict";
import { test } from "node:test";
import { currentPage } from "./differences.ts";
import { makeTree } from "./test-tree.ts";

const README = (differences: string) =>
  `# x\n\n## Syntax\n\nnothing\n\n## Differences from CoreDNS\n\n${differences}\n`;

test("puts the section of each README in its place, and leaves the rest alone", (t) => {
  const root = makeTree(t, {
    "docs/compatibility.md": [
      "# Page",
      "<!-- differences of src/corefile/README.md -->\nold\n<!-- end of differences -->",
      "between",
      "<!-- differences of src/plugins/*/README.md -->",
      "<!-- end of differences -->",
      "after",
    ].join("\n"),
    "src/corefile/README.md": README("- A key."),
    "src/plugins/log/README.md": README("- A line\n  of two, for $& reasons."),
    "src/plugins/any/README.md": README("None."),
    "src/plugins/cache/README.md": `${README("- An entry.")}\n## Further\n\nmore\n`,
  });
  assert.equal(
    currentPage(root),
    [
      "# Page",
      "<!-- differences of src/corefile/README.md -->\n\n- A key.\n\n<!-- end of differences -->",
      "between",
      "<!-- differences of src/plugins/*/README.md -->",
      "",
      "#### [cache](../src/plugins/cache/README.md)\n\n- An entry.\n",
      "#### [log](../src/plugins/log/README.md)\n\n- A line\n  of two, for $& reasons.\n",
      "<!-- end of differences -->",
      "after",
    ].join("\n"),
  );
});

test("a README without the section is an error that names it", (t) => {
  const root = makeTree(t, {
    "docs/compatibility.md": "<!-- differences of src/corefile/README.md -->\n<!-- end of differences -->\n",
    "src/corefile/README.md": "# corefile\n",
  });
  assert.throws(
    () => currentPage(root),
    /src\/corefile\/README\.md has no section "Differences from CoreDNS"/,
  );
});
