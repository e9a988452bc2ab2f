/** The program in one file: Node's single executable application, with the program as an asset. */
import { chmodSync, copyFileSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compress, sha256 } from "./archives.ts";
import { type Component, filesIn, Stage } from "./components.ts";
import type { Edition } from "./edition.ts";
import type { Platform } from "./platforms.ts";
import {
  cacheOf,
  describeNode,
  emptyFolder,
  nodePackage,
  provideProgram,
  stageProgram,
  strippedNode,
} from "./program.ts";
import { type Ingredient, ingredientsOf, writeSbom } from "./sbom.ts";
import { runTool } from "./tools.ts";

/** By which Node tells whether it is an application (nodejs.org, "Single executable applications"). */
const FUSE = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";

export interface Executable {
  readonly platform: Platform;
  readonly path: string;
  readonly sbom: string;
}

export async function makeExecutable(edition: Edition, platform: Platform, out: string): Promise<Executable> {
  await provideProgram(edition);
  const work = emptyFolder(join(cacheOf(edition), `executable-${platform.architecture}-${process.pid}`));
  try {
    const stage = new Stage(join(work, "program"));
    await stageProgram(stage, edition, platform, { at: "", interpreter: "/usr/bin/env node" });
    const node = await nodePackage(edition, platform);
    stage.add(describeParts(edition), (files) => {
      files.copy(join(import.meta.dirname, "executable-tests.cjs"), "bin/run-tests.cjs");
      files.copy(join(node, "LICENSE"), "LICENSE.node");
    });
    const path = join(out, `portolan-${edition.version}-linux-${platform.node}`);
    await inject(edition, platform, { work, packed: packFiles(stage.folder), path });
    const ingredients = [nodeIngredient(platform), ...ingredientsOf(stage)];
    return { platform, path, sbom: writeSbom(edition, path, ingredients) };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The executable itself is Node: it is no file inside. */
function nodeIngredient(platform: Platform): Ingredient {
  return { ...describeNode(platform), files: [] };
}

function describeParts({ manifest, version }: Edition): Omit<Component, "files"> {
  return {
    type: "application",
    name: `${manifest.name}-executable`,
    version,
    purl: `pkg:npm/${manifest.name}@${manifest.version}`,
    licence: manifest.license,
  };
}

/** As `executable-main.cjs` reads it. */
function packFiles(folder: string): Buffer {
  const paths = filesIn(folder);
  const contents = paths.map((path) => readFileSync(join(folder, path)));
  const table = paths.map((path, index) => [
    path,
    contents[index]?.length ?? 0,
    (statSync(join(folder, path)).mode & 0o100) !== 0,
  ]);
  const head = Buffer.from(JSON.stringify(table));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(head.length);
  return compress(Buffer.concat([length, head, ...contents]));
}

interface Parts {
  readonly work: string;
  readonly packed: Buffer;
  readonly path: string;
}

async function inject(edition: Edition, platform: Platform, { work, packed, path }: Parts): Promise<void> {
  const file = (name: string): string => join(work, name);
  writeFileSync(file("packed"), packed);
  writeFileSync(file("digest"), sha256(packed).slice(0, 24));
  const configuration = {
    main: join(import.meta.dirname, "executable-main.cjs"),
    output: file("blob"),
    disableExperimentalSEAWarning: true,
    // Both hold for one kind of processor only, and this may not be it.
    useSnapshot: false,
    useCodeCache: false,
    // What the program lets a half of V8's young generation grow to anyway; the launcher need not start Node anew for it.
    execArgv: ["--max-semi-space-size=2"],
    execArgvExtension: "none",
    assets: { program: file("packed"), digest: file("digest") },
  };
  writeFileSync(file("sea.json"), JSON.stringify(configuration));
  await runTool(process.execPath, ["--experimental-sea-config", file("sea.json")]);
  copyFileSync(await strippedNode(edition, platform), file("node"));
  // Node 24 makes the blob and leaves it to postject to put it into the executable, also one for another kind of processor.
  const postject = join(edition.root, "node_modules", "postject", "dist", "cli.js");
  await runTool(process.execPath, [
    postject,
    file("node"),
    "NODE_SEA_BLOB",
    file("blob"),
    "--sentinel-fuse",
    FUSE,
  ]);
  chmodSync(file("node"), 0o755);
  copyFileSync(file("node"), `${path}.part`);
  renameSync(`${path}.part`, path);
}
