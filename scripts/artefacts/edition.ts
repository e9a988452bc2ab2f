import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findCommit } from "../../bin/commit.mjs";

/** What is made: which version, of which commit. */
export interface Edition {
  /** The project's folder. */
  readonly root: string;
  /** As in package.json, such as "0.1.0"; "0.1.0-dirty" where files of the checkout were changed since the last commit. */
  readonly version: string;
  /** The first twelve digits of the commit, with "-dirty" as above; "unknown" where nothing says it. */
  readonly commit: string;
  /** All digits of the commit; "unknown" where nothing says it. */
  readonly revision: string;
  /** Seconds since the epoch: the time of all files, so that the same sources make the same artefacts. */
  readonly time: number;
  /** Where the sources are available, as a URI. */
  readonly source: string;
  readonly manifest: Manifest;
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly repository?: { readonly url: string };
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** 1 January 1980: older times do not fit into every format of archives. */
const OLDEST = 315_532_800;

/**
 * @param environment `PORTOLAN_COMMIT` and `SOURCE_DATE_EPOCH` go before what git says
 */
export function readEdition(root: string, environment: NodeJS.ProcessEnv): Edition {
  const manifest: Manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const commit = environment.PORTOLAN_COMMIT || findCommit(root) || "unknown";
  const isDirty = commit.endsWith("-dirty");
  const given = environment.SOURCE_DATE_EPOCH;
  const time = Number(given || askGit(root, "log", "-1", "--format=%ct") || OLDEST);
  return {
    root,
    version: isDirty ? `${manifest.version}-dirty` : manifest.version,
    commit,
    revision: askGit(root, "rev-parse", "HEAD") ?? commit.replace(/-dirty$/, ""),
    time: Number.isSafeInteger(time) ? Math.max(OLDEST, time) : OLDEST,
    source: manifest.repository?.url ?? `pkg:npm/${manifest.name}@${manifest.version}`,
    manifest,
  };
}

/** @returns undefined where the folder is no checkout, or git does not work there */
function askGit(root: string, ...words: readonly string[]): string | undefined {
  if (!existsSync(join(root, ".git"))) return undefined;
  const { status, stdout } = spawnSync("git", words, { cwd: root, encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
}
