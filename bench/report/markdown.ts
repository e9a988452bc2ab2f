/** The results as a page. */
import type { Spread } from "../numbers/statistics.ts";
import type { Results } from "../results.ts";
import { besideSection } from "./beside.ts";
import { clusterSection } from "./cluster.ts";
import { consoleSection } from "./console.ts";
import { limitedSection, memorySection } from "./memory.ts";
import { soakSection } from "./soak.ts";
import { spreadText } from "./spread-text.ts";
import {
  cpuMicroseconds,
  type Figure,
  figureAt,
  isBeside,
  pairRatio,
  queriesPerSecond,
  samplesAt,
  serversOf,
} from "./summary.ts";
import { judge } from "./targets.ts";
import { zoneSection } from "./zones.ts";

export function writeMarkdown(results: Results): string {
  const { rounds, seconds, warmUpSeconds } = results;
  return `# Results of the last run

Written by \`npm run bench\`; [README.md](README.md) says how this is measured and how to read it.

${machineList(results)}

${rounds} round${rounds === 1 ? "" : "s"}; each measurement ${seconds} s after ${warmUpSeconds} s of warm-up. Figures are medians over the rounds, with
the lowest and highest in brackets. CPU is the server's CPU time an answer under full load; p50, p99 and p99.9 are
microseconds at half of the queries/s that the same server had just answered, queries coming at random times.

![CPU time a query, by workload and server](results.svg)

${[...results.workloads.map((workload) => workloadSection(results, workload)), clusterSection(results.cluster), besideSection(results.beside), memorySection(results.memory), limitedSection(results.limited), soakSection(results.soak), zoneSection(results.zones), consoleSection(results.console)].join("\n")}
## What must be reached

Ratios are taken within each round.

${targetTable(results)}
`;
}

function machineList({ machine, servers, missingServers, startedAt }: Results): string {
  const versions = servers.map(({ name, version, about }) => `  - ${name} ${version}: ${about}`);
  const missing = missingServers.map(
    ({ name, reason }) => `  - without ${name}: ${reason.split("\n", 1)[0]}`,
  );
  return [
    `- ${startedAt.slice(0, 10)}, commit ${machine.commit}`,
    `- ${machine.processor}, ${machine.cores} cores, ${machine.memoryGigabytes} GB, ${machine.kernel}`,
    `- Node ${machine.node}, dnsperf ${machine.dnsperf}; Portolan: ${machine.program}, UDP ${machine.udp}`,
    "- Servers:",
    ...versions,
    ...missing,
  ].join("\n");
}

function workloadSection(
  results: Results,
  { name, title, about }: { readonly name: string; readonly title: string; readonly about: string },
): string {
  const servers = serversOf(results, name);
  const rows = servers.map((server) => serverRow(results, name, server));
  return `## ${title}

\`${name}\`: ${about}.

| server | queries/s | CPU µs/query | core busy | p50 | p99 | p99.9 | lost | RSS MB |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
${rows.join("\n")}
${pairLines(results, name)}${doubtList(results, name)}`;
}

/** Servers that ran side by side. */
function pairLines(results: Results, name: string): string {
  const pairs = results.pairs?.filter(({ workload }) => workload === name) ?? [];
  const others = new Map(
    pairs.map(({ beside, server = "portolan" }) => [`${beside} ${server}`, { workload: beside, server }]),
  );
  return [...others.values()]
    .map((other) => {
      const turns = pairs.reduce((sum, pair) => sum + (isBeside(pair, other) ? pair.ratios.length : 0), 0);
      const ratio = spreadText(pairRatio(results, name, other), 3);
      const what = other.server === "portolan" ? `another one under \`${other.workload}\`` : other.server;
      return `
Portolan beside ${what}, with the load going to them in turns of a second: ${ratio} × its CPU a
query, the median of ${turns} pairs of turns.
`;
    })
    .join("");
}

function serverRow(results: Results, workload: string, server: string): string {
  const place = { workload, server };
  const cell = (figure: Figure, digits: number): string =>
    spreadText(figureAt(results, place, figure), digits);
  const lost = samplesAt(results, place).reduce((sum, sample) => sum + sample.lost + sample.openLoop.lost, 0);
  return `| ${[
    server,
    cell(queriesPerSecond, 0),
    cell(cpuMicroseconds, 2),
    `${figureAt(results, place, (sample) => sample.cpuShare * 100)?.median.toFixed(0)} %`,
    cell((sample) => sample.openLoop.latency?.p50, 0),
    cell((sample) => sample.openLoop.latency?.p99, 0),
    cell((sample) => sample.openLoop.latency?.p999, 0),
    lost === 0 ? "0" : `**${lost}**`,
    cell((sample) => sample.residentMegabytes, 0),
  ].join(" | ")} |`;
}

/** Notes on single rounds. */
function doubtList(results: Results, workload: string): string {
  const lines = results.samples
    .filter((sample) => sample.workload === workload && sample.doubts.length > 0)
    .map(({ server, round, doubts }) => `- ${server}, round ${round}: ${doubts.join("; ")}`);
  for (const { server, round, reason } of results.failures.filter((failure) => failure.workload === workload))
    lines.push(`- ${server}, round ${round}: **failed**: ${reason.split("\n", 1)[0]}`);
  return lines.length === 0 ? "" : `\nDoubtful:\n\n${lines.join("\n")}\n`;
}

function targetTable(results: Results): string {
  const rows = judge(results).map(({ about, must, unit, reached, met }) => {
    const figure =
      reached === undefined ? "not measured" : `${spreadText(reached, digitsOf(unit, reached))} ${unit}`;
    return `| ${about} | ${must} | ${figure} | ${met === undefined ? "-" : met ? "yes" : "**no**"} |`;
  });
  return ["| what | must be | is | met |", "|---|---|---|---|", ...rows].join("\n");
}

/** Ratios, and times of a few milliseconds, need more than whole numbers. */
function digitsOf(unit: string, { median }: Spread): number {
  if (unit === "×") return Math.abs(median - 1) < 0.1 ? 3 : 2;
  return unit === "ms" && median < 20 ? 1 : 0;
}
