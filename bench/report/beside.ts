/** The section about changes of the cluster beside other servers. */
import type { BesideResults, BesideSample } from "../cluster/beside-results.ts";
import { type Spread, spreadOf } from "../numbers/statistics.ts";
import { spreadText } from "./spread-text.ts";

type Figure = (sample: BesideSample) => number | undefined;
type Row = readonly [title: string, digits: number, figure: Figure];

/** @returns nothing where it was not measured */
export function besideSection(results: BesideResults | undefined): string {
  if (results === undefined) return "";
  const { startedAt, machine, size, samples, doubts } = results;
  const servers = [...new Set(samples.map(({ server }) => server))];
  const [own = "", ...others] = servers;
  const number = (value: number): string => value.toLocaleString("en-US");
  const rows = rowsOf(samples[0]).map(([title, digits, figure]) => {
    const of = (server: string): BesideSample[] => samples.filter((sample) => sample.server === server);
    const cells = servers.map((server) => spreadText(spreadOf(figures(of(server), figure)), digits));
    const ratios = others.map((other) => ratioText(spreadOf(ratiosOf(of(own), of(other), figure))));
    return `| ${[title, ...cells, ...ratios].join(" | ")} |`;
  });
  const heads = [...servers.map((server) => `\`${server}\``), ...others.map((other) => `to \`${other}\``)];
  return `## Changes of the cluster beside other servers

${number(size.services)} Services, ${number(size.endpoints)} endpoints in slices of ${size.endpointsOfSlice}, ${number(size.namespaces)} namespaces, from the API of the live cluster, without a cache. Servers in turns.
Measured by itself: ${startedAt.slice(0, 10)}, commit ${machine.commit}, Node ${machine.node}, ${machine.processor}. The ratios are those of each round; all figures are medians, with the least and the most.

| | ${heads.join(" | ")} |
|---|${heads.map(() => "---:|").join("")}
${rows.join("\n")}
${doubts.length === 0 ? "" : `\nDoubtful:\n\n${doubts.map((doubt) => `- ${doubt}`).join("\n")}\n`}`;
}

function rowsOf(first: BesideSample | undefined): Row[] {
  const loads = (first?.loads ?? []).map(
    ({ rate, changes }, at): Row => [
      `CPU a change, µs: ${changes.toLocaleString("en-US")} at ${rate.toLocaleString("en-US")}/s`,
      0,
      (sample) => sample.loads[at]?.microseconds,
    ],
  );
  return [
    ["CPU of start and first lists, s", 2, ({ loadSeconds }) => loadSeconds],
    ["idle, % of a core", 2, ({ idleShare }) => idleShare * 100],
    ...loads,
    ["slice changed to answer, p50, ms", 2, ({ sliceChanged }) => milliseconds(sliceChanged.latency?.p50)],
    ["slice changed to answer, p99, ms", 2, ({ sliceChanged }) => milliseconds(sliceChanged.latency?.p99)],
    ["new Service to answer, p50, ms", 2, ({ serviceNew }) => milliseconds(serviceNew.latency?.p50)],
    ["new Service to answer, p99, ms", 2, ({ serviceNew }) => milliseconds(serviceNew.latency?.p99)],
    ["peak memory, MB", 0, ({ peakMegabytes }) => peakMegabytes],
    ["resident at the end, MB", 0, ({ residentMegabytes }) => residentMegabytes],
  ];
}

function figures(samples: readonly BesideSample[], figure: Figure): number[] {
  return samples.map(figure).filter((value) => value !== undefined);
}

/** Of the rounds in which both were measured. */
function ratiosOf(own: readonly BesideSample[], others: readonly BesideSample[], figure: Figure): number[] {
  return own.flatMap((sample) => {
    const value = figure(sample);
    const other = others.find(({ round }) => round === sample.round);
    const beside = other && figure(other);
    return value === undefined || !beside ? [] : [value / beside];
  });
}

function ratioText(spread: Spread | undefined): string {
  return spread === undefined ? "-" : `${spreadText(spread, 2)} ×`;
}

function milliseconds(microseconds: number | undefined): number | undefined {
  return microseconds === undefined ? undefined : microseconds / 1000;
}
