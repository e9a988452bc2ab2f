/** What of this process is in memory (proc(5)). */
import { readFileSync } from "node:fs";

export interface ResidentMemory {
  /** Octets of mapped files: the program and its libraries. The system can take them away at any time, and read them again. */
  readonly files: number;
  /** All other octets. */
  readonly own: number;
}

/** Where the system does not tell the two apart, all is the process's own. */
export function residentMemory(): ResidentMemory {
  const all = process.memoryUsage.rss();
  const files =
    process.platform === "linux" ? residentOfFiles(readFileSync("/proc/self/status", "latin1")) : 0;
  return { files, own: Math.max(0, all - files) };
}

/** @param status the text of /proc/PID/status */
function residentOfFiles(status: string): number {
  return Number(/^RssFile:\s*(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
}
