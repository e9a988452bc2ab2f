import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { memoryHost } from "../../corefile/host.ts";
import { version } from "../../lib/text/version.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { bareDirective } from "../../plugin/config/schema.ts";
import { definePlugin } from "../../plugin/contract/define-plugin.ts";
import { readConfiguration } from "./configuration.ts";
import { thisMachine } from "./machine.ts";
import { type PluginEntry, PluginLoadError, PluginRegistry, parsePluginList } from "./plugin-registry.ts";

function plugin(name: string, more = ""): string {
  return `import { bareDirective, definePlugin } from "portolan/plugin";
const greeting: string = "hello";
export default definePlugin({ name: "${name}", summary: greeting, config: bareDirective(), ${more} });
`;
}

function registryOf(from: string, ...modules: readonly string[]): PluginRegistry {
  const entries = modules.map(
    (module): PluginEntry => ({ name: "greet", module, external: { from, declaredBy: "a test" } }),
  );
  return new PluginRegistry(entries, { budget: 0 });
}

/** Why the module cannot be used. */
async function reasonOf(from: string, module: string): Promise<string> {
  try {
    await registryOf(from, module).definition("greet");
  } catch (error) {
    assert.ok(error instanceof PluginLoadError);
    const prefix = `cannot load plugin "greet" from "${module}": `;
    assert.ok(error.message.startsWith(prefix), error.message);
    assert.doesNotMatch(error.message, /\n/);
    return error.message.slice(prefix.length);
  }
  throw new assert.AssertionError({ message: "it was loaded" });
}

describe("external plugins", () => {
  it("one .ts file runs as it is, with no package around it", async (t) => {
    const folder = makeTree(t, { "greet.ts": plugin("greet") });
    for (const module of ["./greet.ts", "greet.ts", join(folder, "greet.ts")]) {
      const definition = await registryOf(folder, module).definition("greet");
      assert.equal(definition.summary, "hello");
    }
  });

  it("portolan/plugin is this program's own", async (t) => {
    const text = `import { Reply } from "portolan/plugin"; import { Name } from "portolan/dns"; import { createServer } from "portolan";
      import { PluginTest } from "portolan/testing"; import { bareDirective, definePlugin } from "portolan/plugin";
      export default { ...definePlugin({ name: "greet", summary: "", config: bareDirective() }), Reply, Name, createServer, PluginTest };`;
    const folder = makeTree(t, { "greet.ts": text });
    const definition = await registryOf(folder, "./greet.ts").definition("greet");
    const { Reply } = await import("../../plugin/query/reply.ts");
    assert.ok("Reply" in definition && definition.Reply === Reply);
  });

  it("a module that waits without end is refused", async (t) => {
    const folder = makeTree(t, { "greet.js": "await new Promise(() => {});\n" });
    const clock = new FakeClock();
    const entry = { name: "greet", module: "./greet.js", external: { from: folder, declaredBy: "a test" } };
    const registry = new PluginRegistry([entry], { clock });
    const refused = assert.rejects(
      registry.definition("greet"),
      /cannot load plugin "greet" from "\.\/greet\.js": it did not load within 10s: check its top-level await/,
    );
    // The file is found in a turn of its own; the bound is set then.
    await new Promise(setImmediate);
    clock.advance(10_000);
    await refused;
  });

  it("JavaScript, by path or as a package, whatever the package exports", async (t) => {
    const script = plugin("greet").replace(": string", "");
    const folder = makeTree(t, {
      "greet.mjs": script,
      "node_modules/plain/package.json": '{"type":"module","main":"index.js"}',
      "node_modules/plain/index.js": script,
      "node_modules/@scope/esm/package.json": '{"type":"module","exports":{".":{"import":"./lib.js"}}}',
      "node_modules/@scope/esm/lib.js": script,
      "deeper/still/x": "",
    });
    for (const module of ["./greet.mjs", "plain", "@scope/esm"])
      assert.equal((await registryOf(folder, module).definition("greet")).name, "greet");
    const deeper = registryOf(join(folder, "deeper", "still"), "plain");
    assert.equal((await deeper.definition("greet")).name, "greet");
  });

  it("are refused with the reason, and with the places tried", async (t) => {
    const folder = makeTree(t, {
      "empty.ts": "export {};",
      "number.ts": "export default 7;",
      "half.ts": 'export default { name: "greet", config: {} };',
      "throws.ts": '\nthrow new Error("no\\nluck");',
      "throws-text.ts": 'throw "a text";',
      "syntax.ts": "export default {",
      "enum.ts": "enum A { B }\nexport default A;",
      "other.ts": plugin("welcome"),
      "newer.ts": plugin("greet", 'requires: ">=99"'),
      "unclear.ts": plugin("greet", 'requires: "new"'),
      "missing-import.ts": 'import { fromTheFuture } from "portolan/plugin";\nexport default fromTheFuture;',
      "folder/x": "",
      "node_modules/typed/package.json": '{"type":"module","main":"index.ts"}',
      "node_modules/typed/index.ts": plugin("greet"),
    });
    assert.equal(await reasonOf(folder, "./none.ts"), `there is no file ${join(folder, "none.ts")}`);
    assert.equal(
      await reasonOf(folder, "./folder"),
      `${join(folder, "folder")} is not a file: name the module itself`,
    );
    assert.ok(
      (await reasonOf(folder, "nowhere")).startsWith(
        `there is no package "nowhere" in ${join(folder, "node_modules")}, `,
      ),
    );
    assert.match(await reasonOf(folder, "github.com/coredns/example"), /^that is the path of a Go package/);
    assert.match(await reasonOf(folder, "fs"), /^that is a module of Node itself/);
    assert.match(await reasonOf(folder, "./empty.ts"), /^it has no default export/);
    for (const module of ["./number.ts", "./half.ts"])
      assert.equal(await reasonOf(folder, module), "its default export is not made by definePlugin");
    assert.equal(await reasonOf(folder, "./throws.ts"), "no luck (line 2)");
    assert.equal(await reasonOf(folder, "./throws-text.ts"), "it threw a text");
    assert.match(await reasonOf(folder, "./syntax.ts"), /./);
    assert.match(await reasonOf(folder, "./enum.ts"), /enum is not supported.* \(line 1\)$/);
    assert.equal(
      await reasonOf(folder, "./other.ts"),
      'its name is "welcome": list it as welcome:./other.ts',
    );
    assert.equal(await reasonOf(folder, "./newer.ts"), `it needs Portolan >=99, and this is ${version}`);
    assert.match(await reasonOf(folder, "./unclear.ts"), /^its "requires": 'new' is not a range/);
    assert.match(
      await reasonOf(folder, "./missing-import.ts"),
      new RegExp(`'fromTheFuture': perhaps it needs a newer Portolan than ${version} \\(line 1\\)$`),
    );
    assert.match(await reasonOf(folder, "typed"), /^it is TypeScript inside node_modules/);
  });

  it("are loaded anew when their file has changed, and then alone", async (t) => {
    const folder = makeTree(t, { "greet.ts": plugin("greet") });
    const registry = registryOf(folder, "./greet.ts");
    const first = await registry.definition("greet");
    const stamp = registry.stampOf(["greet", "other"]);
    registry.refresh();
    assert.equal(await registry.definition("greet"), first);
    rewrite(folder, plugin("greet").replace("hello", "good day"));
    registry.refresh();
    assert.equal((await registry.definition("greet")).summary, "good day");
    assert.notEqual(registry.stampOf(["greet"]), stamp);
  });

  it("count for the SHA-512 of the configuration, by which reload sees that something changed", async (t) => {
    const folder = makeTree(t, { "greet.ts": plugin("greet") });
    const options = {
      registry: registryOf(folder, "./greet.ts"),
      host: memoryHost(),
      machine: thisMachine({}),
      defaultPort: 53,
    };
    const source = { text: ". {\n greet\n}\n", file: "Corefile" };
    const first = await readConfiguration(source, options);
    assert.equal((await readConfiguration(source, options)).sha512, first.sha512);
    rewrite(folder, plugin("greet").replace("hello", "good day"));
    assert.notEqual((await readConfiguration(source, options)).sha512, first.sha512);
  });

  it("are tried again after a failure, though their own file is the same", async (t) => {
    const folder = makeTree(t, { "greet.ts": `import "./part.ts";\n${plugin("greet")}` });
    const registry = registryOf(folder, "./greet.ts");
    await assert.rejects(registry.definition("greet"), /part\.ts/);
    writeFileSync(join(folder, "part.ts"), "export const part = 1;\n");
    registry.refresh();
    assert.equal((await registry.definition("greet")).name, "greet");
  });
});

