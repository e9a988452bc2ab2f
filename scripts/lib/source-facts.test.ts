import assert from "node:assert/strict";
import { test } from "node:test";
import { readSource } from "./source-facts.ts";

const specifiers = (source: string) =>
  readSource("a.ts", source).references.map(({ specifier }) => specifier);

test("finds every form of import", () => {
  const forms = [
    'import "./x.ts";',
    'import x from "./x.ts";',
    "import * as x from './x.ts'",
    'import x, { type Y, z as w } from "./x.ts";',
    'import type { X } from "./x.ts";',
    'import type X from "./x.ts";',
    'import data from "./x.ts" with { type: "json" };',
    'import {\n  a,\n  b, // from "./not.ts"\n} from\n  "./x.ts";',
    'export * from "./x.ts";',
    'export * as x from "./x.ts";',
    'export { x, y as default } from "./x.ts";',
    'export type { X } from "./x.ts";',
    'export type * from "./x.ts";',
    'const x = await import("./x.ts");',
    'let x: import("./x.ts").X;',
    'new Worker(new URL("./x.ts", import.meta.url));',
  ];
  for (const form of forms) assert.deepEqual(specifiers(form), ["./x.ts"], form);
});

test("finds all imports of a file with their lines", () => {
  const source =
    'import { exit as leave } from "node:process";\n\nimport type { B } from "./b.ts";\nexport const c = 1;\n';
  assert.deepEqual(readSource("a.ts", source).references, [
    { specifier: "node:process", line: 1 },
    { specifier: "./b.ts", line: 3 },
  ]);
});

test("takes nothing else for an import", () => {
  const others = [
    "// import x from './x.ts'",
    "const text = \"import x from './x.ts'\";",
    "import.meta.url;",
    "loader.import('./x.ts');",
    "await import(path);",
    "const names = { import: './x.ts' };",
    "export const x = './x.ts';",
    "export { x };\nconst from = './x.ts';",
    "new URL('./x', base);",
    "new URL('/metrics', import.meta.url);",
  ];
  for (const other of others) assert.deepEqual(specifiers(other), [], other);
});

test("finds default exports", () => {
  const lines = (source: string) => readSource("a.ts", source).defaultExports;
  assert.deepEqual(lines("const a = 1;\nexport default a;"), [2]);
  assert.deepEqual(lines("export default function () {}"), [1]);
  assert.deepEqual(lines("export { a,\n  b as default };"), [2]);
  assert.deepEqual(lines("export { default } from './a.ts';"), [1]);
  assert.deepEqual(lines("export { default as a } from './a.ts';"), []);
  assert.deepEqual(lines("export const a = 1;\nswitch (a) { default: }"), []);
});

test("says where a text is not TypeScript", () => {
  assert.throws(() => readSource("lib/a.ts", "const = 1;"), /^Error: lib\/a\.ts: /);
});
