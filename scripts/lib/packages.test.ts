import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { arePackagesCurrent } from "./packages.mjs";
import { makeTree } from "./test-tree.ts";

const LOCKED = {
  "": { version: "0.1.0" },
  "node_modules/a": { version: "1.0.0", integrity: "sha512-a" },
  "node_modules/b": { version: "2.0.0", integrity: "sha512-b", dev: true },
  "node_modules/b-for-windows": { version: "2.0.0", integrity: "sha512-c", optional: true },
};
const { "": _project, "node_modules/b-for-windows": _other, ...INSTALLED } = LOCKED;

function isCurrent(t: TestContext, locked: object | undefined, installed: object | undefined): boolean {
  const files: Record<string, string> = {};
  if (locked !== undefined) files["package-lock.json"] = JSON.stringify({ packages: locked });
  if (installed !== undefined)
    files["node_modules/.package-lock.json"] = JSON.stringify({ packages: installed });
  return arePackagesCurrent(makeTree(t, files));
}

test("is content with what the lock file asks for, without packages for other platforms", (t) => {
  assert.equal(isCurrent(t, LOCKED, INSTALLED), true);
  assert.equal(
    isCurrent(t, LOCKED, {
      ...INSTALLED,
      "node_modules/b-for-windows": LOCKED["node_modules/b-for-windows"],
    }),
    true,
  );
});

test("sees that something is missing, changed or left over", (t) => {
  assert.equal(isCurrent(t, LOCKED, undefined), false);
  assert.equal(isCurrent(t, undefined, INSTALLED), false);
  assert.equal(isCurrent(t, LOCKED, { "node_modules/a": INSTALLED["node_modules/a"] }), false);
  assert.equal(isCurrent(t, LOCKED, { ...INSTALLED, "node_modules/c": { version: "3.0.0" } }), false);
  assert.equal(
    isCurrent(t, LOCKED, { ...INSTALLED, "node_modules/a": { version: "1.0.1", integrity: "sha512-a" } }),
    false,
  );
  assert.equal(
    isCurrent(t, LOCKED, { ...INSTALLED, "node_modules/a": { version: "1.0.0", integrity: "sha512-x" } }),
    false,
  );
});
