/** The live cluster's part of the page. */
import type { ClusterResults, ClusterSample } from "../cluster/cluster-results.ts";

/** @returns empty where it was never measured */
export function clusterSection(results: ClusterResults | undefined): string {
  if (results === undefined) return "";
  const { size, machine, startedAt, samples } = results;
  const number = (value: number): string => value.toLocaleString("en-US");
  return `## Live cluster

${number(size.services)} Services, ${number(size.endpoints)} endpoints in slices of ${size.endpointsOfSlice}, ${number(size.namespaces)} namespaces, pods on ${number(size.nodes)} nodes, from an API server over
HTTP/2 and TLS. Measured by itself: ${startedAt.slice(0, 10)}, commit ${machine.commit}, Node ${machine.node}, ${machine.processor}.

${samples.map(({ scenario, about }) => `- \`${scenario}\`: ${about}`).join("\n")}

| | ${samples.map(({ scenario }) => `\`${scenario}\``).join(" | ")} |
|---|${samples.map(() => "---:|").join("")}
${ROWS.map(([title, cell]) => `| ${title} | ${samples.map((sample) => cell(sample) ?? "-").join(" | ")} |`).join("\n")}
${doubtList(samples)}`;
}

function doubtList(samples: readonly ClusterSample[]): string {
  const lines = samples.flatMap(({ scenario, doubts }) => doubts.map((doubt) => `- ${scenario}: ${doubt}`));
  return lines.length === 0 ? "" : `\nDoubtful:\n\n${lines.join("\n")}\n`;
}

type Row = readonly [title: string, cell: (sample: ClusterSample) => string | undefined];

const ROWS: readonly Row[] = [
  ["process start to ready, ms", ({ ready }) => ready.toFixed(0)],
  ["first list asked for to last octet sent, ms", ({ sync }) => sync.toFixed(0)],
  ["lists, MB", ({ listMegabytes }) => listMegabytes.toFixed(0)],
  ["resident at rest, MB", ({ restMegabytes }) => restMegabytes.toFixed(0)],
  ["peak while all is listed again, MB", ({ relist }) => relist.peakMegabytes.toFixed(0)],
  ["peak to rest", ({ relist, restMegabytes }) => `${(relist.peakMegabytes / restMegabytes).toFixed(2)} ×`],
  [
    "without pages of files: at rest, peak, MB",
    ({ restOwnMegabytes: rest, relist: { ownPeakMegabytes: peak } }) => ownMemory(rest, peak),
  ],
  ["resident after that, MB", ({ relist }) => relist.afterMegabytes.toFixed(0)],
  ["410 to all listed again, ms", ({ relist }) => relist.took.toFixed(0)],
  [
    "peak in a reload to rest",
    ({ reload }) => reload && `${(reload.peakMegabytes / reload.beforeMegabytes).toFixed(2)} ×`,
  ],
  [
    "without pages of files: before the reload, peak, MB",
    ({ reload }) => ownMemory(reload?.ownBeforeMegabytes, reload?.ownPeakMegabytes),
  ],
  ["longest wait for an answer in a reload, ms", ({ reload }) => reload?.longestWait.toFixed(1)],
  ["event to changed answer, p50, ms", ({ latency }) => milliseconds(latency?.latency?.p50)],
  ["event to changed answer, p99, ms", ({ latency }) => milliseconds(latency?.latency?.p99)],
  [
    "events watched for; never seen",
    ({ latency }) => latency && `${latency.events}; ${latency.missed === 0 ? "0" : `**${latency.missed}**`}`,
  ],
  ["CPU an event, µs", ({ churn }) => churn?.cpuMicroseconds.toFixed(0)],
  ["core busy", ({ churn }) => churn && `${(churn.cpuShare * 100).toFixed(1)} % at ${churn.rate} events/s`],
];

function ownMemory(before: number | undefined, peak: number | undefined): string | undefined {
  if (before === undefined || peak === undefined) return undefined;
  return `${before.toFixed(0)}, ${peak.toFixed(0)} (${(peak / before).toFixed(2)} ×)`;
}

function milliseconds(microseconds: number | undefined): string | undefined {
  return microseconds === undefined ? undefined : (microseconds / 1000).toFixed(2);
}
