/** `portolan check` as its users run it. */
import assert from "node:assert/strict";
import { mkdirSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import type { PortOf } from "../support/free-ports.ts";
import { Portolan, runPortolan } from "../support/portolan.ts";

const CLEAN = ". {\n    forward . 192.0.2.53\n}\n";
const DUBIOUS = ". {\n    hosts\n    forward . 192.0.2.53\n}\n";
const FAULTY = ". {\n    forwrad . 192.0.2.53\n    cache zones {\n        prefetch often\n    }\n}\n";

const colours = { NO_COLOR: "1" };

test("a Corefile without faults", async (t) => {
  const cwd = makeTree(t, { Corefile: CLEAN });
  const { code, output, errors } = await runPortolan(["check"], { cwd, env: colours });
  assert.deepEqual([code, output, errors], [0, "Corefile: no faults\n", ""]);
});

test("-conf names the Corefile as it does for the server, alone or with others", async (t) => {
  const cwd = makeTree(t, { Corefile: FAULTY, one: CLEAN, other: DUBIOUS });
  const check = (...words: string[]) => runPortolan(["check", ...words], { cwd, env: colours });
  const one = await check("-conf", "one");
  assert.deepEqual([one.code, one.output, one.errors], [0, "one: no faults\n", ""]);
  const both = await check("--conf=one", "other");
  assert.equal(both.code, 0);
  assert.match(both.output, /^one: no faults\nother:2:5: warning: [\s\S]*\nother: 1 warning\n$/);
  const piped = await runPortolan(["check", "-conf", "stdin"], { cwd, input: CLEAN });
  assert.deepEqual([piped.code, piped.output], [0, "stdin: no faults\n"]);
  const missing = await check("-conf", "nowhere");
  assert.equal(missing.code, 2);
  assert.match(missing.errors, /^cannot read the Corefile nowhere: /);
});

test("all faults at once, in the order of the text, and no server is started", async (t) => {
  const cwd = makeTree(t, { "etc/Corefile": FAULTY });
  const { code, output, errors } = await runPortolan(["check", "etc/Corefile"], { cwd });
  assert.equal(errors, "");
  assert.equal(code, 1);
  assert.match(
    output,
    /^etc\/Corefile:2:5: error: Unknown directive 'forwrad'\n {2}2 \| {5}forwrad .*\n {4}\| {5}\^{7}\n/,
  );
  assert.match(output, /\n\netc\/Corefile:4:18: error: /);
  assert.match(output, /\netc\/Corefile: 2 errors\n$/);
});

test("warnings are no fault, unless one is strict", async (t) => {
  const cwd = makeTree(t, { Corefile: DUBIOUS });
  const { code, output } = await runPortolan(["check"], { cwd });
  assert.equal(code, 0);
  assert.match(output, /^Corefile:2:5: warning: 'hosts' has no fallthrough/);
  const strict = await runPortolan(["check", "-strict"], { cwd });
  assert.equal(strict.code, 1);
  assert.equal(strict.output, output);
});

test("files that the start would be refused for, unless they are on another machine", async (t) => {
  const missing =
    ".:53 {\n    forward . /nowhere/resolv.conf\n}\nexample.org {\n    file zone {\n        reload 0\n    }\n}\n";
  const cwd = makeTree(t, { Corefile: missing, zone: "@ 3600 IN A 192.0.2.300\n" });
  const { code, output } = await runPortolan(["check"], { cwd });
  assert.equal(code, 1);
  assert.match(output, /^Corefile:2:15: error: not an IP address, file, or valid domain: "\/nowhere/);
  assert.match(
    output,
    /\nCorefile:5:10: error: failed to parse file "zone" .*zone:1:13: not an IPv4 address/,
  );
  const without = await runPortolan(["check", "-no-files"], { cwd });
  assert.deepEqual([without.code, without.output], [0, "Corefile: no faults\n"]);
  const served = await runPortolan(["-conf", "Corefile"], { cwd });
  assert.equal(served.code, 1);
  assert.match(served.errors, /^Corefile:\d:\d+: error: .*\n {2}\d \| /);
});

for (const word of ["-", "stdin", "/dev/stdin"]) {
  test(`standard input as ${word}`, async () => {
    const { code, output } = await runPortolan(["check", word], { input: FAULTY });
    assert.equal(code, 1);
    assert.match(output, /^stdin:2:5: error/);
  });
}

test("a mistake in a view makes no second error of the block that takes the rest", async () => {
  const block = (view: string): string => `a.example {\n    bind 127.0.0.1\n${view}    whoami\n}\n`;
  const input = block("    view v {\n        expr nosuch() == 1\n    }\n") + block("");
  const { code, output } = await runPortolan(["check", "stdin", "-format", "json"], { input });
  const { diagnostics } = JSON.parse(output);
  assert.deepEqual([code, diagnostics.length, diagnostics[0].line], [1, 1, 4]);
});

test("several files, one report", async (t) => {
  const cwd = makeTree(t, { one: CLEAN, two: FAULTY });
  const { code, output } = await runPortolan(["check", "one", "two", "--format=json"], { cwd });
  assert.equal(code, 1);
  const report = JSON.parse(output);
  assert.deepEqual(report.files, ["one", "two"]);
  assert.equal(report.errors, 2);
});

test("sarif and github", async (t) => {
  const cwd = makeTree(t, { Corefile: DUBIOUS });
  const sarif = await runPortolan(["check", "--format", "sarif"], { cwd });
  assert.equal(JSON.parse(sarif.output).runs[0].results[0].ruleId, "LINT_FALLTHROUGH_MISSING");
  const github = await runPortolan(["check", "--format", "github"], { cwd });
  assert.match(github.output, /^::warning file=Corefile,line=2,col=5,endColumn=10,title=LINT_FALL/);
});

test("what cannot be read gets one line and 2", async (t) => {
  const cwd = makeTree(t, { binary: "\u0000\u0001ELF" });
  mkdirSync(join(cwd, "folder"));
  writeFileSync(join(cwd, "huge"), "");
  truncateSync(join(cwd, "huge"), 17 * 1024 * 1024);
  for (const [file, reason] of [
    ["missing", "no such file"],
    ["folder", "a directory without a Corefile, and without YAML that has one"],
    ["binary", "is not a text file"],
    ["huge", "larger than 16 MiB"],
    ["/dev/null", 'not a regular file; name "stdin" to read a pipe'],
  ] as const) {
    const { code, output, errors } = await runPortolan(["check", file], { cwd });
    assert.deepEqual([code, output, errors], [2, "", `cannot read the Corefile ${file}: ${reason}\n`]);
  }
  const served = await runPortolan(["-conf", "binary"], { cwd });
  assert.deepEqual(
    [served.code, served.errors],
    [1, "cannot read the Corefile binary: is not a text file\n"],
  );
});

test("a command line that says nothing gets the usage and 2", async (t) => {
  const cwd = makeTree(t, {});
  for (const [args, message] of [
    [["check"], /^there is no Corefile here/],
    [["check", "-format", "xml"], /^unknown format "xml": human, json, sarif, github\n/],
    [["check", "-nonsense"], /^flag provided but not defined: -nonsense\n/],
    [["check", "-format"], /^flag needs an argument: -format\n/],
  ] as const) {
    const { code, output, errors } = await runPortolan(args, { cwd });
    assert.equal(code, 2);
    assert.equal(output, "");
    assert.match(errors, message);
    assert.match(errors, /Usage: portolan check/);
  }
});

test("a Corefile of 2,000 lines is no reason to wait", async (t) => {
  const block = (index: number) =>
    `zone${index}.example {\n errors\n cache 30 {\n  success 9984\n }\n forward . 192.0.2.53\n}\n\n`;
  const cwd = makeTree(t, { Corefile: Array.from({ length: 250 }, (_, index) => block(index)).join("") });
  const begun = performance.now();
  const { code, output } = await runPortolan(["check"], { cwd });
  assert.deepEqual([code, output], [0, "Corefile: no faults\n"]);
  // It takes a fifth of a second (bench/in-process/check.ts); what grows with the square of the lines takes far more than this.
  assert.ok(performance.now() - begun < 10_000);
});

test("the server logs the same warnings, one line each, at start and reload", async () => {
  const corefile = (port: PortOf) => `.:${port("dns")} {\n bind 127.0.0.1\n erratic\n whoami\n}\n`;
  await using server = await Portolan.start(corefile);
  const expected =
    /^\[WARNING\] Corefile:4:2: warning: 'whoami' is never reached: 'erratic' \(Corefile:3:2\) answers every query that gets this far$/m;
  assert.match(server.log, expected);
  assert.match(await server.reload(), expected);
});

test("a Corefile in a ConfigMap is checked where it stands", async (t) => {
  const indented = FAULTY.replace(/\n$/, "").replaceAll(/^/gm, "    ");
  const yaml = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: coredns\ndata:\n  Corefile: |\n${indented}\n  other: "{"\n`;
  const cwd = makeTree(t, { "map.yaml": yaml, "two.yaml": `kind: Namespace\n---\n${yaml}` });
  for (const [file, line] of [
    ["map.yaml", 8],
    ["two.yaml", 10],
  ] as const) {
    const { code, output } = await runPortolan(["check", file], { cwd });
    assert.equal(code, 1);
    assert.match(
      output,
      new RegExp(`^${file}:${line}:9: error: Unknown directive 'forwrad'\\n +${line} \\| {9}forwrad`),
    );
    assert.match(output, /: 2 errors\n$/);
  }
});

test("YAML under the name of a Corefile gets a warning, and the server says what it is", async (t) => {
  const indented = CLEAN.replaceAll(/^(?=.)/gm, "    ");
  const yaml = `apiVersion: v1\nkind: ConfigMap\ndata:\n  Corefile: |\n${indented}`;
  const cwd = makeTree(t, { Corefile: yaml, "map.yaml": yaml });
  const warned =
    /^(Corefile|map\.yaml):1:1: warning: the server refuses this file: it is YAML that holds a Corefile/;
  for (const words of [["Corefile"], [], ["-conf", "map.yaml"]]) {
    const { code, output } = await runPortolan(["check", ...words], { cwd, env: colours });
    assert.equal(code, 0);
    assert.match(output, warned);
  }
  const asYaml = await runPortolan(["check", "map.yaml"], { cwd, env: colours });
  assert.equal(asYaml.output, "map.yaml (YAML): no faults\n");
  const started = await runPortolan(["-conf", "Corefile"], { cwd, env: colours });
  assert.equal(started.code, 1);
  assert.match(
    started.errors + started.output,
    /expected a Corefile; this looks like the YAML of a ConfigMap/,
  );
});

test("a Corefile in JSON is checked as a file of its own, and one in a list where it stands", async (t) => {
  const indented = FAULTY.replace(/\n$/, "").replaceAll(/^/gm, "      ");
  const cwd = makeTree(t, {
    "map.json": JSON.stringify(
      { apiVersion: "v1", kind: "ConfigMap", data: { Corefile: FAULTY } },
      undefined,
      2,
    ),
    "list.yaml": `apiVersion: v1\nitems:\n- kind: ConfigMap\n  data:\n    Corefile: |\n${indented}\nkind: List\n`,
  });
  for (const [file, place] of [
    ["map.json", "map\\.json \\(Corefile\\):2:5"],
    ["list.yaml", "list\\.yaml:7:11"],
  ] as const) {
    const { code, output } = await runPortolan(["check", file], { cwd });
    assert.match(output, new RegExp(`^${place}: error: Unknown directive 'forwrad'\n`));
    assert.equal(code, 1);
  }
});

test("an object of Kubernetes without a Corefile is said to be one", async (t) => {
  const cwd = makeTree(t, {
    "pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: coredns\n",
    "map.yaml": "apiVersion: v1\nkind: ConfigMap\ndata:\n  corefile: |\n    . {\n    }\n  log.conf: log\n",
    "kube-dns.yaml": "apiVersion: v1\nkind: ConfigMap\ndata:\n  stubDomains: '{}'\n",
  });
  const expected =
    "no Corefile in this YAML: expected a ConfigMap with the key 'Corefile' under 'data', or with keys '*.server' or '*.override'";
  for (const [file, more] of [
    ["pod.yaml", ""],
    ["map.yaml", "; 'data' has corefile, log.conf"],
    [
      "kube-dns.yaml",
      "; 'data' has stubDomains; 'portolan migrate' makes a Corefile from the ConfigMap of kube-dns",
    ],
  ] as const) {
    const { code, output, errors } = await runPortolan(["check", file], { cwd });
    assert.deepEqual([code, output, errors], [2, "", `${file}: ${expected}${more}\n`]);
  }
});

const VALUES = `# A comment moves all lines.
image: { tag: "1" }
servers:
  - zones:
      - zone: .
    port: 1053
    plugins:
      - name: hosts
        parameters: /etc/hosts
      - parameters: . 192.0.2.53
        name: forward
        configBlock: |-
          max_fails 2

          expire often
  - zones: [{ zone: example.org }]
    plugins:
      - name: "chaos"
      - { name: forwrad, parameters: "example.org 192.0.2.53" }
      - name: cache
        configBlock: "success 1000\\nprefetch often"
`;

test("the Corefile of a chart's values is checked where they have it", async (t) => {
  const cwd = makeTree(t, {
    "values.yaml": VALUES,
    "good.yaml": "servers: [{ zones: [{ zone: . }], plugins: [{ name: whoami }] }]\n",
    "odd.yaml": "servers:\n  - zones: 3\n",
    "imports.yaml": 'servers: [{ zones: [{ zone: . }], plugins: [{ name: import, parameters: "other" }] }]\n',
    other: "whoami\nforwrad\n",
  });
  const { code, output, errors } = await runPortolan(["check", "-format", "json", "values.yaml"], { cwd });
  assert.deepEqual([code, errors], [1, ""]);
  const places = JSON.parse(output).diagnostics.map(
    ({ message, file, line, column, length }: Record<string, unknown>) => [
      file,
      line,
      column,
      length,
      message,
    ],
  );
  assert.deepEqual(
    places.map((place: unknown[]) => place.slice(0, 4)),
    [
      ["values.yaml", 8, 15, 5],
      ["values.yaml", 15, 18, 5],
      ["values.yaml", 19, 17, 7],
      ["values.yaml", 21, 46, 5],
    ],
    output,
  );
  assert.match(
    places[0][4],
    /^'hosts' has no fallthrough, so 'forward' \(values\.yaml:11:15\) after it never gets a query$/,
  );
  const people = await runPortolan(["check", "values.yaml"], { cwd });
  assert.match(
    people.output,
    /\n {2}19 \| {7}- \{ name: forwrad, .*\n +\| {17}\^{7}\n {2}help: did you mean 'forward'\?\n/,
  );

  const good = await runPortolan(["check", "good.yaml"], { cwd });
  assert.deepEqual([good.code, good.output], [0, "good.yaml (YAML): no faults\n"]);
  const odd = await runPortolan(["check", "odd.yaml"], { cwd });
  assert.deepEqual([odd.code, odd.errors], [2, "odd.yaml: servers[0].zones: a list was expected\n"]);
  const imports = await runPortolan(["check", "imports.yaml"], { cwd });
  assert.match(
    imports.output,
    /^other:2:1: error: Unknown directive 'forwrad'[\s\S]*imported at imports\.yaml:1:/,
  );
});

test("a word that is no command", async () => {
  for (const [word, hint] of [
    ["chekc", 'did you mean "portolan check"?'],
    ["version", 'did you mean "portolan -version"?'],
    ["serve", '"portolan -conf Corefile" serves'],
    ["frobnicate", '"portolan help" lists all'],
  ] as const) {
    const { code, errors } = await runPortolan([word]);
    assert.deepEqual([code, errors], [2, `there is no command "${word}"; ${hint}\n`]);
  }
  const behind = await runPortolan(["-quiet", "check"]);
  assert.deepEqual([behind.code, behind.errors], [1, "extra command line arguments: [check]\n"]);
});

test("-help of both", async () => {
  const { code, output } = await runPortolan(["check", "-help"]);
  assert.equal(code, 0);
  assert.match(output, /-strict +treat warnings as errors/);
  assert.match((await runPortolan(["-help"])).output, /\n {2}check {2,}finds all errors/);
});
