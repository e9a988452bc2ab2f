import assert from "node:assert/strict";
import { test } from "node:test";
import { REGISTER, runtimeProblems } from "./runtime-register.ts";

const problemsOf = (path: string, source: string): string[] =>
  runtimeProblems(
    new Map([
      [REGISTER, "| `named.ts` |"],
      [path, source],
    ]),
  );

test("a file of src/runtime has to be in the register", () => {
  assert.deepEqual(problemsOf("src/runtime/named.ts", "setFlagsFromString('--x')"), []);
  assert.deepEqual(problemsOf("src/runtime/linux/named.ts", ""), [
    "src/runtime/linux/named.ts: is not in src/runtime/README.md",
  ]);
});

for (const source of [
  'import { setFlagsFromString } from "node:v8";',
  'const { default: koffi } = await import("koffi");',
  'import koffi from "koffi";',
  'const koffi = require("koffi");',
  'process.binding("udp_wrap");',
  'require("undici/lib/core/connect.js");',
  "require(`undici/lib/core/connect.js`);",
  'import "@scope/package/dist/inner.js";',
  'import Agent from "undici/lib/dispatcher/agent.js";',
])
  test(`a file elsewhere may not: ${source}`, () => {
    assert.equal(problemsOf("src/server/x.ts", source).length, 1);
  });

test("types, public files and our own folders are free to import", () => {
  const source = `import type * as Koffi from "koffi";
    import { x } from "../lib/net/x.ts";
    import { setPriority } from "node:os";
    import { y } from "@bufbuild/protobuf/wire";
    import type { Server } from "../dist/src/x.ts";`;
  assert.deepEqual(problemsOf("src/server/x.ts", source), []);
});
