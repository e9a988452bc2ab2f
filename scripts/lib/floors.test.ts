import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checkLayout, checkSource, FLOORS } from "./floors.ts";

const messages = (path: string, source: string) => checkSource(path, source).map(({ message }) => message);
const importing = (path: string, specifier: string) => messages(path, `import { x } from "${specifier}";\n`);

describe("imports", () => {
  test("lead to the own folder and to floors below", () => {
    for (const [at, floor] of FLOORS.entries()) {
      for (const [otherAt, other] of FLOORS.entries()) {
        const expected = otherAt > at ? [`imports ../${other}/x.ts: ${other} is above ${floor}`] : [];
        assert.deepEqual(importing(`${floor}/a.ts`, `../${other}/x.ts`), expected);
      }
    }
  });

  test("are checked at any depth, and with type imports", () => {
    assert.deepEqual(importing("kubernetes/manifests/a.ts", "../../lib/x.ts"), []);
    assert.deepEqual(importing("kubernetes/manifests/a.ts", "../store/store.ts"), []);
    assert.equal(importing("kubernetes/manifests/a.ts", "../../server/x.ts").length, 1);
    assert.deepEqual(checkSource("lib/a.ts", '\nimport type { X } from "../dns/x.ts";'), [
      { path: "lib/a.ts", line: 2, message: "imports ../dns/x.ts: dns is above lib" },
    ]);
  });

  test("between the rooms of a floor lead down as well", () => {
    assert.deepEqual(importing("kubernetes/answers/a.ts", "../store/x.ts"), []);
    assert.deepEqual(importing("kubernetes/store/a.ts", "./x.ts"), []);
    assert.deepEqual(importing("kubernetes/store/a.ts", "../answers/x.ts"), [
      "imports ../answers/x.ts: room answers is not below room store",
    ]);
    assert.deepEqual(importing("kubernetes/api/a.ts", "../manifests/x.ts"), [
      "imports ../manifests/x.ts: room manifests is not below room api",
    ]);
    assert.deepEqual(importing("kubernetes/a.ts", "./store/x.ts"), [
      "imports ./store/x.ts: * is not a room of kubernetes",
    ]);
    assert.deepEqual(importing("server/generation.ts", "./serving/chain.ts"), []);
    assert.deepEqual(importing("server/serving/chain.ts", "../generation.ts"), [
      "imports ../generation.ts: room * is not below room serving",
    ]);
    assert.deepEqual(importing("server/threads/fleet.ts", "../run/listener-pool.ts"), []);
    assert.deepEqual(importing("server/run/listener-pool.ts", "../threads/fleet.ts"), [
      "imports ../threads/fleet.ts: room threads is not below room run",
    ]);
    assert.deepEqual(importing("kubernetes/store/tables/a.ts", "../pods/x.ts"), [
      "imports ../pods/x.ts: room pods is not below room tables",
    ]);
    assert.deepEqual(importing("server/server.ts", "./threads/fleet.ts"), []);
  });

  test("between plugins are refused", () => {
    const refused = ["imports ../cache/x.ts: a plugin never imports another"];
    assert.deepEqual(importing("plugins/forward/handler.ts", "../cache/x.ts"), refused);
    assert.deepEqual(importing("plugins/forward/handler.ts", "./policy.ts"), []);
    assert.deepEqual(importing("plugins/forward/deep/x.ts", "../policy.ts"), []);
    assert.deepEqual(importing("plugins/forward/handler.ts", "../../plugin/x.ts"), []);
  });

  test("from outside src/ or by the package's own name are refused", () => {
    assert.deepEqual(importing("lib/a.ts", "../../scripts/x.ts"), [
      "imports ../../scripts/x.ts: outside src/",
    ]);
    assert.deepEqual(importing("cli/a.ts", "portolan/dns"), [
      "imports portolan/dns: inside src/ name the file",
    ]);
    assert.deepEqual(importing("cli/a.ts", "../cellar/x.ts"), ["imports ../cellar/x.ts: stands on no floor"]);
    assert.deepEqual(importing("lib/a.ts", "node:fs"), []);
    assert.deepEqual(importing("lib/a.ts", "portolanish"), []);
  });

  test("of a test may lead up to the server", () => {
    assert.deepEqual(importing("lib/a.test.ts", "../server/x.ts"), []);
    assert.deepEqual(importing("plugins/forward/a.test.ts", "../cache/x.ts"), []);
    assert.deepEqual(importing("cli/a.test.ts", "./x.ts"), []);
    assert.deepEqual(importing("dns/a.test.ts", "../../test/fixtures/x.ts"), []);
    assert.deepEqual(importing("dns/a.ts", "../../test/fixtures/x.ts").length, 1);
    assert.deepEqual(importing("dns/a.test.ts", "../../bench/x.ts").length, 1);
    assert.deepEqual(importing("lib/a.test.ts", "../cli/x.ts"), ["imports ../cli/x.ts: cli is above lib"]);
  });

  test("of the test kit are for tests and for the kit itself", () => {
    const refused = ["imports ../plugin/testing.ts: the test kit is for tests"];
    assert.deepEqual(importing("server/a.ts", "../plugin/testing.ts"), refused);
    assert.deepEqual(importing("dns/a.test.ts", "../plugin/testing.ts"), []);
    assert.deepEqual(importing("plugin/testing.ts", "./testing-query.ts"), []);
    assert.deepEqual(importing("plugin/testing.ts", "../server/x.ts").length, 1);
  });

  test("of the package's entry lead anywhere below cli", () => {
    assert.deepEqual(importing("index.ts", "./console/x.ts"), []);
    assert.deepEqual(importing("index.ts", "./cli/main.ts"), [
      "imports ./cli/main.ts: the package's entry is below cli",
    ]);
  });
});

