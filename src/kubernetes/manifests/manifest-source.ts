/**
 * A folder of manifests in place of a cluster: reads it, keeps looking, and puts what it says into a
 * {@link ClusterStore} as a difference.
 *
 * A folder is edited by hand, so faults are the ordinary case, and none of them takes names away:
 *
 * - While a file holds a faulty document (no YAML, no object, an object that cannot be used), what its other documents
 *   say counts, and whatever the file has defined before and does not define now stays as it was.
 * - While a file cannot be read, or is too large, all that it has defined stays.
 * - While a configured path is missing or a folder cannot be listed, all that was found below it stays.
 *
 * A file that has been deleted from a readable folder, and an object deleted from a faultless file, go at once.
 */

import { sep } from "node:path";
import { nodeCrypto } from "../../lib/files/node-modules.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import { isStampSettled } from "../../lib/time/time-stamp.ts";
import type { ReduceOptions } from "../objects/reduce.ts";
import type { ServiceEntryTable } from "../store/mesh/service-entry-table.ts";
import type { ClusterStore } from "../store/store.ts";
import { assembleClusterState, type ClusterStateOptions, objectKey } from "./cluster-state.ts";
import { describeFileError, type FileSystem, machineFileSystem } from "./file-system.ts";
import { type FoundFile, findFiles } from "./find-files.ts";
import { type ManifestContent, type ManifestObject, readDocument } from "./manifest-object.ts";
import { formatManifestProblem, type ManifestProblem } from "./manifest-problem.ts";

export interface ManifestSourceOptions extends ClusterStateOptions {
  readonly store: ClusterStore;
  /** Where to put what is imported from other clusters; that is skipped without it. Its namespaces are for others to fill. */
  readonly imports?: ClusterStore | undefined;
  /** Where to put the ServiceEntries of Istio; they are passed over without it. */
  readonly serviceEntries?: ServiceEntryTable;
  /** Files and folders, absolute. */
  readonly paths: readonly string[];
  readonly clock: Clock;
  readonly reduce: ReduceOptions;
  /** Told of each problem once, when it appears. */
  readonly onProblem?: (problem: ManifestProblem) => void;
  /** Told of a file, or a folder, that had errors and has none any more. */
  readonly onMended?: (path: string) => void;
  /** Default 2000. */
  readonly pollIntervalMs?: number;
  /** Default the machine's. */
  readonly fileSystem?: FileSystem;
}

/** A configured path that is not there, or not readable, when the source starts. */
export class ManifestPathError extends Error {
  override readonly name = "ManifestPathError";
  readonly path: string;
  readonly reason: string;

  constructor(path: string, reason: string) {
    super(`manifests: ${path}: ${reason}`);
    this.path = path;
    this.reason = reason;
  }
}

/** @throws ManifestPathError when one of the paths, which are absolute, cannot be used */
export async function checkManifestPaths(
  paths: readonly string[],
  fileSystem: FileSystem = machineFileSystem,
): Promise<void> {
  const found = await findFiles(paths, fileSystem);
  const unusable = found.problems.find(({ file }) => paths.includes(file));
  if (unusable !== undefined) throw new ManifestPathError(unusable.file, unusable.message);
}

export const DEFAULT_POLL_INTERVAL_MS = 2000;
export const MAX_FILE_SIZE = 64 * 1024 * 1024;

