/** Memory of one process from /proc (proc(5)), in megabytes of 10^6 octets. */
import { readFileSync, writeFileSync } from "node:fs";

export interface ProcessMemory {
  readonly resident: number;
  /** The most that was resident since the start or {@link forgetPeak}. */
  readonly peak: number;
}

export function processMemory(pid: number): ProcessMemory {
  return parseMemory(readFileSync(`/proc/${pid}/status`, "latin1"));
}

/** From now on the peak is that of what comes. */
export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

/** @param status the text of /proc/PID/status @throws RangeError for a process that has ended */
export function parseMemory(status: string): ProcessMemory {
  return { resident: megabytes(status, "VmRSS"), peak: megabytes(status, "VmHWM") };
}

function megabytes(status: string, field: string): number {
  const kibibytes = new RegExp(`^${field}:\\s*(\\d+) kB$`, "m").exec(status)?.[1];
  if (kibibytes === undefined) throw new RangeError(`no ${field}: the process has ended`);
  return (Number(kibibytes) * 1024) / 1e6;
}
