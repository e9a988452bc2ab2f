import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { arePackagesCurrent, packagesToStart } from "./packages.mjs";
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

const PROJECT = {
  dependencies: { a: "1.0.0" },
  optionalDependencies: { "b-for-windows": "2.0.0" },
  devDependencies: { esbuild: "3.0.0", linter: "4.0.0" },
};

/** What esbuild depends on is in its own folder, beside another version for all. */
const DEVELOPMENT = {
  ...LOCKED,
  "node_modules/esbuild": { version: "3.0.0", dev: true, dependencies: { inner: "1", outer: "1" } },
  "node_modules/esbuild/node_modules/inner": { version: "1.0.0", dev: true, dependencies: { outer: "1" } },
  "node_modules/inner": { version: "2.0.0", dev: true },
  "node_modules/outer": { version: "1.0.0", dev: true, optionalDependencies: { a: "1" } },
  "node_modules/linter": { version: "4.0.0", dev: true },
};

test("finds the packages that building and running the server takes", (t) => {
  const root = makeTree(t, {
    "package.json": JSON.stringify(PROJECT),
    "package-lock.json": JSON.stringify({ packages: DEVELOPMENT }),
  });
  assert.deepEqual([...packagesToStart(root).keys()].sort(), [
    "node_modules/a",
    "node_modules/b-for-windows",
    "node_modules/esbuild",
    "node_modules/esbuild/node_modules/inner",
    "node_modules/outer",
  ]);
});

test("the packages of the server may be there without the others", (t) => {
  const locked = DEVELOPMENT;
  const { "node_modules/linter": _linter, "node_modules/b": _b, "": _root, ...installed } = locked;
  const root = makeTree(t, {
    "package.json": JSON.stringify(PROJECT),
    "package-lock.json": JSON.stringify({ packages: locked }),
    "node_modules/.package-lock.json": JSON.stringify({ packages: installed }),
  });
  assert.equal(arePackagesCurrent(root, packagesToStart(root)), true);
  assert.equal(arePackagesCurrent(root), false);
});