export class ManifestSource {
  readonly #options: ManifestSourceOptions;
  readonly #fileSystem: FileSystem;
  /** In the order in which the files were found, which decides between two objects of one name. */
  #files = new Map<string, ManifestFile>();
  #problems: readonly ManifestProblem[] = [];
  /** Objects that two files define. */
  #conflicts: readonly ManifestProblem[] = [];
  #refreshing: Promise<void> | undefined;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(options: ManifestSourceOptions) {
    this.#options = options;
    this.#fileSystem = options.fileSystem ?? machineFileSystem;
  }

  /**
   * Reads everything once, and from then on looks for changes.
   * @throws ManifestPathError when a configured path cannot be used
   */
  async start(): Promise<void> {
    const { clock, pollIntervalMs } = this.#options;
    await this.requirePaths();
    await this.refresh();
    if (this.#stopped) return;
    this.#timer = clock.every(pollIntervalMs ?? DEFAULT_POLL_INTERVAL_MS, () => void this.refresh());
  }

  /** @throws ManifestPathError when a configured path cannot be used */
  async requirePaths(): Promise<void> {
    await checkManifestPaths(this.#options.paths, this.#fileSystem);
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** What is wrong at present. */
  get problems(): readonly ManifestProblem[] {
    return this.#problems;
  }

  /** Looks at the files now. Resolves when the store holds what they say. Never rejects. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refreshOnce();
    return this.#refreshing;
  }

  async #refreshOnce(): Promise<void> {
    try {
      await this.#refresh();
    } catch (error) {
      const message = `cannot be used: ${messageOf(error)}`;
      const file = this.#options.paths[0] ?? "";
      const others = this.#problems.filter((problem) => problem.message !== message);
      this.#report([...others, { severity: "error", file, line: 1, message }]);
    } finally {
      this.#refreshing = undefined;
    }
  }

  get #isSynced(): boolean {
    const { store, serviceEntries } = this.#options;
    return store.isSynced && serviceEntries?.isSynced !== false;
  }

  async #refresh(): Promise<void> {
    const found = await findFiles(this.#options.paths, this.#fileSystem);
    const files = new Map<string, ManifestFile>();
    let changed = !this.#isSynced;
    for (const each of found.files) {
      const file = this.#files.get(each.path) ?? new ManifestFile(each.path);
      files.set(each.path, file);
      if (file.stamp === each.state.stamp) continue;
      if (await this.#read(file, each)) changed = true;
    }
    for (const [path, file] of this.#files) {
      if (files.has(path)) continue;
      if (found.unknown.some((unknown) => path === unknown || path.startsWith(unknown + sep)))
        files.set(path, file);
      else changed = true;
    }
    if (this.#stopped) return;
    this.#files = files;
    if (changed) this.#apply();
    // What cannot be looked at grows older.
    else if (found.unknown.length === 0) {
      const { store, imports, serviceEntries } = this.#options;
      for (const kind of store.kinds) store.confirm(kind);
      for (const kind of imports?.kinds ?? []) imports?.confirm(kind);
      serviceEntries?.confirm();
    }
    const inFiles = Array.from(files.values()).flatMap(({ problems }) => problems);
    this.#report([...found.problems, ...inFiles, ...this.#conflicts]);
  }

  /** Returns whether what is known of the file changed. */
  async #read(file: ManifestFile, { path, state }: FoundFile): Promise<boolean> {
    if (state.size > MAX_FILE_SIZE) {
      const limit = MAX_FILE_SIZE / (1024 * 1024);
      return file.unreadable(state.stamp, `larger than ${limit} MiB; it is not read`);
    }
    let octets: Uint8Array;
    try {
      octets = await this.#fileSystem.read(path);
    } catch (error) {
      // Without a stamp, so that the next look tries again.
      return file.unreadable(undefined, describeFileError(error));
    }
    // One changed so recently is read again at the next look.
    const stamp = isStampSettled(state.modifiedAt, this.#options.clock) ? state.stamp : undefined;
    const digest = nodeCrypto().hash("sha256", octets);
    if (digest === file.digest) {
      file.stamp = stamp;
      return false;
    }
    const text = decodeUtf8(octets);
    if (text === undefined) return file.unreadable(stamp, "not UTF-8 text");
    const content: ManifestContent = { objects: [], namespaces: new Set(), problems: [] };
    // With it comes all of YAML: 0.4 MB that neither a live cluster nor another thread needs.
    const { parseDocuments } = await import("./parse-documents.ts");
    for (const document of parseDocuments(text)) {
      readDocument(document, path, this.#options.reduce, content);
      // Parsing YAML is slow; queries that arrived meanwhile come first.
      await eventLoopTurn();
    }
    file.update(stamp, digest, content);
    return true;
  }

  #apply(): void {
    const { store, imports } = this.#options;
    const objects: ManifestObject[] = [];
    const namespaces = new Set<string>();
    for (const file of this.#files.values()) {
      for (const object of file.objects.values()) objects.push(object);
      for (const namespace of file.namespaces) namespaces.add(namespace);
    }
    const state = assembleClusterState(objects, namespaces, this.#options);
    store.replaceAll("namespaces", state.namespaces);
    store.replaceAll("services", state.services);
    if (store.kinds.has("endpoints")) store.replaceAll("endpoints", state.endpoints);
    if (store.kinds.has("pods")) store.replaceAll("pods", state.pods);
    imports?.replaceAll("services", state.imports.services);
    imports?.replaceAll("endpoints", state.imports.endpoints);
    this.#options.serviceEntries?.replaceAll(state.serviceEntries);
    this.#conflicts = state.problems;
  }

  #report(problems: readonly ManifestProblem[]): void {
    const known = new Set(this.#problems.map(formatManifestProblem));
    const before = withErrors(this.#problems);
    const now = withErrors(problems);
    this.#problems = problems;
    for (const path of before) if (!now.has(path)) this.#options.onMended?.(path);
    for (const problem of problems)
      if (!known.has(formatManifestProblem(problem))) this.#options.onProblem?.(problem);
  }
}

/** What is known of one file. */
class ManifestFile {
  readonly path: string;
  /** Of the state that was read last; undefined if it is to be read again. */
  stamp: string | undefined;
  /** Of the content that was used last. */
  digest: string | undefined;
  objects: ReadonlyMap<string, ManifestObject> = new Map();
  namespaces: ReadonlySet<string> = new Set();
  problems: readonly ManifestProblem[] = [];

  constructor(path: string) {
    this.path = path;
  }

  update(stamp: string | undefined, digest: string, content: ManifestContent): void {
    const faulty = content.problems.some(({ severity }) => severity === "error");
    const objects = new Map(faulty ? this.objects : []);
    const problems = [...content.problems];
    const defined = new Set<string>();
    for (const object of content.objects) {
      const key = objectKey(object);
      if (defined.has(key)) {
        const { file, line } = object;
        problems.push({
          severity: "warning",
          file,
          line,
          message: `${key} is defined above already; this one counts`,
        });
      }
      defined.add(key);
      objects.set(key, object);
    }
    this.stamp = stamp;
    this.digest = digest;
    this.objects = objects;
    this.namespaces = faulty ? new Set([...this.namespaces, ...content.namespaces]) : content.namespaces;
    this.problems = problems;
  }

  unreadable(stamp: string | undefined, message: string): boolean {
    this.stamp = stamp;
    this.digest = undefined;
    this.problems = [{ severity: "error", file: this.path, line: 1, message }];
    return true;
  }
}

function withErrors(problems: readonly ManifestProblem[]): Set<string> {
  return new Set(problems.filter(({ severity }) => severity === "error").map(({ file }) => file));
}

function decodeUtf8(octets: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(octets);
  } catch {
    return undefined;
  }
}

function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
