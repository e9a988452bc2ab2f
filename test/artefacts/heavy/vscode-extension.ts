/** The extension for Visual Studio Code, packaged as its README says. */
import assert from "node:assert/strict";
import { cpSync, existsSync, globSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { skipWithout } from "../../../scripts/lib/system-tools.mjs";
import { Artefacts, MAKE_PATIENCE } from "../../support/artefacts.ts";
import { projectRoot } from "../../support/portolan.ts";
import { run } from "../../support/program.ts";

interface Manifest {
  readonly name: string;
  readonly publisher: string;
  readonly version: string;
  readonly main: string;
  readonly contributes: {
    readonly languages: readonly { readonly configuration: string }[];
    readonly grammars: readonly { readonly path: string; readonly scopeName: string }[];
  };
}

describe("the extension for VS Code", { skip: skipWithout("npm", "unzip"), timeout: MAKE_PATIENCE }, () => {
  const folders = new Artefacts();
  const unpacked = folders.path("unpacked");
  const extension = join(unpacked, "extension");
  const source = join(projectRoot, "editors", "vscode");

  before(async () => {
    const folder = folders.path("vscode");
    const generated = new Set(["node_modules", "out"].map((name) => join(source, name)));
    cpSync(source, folder, { recursive: true, filter: (path) => !generated.has(path) });
    for (const [command, ...words] of [
      ["npm", "ci", "--no-audit", "--no-fund"],
      ["npm", "run", "package"],
      ["unzip", "-q", "portolan-corefile.vsix", "-d", unpacked],
    ] as const) {
      const { code, output, errors } = await run(command, words, { cwd: folder, patience: MAKE_PATIENCE });
      assert.equal(code, 0, `${[command, ...words].join(" ")}\n${output}${errors}`);
    }
  });
  after(() => folders[Symbol.dispose]());

  const manifest = (): Manifest => JSON.parse(readFileSync(join(extension, "package.json"), "utf8"));

  test("has these files and no others", () => {
    const files = globSync("**/*", { cwd: unpacked, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(unpacked.length + 1));
    assert.deepEqual(files.sort(), [
      "[Content_Types].xml",
      "extension.vsixmanifest",
      "extension/language-configuration.json",
      "extension/out/extension.js",
      "extension/package.json",
      "extension/readme.md",
      "extension/syntaxes/corefile.tmLanguage.json",
    ]);
  });

  test("says what it is, and every file that it names is in it", () => {
    const { name, publisher, version, main, contributes } = manifest();
    const described = readFileSync(join(unpacked, "extension.vsixmanifest"), "utf8");
    assert.match(
      described,
      new RegExp(`<Identity [^>]*Id="${name}" Version="${version}" Publisher="${publisher}"`),
    );
    const [language] = contributes.languages;
    const [grammar] = contributes.grammars;
    for (const path of [main, language?.configuration, grammar?.path])
      assert.ok(path !== undefined && existsSync(join(extension, path)), path);
    assert.deepEqual(
      readFileSync(join(extension, grammar?.path ?? ""), "utf8"),
      readFileSync(join(source, "syntaxes", "corefile.tmLanguage.json"), "utf8"),
    );
  });

  test("needs nothing but the editor and Node", async () => {
    const program = join(extension, manifest().main);
    const checked = await run(process.execPath, ["--check", program]);
    assert.equal(checked.code, 0, checked.errors);
    const required = readFileSync(program, "utf8").matchAll(/\brequire\("([^"]+)"\)/g);
    const names = new Set(Array.from(required, ([, name = ""]) => name.replace(/^node:/, "")));
    assert.ok(names.has("vscode") && names.has("child_process"));
    const known = new Set([...builtinModules, "vscode"]);
    assert.deepEqual(
      [...names].filter((name) => !known.has(name)),
      [],
    );
  });
});
