/** The output in README.md is the program's, and the links of all pages lead somewhere. */
import assert from "node:assert/strict";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fencedBlocks, localLinks } from "../../scripts/lib/markdown.ts";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { PluginRegistry } from "../../src/server/configuration/plugin-registry.ts";
import { Portolan, projectRoot, runPortolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const readme = readFileSync(join(projectRoot, "README.md"), "utf8");
const blocks = fencedBlocks(readme);

test("names every plugin", async () => {
  const [, row = ""] = /^\| \*\*Plugins\*\* \| (.*) \|$/m.exec(readme) ?? [];
  const named = Array.from(row.matchAll(/`(\w+)`(?!\])/g), ([, name = ""]) => name);
  const { names } = await PluginRegistry.builtIn();
  assert.deepEqual(named.toSorted(), names.toSorted());
});

test("shows a mistake as the program does", async (t) => {
  const shown = blocks.find(({ text }) => text.startsWith("Corefile:"))?.text ?? "";
  const [, line = "", mistake = ""] = /^Corefile:(\d+):.*\n +\d+ \| (.*)\n/.exec(shown) ?? [];
  const folder = mkdtempSync(join(tmpdir(), "portolan-readme-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const before = Array.from({ length: Number(line) - 2 }, () => "    errors");
  writeFileSync(join(folder, "Corefile"), [".:1053 {", ...before, mistake, "}", ""].join("\n"));
  const { code, output, errors } = await runPortolan(["-conf", "Corefile"], { cwd: folder });
  assert.deepEqual([code, output, errors], [1, "", shown]);
});

test("shows what dig prints", { skip: skipWithout("dig") }, async () => {
  const session = blocks.find(({ language }) => language === "console")?.text ?? "";
  const [, command = "", expected = ""] = /^\$ (dig .* -p 1053 .*)\n([^$]+)$/.exec(session) ?? [];
  const manifests = join(projectRoot, "examples", "quickstart", "manifests");
  const lines = ["bind 127.0.0.1", "kubernetes cluster.local {", `manifests ${manifests}`, "ttl 30", "}"];
  await using server = await Portolan.start((port) => [`.:${port("dns")} {`, ...lines, "}", ""].join("\n"));
  const { output } = await run("sh", ["-c", command.replace("-p 1053", `-p ${server.port}`)]);
  assert.equal(output, expected);
});

for (const page of globSync(["*.md", "docs/**/*.md", "src/**/README.md", "examples/**/*.md", "bench/*.md"], {
  cwd: projectRoot,
}).sort()) {
  test(`the links of ${page} lead somewhere`, () => {
    const links = localLinks(readFileSync(join(projectRoot, page), "utf8"));
    assert.deepEqual(
      links.filter((link) => !existsSync(join(projectRoot, dirname(page), link))),
      [],
    );
  });
}
