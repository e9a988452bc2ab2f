/** Losses in the kernel: full UDP buffers, connections that could not be tracked. */
import { countOf } from "../../lib/text/count-of.ts";
import type { MachineView } from "../api-types.ts";
import type { Capture } from "./capture.ts";
import { type NotExamined, percent, type Rule } from "./finding.ts";

/** Minimum share of the queries: at one in a thousand, some client is always waiting for 5 s. */
const LEAST_LOST = 0.001;
const NEARLY_FULL = 0.8;

function notTold(code: "udp-drops" | "conntrack", { last }: Capture): NotExamined {
  return {
    code,
    reason:
      last === undefined
        ? "the capture has no facts about the server"
        : "the server's system does not report it (/proc/net)",
  };
}

export const udpDrops: Rule = (capture) => {
  const udp = capture.last?.machine.udp;
  if (udp === undefined || udp === null) return [notTold("udp-drops", capture)];
  const before = capture.first?.machine.udp ?? undefined;
  const since = (name: keyof NonNullable<MachineView["udp"]>): number => udp[name] - (before?.[name] ?? 0);
  const lost = since("socketDrops");
  const isLosing = lost > 0 && before !== undefined;
  const finished = capture.last?.machine.finished ?? 0;
  const hasLost = udp.socketDrops >= 10 && udp.socketDrops >= LEAST_LOST * finished;
  const unsent = since("sendBufferErrors");
  if (!isLosing && !hasLost && !(before !== undefined && unsent > 0)) return [];
  const found = Math.max(lost, hasLost ? udp.socketDrops : 0);
  return [
    {
      code: "udp-drops",
      title: isLosing
        ? `${countOf(lost, "query was", "queries were")} lost in full UDP buffers while this ran`
        : `${countOf(hasLost ? udp.socketDrops : unsent, "datagram was", "datagrams were")} lost in full UDP buffers since the start`,
      explanation:
        "The server did not read for too long, mostly for lack of CPU; the clients wait 5 seconds and retry.",
      share: undefined,
      figures: { socketDrops: found, sendBufferErrors: udp.sendBufferErrors, received: udp.received },
      causes: [
        {
          who: "the server's own sockets",
          figure: `${countOf(udp.socketDrops, "datagram")} since they were opened (/proc/net/udp)`,
        },
        {
          who: "its network namespace",
          figure: `${udp.receiveBufferErrors} of ${countOf(udp.received, "datagram")} received (${percent(udp.receiveBufferErrors / Math.max(1, udp.received))}), ${udp.sendBufferErrors} to be sent (/proc/net/snmp)`,
        },
      ],
      remedies: [
        {
          text: "give the server more CPU (a larger limit, or none) or one more replica; where CPUs are idle more threads, in the Corefile",
          patch: "multisocket 2",
        },
        {
          text: "and let a burst wait in larger buffers, on the nodes",
          patch: "sysctl -w net.core.rmem_max=4194304",
        },
      ],
    },
  ];
};

export const conntrack: Rule = (capture) => {
  const table = capture.last?.machine.conntrack;
  if (table === undefined || table === null) return [notTold("conntrack", capture)];
  const before = capture.first?.machine.conntrack ?? undefined;
  const { entries, most } = table;
  const filled = entries !== null && most !== null && most > 0 ? entries / most : undefined;
  const since = (name: "dropped" | "droppedEarly" | "notInserted"): number =>
    before === undefined ? 0 : table[name] - before[name];
  // The kernel also counts the loser of a race as dropped (net/netfilter/nf_conntrack_core.c, nf_ct_resolve_clash).
  const lost = Math.max(since("dropped"), since("notInserted")) + since("droppedEarly");
  const isFull = filled !== undefined && filled >= NEARLY_FULL;
  if (!isFull && lost === 0) return [];
  const isRace = since("notInserted") > 0 && !isFull;
  return [
    {
      code: "conntrack",
      title: isFull
        ? `the table of tracked connections is ${percent(filled)} full`
        : `${countOf(lost, "packet was", "packets were")} lost because ${lost === 1 ? "its" : "their"} connection could not be tracked`,
      explanation: isRace
        ? "Two queries from one socket at once (A and AAAA) race for one entry, and the loser is dropped: the cause of delays of 5 seconds."
        : "Each UDP query through a Service takes an entry for 30 seconds or more; without a free one packets are dropped.",
      share: undefined,
      figures: {
        entries: entries ?? 0,
        most: most ?? 0,
        dropped: table.dropped,
        droppedEarly: table.droppedEarly,
        notInserted: table.notInserted,
      },
      causes: [
        {
          who: "nf_conntrack",
          figure: `${entries ?? "?"} of ${most ?? "?"} entries; since the start ${table.dropped} dropped, ${table.droppedEarly} given up early, ${table.notInserted} not inserted`,
        },
      ],
      remedies: [
        {
          text: "run 'portolan node-cache' on the nodes (docs/predecessors/node-cache.md): queries of pods are not tracked then",
        },
        ...(isFull
          ? [
              {
                text: "and make the table larger, on the nodes",
                patch: `sysctl -w net.netfilter.nf_conntrack_max=${2 * (most ?? 131_072)}`,
              },
            ]
          : []),
      ],
    },
  ];
};
