/** Counters of the kernel for the process's network namespace, and the memory of the process, from /proc. */
import { readFileSync } from "node:fs";
import { filesOfGroups, type ReadSystemFile } from "../runtime/memory-limit.ts";
import type { MachineView } from "./api-types.ts";

/** Kubernetes puts it into every pod that has a service account. */
const NAMESPACE_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/**
 * @param ports of the server's UDP listeners
 * @param limit of the process's memory in bytes
 */
export function machineFacts(
  ports: ReadonlySet<number>,
  limit: number | undefined,
  read: ReadSystemFile = readSystemFile,
): Omit<MachineView, "finished"> {
  const status = read("/proc/self/status") ?? "";
  return {
    namespace: read(NAMESPACE_FILE)?.trim() || null,
    memory: {
      resident: kibibytes(status, "VmRSS"),
      peak: kibibytes(status, "VmHWM"),
      limit: limit ?? null,
    },
    cpu: cpuFacts(read),
    udp: udpFacts(ports, read),
    conntrack: conntrackFacts(read),
  };
}

/** Quotas of the process's control groups (cgroups(7)) of both versions: the group that was throttled longest counts. */
function cpuFacts(read: ReadSystemFile): MachineView["cpu"] {
  const pressure = /^some .*\bavg60=([\d.]+)/m.exec(read("/proc/pressure/cpu") ?? "")?.[1];
  let found: NonNullable<MachineView["cpu"]> | undefined;
  for (const text of filesOfGroups("cpu", "cpu.stat", read)) {
    const number = (name: string): number => Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
    const facts = {
      periods: number("nr_periods"),
      throttledPeriods: number("nr_throttled"),
      // Version 1 counts nanoseconds, version 2 microseconds.
      throttled: number("throttled_time") / 1e6 || number("throttled_usec") / 1e3,
      pressure: pressure === undefined ? null : Number(pressure),
    };
    if (found === undefined || facts.throttled > found.throttled) found = facts;
  }
  if (found !== undefined || pressure === undefined) return found ?? null;
  return { periods: 0, throttledPeriods: 0, throttled: 0, pressure: Number(pressure) };
}

function udpFacts(ports: ReadonlySet<number>, read: ReadSystemFile): MachineView["udp"] {
  const snmp = counters(read("/proc/net/snmp") ?? "", "Udp");
  if (snmp === undefined) return null;
  const snmp6 = read("/proc/net/snmp6") ?? "";
  const both = (name: string): number =>
    (snmp.get(name) ?? 0) + Number(new RegExp(`^Udp6${name}\\s+(\\d+)$`, "m").exec(snmp6)?.[1] ?? 0);
  return {
    received: both("InDatagrams"),
    receiveBufferErrors: both("RcvbufErrors"),
    sendBufferErrors: both("SndbufErrors"),
    socketDrops: socketDrops(ports, read),
  };
}

/** Datagrams dropped by full buffers of the server's own sockets (proc(5), /proc/net/udp: the last column). */
function socketDrops(ports: ReadonlySet<number>, read: ReadSystemFile): number {
  let sum = 0;
  for (const line of `${read("/proc/net/udp") ?? ""}\n${read("/proc/net/udp6") ?? ""}`.split("\n")) {
    const [, port, drops] = /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) .*\s(\d+)\s*$/.exec(line) ?? [];
    if (port !== undefined && ports.has(Number.parseInt(port, 16))) sum += Number(drops);
  }
  return sum;
}

/** Of the network namespace: that of the pod, or of the node for a pod on its network. */
function conntrackFacts(read: ReadSystemFile): MachineView["conntrack"] {
  const number = (path: string): number | undefined => {
    const text = read(path);
    return text === undefined ? undefined : Number(text.trim());
  };
  const count = number("/proc/sys/net/netfilter/nf_conntrack_count");
  const most = number("/proc/sys/net/netfilter/nf_conntrack_max");
  const text = read("/proc/net/stat/nf_conntrack");
  if (text === undefined && (count === undefined || most === undefined)) return null;
  // One line per processor, numbers in hex, names in the first line.
  const [head = "", ...rows] = (text ?? "").split("\n");
  const names = head.trim().split(/\s+/);
  const total = (name: string): number => {
    const column = names.indexOf(name);
    if (column < 0) return 0;
    return rows.reduce(
      (sum, row) => sum + (Number.parseInt(row.trim().split(/\s+/)[column] ?? "", 16) || 0),
      0,
    );
  };
  return {
    entries: count ?? null,
    most: most ?? null,
    dropped: total("drop"),
    droppedEarly: total("early_drop"),
    notInserted: total("insert_failed"),
  };
}

/** A table of two lines, names and numbers, as in /proc/net/snmp. */
function counters(text: string, protocol: string): Map<string, number> | undefined {
  const [names, numbers] = text.split("\n").filter((line) => line.startsWith(`${protocol}: `));
  if (names === undefined || numbers === undefined) return undefined;
  const values = numbers.split(" ");
  return new Map(names.split(" ").map((name, at) => [name, Number(values[at]) || 0]));
}

function kibibytes(status: string, name: string): number | null {
  const found = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1];
  return found === undefined ? null : Number(found) * 1024;
}

function readSystemFile(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}
