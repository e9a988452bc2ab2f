/** Floods, as a part of the page. */
import type { FloodSample, SoakResults, SoakRun, UnreadSample } from "../soak/soak-results.ts";

/** @returns empty where it was never measured */
export function soakSection(results: SoakResults | undefined): string {
  if (results === undefined) return "";
  const { machine, startedAt, minutes, runs, unread = [] } = results;
  return `## Floods

Measured by itself: ${startedAt.slice(0, 10)}, commit ${machine.commit}, Node ${machine.node}, ${machine.processor}. 500 Services, 5,000 endpoints, \`cache 30\`;
one flood after the other, over and over, for ${minutes} minutes. Peaks are the most that was resident in the first round and in the last one. Meanwhile
a client asks for 100 names, each once a second; with \`cache 30\`, at least one in 30 of these queries is forwarded. Counts of queries and
losses depend on what else the machine does meanwhile, memory does not.

${[...runs.map(runTable), ...unread.map(unreadText)].join("\n\n")}
`;
}

function unreadText({ mebibytes, connections, asked, lost, kills, peakMegabytes }: UnreadSample): string {
  return `${connections.toLocaleString("en-US")} TCP clients that pipeline and read nothing, in a control group of ${mebibytes} MiB: ${peakMegabytes.toFixed(0)} MB at most, ${kills} killed; ${lost} of ${asked} questions of a client that reads were lost.`;
}

function runTable({ threads, restMegabytes, endMegabytes, floods }: SoakRun): string {
  return [
    `\`multisocket ${threads}\`: ${restMegabytes.toFixed(0)} MB before the first flood, ${endMegabytes.toFixed(0)} MB half a minute after the last one.`,
    "",
    "| flood | queries | answered | peak, first round, MB | last round, MB | client's queries | lost | forwarded |",
    "|---|---:|---:|---:|---:|---:|---:|---:|",
    ...floods.map(floodRow),
  ].join("\n");
}

function floodRow({ flood, sent, answered, peakMegabytes, asked, lost, forwarded }: FloodSample): string {
  const number = (value: number): string => value.toLocaleString("en-US");
  return `| ${[
    flood,
    number(sent),
    number(answered),
    peakMegabytes.at(0)?.toFixed(0) ?? "-",
    peakMegabytes.at(-1)?.toFixed(0) ?? "-",
    number(asked),
    lost === 0 ? "0" : `**${number(lost)}**`,
    `${((forwarded / asked) * 100).toFixed(1)} %`,
  ].join(" | ")} |`;
}
