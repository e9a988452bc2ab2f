import assert from "node:assert/strict";
import { test } from "node:test";
import { blamedPlugin } from "./stray-faults.ts";

const greet = { plugin: "greet", file: "/srv/dns/greet.ts" };
const own = new URL("../serving/chain.ts", import.meta.url).href;

function errorWith(...frames: readonly string[]): Error {
  const error = new Error("broken");
  error.stack = ["Error: broken", ...frames.map((frame) => `    at f (${frame})`)].join("\n");
  return error;
}

for (const [what, error, blamed] of [
  ["its file", errorWith("file:///srv/dns/greet.ts?v=17-1:18:42", `${own}:1:1`), "greet"],
  ["the program, asked by its file", errorWith(`${own}:1:1`, "file:///srv/dns/greet.ts:3:1"), "greet"],
  ["a module it imports", errorWith("file:///srv/dns/node_modules/x/index.js:1:1"), "unknown"],
  ["nowhere", "just a text", "unknown"],
  ["the program", errorWith("node:net:1:1", `${own}:1:1`), undefined],
  ["a file with a longer name", errorWith("file:///srv/dns/greet.tsx:3:1", `${own}:1:1`), undefined],
] as const) {
  test(`a fault from ${what}: ${blamed ?? "the program's own"}`, () => {
    assert.equal(blamedPlugin(error, [greet]), blamed);
  });
}

test("without added plugins every fault is the program's own", () => {
  assert.equal(blamedPlugin("just a text", []), undefined);
});
