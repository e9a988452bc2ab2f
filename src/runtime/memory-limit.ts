/** The memory limit of this process from its control groups (cgroups(7)), both versions. */
import { readFileSync } from "node:fs";

/** @returns the text of a small system file, `undefined` if it does not exist */
export type ReadSystemFile = (path: string) => string | undefined;

/**
 * The texts of a file of a controller, for the process's group and its ancestors. A container mostly sees its own group
 * as the root, whatever the path is outside: so the root is always read.
 */
export function filesOfGroups(controller: string, file: string, read: ReadSystemFile): string[] {
  const texts: string[] = [];
  for (const line of (read("/proc/self/cgroup") ?? "").split("\n")) {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) continue;
    if (controllers !== "" && !controllers.split(",").includes(controller)) continue;
    const mount = controllers === "" ? "/sys/fs/cgroup" : `/sys/fs/cgroup/${controller}`;
    for (const folder of foldersAlong(mount, path)) texts.push(read(`${folder}/${file}`) ?? "");
  }
  return texts.filter((text) => text !== "");
}

function foldersAlong(mount: string, path: string): string[] {
  const names = path.split("/").filter((name) => name !== "" && name !== "..");
  return Array.from({ length: names.length + 1 }, (_, depth) => [mount, ...names.slice(0, depth)].join("/"));
}

/** The smallest limit of the group and its ancestors, in bytes; `undefined` without a limit. */
export function readMemoryLimit(read: ReadSystemFile = readSystemFile): number | undefined {
  const limits: number[] = [];
  for (const line of (read("/proc/self/cgroup") ?? "").split("\n")) {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) continue;
    if (controllers === "") limits.push(...limitsAlong("/sys/fs/cgroup", path, "memory.max", read));
    else if (controllers.split(",").includes("memory"))
      limits.push(...limitsAlong("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", read));
  }
  return limits.length === 0 ? undefined : Math.min(...limits);
}

function limitsAlong(mount: string, path: string, file: string, read: ReadSystemFile): number[] {
  return foldersAlong(mount, path)
    .map((folder) => limitIn(read(`${folder}/${file}`) ?? ""))
    .filter(Number.isFinite);
}

function limitIn(text: string): number {
  const octets = Number.parseInt(text, 10);
  // "max" is not a number. Version 1 expresses "no limit" with the largest number of pages.
  return octets > 0 && octets < UNLIMITED ? octets : Number.POSITIVE_INFINITY;
}

/** 4 EiB: above what any machine has. */
const UNLIMITED = 2 ** 62;

function readSystemFile(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}
