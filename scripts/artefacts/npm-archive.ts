/** The package for npm's registry. */
import { copyFileSync, existsSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { COMMIT_FILE } from "../../bin/commit.mjs";
import { filesIn, Stage } from "./components.ts";
import type { Edition } from "./edition.ts";
import { writeManPages } from "./linux-packages.ts";
import { addBundled, cacheOf, emptyFolder, provideProgram } from "./program.ts";
import { ingredientsOf, writeSbom } from "./sbom.ts";
import { runTool } from "./tools.ts";

export interface NpmArchive {
  readonly path: string;
  readonly sbom: string;
}

export async function makeNpmArchive(edition: Edition, out: string): Promise<NpmArchive> {
  const { root, manifest, version } = edition;
  await provideProgram(edition);
  await writeManPages(edition);
  if (existsSync(join(root, "dist"))) writeFileSync(join(root, COMMIT_FILE), `${edition.commit}\n`);
  const work = emptyFolder(join(cacheOf(edition), `npm-${process.pid}`));
  try {
    // All that `prepack` makes is there.
    await runTool("npm", ["pack", "--ignore-scripts", "--pack-destination", work], { cwd: root });
    const [archive = ""] = readdirSync(work);
    const path = join(out, `portolan-${version}.tgz`);
    copyFileSync(join(work, archive), path);
    await runTool("tar", ["--extract", "--gzip", "--directory", work, "--file", path]);
    const stage = new Stage(join(work, "root"));
    rmSync(stage.folder, { recursive: true });
    renameSync(join(work, "package"), stage.folder);
    const purl = `pkg:npm/${manifest.name}@${manifest.version}`;
    stage.add(
      { type: "application", name: manifest.name, version, purl, licence: manifest.license },
      (files) => {
        for (const file of filesIn(stage.folder)) files.write(file, () => undefined);
      },
    );
    addBundled(stage, root);
    return { path, sbom: writeSbom(edition, path, ingredientsOf(stage)) };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
