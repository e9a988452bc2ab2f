/** `portolan check` and `migrate` with the ConfigMaps of providers, as docs/check.md shows them. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseAllDocuments } from "yaml";
import { fencedBlocks } from "../../scripts/lib/markdown.ts";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { projectRoot, runPortolan } from "../support/portolan.ts";

const env = { NO_COLOR: "1" };

function configMap(name: string, data: Readonly<Record<string, string>>): string {
  const keys = Object.entries(data).map(
    ([key, text]) => `  ${key}: |\n${text.replaceAll(/^(?=.)/gm, "    ")}`,
  );
  return `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n${keys.join("")}`;
}

const MAIN = `.:53 {
    forward . 192.0.2.53
    import custom/*.override
}
import custom/*.server
`;
const SERVER = "example.org:53 {\n  forwrad . 192.0.2.53\n}\n";
const CUSTOM = configMap("coredns-custom", { "test.server": SERVER, "log.override": "log\n" });
const FAULT =
  /^custom\.yaml \(test\.server\):2:3: error: Unknown directive 'forwrad'\n {2}2 \| {3}forwrad . 192/m;

test("the example on the page about check prints what the page says", async (t) => {
  const page = readFileSync(join(projectRoot, "docs", "check.md"), "utf8");
  const blocks = fencedBlocks(page.slice(page.indexOf("## ConfigMaps"), page.indexOf("## Warnings")));
  const yaml = blocks.find(({ text }) => text.includes("name: coredns-custom"))?.text ?? "";
  const expected = blocks.find(({ text }) => text.startsWith("$ portolan check custom.yaml\n"))?.text ?? "";
  const cwd = makeTree(t, { "custom.yaml": yaml });
  const { code, output, errors } = await runPortolan(["check", "custom.yaml"], { cwd, env });
  assert.deepEqual([code, errors], [1, ""]);
  assert.equal(`$ portolan check custom.yaml\n${output}`, expected);
});

for (const [title, words] of [
  ["two files", ["-conf", "main.yaml", "-conf", "custom.yaml"]],
  ["two words", ["main.yaml", "custom.yaml"]],
  ["the other order", ["custom.yaml", "main.yaml"]],
  ["a Corefile and a ConfigMap", ["Corefile", "custom.yaml"]],
] as const) {
  test(`a Corefile imports the keys of a ConfigMap beside it: ${title}`, async (t) => {
    const cwd = makeTree(t, {
      "main.yaml": configMap("coredns", { Corefile: MAIN }),
      Corefile: MAIN,
      "custom.yaml": CUSTOM,
    });
    const { code, output } = await runPortolan(["check", ...words], { cwd, env });
    assert.equal(code, 1);
    assert.match(output, FAULT);
    assert.match(output, /^custom\.yaml \(YAML\): 1 error$/m);
    assert.match(output, /^(main\.yaml \(YAML\)|Corefile): no faults$/m);
  });
}

test("documents, a List and a directory each hold what belongs together", async (t) => {
  const main = configMap("coredns", { Corefile: MAIN });
  const json = (text: string) => parseAllDocuments(text).map((document) => document.toJS());
  const cwd = makeTree(t, {
    "documents.yaml": `${main}---\n${CUSTOM}`,
    "list.json": JSON.stringify({ apiVersion: "v1", kind: "List", items: [...json(main), ...json(CUSTOM)] }),
    "folder/main.yaml": main,
    "folder/custom.yaml": CUSTOM,
    "folder/service.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: kube-dns\n",
    "folder/notes.txt": "none of it is YAML: {",
  });
  for (const [word, place] of [
    ["documents.yaml", "documents.yaml (test.server):2:3"],
    ["list.json", "list.json (test.server):2:3"],
    ["folder", "folder/custom.yaml (test.server):2:3"],
  ] as const) {
    const { code, output } = await runPortolan(["check", word], { cwd, env });
    assert.equal(code, 1);
    assert.ok(output.startsWith(`${place}: error: `) || output.includes(`\n${place}: error: `), output);
    assert.doesNotMatch(output, /service\.yaml|notes/);
  }
});

test("every Corefile of a file is checked, each with its own keys", async (t) => {
  const one = configMap("one", { Corefile: "a.example:1053 {\n  import more\n}\n", more: "whoamy\n" });
  const two = configMap("two", { Corefile: "b.example:1053 {\n  import more\n}\n", more: "erratik\n" });
  const cwd = makeTree(t, { "all.yaml": `${one}---\n${two}` });
  const { output } = await runPortolan(["check", "all.yaml"], { cwd, env });
  assert.match(output, /^all\.yaml \(more\):1:1: error: Unknown directive 'whoamy'/m);
  assert.match(output, /^all\.yaml \(more\):1:1: error: Unknown directive 'erratik'/m);
  assert.match(output, /^all\.yaml \(YAML\): 2 errors$/m);
});

test("a key that nothing imports gets a warning at its line", async (t) => {
  const custom = configMap("coredns-custom", { "test.sever": "a.example:53 {\n  whoami\n}\n" });
  const cwd = makeTree(t, {
    "custom.yaml": custom,
    Corefile: MAIN,
    plain: ".:53 {\n    whoami\n}\n",
    "other.yaml": configMap("coredns-custom", { "a.server": "a.example:53 {\n  whoami\n}\n" }),
    "again.yaml": configMap("coredns-custom", { "a.server": "b.example:53 {\n  whoami\n}\n" }),
  });
  const check = (...words: string[]) => runPortolan(["check", ...words], { cwd, env });
  const alone = await check("custom.yaml");
  assert.match(
    alone.output,
    /^custom\.yaml:6:1: warning: no Corefile imports the key 'test\.sever', so it has no effect$/m,
  );
  assert.equal(alone.code, 0);
  const withMain = await check("Corefile", "custom.yaml", "other.yaml");
  assert.match(withMain.output, /^custom\.yaml:6:1: warning: no Corefile imports the key 'test\.sever'/m);
  assert.match(withMain.output, /^other\.yaml \(YAML\): no faults$/m);
  const without = await check("plain", "other.yaml");
  assert.match(
    without.output,
    /^other\.yaml:6:1: warning: no Corefile given here imports the key 'a\.server'/m,
  );
  const twice = await check("other.yaml", "again.yaml");
  assert.match(twice.output, /^again\.yaml:6:1: warning: not checked: other\.yaml has a key 'a\.server'/m);
});

test("programs get the place in the YAML", async (t) => {
  const cwd = makeTree(t, { "custom.yaml": CUSTOM });
  const github = await runPortolan(["check", "-format", "github", "custom.yaml"], { cwd });
  assert.match(github.output, /^::error file=custom\.yaml,line=8,col=7,endColumn=14,/);
  const sarif = await runPortolan(["check", "-format", "sarif", "custom.yaml"], { cwd });
  const { physicalLocation } = JSON.parse(sarif.output).runs[0].results[0].locations[0];
  assert.equal(physicalLocation.artifactLocation.uri, "custom.yaml");
  assert.equal(physicalLocation.region.startLine, 8);
});

for (const [title, file, text, place] of [
  ["a ConfigMap", "custom.yaml", `${CUSTOM}  other.server: "\n`, String.raw`custom\.yaml:\d+:\d+`],
  ["a name in .yml", "a.yml", "foo: [\nbar\n", String.raw`a\.yml:2:1`],
  ["JSON", "a.json", '{"kind": "ConfigMap", "data": {', String.raw`a\.json:1:\d+`],
  [
    "a manifest without such a name",
    "a.txt",
    "apiVersion: v1\nkind: ConfigMap\ndata: [\n",
    String.raw`a\.txt:\d:1`,
  ],
] as const)
  test(`YAML that is not valid is said to be, with its place: ${title}`, async (t) => {
    const cwd = makeTree(t, { [file]: text });
    const { code, output, errors } = await runPortolan(["check", file], { cwd, env });
    assert.deepEqual([code, output], [2, ""]);
    assert.match(errors, new RegExp(`^${place}: not valid YAML: [^\\n]+\\n$`));
  });

test("a Corefile may have a name in .yaml", async (t) => {
  const cwd = makeTree(t, { "a.yaml": "# ours\n.:53 {\n    whoami\n}\nexample.org {\n    whoami\n}\n" });
  const { code, output } = await runPortolan(["check", "a.yaml"], { cwd, env });
  assert.deepEqual([code, output], [0, "a.yaml: no faults\n"]);
});

test("a file of a directory that cannot be read is one finding, and the others are checked", async (t) => {
  const cwd = makeTree(t, {
    "folder/broken.yaml": `${CUSTOM}  other.server: "\n`,
    "folder/Corefile": MAIN,
    "folder/custom.yaml": CUSTOM,
  });
  symlinkSync("nowhere.yaml", join(cwd, "folder", "dangling.yaml"));
  execFileSync("mkfifo", [join(cwd, "folder", "pipe.yaml")]);
  const { code, output, errors } = await runPortolan(["check", "folder"], { cwd, env });
  assert.deepEqual([code, errors], [1, ""]);
  assert.match(output, /^folder\/broken\.yaml:\d+:\d+: error: not valid YAML: /m);
  assert.match(output, /^folder\/dangling\.yaml:1:1: error: not checked: no such file$/m);
  assert.match(output, /^folder\/pipe\.yaml:1:1: error: not checked: not a regular file/m);
  assert.match(output, /^folder\/custom\.yaml \(test\.server\):2:3: error: Unknown directive 'forwrad'$/m);
});

test("a value that is not text is an error at its key", async (t) => {
  const cwd = makeTree(t, {
    "custom.yaml": `${CUSTOM}  a.server: 5\n  other: 5\n`,
    "main.yaml": "apiVersion: v1\nkind: ConfigMap\ndata:\n  Corefile:\n    - a\n",
    "other.yaml": "apiVersion: v1\nkind: Other\ndata:\n  Corefile: 5\n",
  });
  for (const [file, key, line] of [
    ["custom.yaml", "a.server", 12],
    ["main.yaml", "Corefile", 4],
  ] as const) {
    const { code, output } = await runPortolan(["check", file], { cwd, env });
    assert.equal(code, 1);
    const message = `${file}:${line}:3: error: the value of '${key}' is not a string: Kubernetes refuses this ConfigMap\n`;
    assert.ok(output.includes(message), output);
    assert.equal(output.split("is not a string").length, 2);
  }
  assert.equal((await runPortolan(["check", "other.yaml"], { cwd, env })).code, 2);
});

const OLD = configMap("coredns-custom # of us", {
  "test.server": "# ours\nexample.org:53 {\n    proxy . 192.0.2.53\n}\n",
  "log.override": "# all\nlog stdout\n",
});

test("migrate rewrites the keys, and keeps the rest of the ConfigMap", async (t) => {
  const cwd = makeTree(t, { "custom.yaml": OLD });
  const { code, output, errors } = await runPortolan(["migrate", "custom.yaml"], { cwd, env });
  assert.equal(output, OLD.replace("proxy", "forward").replace("log stdout", "log"));
  assert.match(errors, /^custom\.yaml \(test\.server\):3:5: Plugin "proxy" is removed/m);
  assert.match(errors, /^custom\.yaml \(log\.override\):2:1: note: 'log stdout' becomes 'log'/m);
  assert.equal(code, 0);
});

test("migrate says what does not start, and names old words in what a Corefile imports", async (t) => {
  const main = configMap("coredns", { Corefile: MAIN });
  const cwd = makeTree(t, { "custom.yaml": CUSTOM, "both.yaml": `${main}---\n${OLD}` });
  const faulty = await runPortolan(["migrate", "custom.yaml"], { cwd, env });
  assert.equal(faulty.code, 1);
  assert.match(
    faulty.errors,
    /custom\.yaml \(result\) \(test\.server\):2:3: error: Unknown directive 'forwrad'/,
  );
  const both = await runPortolan(["migrate", "both.yaml"], { cwd, env });
  assert.equal(both.output, MAIN);
  assert.match(both.errors, /^both\.yaml \(test\.server\):3:5: Plugin "proxy" is removed/m);
});
