/** What `npm run image` and its like make, and what a bill of materials says is in it. */
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { findCommit } from "../../bin/commit.mjs";
import { projectRoot } from "./portolan.ts";
import { run } from "./program.ts";

/** Milliseconds: on a fresh machine Node is downloaded for two platforms and compressed, and both cores are busy with tests. */
export const MAKE_PATIENCE = 600_000;

export const { version: PACKAGE_VERSION }: { version: string } = JSON.parse(
  readFileSync(join(projectRoot, "package.json"), "utf8"),
);

/** As artefacts say it, which are made from a checkout that may have been changed. */
export const VERSION = findCommit(projectRoot)?.endsWith("-dirty")
  ? `${PACKAGE_VERSION}-dirty`
  : PACKAGE_VERSION;

export class Artefacts implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "portolan-artefacts-"));

  /** Makes them. @throws where the command fails */
  async make(command: string, ...words: readonly string[]): Promise<string> {
    const args = [join(projectRoot, "scripts", "artefact.mjs"), command, "--out", this.folder, ...words];
    const { code, output, errors } = await run(process.execPath, args, {
      cwd: projectRoot,
      patience: MAKE_PATIENCE,
    });
    if (code !== 0) throw new Error(`${command} ended with exit code ${code}:\n${output}${errors}`);
    return output;
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

interface Bill {
  readonly bomFormat: string;
  readonly specVersion: string;
  readonly components: readonly {
    readonly name: string;
    readonly version: string;
    readonly purl: string;
    readonly components?: readonly {
      readonly name: string;
      readonly hashes?: readonly { readonly content: string }[];
      readonly properties?: readonly { readonly value: string }[];
    }[];
  }[];
}

/** A folder's or a bill's files: the hash of each, or an arrow and the target of a link. */
export type Contents = Readonly<Record<string, string>>;

export function readBill(artefact: string): Bill {
  return JSON.parse(readFileSync(`${artefact}.cdx.json`, "utf8"));
}

/** @throws where two parts claim one file */
export function contentsOfBill({ components }: Bill): Contents {
  const files = components.flatMap(({ components = [] }) => components);
  const contents = Object.fromEntries(
    files.map(({ name, hashes, properties }) => [
      name,
      hashes?.[0]?.content ?? `-> ${properties?.[0]?.value}`,
    ]),
  );
  if (Object.keys(contents).length !== files.length) throw new Error("a file belongs to two parts");
  return contents;
}

export function contentsOfFolder(folder: string): Contents {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const facts = entries.flatMap((entry) => {
    if (entry.isDirectory()) return [];
    const file = join(entry.parentPath, entry.name);
    const fact = entry.isSymbolicLink()
      ? `-> ${readlinkSync(file)}`
      : createHash("sha256").update(readFileSync(file)).digest("hex");
    return [[relative(folder, file), fact] as const];
  });
  return Object.fromEntries(facts);
}
