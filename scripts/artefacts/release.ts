/** Everything that people can take away, in one folder, with the hashes and a statement of where it comes from. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StepFailure, step } from "../lib/step.mjs";
import { sha256OfFile, sha256OfLargeFile } from "./archives.ts";
import { makeChart } from "./chart.ts";
import { filesIn } from "./components.ts";
import type { Edition } from "./edition.ts";
import { makeExecutable } from "./executable.ts";
import { makeImages } from "./image.ts";
import { makeLinuxPackages } from "./linux-packages.ts";
import { makeNpmArchive } from "./npm-archive.ts";
import { NODE_VERSION, type Platform } from "./platforms.ts";
import { demandTools } from "./tools.ts";

const SUMS = "SHA256SUMS";

/**
 * @param out a folder that is empty, or has an earlier release
 * @throws {StepFailure} where the changelog says nothing of the version, or a tool is missing
 */
export async function makeRelease(
  edition: Edition,
  platforms: readonly Platform[],
  out: string,
): Promise<readonly string[]> {
  const { root, manifest, version } = edition;
  const notes = sectionOf(readFileSync(join(root, "CHANGELOG.md"), "utf8"), manifest.version);
  demandTools("dpkg-deb", "rpmbuild", "tar", "npm", ...platforms.map(({ strip }) => strip));
  clear(out);
  await makeAll(edition, platforms, out);
  writeFileSync(join(out, `portolan-${version}.md`), `# Portolan ${version}\n\n${notes}\n`);
  const subjects = await sumsOf(out);
  const provenance = `portolan-${version}.intoto.json`;
  writeFileSync(join(out, provenance), `${JSON.stringify(provenanceOf(edition, platforms, subjects))}\n`);
  const sums = await sumsOf(out);
  writeFileSync(join(out, SUMS), [...sums].map(([path, hash]) => `${hash}  ${path}\n`).join(""));
  return [...sums].map(([path, hash]) => `${hash}  ${path}`);
}

/** All artefacts, each with its bill of materials. */
export async function makeAll(edition: Edition, platforms: readonly Platform[], out: string): Promise<void> {
  await step("Making the package for npm", () => makeNpmArchive(edition, out));
  await step("Making the chart", () => makeChart(edition, out));
  await step("Making the images", () => makeImages(edition, platforms, out));
  for (const platform of platforms) {
    const { architecture } = platform;
    await step(`Making the executable for ${architecture}`, () => makeExecutable(edition, platform, out));
    await step(`Making the packages for ${architecture}`, () => makeLinuxPackages(edition, platform, out));
  }
}

/**
 * What the changelog says of a version: all that stands below its heading.
 * @throws {StepFailure} where it says nothing
 */
export function sectionOf(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m).slice(1);
  const found = sections.find((section) => section.split(/\s/, 1)[0] === version);
  const text = found?.replace(/^.*\n/, "").trim() ?? "";
  if (text === "")
    throw new StepFailure(
      `CHANGELOG.md has no section for ${version}: it needs a heading "## ${version}" with text below it.`,
    );
  return text;
}

/** Removes an earlier release, and nothing else: the folder is the caller's choice. */
function clear(out: string): void {
  const names = readdirSync(out);
  const strange = names.find((name) => name !== SUMS && !name.startsWith("portolan"));
  if (strange !== undefined)
    throw new StepFailure(`${out} has something else in it than a release: ${strange}`);
  for (const name of names) rmSync(join(out, name), { recursive: true });
}

async function sumsOf(folder: string): Promise<Map<string, string>> {
  const sums = new Map<string, string>();
  for (const path of filesIn(folder))
    if (path !== SUMS) sums.set(path, await sha256OfLargeFile(join(folder, path)));
  return sums;
}

/** The provenance of the artefacts (in-toto Statement 1, with SLSA provenance 1), unsigned. */
function provenanceOf(
  { commit, revision, source, version, root }: Edition,
  platforms: readonly Platform[],
  subjects: ReadonlyMap<string, string>,
): unknown {
  const lock = join(root, "package-lock.json");
  return {
    _type: "https://in-toto.io/Statement/v1",
    subject: [...subjects].map(([name, sha256]) => ({ name, digest: { sha256 } })),
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: `${source}#npm-run-release`,
        externalParameters: {
          version,
          commit,
          platforms: platforms.map(({ architecture }) => `linux/${architecture}`),
        },
        resolvedDependencies: [
          ...(revision === "unknown" ? [] : [{ uri: source, digest: { gitCommit: revision } }]),
          ...(existsSync(lock)
            ? [{ name: "package-lock.json", digest: { sha256: sha256OfFile(lock) } }]
            : []),
          ...platforms.map(({ node, integrity }) => ({
            uri: `pkg:npm/node-linux-${node}@${NODE_VERSION}`,
            digest: { sha512: Buffer.from(integrity.replace("sha512-", ""), "base64").toString("hex") },
          })),
        ],
      },
      runDetails: { builder: { id: `${source}#scripts/artefact.mjs` } },
    },
  };
}
