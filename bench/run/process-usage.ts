/** The resource usage of processes, from /proc (proc(5)). */
import { readdirSync, readFileSync } from "node:fs";

/** Of one process. */
export interface ProcessTimes {
  readonly parent: number;
  /** Clock ticks in user mode and in the kernel, of all its threads. */
  readonly ticks: number;
  /** The same of its children that have ended and were waited for, and of theirs. */
  readonly endedChildrenTicks: number;
}

/**
 * CPU time of a process and all that descend from it, in seconds. dnsmasq has a child for each TCP connection: those that
 * ended count as well.
 */
export function cpuSeconds(pid: number, ticksPerSecond: number): number {
  const processes = processTree(pid);
  const ticks = processes.reduce((sum, times) => sum + times.ticks + times.endedChildrenTicks, 0);
  return ticks / ticksPerSecond;
}

/**
 * The same of the threads that are there now, but for their last moments by the nanosecond: ticks are 10 ms. What a thread used that has ended is not in it.
 */
export function threadSeconds(pid: number): number {
  let nanoseconds = 0;
  for (const id of processIds(pid))
    for (const thread of readdirSync(`/proc/${id}/task`)) {
      const schedstat = readIfThere(`/proc/${id}/task/${thread}/schedstat`);
      if (schedstat !== undefined) nanoseconds += parseRunNanoseconds(schedstat);
    }
  return nanoseconds / 1e9;
}

/** Resident memory of a process and all that descend from it, in megabytes of 10^6 octets. */
export function residentMegabytes(pid: number): number {
  const kibibytes = [...descendants(pid).keys()].reduce((sum, id) => {
    const status = readIfThere(`/proc/${id}/status`);
    return sum + (status === undefined ? 0 : parseResidentKibibytes(status));
  }, 0);
  return (kibibytes * 1024) / 1e6;
}

/** CPU time of everything on this machine since it started, in seconds, also what a hypervisor gave to others. */
export function machineCpuSeconds(ticksPerSecond: number): number {
  return parseBusyTicks(readFileSync("/proc/stat", "latin1")) / ticksPerSecond;
}

/** CPU time of this process, of its own and of children that have ended, in seconds. */
export function ownCpuSeconds(ticksPerSecond: number): number {
  const times = parseProcessTimes(readFileSync("/proc/self/stat", "latin1"));
  return (times.ticks + times.endedChildrenTicks) / ticksPerSecond;
}

/** @param stat the text of /proc/PID/stat; a process may have chosen a name with blanks and brackets */
export function parseProcessTimes(stat: string): ProcessTimes {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // The first of these fields is number 3 of proc(5): ppid is 4, utime 14, stime 15, cutime 16, cstime 17.
  const field = (number: number): number => {
    const value = Number(fields[number - 3]);
    if (!Number.isInteger(value)) throw new RangeError(`field ${number} is no number: ${stat}`);
    return value;
  };
  return { parent: field(4), ticks: field(14) + field(15), endedChildrenTicks: field(16) + field(17) };
}

/** @param schedstat the text of /proc/PID/task/TID/schedstat: time on a processor, time of waiting for one, turns */
export function parseRunNanoseconds(schedstat: string): number {
  return Number(/^(\d+) /.exec(schedstat)?.[1] ?? 0);
}

/** @param status the text of /proc/PID/status; one that is about to end has no memory */
export function parseResidentKibibytes(status: string): number {
  return Number(/^VmRSS:\s*(\d+) kB$/m.exec(status)?.[1] ?? 0);
}

/** @param stat the text of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal */
export function parseBusyTicks(stat: string): number {
  const [, ...fields] = /^cpu +(.*)$/m.exec(stat)?.[0].split(/ +/).map(Number) ?? [];
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields;
  return user + nice + system + irq + softirq + steal;
}

/** A process and all that descend from it. */
export function processIds(pid: number): number[] {
  return [...descendants(pid).keys()];
}

function processTree(pid: number): ProcessTimes[] {
  return [...descendants(pid).values()];
}

/** The process and all that descend from it, by process id. */
function descendants(pid: number): Map<number, ProcessTimes> {
  const all = new Map<number, ProcessTimes>();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const stat = readIfThere(`/proc/${entry}/stat`);
    if (stat !== undefined) all.set(Number(entry), parseProcessTimes(stat));
  }
  const found = new Map<number, ProcessTimes>();
  let generation = [pid];
  while (generation.length > 0) {
    for (const id of generation) {
      const times = all.get(id);
      if (times !== undefined) found.set(id, times);
    }
    generation = [...all].filter(([, { parent }]) => generation.includes(parent)).map(([id]) => id);
  }
  return found;
}

/** A process may end while one looks at it. */
function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}
