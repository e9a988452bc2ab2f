import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SetupError } from "../../plugin/index.ts";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import root from "./index.ts";

test("sets the directory of the block", () => {
  const { settings, warnings } = PluginTest.of(root, "root /etc/zones");
  assert.equal(settings.root, "/etc/zones");
  assert.deepEqual(warnings, []);
});

test("of several lines the last one counts, and a warning says so", () => {
  const { settings, warnings, instances } = PluginTest.of(root, "root /one\nroot /two");
  assert.equal(settings.root, "/two");
  assert.equal(instances.length, 1);
  assert.match(
    warnings.join("\n"),
    /Corefile:2:1: warning: 'root' is repeated on line 3: only the last counts/,
  );
});

for (const [text, code, message] of [
  ["root", "PLUGIN_ARGUMENT_MISSING", /Wrong argument count[\s\S]*expected PATH: a directory/],
  ["root /one /two", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after '\/two'/],
  ["root /one {\n option\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'option'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(root, text),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}

test("does not warn about an existing directory", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "portolan-root-"));
  t.after(() => rm(directory, { recursive: true }));
  const running = PluginTest.of(root, `root ${directory}`);
  await running.start();
  assert.deepEqual(running.log.lines, []);
});

test("warns about a missing directory, and starts", async () => {
  const running = PluginTest.of(root, "root /nonexistent/zones");
  await running.start();
  assert.deepEqual(running.log.lines, [
    "[WARNING] plugin/root: Root path does not exist: /nonexistent/zones",
  ]);
});

test("does not start if the path cannot be accessed", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "portolan-root-"));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, "file");
  await writeFile(file, "");
  const running = PluginTest.of(root, `root ${file}/below`);
  await assert.rejects(
    running.start(),
    (error) =>
      error instanceof SetupError && error.message.startsWith(`unable to access root path '${file}/below': `),
  );
});
