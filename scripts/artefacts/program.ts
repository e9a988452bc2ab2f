/** The parts that the image, the executable and the packages share: Node, and the program with the packages it needs. */
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { provideBuild } from "../lib/build.mjs";
import { StepFailure } from "../lib/step.mjs";
import type { Component, Stage, StagedFiles } from "./components.ts";
import type { Edition } from "./edition.ts";
import { fetchNpmPackage } from "./npm-packages.ts";
import { NODE_VERSION, type Platform } from "./platforms.ts";
import { runTool } from "./tools.ts";

interface LockedPackage {
  readonly version: string;
  readonly integrity: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly peer?: boolean;
  readonly os?: readonly string[];
}

/** The folder for what is fetched or takes long to make. */
export function cacheOf({ root }: Edition): string {
  const cache = join(root, ".cache", "artefacts");
  mkdirSync(cache, { recursive: true });
  return cache;
}

/** Builds the program, unless the build is that of the sources as they are. */
export function provideProgram({ root }: Edition): Promise<void> {
  return provideBuild(root, process.execPath, { types: true });
}

/** The folder of npm's package of Node. */
export async function nodePackage(edition: Edition, { node, integrity }: Platform): Promise<string> {
  const pinned = edition.manifest.devDependencies.node;
  if (pinned !== NODE_VERSION)
    throw new StepFailure(
      `package.json pins Node ${pinned}, and scripts/artefacts/platforms.ts Node ${NODE_VERSION}.`,
    );
  return fetchNpmPackage(cacheOf(edition), `node-linux-${node}`, NODE_VERSION, integrity);
}

/**
 * Node without the symbols that only debuggers read: a tenth of its size. What addons need of it stays.
 * @returns the path of the executable
 */
export async function strippedNode(edition: Edition, platform: Platform): Promise<string> {
  const file = join(cacheOf(edition), `node-${NODE_VERSION}-${platform.architecture}`);
  if (existsSync(file)) return file;
  const work = `${file}.${process.pid}`;
  const original = join(await nodePackage(edition, platform), "bin", "node");
  await runTool(platform.strip, ["--strip-all", "-o", work, original]);
  chmodSync(work, 0o755);
  renameSync(work, file);
  return file;
}

/** What a package of npm has for people or for compilers, and no program reads. */
const FOR_PEOPLE =
  /\.(d\.[cm]?ts|map|md|umd\.js|cc?|hh?|S|asm|inc|def)$|^(doc|docs|vendor|scripts|umd|types|musl_\w+|lib\/native)\/|CMakeLists/;

/**
 * Puts the program and the packages that it needs into a folder of the artefact: as `npm install --omit=dev` does, without what no program reads.
 * @param at the folder inside the artefact
 * @param interpreter what runs `bin/portolan` where it is started by its name
 */
export async function stageProgram(
  stage: Stage,
  edition: Edition,
  platform: Platform,
  { at, interpreter }: { readonly at: string; readonly interpreter: string },
): Promise<void> {
  const { root, manifest } = edition;
  const describe = { type: "application", licence: manifest.license } as const;
  const purl = `pkg:npm/${manifest.name}@${manifest.version}`;
  stage.add({ ...describe, name: manifest.name, version: edition.version, purl }, (files) => {
    for (const name of ["package.json", "LICENSE"]) files.copy(join(root, name), join(at, name));
    files.copyFolder(join(root, "bin"), join(at, "bin"), (path) => path !== "portolan");
    files.write(join(at, "bin", "portolan"), (file) => {
      const text = readFileSync(join(root, "bin", "portolan"), "utf8");
      writeFileSync(file, text.replace(/^#!.*/, `#!${interpreter}`), { mode: 0o755 });
    });
    files.copyFolder(join(root, "dist"), join(at, "dist"), (path) => isForProgram(path));
    files.write(join(at, "dist", "commit"), (file) => writeFileSync(file, `${edition.commit}\n`));
  });
  await stagePackages(stage, edition, platform, join(at, "node_modules"));
  addBundled(stage, root);
}

/** Not the declarations of types, nor what the build writes for itself or for the commit. */
function isForProgram(path: string): boolean {
  return !/\.d\.ts$|^\.built$|^commit$/.test(path);
}

async function stagePackages(
  stage: Stage,
  edition: Edition,
  { node }: Platform,
  folder: string,
): Promise<void> {
  for (const [path, locked] of Object.entries(lockedPackages(edition.root))) {
    if (path === "" || locked.dev === true || locked.devOptional === true || locked.peer === true) continue;
    const name = path.replace(/^.*node_modules\//, "");
    const isForOther = locked.os !== undefined && name !== `@koromix/koffi-linux-${node}`;
    if (isForOther) continue;
    const from =
      locked.os === undefined
        ? join(edition.root, path)
        : await fetchNpmPackage(cacheOf(edition), name, locked.version, locked.integrity);
    stage.add(
      { type: "library", name, version: locked.version, ...npmFacts(name, locked) },
      (files: StagedFiles) =>
        files.copyFolder(from, join(folder, name), (inside) => !FOR_PEOPLE.test(inside)),
    );
  }
}

function npmFacts(name: string, { version, license }: LockedPackage): { purl: string; licence: string } {
  return { purl: `pkg:npm/${name.replace("@", "%40")}@${version}`, licence: license ?? "NOASSERTION" };
}

/** Packages that became a part of the program's own files. */
export function addBundled(stage: Stage, root: string): void {
  const locked = lockedPackages(root);
  for (const name of ["yaml", "@bufbuild/protobuf", "preact", "@preact/signals"]) {
    const described = locked[`node_modules/${name}`];
    if (described === undefined) continue;
    const { version } = described;
    stage.add({ type: "library", name, version, ...npmFacts(name, described) }, () => undefined);
  }
}

function lockedPackages(root: string): Readonly<Record<string, LockedPackage>> {
  const lock: { packages: Record<string, LockedPackage> } = JSON.parse(
    readFileSync(join(root, "package-lock.json"), "utf8"),
  );
  return lock.packages;
}

export function describeNode({ node }: Platform): Omit<Component, "files"> {
  const name = `node-linux-${node}`;
  return {
    type: "platform",
    name,
    version: NODE_VERSION,
    purl: `pkg:npm/${name}@${NODE_VERSION}`,
    licence: "MIT",
  };
}

/** Puts Node and its licence into the artefact. */
export async function stageNode(
  stage: Stage,
  edition: Edition,
  platform: Platform,
  { at, licence }: { readonly at: string; readonly licence: string },
): Promise<void> {
  const executable = await strippedNode(edition, platform);
  const from = await nodePackage(edition, platform);
  stage.add(describeNode(platform), (files) => {
    files.copy(executable, at);
    files.copy(join(from, "LICENSE"), licence);
  });
}

/** An empty folder for one artefact, in place of what an earlier run left there. */
export function emptyFolder(path: string): string {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true });
  return path;
}
