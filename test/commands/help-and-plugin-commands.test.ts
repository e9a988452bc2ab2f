/** `portolan help` and `portolan plugin`, as their users run them. */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { ask } from "../support/dns-client.ts";
import { Portolan, runPortolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";

test("help lists commands and plugins", async (t) => {
  const { code, output } = await runPortolan(["help"], { cwd: makeTree(t, {}) });
  assert.equal(code, 0);
  assert.match(output, /\n {2}check {2,}finds all errors/);
  assert.match(output, /\n {2}acl any [a-z0-9_ ]*\bcache /);
});

test("help PLUGIN is its README", async (t) => {
  const { code, output } = await runPortolan(["help", "cache"], { cwd: makeTree(t, {}) });
  assert.equal(code, 0);
  assert.match(output, /^cache\n\nCaches responses/);
  assert.match(output, /\n {4}cache \[TTL\]/);
  assert.ok(!output.includes("```"));
  assert.equal(stripVTControlCharacters(output), output);
});

test("help COMMAND is its page, with its flags and exit codes", async (t) => {
  const cwd = makeTree(t, {});
  for (const [name, begin] of [
    ["check", /^portolan check\n\nFinds errors/],
    ["explain", /^portolan explain\n/],
    ["test", /^portolan test\n/],
  ] as const) {
    const { code, output } = await runPortolan(["help", name], { cwd });
    assert.equal(code, 0);
    assert.match(output, begin);
    assert.match(output, /\nFlags\n\n {2}-\w[\s\S]*\nExit codes: 0 /);
  }
  const { output } = await runPortolan(["help", "completion"], { cwd });
  assert.match(output, /^Usage: portolan completion /);
  const { output: plugin } = await runPortolan(["help", "plugin", "explain"], { cwd });
  assert.match(plugin, /^explain\n/);
});

test("help Corefile is the page on Corefiles", async (t) => {
  const { code, output } = await runPortolan(["help", "Corefile"], { cwd: makeTree(t, {}) });
  assert.equal(code, 0);
  assert.match(output, /^(The )?Corefile\n/);
});

test("help fits the width of the terminal", async (t) => {
  const cwd = makeTree(t, {});
  for (const width of [60, 80, 100]) {
    for (const name of [[], ["cache"], ["check"], ["kube-dns"]]) {
      const { output } = await runPortolan(["help", ...name], { cwd, env: { COLUMNS: String(width) } });
      // Code is shown as it stands.
      const long = output.split("\n").filter((line) => line.length > width && !line.startsWith("    "));
      assert.deepEqual(long, [], `${name}`);
    }
  }
});

test("help with an unknown name", async (t) => {
  const cwd = makeTree(t, {});
  for (const [args, message] of [
    [["cahce"], 'there is no command and no plugin "cahce"; did you mean "cache"?\n'],
    [["corefile"], 'there is no command and no plugin "corefile"; did you mean "Corefile"?\n'],
    [["plugin", "check"], 'there is no command and no plugin "check" ("portolan help" lists them)\n'],
    [["zzzzzzzz"], 'there is no command and no plugin "zzzzzzzz" ("portolan help" lists them)\n'],
    [["a", "b"], "help takes one name, not also b\n"],
  ] as const) {
    const { code, output, errors } = await runPortolan(["help", ...args], { cwd });
    assert.deepEqual([code, output, errors], [2, "", message]);
  }
});

test("a new plugin passes its tests, is explained, and answers", async (t) => {
  const cwd = makeTree(t, {});
  const begun = await runPortolan(["plugin", "new", "greet"], { cwd });
  assert.equal(begun.code, 0, begun.errors);
  assert.match(begun.output, /^greet\/greet\.ts\ngreet\/greet\.test\.ts\ngreet\/Corefile\n/);

  const tested = await runPortolan(["plugin", "test"], { cwd });
  assert.equal(tested.code, 0, tested.output + tested.errors);
  assert.match(tested.output, /pass 4/);

  const flags = ["-plugin", "greet:greet/greet.ts"];
  const explained = await runPortolan(["help", ...flags, "greet"], { cwd });
  assert.equal(
    explained.output,
    "greet\n\nAnswers TXT queries for one name.\n\nSyntax\n\n    greet NAME {\n        ttl VALUE\n    }\n",
  );
  assert.equal((await runPortolan(["check", "greet/Corefile", ...flags], { cwd })).code, 0);

  const source = readFileSync(join(cwd, "greet", "greet.ts"), "utf8");
  const corefile = readFileSync(join(cwd, "greet", "Corefile"), "utf8");
  await using server = await Portolan.start((port) => corefile.replace("10053", String(port("dns"))), {
    files: { "greet/greet.ts": source },
    args: flags,
  });
  const { answer } = await ask(server, "hello.example", "TXT");
  assert.equal(answer[0]?.ttl, 30);
});

test("a new package is packed by npm, installed next to a Corefile, and answers", {
  skip: skipWithout("npm"),
}, async (t) => {
  const cwd = makeTree(t, {});
  const begun = await runPortolan(["plugin", "new", "-package", "greet"], { cwd });
  assert.equal(begun.code, 0, begun.errors);
  for (const file of [
    "greet.ts",
    "greet.test.ts",
    "Corefile",
    "package.json",
    "build.js",
    "README.md",
    ".gitignore",
  ])
    assert.match(begun.output, new RegExp(`^greet/${RegExp.escape(file)}$`, "m"));
  assert.match(begun.output, /^Pack it: {7}cd greet && npm pack$/m);
  const folder = join(cwd, "greet");
  const packed = await run("npm", ["pack"], { cwd: folder, patience: 60_000 });
  assert.equal(packed.code, 0, packed.errors);

  // Without a registry: the package brings all that it needs.
  const home = makeTree(t, {});
  const archive = join(folder, "portolan-plugin-greet-0.1.0.tgz");
  const args = ["install", "--offline", "--no-audit", "--no-fund", archive];
  const installed = await run("npm", args, { cwd: home, patience: 60_000 });
  assert.equal(installed.code, 0, installed.errors);
  const path = "node_modules/portolan-plugin-greet";
  assert.deepEqual(readdirSync(join(home, path)).sort(), ["README.md", "dist", "package.json"]);
  const files = [`${path}/package.json`, `${path}/dist/greet.js`];
  await using server = await Portolan.start(
    (port) =>
      `{\n plugin greet portolan-plugin-greet\n}\n.:${port("dns")} {\n bind 127.0.0.1\n greet hello.example\n whoami\n}\n`,
    { files: Object.fromEntries(files.map((file) => [file, readFileSync(join(home, file), "utf8")])) },
  );
  const { answer } = await ask(server, "hello.example", "TXT");
  assert.equal(answer[0]?.ttl, 60);
});

test("a test that fails is a failure of the command", async (t) => {
  const cwd = makeTree(t, {
    "x.test.js": 'require("node:test").test("no", () => { throw new Error("no"); });',
  });
  assert.equal((await runPortolan(["plugin", "test", "x.test.js"], { cwd })).code, 1);
});

test("what cannot be begun or tested", async (t) => {
  const cwd = makeTree(t, { "there/x": "" });
  mkdirSync(join(cwd, "empty"));
  writeFileSync(join(cwd, "file"), "");
  for (const [args, message] of [
    [["new", "Greet"], /^"Greet" cannot be the name of a plugin: /],
    [["new", "../greet"], /^"\.\.\/greet" cannot be the name of a plugin: /],
    [["new", "cache"], /^there is a plugin "cache" already\n$/],
    [["new", "there"], /^there is a file or folder there here already: take/],
    [["new"], /^Usage: portolan plugin new \[-package\] NAME/],
    [["new", "-package"], /^Usage: portolan plugin new \[-package\] NAME/],
    [["new", "greet", "more"], /^Usage: /],
    [[], /^Usage: /],
    [["test", "none.test.ts"], /^cannot test none\.test\.ts: no such file\n$/],
    [["test", "empty"], /^cannot test empty: is a directory\n$/],
    [["test"], /^no tests found/],
  ] as const) {
    const { code, output, errors } = await runPortolan(["plugin", ...args], { cwd });
    assert.deepEqual([code, output], [2, ""]);
    assert.match(errors, message);
  }
});
