import assert from "node:assert/strict";
import { test } from "node:test";
import { machineFacts } from "./machine-facts.ts";

/** As Linux 6 writes them, shortened. */
const FILES: Readonly<Record<string, string>> = {
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
      memory: { resident: 61_440 * 1024, peak: 81_920 * 1024, limit: 170 },
      udp: { received: 1_500, receiveBufferErrors: 35, sendBufferErrors: 4, socketDrops: 20 },
      conntrack: { entries: 100, most: 262_144, dropped: 1, droppedEarly: 2, notInserted: 31 },
    },
  );
});

test("tells what is not told", () => {
  assert.deepEqual(
    machineFacts(new Set([53]), undefined, () => undefined),
    { memory: { resident: null, peak: null, limit: null }, udp: null, conntrack: null },
  );
});
