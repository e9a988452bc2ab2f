/** The memory limit of this process from its control groups (cgroups(7)), both versions. */
import { readFileSync } from "node:fs";

/** @returns the text of a small system file, `undefined` if it does not exist */
export type ReadSystemFile = (path: string) => string | undefined;

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

/** A container mostly sees its own group as the root, whatever the path is outside: so the root is always read. */
function limitsAlong(mount: string, path: string, file: string, read: ReadSystemFile): number[] {
  const names = path.split("/").filter((name) => name !== "" && name !== "..");
  return Array.from({ length: names.length + 1 }, (_, depth) => {
    const folder = [mount, ...names.slice(0, depth)].join("/");
    const octets = Number.parseInt(read(`${folder}/${file}`) ?? "", 10);
    // "max" is not a number. Version 1 expresses "no limit" with the largest number of pages.
    return octets > 0 && octets < UNLIMITED ? octets : Number.POSITIVE_INFINITY;
  }).filter(Number.isFinite);
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
