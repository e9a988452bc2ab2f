import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { circles, importGraph } from "./import-graph.ts";

const graphOf = (sources: Record<string, string>) => importGraph(new Map(Object.entries(sources)));

describe("circles of imports", () => {
  test("are found through several files, of types as of values", () => {
    const graph = graphOf({
      "src/a.ts": 'import { b } from "./room/b.ts";',
      "src/room/b.ts": 'import type { C } from "../c.ts";',
      "src/c.ts": 'export { a } from "./a.ts";',
      "src/d.ts": 'import { a } from "./a.ts"; import("./e.ts");',
      "src/e.ts": 'import { z } from "./elsewhere.ts"; import x from "package";',
    });
    assert.deepEqual(circles(graph), [["src/a.ts", "src/c.ts", "src/room/b.ts"]]);
  });

  test("an acyclic graph has no cycles, however often its arrows meet", () => {
    const graph = graphOf({
      "a.ts": 'import "./b.ts"; import "./c.ts";',
      "b.ts": 'import "./d.ts";',
      "c.ts": 'import "./d.ts"; import "./b.ts";',
      "d.ts": "",
    });
    assert.deepEqual(circles(graph), []);
  });

  test("that are apart are told apart, and one of two loaded when asked for counts", () => {
    const graph = graphOf({
      "a.ts": 'const b = () => import("./b.ts");',
      "b.ts": 'import "./a.ts";',
      "c.ts": 'import "./d.ts"; import "./a.ts";',
      "d.ts": 'import "./c.ts";',
    });
    assert.deepEqual(circles(graph), [
      ["a.ts", "b.ts"],
      ["c.ts", "d.ts"],
    ]);
  });
});
