/** The live cluster's part of the page. */
import type {
  ChangeSample,
  ClusterResults,
  ClusterSample,
  QueriesAmidChanges,
  QueryTurn,
} from "../cluster/cluster-results.ts";
import { spreadOf } from "../numbers/statistics.ts";
import { queryRatios } from "./cluster-targets.ts";
import { spreadText } from "./spread-text.ts";

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
${doubtList(samples.flatMap(({ scenario, doubts }) => doubts.map((doubt) => `${scenario}: ${doubt}`)))}${changeTable(results.changes)}${queryTable(results.queriesAmidChanges)}${doubtList(results.doubts ?? [])}`;
}

function doubtList(doubts: readonly string[]): string {
  const lines = doubts.map((doubt) => `- ${doubt}`);
  return lines.length === 0 ? "" : `\nDoubtful:\n\n${lines.join("\n")}\n`;
}

function changeTable(samples: readonly ChangeSample[] | undefined): string {
  if (samples === undefined || samples.length === 0) return "";
  const [first] = samples;
  const rows = (first?.loads ?? []).map(({ rate, together, changes }, at) => {
    const cells = samples.map(({ loads }) => {
      const load = loads[at];
      return load ? `${load.microseconds.toFixed(0)} (${load.allMicroseconds.toFixed(0)})` : "-";
    });
    const way = together === 1 ? "one by one" : `${together} in a frame`;
    return `| ${changes.toLocaleString("en-US")} at ${rate.toLocaleString("en-US")}/s, ${way} | ${cells.join(" | ")} |`;
  });
  return `
Services and slices of 1 to 5 endpoints that are created, patched and deleted, without queries. CPU a change in µs, without what an idle
process takes in the same time (with it):

| changes | ${samples.map(({ name }) => name).join(" | ")} |
|---|${samples.map(() => "---:|").join("")}
| idle, share of a core | ${samples.map(({ idleShare }) => `${(idleShare * 100).toFixed(2)} %`).join(" | ")} |
${rows.join("\n")}
`;
}

function queryTable(queries: QueriesAmidChanges | undefined): string {
  if (queries === undefined) return "";
  const { rate, changeRate, changeMicroseconds, peace, amid } = queries;
  const ratios = queryRatios(queries);
  const of = (values: readonly number[]): string => spreadText(spreadOf(values), 2);
  const cpu = (turns: readonly QueryTurn[]): string => of(turns.map((turn) => turn.cpuMicroseconds));
  return `
Cluster names without cache, ${rate.toLocaleString("en-US")} queries/s, in turns in peace and amid ${changeRate} of these changes a second:

| | |
|---|---:|
| CPU a query in peace, µs | ${cpu(peace)} |
| amid changes, theirs included | ${cpu(amid)} |
| ratio | ${of(ratios.all)} × |
| ratio without what the changes take alone (${changeMicroseconds.toFixed(0)} µs each) | ${of(ratios.withoutChanges)} × |
`;
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
