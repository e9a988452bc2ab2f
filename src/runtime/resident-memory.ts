/** The resident memory of this process (proc(5)). */
import { readFileSync } from "node:fs";

export interface ResidentMemory {
  /**
   * Bytes of mapped files: the program and its libraries. The system can reclaim them at any time, and read them
   * again.
   */
  readonly files: number;
  /** All other bytes. */
  readonly own: number;
}

/** If the system does not distinguish the two, everything counts as the process's own. */
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
