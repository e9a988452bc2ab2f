import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";

/** Makes a folder with these files, by path and content, and removes it after the test. */
export function makeTree(t: Pick<TestContext, "after">, files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "portolan-tree-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  writeTree(root, files);
  return root;
}

export function writeTree(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}
