import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { isBuildCurrent } from "../../bin/build-state.mjs";
import { build, missingFiles, provideBuild } from "./build.mjs";
import { packagesToStart } from "./packages.mjs";
import { makeTree } from "./test-tree.ts";

const project = join(import.meta.dirname, "..", "..");

function makeProject(t: TestContext, sources: Readonly<Record<string, string>>): string {
  const configuration = ["package.json", "tsconfig.json", "tsconfig.build.json"].map((name) => {
    return [name, readFileSync(join(project, name), "utf8")];
  });
  const root = makeTree(t, { ...Object.fromEntries(configuration), ...sources });
  symlinkSync(join(project, "node_modules"), join(root, "node_modules"));
  return root;
}

const SOURCES = {
  "src/index.ts": "export const version: number = 1;\n",
  "src/lib/a.ts": "export const a: number = process.pid;\n",
  "src/lib/a.test.ts": 'import { a } from "./a.ts";\nif (a !== 1) throw new Error("not 1");\n',
  "src/cli/main.ts":
    'import { a } from "../lib/a.ts";\nexport const main = async (): Promise<number> => a;\n',
  "src/plugins/x/README.md": "# x\n",
  "src/plugins/x/index.ts": 'import { a } from "../../lib/a.ts";\nexport const x: number = a + 1;\n',
  "src/plugins/x/fixtures/zone": "",
  "src/plugin.cfg": "x:x\n",
};

/** As if the sources had been written a while ago: a build takes what is as new as itself for changed. */
function age(root: string): void {
  const paths = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" });
  for (const path of ["", ...paths]) utimesSync(join(root, "src", path), 1_000_000, 1_000_000);
}

test("emits types, a few modules and the licences of what is in them, and copies what the program reads", async (t) => {
  const root = makeProject(t, SOURCES);
  await build(root, process.execPath, { types: true });
  const files = readdirSync(join(root, "dist"), { recursive: true, encoding: "utf8" }).filter(
    (name) => /\.\w+$/.test(name) && !name.startsWith("chunks"),
  );
  assert.deepEqual(files.sort(), [
    ".built",
    "cli/main.d.ts",
    "cli/main.js",
    "index.d.ts",
    "index.js",
    "lib/a.d.ts",
    "plugin.cfg",
    "plugins/x/README.md",
    "plugins/x/index.d.ts",
    "plugins/x/index.js",
  ]);
  // What both entries need is there once.
  const chunk = /from"(\.\.\/chunks\/lib-[\w-]+\.js)"/.exec(
    readFileSync(join(root, "dist/cli/main.js"), "utf8"),
  )?.[1];
  assert.ok(chunk !== undefined);
  assert.match(readFileSync(join(root, "dist/cli", chunk), "utf8"), /^const a=process\.pid;/m);
  const notices = readFileSync(join(root, "dist/NOTICES"), "utf8");
  assert.match(notices, /^yaml [\d.]+\n[\s\S]*copyright/i);
  assert.match(notices, /^@bufbuild\/protobuf [\d.]+\n[\s\S]*^ *Apache License\n[\s\S]*^ *END OF TERMS/m);
  assert.deepEqual(readdirSync(join(root, ".cache")), ["build.log"]);
});

test("leaves the types out where only the server is wanted, and adds them once they are", async (t) => {
  const root = makeProject(t, SOURCES);
  age(root);
  await provideBuild(root, process.execPath, { types: false });
  assert.ok(existsSync(join(root, "dist/cli/main.js")));
  assert.equal(existsSync(join(root, "dist/index.d.ts")), false);
  await provideBuild(root, process.execPath, { types: true });
  assert.ok(existsSync(join(root, "dist/index.d.ts")));
});

test("replaces what an earlier build made", async (t) => {
  const root = makeProject(t, SOURCES);
  await build(root, process.execPath, { types: true });
  rmSync(join(root, "src/plugin.cfg"));
  await build(root, process.execPath, { types: true });
  assert.equal(existsSync(join(root, "dist/plugin.cfg")), false);
});

test("keeps the earlier build when the sources have an error, and shows it", async (t) => {
  const root = makeProject(t, SOURCES);
  await build(root, process.execPath, { types: true });
  writeFileSync(join(root, "src/lib/a.ts"), 'export const a: number = "one";\n');
  await assert.rejects(
    build(root, process.execPath, { types: true }),
    /src\/lib\/a\.ts\(1,14\)[\s\S]*\.cache\/build\.log/,
  );
  assert.ok(existsSync(join(root, "dist/cli/main.js")));
});

test("knows whether the build is current", async (t) => {
  const root = makeProject(t, SOURCES);
  assert.equal(isBuildCurrent(root), false);
  age(root);
  await build(root, process.execPath, { types: true });
  assert.equal(isBuildCurrent(root), true);

  writeFileSync(join(root, "src/lib/a.test.ts"), "changed");
  assert.equal(isBuildCurrent(root), true);
  writeFileSync(join(root, "src/plugin.cfg"), "changed");
  assert.equal(isBuildCurrent(root), false);

  age(root);
  assert.equal(isBuildCurrent(root), true);
  rmSync(join(root, "src/lib/a.test.ts"));
  assert.equal(isBuildCurrent(root), false);
});

test("takes a package without sources for current", (t) => {
  assert.equal(isBuildCurrent(makeTree(t, { "dist/cli/main.js": "" })), true);
});

test("finds files that the manifest lists and no step wrote", (t) => {
  const root = makeTree(t, { "dist/index.js": "", "bin/portolan": "" });
  const exports = { ".": { types: "./dist/index.d.ts", default: "./dist/index.js" }, "./x": "./dist/x.js" };
  assert.deepEqual(missingFiles(root, [exports, { portolan: "bin/portolan" }]), [
    "./dist/index.d.ts",
    "./dist/x.js",
  ]);
});

test("the packages that npm start installs make dist/ of the whole program", async (t) => {
  const root = makeTree(t, { "node_modules/.keep": "" });
  for (const name of [
    "package.json",
    "tsconfig.json",
    "tsconfig.build.json",
    "LICENSE",
    "bin",
    "scripts",
    "src",
  ])
    cpSync(join(project, name), join(root, name), { recursive: true });
  for (const path of packagesToStart(project).keys()) {
    // Packages for other platforms, and those within the folder of another package.
    if (!existsSync(join(project, path)) || existsSync(join(root, path))) continue;
    mkdirSync(dirname(join(root, path)), { recursive: true });
    symlinkSync(join(project, path), join(root, path));
  }
  const bundle = join(root, "scripts", "lib", "bundle.mjs");
  // Links are packages of this folder, and not of the one that they lead to.
  execFileSync(process.execPath, ["--preserve-symlinks", bundle, join(root, "src"), join(root, "dist")], {
    stdio: "pipe",
  });
  assert.ok(existsSync(join(root, "dist", "cli", "main.js")));
});
