/** The manual pages, as the tools that show them see them. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { COMMANDS } from "../../src/cli/commands.ts";
import { builtInPlugins } from "../../src/server/configuration/plugin-registry.ts";
import { projectRoot } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const folder = mkdtempSync(join(tmpdir(), "portolan-man-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const made = await run(process.execPath, [join(projectRoot, "scripts", "write-man-pages.ts"), folder]);
assert.equal(made.code, 0, made.errors);
const pages = readdirSync(folder).sort();

const COMMANDS_WITH_FLAGS = [
  "check",
  "compare",
  "fmt",
  "language-server",
  "explain",
  "doctor",
  "migrate",
  "test",
  "kube-dns",
  "dnsmasq-nanny",
  "node-cache",
  "kube2sky",
  "sidecar",
  "exechealthz",
  "istio-coredns",
];

test("there is a page for the program, its commands, the Corefile and each plugin", async () => {
  const plugins = (await builtInPlugins()).map(({ name }) => `portolan-${name}.7`);
  const commands = ["plugin", ...COMMANDS_WITH_FLAGS].map((name) => `portolan-${name}.1`);
  assert.deepEqual(pages, ["Corefile.5", "portolan.1", ...commands, ...plugins].sort());
});

test("package.json lists no page that is not made", () => {
  const { man }: { man: readonly string[] } = JSON.parse(
    readFileSync(join(projectRoot, "package.json"), "utf8"),
  );
  assert.ok(man.includes("man/portolan.1"));
  assert.deepEqual(
    man.filter((path) => !pages.includes(path.replace(/^man\//, ""))),
    [],
  );
});

for (const page of pages) {
  test(`${page} has a name and a line for man -k, and nothing of Markdown`, () => {
    const text = readFileSync(join(folder, page), "utf8");
    assert.match(
      text,
      /^\.TH "[-A-Z_0-9]+" "[157]" "\d{4}-\d\d-\d\d" "Portolan \d+\.\d+\.\d+\S*" "Portolan"\n\.SH NAME\n\S+ \\- .{10,}\n\.SH /,
    );
    assert.doesNotMatch(text, /```|\]\(|(?<!\/)\*\*/);
  });
}

test("the page of a command has its flags", async () => {
  for (const name of COMMANDS_WITH_FLAGS) {
    const text = readFileSync(join(folder, `portolan-${name}.1`), "utf8").replaceAll("\\-", "-");
    const flags = (await COMMANDS.find((command) => command.name === name)?.flags()) ?? assert.fail(name);
    for (const { names } of flags) assert.ok(text.includes(`\\fB-${names[0]}\\fR`), `${name}: -${names[0]}`);
    assert.match(text, new RegExp(`\\.SH SYNOPSIS\\n\\.RS 4\\n\\.nf\\n\\\\&portolan ${name} `));
  }
});

test("the page of a command has its exit status and a synopsis of at most 80 columns", () => {
  for (const name of ["portolan", ...COMMANDS_WITH_FLAGS.map((command) => `portolan-${command}`)]) {
    const text = readFileSync(join(folder, `${name}.1`), "utf8");
    assert.match(text, /\.SH EXIT STATUS\n0 .*2 .*\n/s, name);
    const synopsis = /\.SH SYNOPSIS\n\.RS 4\n\.nf\n([\s\S]*?)\.fi/.exec(text)?.[1] ?? assert.fail(name);
    // 7 columns of margin and 4 of indentation stand in front.
    for (const line of synopsis.replaceAll("\\&", "").replaceAll("\\-", "-").split("\n"))
      assert.ok(line.length <= 80 - 11, line);
  }
});

test("what a page refers to is there", () => {
  for (const page of pages) {
    const [, seeAlso = ""] = /\.SH SEE ALSO\n([\s\S]*)$/.exec(readFileSync(join(folder, page), "utf8")) ?? [];
    const references = [...seeAlso.matchAll(/\\fB((?:\w|\\-)+)\\fR\((\d)\)/g)];
    assert.ok(references.length > 0, page);
    for (const [, name = "", section] of references)
      assert.ok(pages.includes(`${name.replaceAll("\\-", "-")}.${section}`), `${page}: ${name}(${section})`);
  }
});

for (const [tool, args] of [
  ["mandoc", ["-T", "lint", "-W", "warning"]],
  ["groff", ["-man", "-Tutf8", "-k", "-t", "-ww", "-z"]],
  ["man", ["--warnings", "-E", "UTF-8", "-l", "-Z", "-Tutf8"]],
] as const) {
  test(`${tool} finds nothing wrong`, { skip: skipWithout(tool) }, async () => {
    for (const page of pages) {
      const { code, output, errors } = await run(tool, [...args, join(folder, page)]);
      const complaints = tool === "mandoc" ? output + errors : errors;
      assert.deepEqual([code, complaints], [0, ""], page);
    }
  });
}