test("only src/cli ends the process", () => {
  const message = "ends the process: only src/cli may";
  assert.deepEqual(checkSource("lib/a.ts", "x();\nprocess.exit(1);"), [
    { path: "lib/a.ts", line: 2, message },
  ]);
  assert.deepEqual(messages("lib/a.test.ts", "process?.exit()"), [message]);
  assert.deepEqual(messages("lib/a.ts", 'process["exit"]()'), [message]);
  assert.deepEqual(messages("lib/a.ts", "globalThis.process.abort()"), [message]);
  assert.deepEqual(messages("lib/a.ts", 'import { exit } from "node:process";'), [message]);
  assert.deepEqual(messages("cli/a.ts", "process.exit(1)"), []);
  assert.deepEqual(messages("lib/a.ts", "// process.exit(1)\nprocess.exitCode = 1;\nspan.exit();"), []);
});

test("only the index.ts of a plugin has a default export", () => {
  const message = "has a default export: only the index.ts of a plugin has one";
  assert.deepEqual(messages("lib/a.ts", "export default 1;"), [message]);
  assert.deepEqual(messages("plugins/cache/handler.ts", "export default 1;"), [message]);
  assert.deepEqual(messages("plugins/cache/deep/index.ts", "export default 1;"), [message]);
  assert.deepEqual(messages("plugins/cache/index.ts", "export default 1;"), []);
});

test("nothing is asserted to be there", () => {
  const message = "asserts with ! that a value is there";
  const assertions = ["a!.b", "a[0]!;", "f()!", "let a!: string;", "(x as Y)!", "this!.x", "a! + b", "x.of!"];
  for (const source of assertions) assert.deepEqual(messages("lib/a.ts", source), [message], source);
  const others = [
    "!a",
    "a !== b",
    "a != b",
    "() => { return !a; }",
    "!!a",
    "(!a)",
    "a && !b",
    "a\n!b",
    "typeof !a",
    '"a!"',
  ];
  for (const source of others) assert.deepEqual(messages("lib/a.ts", source), [], source);
});

test("a file has at most 450 lines, unless it is generated or a table", () => {
  const lines = (count: number) => "x();\n".repeat(count);
  assert.deepEqual(messages("lib/a.ts", lines(450)), []);
  assert.deepEqual(messages("lib/a.ts", lines(451)), ["has 451 lines; 450 are the limit"]);
  assert.deepEqual(messages("lib/a.ts", `x();\n// Generated\n${lines(450)}`), [
    "has 452 lines; 450 are the limit",
  ]);
  assert.deepEqual(messages("lib/a.ts", `// Generated by x\n${lines(450)}`), []);
  assert.deepEqual(messages("lib/a.ts", `// Table: a row a type\n${lines(450)}`), []);
});

test("a plugin has index.ts, README.md and a test", () => {
  const complete = ["plugins/cache/index.ts", "plugins/cache/README.md", "plugins/cache/handler.test.ts"];
  assert.deepEqual(checkLayout(complete), []);
  for (const [at, missing] of ["index.ts", "README.md", "a test"].entries()) {
    assert.deepEqual(checkLayout(complete.filter((_, index) => index !== at)), [
      { path: "plugins/cache", line: 0, message: `has not ${missing}` },
    ]);
  }
  assert.equal(checkLayout([...complete, "plugins/forward/policy.ts"]).length, 3);
});

test("every source stands on a floor", () => {
  assert.deepEqual(checkLayout(["index.ts", "lib/a.ts", "cli/main.ts"]), []);
  assert.deepEqual(
    checkLayout(["cellar/a.ts", "other.ts"]).map(({ path }) => path),
    ["cellar/a.ts", "other.ts"],
  );
});
