import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { pathToFileURL } from "node:url";

const folder = mkdtempSync(join(tmpdir(), "portolan-dns-readme-"));
after(() => rmSync(folder, { recursive: true }));

const library = pathToFileURL(join(import.meta.dirname, "index.ts")).href;

/** The TypeScript blocks, each with the heading above it. */
function examples(): { heading: string; code: string }[] {
  const readme = readFileSync(join(import.meta.dirname, "README.md"), "utf8");
  const found: { heading: string; code: string }[] = [];
  let heading = "";
  for (const [, title, code] of readme.matchAll(/^## (.+)$|^```ts\n([\s\S]*?)^```$/gm)) {
    if (title !== undefined) heading = title;
    if (code !== undefined) found.push({ heading, code });
  }
  return found;
}

describe("the README", () => {
  it("has an example for each topic", () => {
    assert.deepEqual(
      examples().map(({ heading }) => heading),
      ["Names", "Records", "Messages", "Messages", "EDNS"],
    );
  });

  for (const [index, { heading, code }] of examples().entries()) {
    it(`has an example that runs: ${heading}`, async () => {
      assert.match(code, /assert/);
      const file = join(folder, `${index}.mts`);
      writeFileSync(file, code.replaceAll('"portolan/dns"', JSON.stringify(library)));
      await import(pathToFileURL(file).href);
    });
  }
});
