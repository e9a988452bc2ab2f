/** `portolan -version` names the commit, from a checkout and from what was built. */
import assert from "node:assert/strict";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { projectRoot } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const WITHOUT_COMMIT = { PORTOLAN_COMMIT: "" };

async function commitOf(folder: string, env: NodeJS.ProcessEnv = WITHOUT_COMMIT): Promise<string> {
  const launcher = join(folder, "bin", "portolan");
  const { output } = await run(process.execPath, [launcher, "-version"], { env });
  const [, commit] = /^Portolan-\S+\nlinux\/\w+, node[\d.]+, (\S+)$/m.exec(output) ?? [];
  assert.ok(commit !== undefined, output);
  return commit;
}

async function git(folder: string, ...words: readonly string[]): Promise<string> {
  const identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"];
  const { code, output, errors } = await run("git", ["-C", folder, ...identity, ...words]);
  assert.equal(code, 0, errors);
  return output.trim();
}

/** The program as it is in a package, without the commit that it was built from. */
function copyOfPackage(t: TestContext): string {
  const folder = makeTree(t, { "README.md": "first\n" });
  for (const name of ["bin", "dist", "package.json"])
    cpSync(join(projectRoot, name), join(folder, name), { recursive: true });
  rmSync(join(folder, "dist", "commit"), { force: true });
  return folder;
}

test("a package names the commit that it was built from, and nothing where that is not known", async (t) => {
  const folder = copyOfPackage(t);
  assert.equal(await commitOf(folder), "unknown");
  writeFileSync(join(folder, "dist", "commit"), "0123456789ab\n");
  assert.equal(await commitOf(folder), "0123456789ab");
  assert.equal(await commitOf(folder, { PORTOLAN_COMMIT: "given" }), "given");
});

test("a checkout names its last commit, and says when files were changed since", async (t) => {
  const folder = copyOfPackage(t);
  writeFileSync(join(folder, "dist", "commit"), "built-earlier\n");
  await git(folder, "init", "--quiet");
  await git(folder, "add", "README.md");
  await git(folder, "commit", "--quiet", "--message", "First");
  const commit = await git(folder, "rev-parse", "--short=12", "HEAD");
  assert.equal(await commitOf(folder), commit);
  writeFileSync(join(folder, "README.md"), "second\n");
  assert.equal(await commitOf(folder), `${commit}-dirty`);
});

test("the build leaves the commit in dist/", () => {
  assert.match(readFileSync(join(projectRoot, "dist", "commit"), "utf8"), /^[0-9a-f]{12}(-dirty)?\n$/);
});
