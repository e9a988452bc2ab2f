/** Which files the configured paths stand for. */
import { join } from "node:path";
import { describeFileError, type FileState, type FileSystem, isMissing } from "./file-system.ts";
import type { ManifestProblem } from "./manifest-problem.ts";

export interface FoundFile {
  readonly path: string;
  readonly state: FileState;
}

export interface FoundFiles {
  /** In the order of the configured paths, and within a folder by name. */
  readonly files: readonly FoundFile[];
  /** Files and folders of which nothing can be told at present; what was known below them still holds. */
  readonly unknown: readonly string[];
  readonly problems: readonly ManifestProblem[];
}

export const MAX_FILES = 10_000;
const MAX_DEPTH = 16;
const MANIFEST_NAME = /\.(?:ya?ml|json)$/i;

/**
 * A path that names a file stands for it whatever it is called; a folder stands for its `.yaml`, `.yml` and `.json`
 * files and those of its folders. Names that begin with a dot are passed over: that leaves out the `..data` of a
 * mounted ConfigMap, whose files are found through the links beside it. Links are followed; nothing is found twice.
 */
export async function findFiles(paths: readonly string[], fileSystem: FileSystem): Promise<FoundFiles> {
  const search = new FileSearch(fileSystem);
  for (const path of paths) await search.configuredPath(path);
  return search;
}

class FileSearch implements FoundFiles {
  readonly files: FoundFile[] = [];
  readonly unknown: string[] = [];
  readonly problems: ManifestProblem[] = [];
  readonly #fileSystem: FileSystem;
  readonly #seen = new Set<string>();
  #full = false;

  constructor(fileSystem: FileSystem) {
    this.#fileSystem = fileSystem;
  }

  async configuredPath(path: string): Promise<void> {
    const state = await this.#state(path, true);
    if (state === undefined) return;
    if (state.type === "file") this.#addFile(path, state);
    else if (state.type === "folder") await this.#folder(path, state, 0);
    else this.#unreadable(path, "is neither a file nor a folder");
  }

  async #folder(folder: string, state: FileState, depth: number): Promise<void> {
    if (!this.#isNew(state)) return;
    if (depth > MAX_DEPTH) {
      this.#unreadable(folder, `lies more than ${MAX_DEPTH} folders deep; it is not read`);
      return;
    }
    let names: string[];
    try {
      names = await this.#fileSystem.names(folder);
    } catch (error) {
      this.#unreadable(folder, describeFileError(error));
      return;
    }
    for (const name of names.sort()) {
      if (name.startsWith(".") || this.#full) continue;
      const path = join(folder, name);
      const found = await this.#state(path, false);
      if (found?.type === "folder") await this.#folder(path, found, depth + 1);
      else if (found?.type === "file" && MANIFEST_NAME.test(name)) this.#addFile(path, found);
    }
  }

  #addFile(path: string, state: FileState): void {
    if (this.#full || !this.#isNew(state)) return;
    if (this.files.length === MAX_FILES) {
      this.#full = true;
      this.#problem(path, `more than ${MAX_FILES} files; this one and those after it are not read`);
      return;
    }
    this.files.push({ path, state });
  }

  /** Undefined for what is not there. Inside of a folder that is nothing special: it has just been deleted. */
  async #state(path: string, configured: boolean): Promise<FileState | undefined> {
    try {
      return await this.#fileSystem.state(path);
    } catch (error) {
      if (configured || !isMissing(error)) this.#unreadable(path, describeFileError(error));
      return undefined;
    }
  }

  #isNew(state: FileState): boolean {
    if (this.#seen.has(state.identity)) return false;
    this.#seen.add(state.identity);
    return true;
  }

  #unreadable(path: string, message: string): void {
    this.unknown.push(path);
    this.#problem(path, message);
  }

  #problem(file: string, message: string): void {
    this.problems.push({ severity: "error", file, line: 1, message });
  }
}
