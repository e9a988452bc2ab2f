import { chmodSync, copyFileSync, mkdirSync, readdirSync, statSync, symlinkSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/** One part of an artefact: where it comes from, and which files of the artefact it is. */
export interface Component {
  readonly type: "application" | "library" | "platform" | "data";
  readonly name: string;
  readonly version: string;
  /** The address of the package (package-url): "pkg:npm/undici@8.12.4". */
  readonly purl: string;
  /** As SPDX says it; or, for Debian's packages, in the words of their copyright file. */
  readonly licence: string;
  /** Paths inside the artefact, without a slash in front. */
  readonly files: readonly string[];
}

/** A folder that becomes an artefact, and what it is made of. */
export class Stage {
  readonly folder: string;
  readonly #components: Component[] = [];

  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
  }

  get components(): readonly Component[] {
    return this.#components;
  }

  /** Gives all files the rights that follow from whether they are programs, whatever the umask was. */
  setRights(): void {
    for (const entry of readdirSync(this.folder, { recursive: true, withFileTypes: true })) {
      if (entry.isSymbolicLink()) continue;
      const file = join(entry.parentPath, entry.name);
      const isProgram = entry.isDirectory() || (statSync(file).mode & 0o100) !== 0;
      chmodSync(file, isProgram ? 0o755 : 0o644);
    }
    chmodSync(this.folder, 0o755);
  }

  /**
   * Adds a part.
   * @param fill puts its files in place, by the methods of what it is given
   */
  add(component: Omit<Component, "files">, fill: (files: StagedFiles) => void): void {
    const files = new StagedFiles(this.folder);
    fill(files);
    this.#components.push({ ...component, files: files.paths.toSorted() });
  }
}

export class StagedFiles {
  readonly #folder: string;
  readonly #paths = new Set<string>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  get paths(): string[] {
    return [...this.#paths];
  }

  /** A file that `write` makes. @param write gets the path to write to */
  write(path: string, write: (file: string) => void): void {
    const file = join(this.#folder, path);
    mkdirSync(dirname(file), { recursive: true });
    write(file);
    this.#paths.add(path);
  }

  copy(from: string, path: string): void {
    this.write(path, (file) => copyFileSync(from, file));
  }

  link(target: string, path: string): void {
    this.write(path, (file) => symlinkSync(target, file));
  }

  /**
   * Copies a folder with all that is in it.
   * @param filter which of its files to copy, by their paths inside it
   */
  copyFolder(from: string, path: string, filter: (path: string) => boolean = () => true): void {
    for (const inside of filesIn(from)) if (filter(inside)) this.copy(join(from, inside), join(path, inside));
  }
}

/** All files and links below a folder, by their paths inside it, in order. */
export function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}
