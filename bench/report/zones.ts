/** The large zone's part of the page. */
import { spreadOf } from "../numbers/statistics.ts";
import type { ZoneResults, ZoneSample } from "../zones/zone-results.ts";

/** @returns empty where it was never measured */
export function zoneSection(results: ZoneResults | undefined): string {
  if (results === undefined) return "";
  const { machine, startedAt, records, seconds, servers, missingServers } = results;
  const missing = missingServers.map(({ name, reason }) => `Without ${name}: ${reason}.\n`).join("");
  return `## A large zone

Measured by itself: ${startedAt.slice(0, 10)}, commit ${machine.commit}, Node ${machine.node}, ${machine.processor}. A zone of ${records.toLocaleString("en-US")} records from a file, asked
for ${seconds} s over UDP for names in no order, of which one in ten does not exist.
${missing}
| server | loaded in, s | of that CPU, s | RSS MB | after the load, MB | queries/s | CPU µs/query | lost |
|---|---:|---:|---:|---:|---:|---:|---:|
${servers.map(({ name, version }) => row(`${name} ${version}`, samplesOf(results, name))).join("\n")}
`;
}

/** CPU time an answer, as a ratio to another server's within each round. */
export function zoneRatio(results: ZoneResults | undefined, server: string, other: string) {
  if (results === undefined) return undefined;
  const ratios = samplesOf(results, server).flatMap(({ round, cpuMicroseconds }) => {
    const beside = samplesOf(results, other).find((sample) => sample.round === round);
    return beside === undefined ? [] : cpuMicroseconds / beside.cpuMicroseconds;
  });
  return spreadOf(ratios);
}

export function zoneFigure(
  results: ZoneResults | undefined,
  server: string,
  figure: (sample: ZoneSample) => number,
) {
  return results && spreadOf(samplesOf(results, server).map(figure));
}

function samplesOf({ samples }: ZoneResults, server: string): readonly ZoneSample[] {
  return samples.filter((sample) => sample.server === server);
}

function row(name: string, samples: readonly ZoneSample[]): string {
  const cell = (figure: (sample: ZoneSample) => number, digits: number): string =>
    spreadOf(samples.map(figure))?.median.toFixed(digits) ?? "-";
  return `| ${[
    name,
    cell(({ loadSeconds }) => loadSeconds, 1),
    cell(({ loadCpuSeconds }) => loadCpuSeconds, 1),
    cell(({ restMegabytes }) => restMegabytes, 0),
    cell(({ endMegabytes }) => endMegabytes, 0),
    cell(({ queriesPerSecond }) => queriesPerSecond, 0),
    cell(({ cpuMicroseconds }) => cpuMicroseconds, 2),
    `${samples.reduce((sum, { lost }) => sum + lost, 0)}`,
  ].join(" | ")} |`;
}
