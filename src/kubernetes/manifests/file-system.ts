/** What reading manifests needs of a file system, so that a test can hold one. */
import { readdir, readFile, stat } from "node:fs/promises";

export interface FileState {
  readonly type: "file" | "folder" | "other";
  /** Octets. */
  readonly size: number;
  /** Equal for two paths that lead to the same file or folder. */
  readonly identity: string;
  /** Differs when the content may differ; a second write soon after the first may leave it as it is. */
  readonly stamp: string;
  /** Milliseconds since the epoch. */
  readonly modifiedAt: number;
}

export interface FileSystem {
  /** Follows symbolic links. */
  state(path: string): Promise<FileState>;
  /** The names in a folder, in any order. */
  names(folder: string): Promise<string[]>;
  read(path: string): Promise<Uint8Array>;
}

/** The machine's own file system. */
export const machineFileSystem: FileSystem = {
  async state(path) {
    const found = await stat(path, { bigint: true });
    const identity = `${found.dev}:${found.ino}`;
    return {
      type: found.isFile() ? "file" : found.isDirectory() ? "folder" : "other",
      size: Number(found.size),
      identity,
      stamp: `${identity}:${found.size}:${found.mtimeNs}:${found.ctimeNs}`,
      modifiedAt: Number(found.mtimeMs),
    };
  },
  names: (folder) => readdir(folder),
  read: (path) => readFile(path),
};

/** Whether an error says that nothing is at the path. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}

/** The reason of a failed call in words, without path and call, which the reader knows already. */
export function describeFileError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return REASONS[code] ?? (code === "" ? error.message : `${code}: ${error.message}`);
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "does not exist",
  EACCES: "no permission to read it",
  EPERM: "no permission to read it",
  ELOOP: "its symbolic links lead in a circle",
};
