import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CONTRACT, checkContractImports, contractNames, MOST_NAMES } from "./lib/contract.ts";

const root = join(import.meta.dirname, "..");
const contract = contractNames(readFileSync(join(root, "src", CONTRACT), "utf8"));
const page = readFileSync(join(root, "docs", "plugins.md"), "utf8");

test("the contract of a plugin stays small enough to be read as a whole", () => {
  assert.ok(contract.size > 30, `${contract.size} names were found`);
  assert.ok(contract.size <= MOST_NAMES, `${contract.size} names, and ${MOST_NAMES} are the limit`);
});

test("the page for authors has a line for each name of the contract, and for no other", () => {
  const [, section = ""] = /^## What `portolan\/plugin` exports\n(.*?)^## /ms.exec(page) ?? [];
  const rows = [...section.matchAll(/^\| (`.*?) \| (.+) \|$/gm)];
  const listed = rows.flatMap(([, names = ""]) => [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name));
  assert.deepEqual(new Set(listed), new Set(contract.keys()));
  assert.equal(listed.length, contract.size);
});

test("plugins import the contract's names from the contract, and others import files", () => {
  const src = join(root, "src");
  const problems = globSync("**/*.ts", { cwd: src }).flatMap((path) =>
    checkContractImports(path, readFileSync(join(src, path), "utf8"), contract),
  );
  assert.deepEqual(problems, []);
});

test("finds imports that go another way than the contract's", () => {
  const names = contractNames(
    'export { a, type B } from "./chain/x.ts";\nexport type { C } from "../lib/time/y.ts";\n',
  );
  const found = (path: string, source: string) =>
    checkContractImports(path, source, names).map(({ line, message }) => `${line} ${message}`);
  const plugin = "plugins/greet/index.ts";
  assert.deepEqual(found(plugin, 'import { a, type B, type C } from "../../plugin/index.ts";'), []);
  assert.deepEqual(found(plugin, 'import { engine } from "../../plugin/chain/x.ts";'), []);
  assert.deepEqual(found(plugin, 'import { C } from "../../lib/time/y.ts";'), []);
  assert.deepEqual(found(plugin, '\nimport type { C } from "../../lib/time/y.ts";'), [
    "2 imports ../../lib/time/y.ts: C is part of the contract, import it from plugin/index.ts",
  ]);
  assert.deepEqual(found(plugin, 'import {\n  engine,\n  a as b,\n} from "../../plugin/chain/x.ts";'), [
    "1 imports ../../plugin/chain/x.ts: a is part of the contract, import it from plugin/index.ts",
  ]);
  assert.deepEqual(found("zones/data/z.ts", 'import { a } from "../../plugin/index.ts";'), [
    "1 imports ../../plugin/index.ts: only plugins do, all others name the file",
  ]);
  assert.deepEqual(found("zones/data/z.ts", 'import { a } from "../../plugin/chain/x.ts";'), []);
});
