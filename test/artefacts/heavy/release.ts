/** The release: complete, described, and the same when it is made again. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Artefacts, MAKE_PATIENCE, PACKAGE_VERSION, VERSION } from "../../support/artefacts.ts";
import { projectRoot } from "../../support/portolan.ts";
import { run } from "../../support/program.ts";

const SUMS = "SHA256SUMS";

describe("the release", { timeout: 3 * MAKE_PATIENCE }, () => {
  const made = new Artefacts();
  before(async () => {
    await made.make("release");
  });
  after(() => made[Symbol.dispose]());

  test("has each artefact, and sums that hold", async () => {
    const { code, errors } = await run("sha256sum", ["--check", "--quiet", "--strict", SUMS], {
      cwd: made.folder,
    });
    assert.equal(code, 0, errors);
    const names = readdirSync(made.folder);
    const ordered = VERSION.replace("-dirty", "~dirty");
    for (const name of [
      `portolan-${VERSION}.tgz`,
      `portolan-${VERSION}-image.tar`,
      ...["amd64", "arm64"].map((architecture) => `portolan-${VERSION}-image-${architecture}.tar`),
      ...["x64", "arm64"].map((architecture) => `portolan-${VERSION}-linux-${architecture}`),
      ...["amd64", "arm64"].map((architecture) => `portolan_${ordered}_${architecture}.deb`),
      ...["x86_64", "aarch64"].map((architecture) => `portolan-${ordered}-1.${architecture}.rpm`),
      `portolan-chart-${VERSION}.tgz`,
    ])
      assert.ok(
        names.includes(name) && (name.endsWith("image.tar") || names.includes(`${name}.cdx.json`)),
        name,
      );
  });

  test("has the notes of the changelog, and says where it comes from", () => {
    const notes = readFileSync(made.path(`portolan-${VERSION}.md`), "utf8");
    assert.match(notes, new RegExp(`^# Portolan ${VERSION.replaceAll(".", "\\.")}\n\n\\S`));
    const statement = JSON.parse(readFileSync(made.path(`portolan-${VERSION}.intoto.json`), "utf8"));
    assert.equal(statement._type, "https://in-toto.io/Statement/v1");
    const subjects = statement.subject.map(
      ({ name, digest }: { name: string; digest: { sha256: string } }) => `${digest.sha256}  ${name}`,
    );
    const sums = readFileSync(made.path(SUMS), "utf8").trim().split("\n");
    const others = sums.filter((line) => !line.endsWith("intoto.json"));
    assert.deepEqual(subjects.sort(), others.sort());
  });

  test("is the same when it is made again, over the one that is there", async () => {
    const before = readFileSync(made.path(SUMS), "utf8");
    await made.make("release");
    assert.equal(readFileSync(made.path(SUMS), "utf8"), before);
  });

  test("is not written where something else is", async () => {
    using other = new Artefacts();
    writeFileSync(other.path("letter.txt"), "");
    await assert.rejects(other.make("release"), /something else in it than a release: letter\.txt/);
    assert.deepEqual(readdirSync(other.folder), ["letter.txt"]);
  });

  test("is of the version that package.json has", () => {
    assert.match(
      readFileSync(join(projectRoot, "CHANGELOG.md"), "utf8"),
      new RegExp(`^## ${PACKAGE_VERSION}\\b`, "m"),
    );
  });
});
