/** How much memory this process may have: what its control groups say (cgroups(7)), in both of their versions. */
import { readFileSync } from "node:fs";

/** @returns the text of a small file of the system, `undefined` where there is none */
export type ReadSystemFile = (path: string) => string | undefined;

/** The least limit of the group and of those that it stands in, in octets; `undefined` where nobody set one. */
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

/** A container mostly sees its own group as the root, whatever the path is outside: the root is looked at in any case. */
function limitsAlong(mount: string, path: string, file: string, read: ReadSystemFile): number[] {
  const names = path.split("/").filter((name) => name !== "" && name !== "..");
  return Array.from({ length: names.length + 1 }, (_, depth) => {
    const folder = [mount, ...names.slice(0, depth)].join("/");
    const octets = Number.parseInt(read(`${folder}/${file}`) ?? "", 10);
    // "max" is no number. Version 1 says "none" with the largest number of pages.
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
