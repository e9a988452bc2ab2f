import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { parse, stringify } from "yaml";
import { cutList } from "./cut-list.ts";
import { parseDocuments } from "./parse-documents.ts";

const FILLER = "x".repeat(300);

/** Services as kubectl prints them, with keys in the order of the alphabet: `kind` stands behind the items. */
function listOf(count: number, indent = ""): string {
  const items = Array.from(
    { length: count },
    (_, at) =>
      `${indent}- apiVersion: v1\n${indent}  kind: Service\n${indent}  metadata:\n${indent}    name: s${at}\n${indent}    annotations: {note: ${FILLER}}\n`,
  );
  return `apiVersion: v1\nitems:\n${items.join("")}kind: List\nmetadata:\n  resourceVersion: ""\n`;
}

/** The items of all Lists in a text, and how many Lists there were. */
function read(text: string): {
  readonly items: unknown[];
  readonly lists: number;
  readonly problems: string[];
} {
  const items: unknown[] = [];
  const problems: string[] = [];
  let lists = 0;
  for (const parsed of parseDocuments(text)) {
    if ("problem" in parsed) {
      problems.push(`${parsed.line}: ${parsed.problem}`);
      continue;
    }
    const { value } = parsed;
    assert.ok(typeof value === "object" && value !== null && "items" in value && Array.isArray(value.items));
    assert.ok("kind" in value && value.kind === "List");
    items.push(...value.items);
    lists++;
  }
  return { items, lists, problems };
}

describe("a large List", () => {
  for (const indent of ["", "  "])
    it(`is read in pieces, with ${indent.length} spaces in front of its items`, () => {
      const text = listOf(500, indent);
      const { items, lists, problems } = read(text);
      assert.deepEqual(items, parse(text).items);
      assert.deepEqual(problems, []);
      assert.ok(lists > 15, `${lists}`);
    });

  it("keeps the lines of what is in it", () => {
    const text = `# one\n---\n${listOf(500)}`;
    const lines = text.split("\n");
    for (const parsed of parseDocuments(text)) {
      assert.ok("value" in parsed);
      const { value } = parsed;
      assert.ok(
        typeof value === "object" && value !== null && "items" in value && Array.isArray(value.items),
      );
      for (const [at, { metadata }] of value.items.entries())
        assert.equal(
          lines[parsed.lineOf(["items", at, "metadata", "name"]) - 1],
          `    name: ${metadata.name}`,
        );
    }
  });

  it("loses no more than a few items by a fault in one", () => {
    const text = listOf(500).replace("name: s250\n", 'name: "s250\n');
    const line = text.split("\n").indexOf('    name: "s250') + 1;
    const { items, problems } = read(text);
    assert.equal(problems.length, 1);
    assert.ok(Math.abs(Number.parseInt(problems[0] ?? "", 10) - line) < 100, problems[0]);
    assert.ok(items.length > 400, `${items.length}`);
  });

  for (const [title, change] of [
    ["is short", (text: string) => text.slice(0, 0) + listOf(3)],
    [
      "has items in one line",
      (text: string) => text.replace(/items:\n[\s\S]*\nkind/, `items: [${FILLER.repeat(200)}]\nkind`),
    ],
    ["is no List", (text: string) => text.replace("kind: List", "kind: Service")],
    [
      "has an anchor and its alias",
      (text: string) => text.replace("name: s3\n", "name: &a s3\n").replace("name: s4\n", "name: *a\n"),
    ],
    ["has much around its items", (text: string) => `${text}  a: ${"y".repeat(3000)}\n`],
  ] as const)
    it(`is read at once where it ${title}`, () => assert.equal(cutList(change(listOf(500))), undefined));

  it("that has its items twice is the fault that it is", () => {
    const text = `${listOf(500)}items:\n- a: 1\n`;
    const { items, problems } = read(text);
    assert.deepEqual(items, []);
    assert.match(problems.join(), /unique/);
  });

  it("is what it is to a parser that reads it at once, whatever is in it", () => {
    const text = fc.oneof(
      fc.string(),
      fc.constantFrom(
        "- a",
        "a: b\n- c",
        "kind: List",
        "items:",
        "|\n",
        "# x",
        "\n\n- x\n  y",
        '"',
        "*a",
        "---x",
      ),
    );
    const item = fc.dictionary(
      fc.stringMatching(/^[a-z]{1,5}$/),
      fc.oneof(text, fc.array(text), fc.dictionary(text, text), fc.constant(null)),
    );
    fc.assert(
      fc.property(fc.array(item, { minLength: 1, maxLength: 8 }), fc.boolean(), (some, indentSeq) => {
        const items = Array.from({ length: 120 }, (_, at) => ({
          at,
          filler: FILLER,
          ...some[at % some.length],
        }));
        const written = stringify(
          { apiVersion: "v1", items, kind: "List" },
          { indentSeq, lineWidth: 40, aliasDuplicateObjects: false },
        );
        const { items: found, problems } = read(written);
        assert.deepEqual(problems, []);
        assert.deepEqual(found, parse(written).items);
      }),
      { numRuns: 60 },
    );
  });
});