/** A folder with these files, by path and content; removed after the test. */
function makeTree(t: TestContext, files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "portolan-plugins-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return root;
}

/** With another time, however coarse the file system's clock is. */
function rewrite(folder: string, text: string): void {
  const file = join(folder, "greet.ts");
  writeFileSync(file, text);
  utimesSync(file, 2_000_000_000, 2_000_000_000);
}

describe("parsePluginList", () => {
  it("reads names and modules, in order", () => {
    assert.deepEqual(parsePluginList("# all\nlog:log\n\n greet:./a:b.ts # mine\n", "plugin.cfg"), [
      { name: "log", module: "log" },
      { name: "greet", module: "./a:b.ts" },
    ]);
  });

  for (const [text, message] of [
    ["log", 'plugin.cfg:1: expected name:module, found "log"'],
    ["a:a\n:b", 'plugin.cfg:2: expected name:module, found ":b"'],
    ["a:", 'plugin.cfg:1: expected name:module, found "a:"'],
    ["a b:c", 'plugin.cfg:1: expected name:module, found "a b:c"'],
    ["a:a\nb:b\na:c", 'plugin.cfg:3: the plugin "a" is listed twice'],
  ] as const) {
    it(`refuses ${JSON.stringify(text)}`, () => {
      assert.throws(() => parsePluginList(text, "plugin.cfg"), { name: "PluginListError", message });
    });
  }
});

describe("plugins that come with the program", () => {
  it("are loaded in a turn each, once", async () => {
    const entries = ["one", "two", "three"].map((name): PluginEntry => ({ name, module: name }));
    const load = async ({ name }: PluginEntry) =>
      definePlugin({ name, summary: "one of three", config: bareDirective() });
    const registry = new PluginRegistry(entries, { load });
    let turns = 0;
    const count = (): void => {
      if (turns++ < 100) setImmediate(count);
    };
    setImmediate(count);
    for (const name of registry.names) await registry.definition(name);
    assert.ok(turns >= 3, `${turns}`);
    const before = turns;
    for (const name of registry.names) await registry.definition(name);
    assert.equal(turns, before);
  });
});
