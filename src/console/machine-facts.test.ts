import assert from "node:assert/strict";
import { test } from "node:test";
import { machineFacts } from "./machine-facts.ts";

/** As Linux 6 writes them, shortened. */
const FILES: Readonly<Record<string, string>> = {
  "/var/run/secrets/kubernetes.io/serviceaccount/namespace": "kube-system",
  "/proc/self/cgroup": "0::/kubepods/pod1\n",
  "/sys/fs/cgroup/cpu.stat": "usage_usec 90\nnr_periods 10\nnr_throttled 0\nthrottled_usec 0\n",
  "/sys/fs/cgroup/kubepods/pod1/cpu.stat":
    "usage_usec 9000\nnr_periods 400\nnr_throttled 300\nthrottled_usec 12000000\n",
  "/proc/pressure/cpu":
    "some avg10=80.00 avg60=61.50 avg300=9.00 total=12345\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
  "/proc/self/status": "Name:\tnode\nVmHWM:\t   81920 kB\nVmRSS:\t   61440 kB\n",
  "/proc/net/snmp":
    "Ip: Forwarding DefaultTTL\nIp: 1 64\n" +
    "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors\n" +
    "Udp: 1000 2 30 900 30 4 0\nUdpLite: InDatagrams\nUdpLite: 7\n",
  "/proc/net/snmp6":
    "Ip6InReceives   99\nUdp6InDatagrams                \t500\nUdp6RcvbufErrors               \t5\n",
  "/proc/net/udp":
    "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n" +
    "  544: 00000000:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 18524 2 0000000042 17        \n" +
    "  545: 00000000:1F90 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 18525 2 0000000042 400       \n",
  "/proc/net/udp6":
    "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n" +
    "  54: 00000000000000000000000000000000:0035 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 18526 2 0000000042 3         \n",
  "/proc/sys/net/netfilter/nf_conntrack_count": "100\n",
  "/proc/sys/net/netfilter/nf_conntrack_max": "262144\n",
  "/proc/net/stat/nf_conntrack":
    "entries  searched found new invalid ignore delete delete_list insert insert_failed drop early_drop\n" +
    "00000064  00000000 00000000 00000000 00000001 00000000 00000000 00000000 00000000 00000010 00000001 00000002\n" +
    "00000064  00000000 00000000 00000000 00000001 00000000 00000000 00000000 00000000 0000000f 00000000 00000000\n",
};

test("reads what the kernel counts, of both families and all processors", () => {
  assert.deepEqual(
    machineFacts(new Set([53]), 170, (path) => FILES[path]),
    {
      namespace: "kube-system",
      memory: { resident: 61_440 * 1024, peak: 81_920 * 1024, limit: 170 },
      cpu: { periods: 400, throttledPeriods: 300, throttled: 12_000, pressure: 61.5 },
      udp: { received: 1_500, receiveBufferErrors: 35, sendBufferErrors: 4, socketDrops: 20 },
      conntrack: { entries: 100, most: 262_144, dropped: 1, droppedEarly: 2, notInserted: 31 },
    },
  );
});

test("tells what is not told", () => {
  assert.deepEqual(
    machineFacts(new Set([53]), undefined, () => undefined),
    {
      ...{ namespace: null, memory: { resident: null, peak: null, limit: null } },
      ...{ cpu: null, udp: null, conntrack: null },
    },
  );
});

test("reads the quota of control groups of version 1, in nanoseconds", () => {
  const files: Readonly<Record<string, string>> = {
    "/proc/self/cgroup": "3:cpuset:/\n1:cpu,cpuacct:/pod\n",
    "/sys/fs/cgroup/cpu/pod/cpu.stat": "nr_periods 50\nnr_throttled 5\nthrottled_time 70000000\n",
  };
  assert.deepEqual(machineFacts(new Set(), undefined, (path) => files[path]).cpu, {
    ...{ periods: 50, throttledPeriods: 5, throttled: 70, pressure: null },
  });
});
