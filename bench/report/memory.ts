/** Memory and pauses, as a part of the page. */
import type {
  EchoTurns,
  LimitedResults,
  LimitedStep,
  MemoryResults,
  PauseSample,
  RunSample,
  StepSample,
} from "../memory/memory-results.ts";
import { spreadOf } from "../numbers/statistics.ts";
import { spreadText } from "./spread-text.ts";

/** @returns empty where it was never measured */
export function memorySection(results: MemoryResults | undefined): string {
  if (results === undefined) return "";
  const { machine, startedAt, names, runs, seconds } = results;
  return `## Memory and pauses

Measured by itself: ${startedAt.slice(0, 10)}, commit ${machine.commit}, Node ${machine.node}, ${machine.processor}. Each load lasts ${seconds} s. A turn is the longest one
of the event loop, collections included: by the clock, and on the processor, which is less where the threads of V8 or other programs had it
meanwhile. How many took more than 5 ms of the processor is counted. All but one of a thousand turns take less than p99.9. Collections are those of the same thread, and what helpers do in them does not count on the
processor.

${[namesTable(names), ...runs.map(runTable)].filter((table) => table !== "").join("\n\n")}
`;
}

/** @returns empty where it was never measured */
export function limitedSection(results: LimitedResults | undefined): string {
  if (results === undefined) return "";
  const { machine, startedAt, seconds, sample } = results;
  const { mebibytes, restMegabytes, events, steps } = sample;
  return `## In ${mebibytes} MiB

Measured by itself: ${startedAt.slice(0, 10)}, commit ${machine.commit}, Node ${machine.node}, ${machine.processor}. 8,000 Services, 150,000 endpoints. Two servers have
each load of ${seconds} s in turns, ${steps[0]?.ratios.length ?? 0} times each; one of them is in a control group with ${mebibytes} MiB of memory. Its rate is given as a ratio to
that of the other one: the median, with the lowest and highest in brackets; its CPU time a query likewise. At rest it has ${restMegabytes.toFixed(0)} MB. The group had up to ${events.peakMegabytes.toFixed(0)} MB
with pages of files, reached its limit ${events.reclaims.toLocaleString("en-US")} times, and ${events.kills} processes were killed in it.

| load | rate | CPU a query | lost | peak MB | peak without limit, MB |
|---|---:|---:|---:|---:|---:|
${steps.map(limitedRow).join("\n")}
`;
}

function limitedRow({
  step,
  ratios,
  costRatios,
  lost,
  peakMegabytes,
  freePeakMegabytes,
}: LimitedStep): string {
  return row([
    step,
    times(ratios),
    times(costRatios),
    `${lost}`,
    peakMegabytes.toFixed(0),
    freePeakMegabytes.toFixed(0),
  ]);
}

function times(ratios: readonly number[] | undefined): string {
  return ratios === undefined ? "-" : `${spreadText(spreadOf(ratios), 2)} ×`;
}

function namesTable(names: MemoryResults["names"]): string {
  if (names.length === 0) return "";
  const rows = names.map(
    ({ server, names: count, megabytes, laterMegabytes }) =>
      `| ${server} | ${count.toLocaleString("en-US")} | ${megabytes.toFixed(0)} | ${laterMegabytes?.toFixed(0) ?? "-"} |`,
  );
  return [
    "| server | cached names | RSS right after filling, MB | half a minute later, MB |",
    "|---|---:|---:|---:|",
    ...rows,
  ].join("\n");
}

function runTable({ name, about, restMegabytes, peakMegabytes, steps, echo }: RunSample): string {
  return [
    `\`${name}\`: ${about}. At rest ${restMegabytes.toFixed(0)} MB, at most ${peakMegabytes.toFixed(0)} MB.${echo === undefined ? "" : ` ${describeEcho(echo)}`}`,
    "",
    "| load | queries/s | lost | peak MB | after, MB | longest turn, ms | on the processor, ms | of more than 5 ms | p99.9, ms | longest collection, ms | on the processor, ms |",
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ...steps.flatMap(stepRows),
  ].join("\n");
}

function describeEcho({ seconds, long, longest }: EchoTurns): string {
  const turns = long === 0 ? "none" : `${long}`;
  return `Between the loads, the C echo server got queries on the same core for ${seconds.toFixed(0)} s:
${turns} of its turns took more than 5 ms of the processor, and the longest ${longest.toFixed(1)} ms. So much is the kernel's and the machine's own.`;
}

function stepRows(sample: StepSample): string[] {
  const { otherPauses } = sample;
  return otherPauses === undefined
    ? [stepRow(sample)]
    : [stepRow(sample), row(["on other threads", "", "", "", "", ...pauseCells(otherPauses)])];
}

function stepRow({ step, queriesPerSecond, lost, peakMegabytes, endMegabytes, pauses }: StepSample): string {
  return row([
    step,
    queriesPerSecond.toFixed(0),
    `${lost}`,
    peakMegabytes.toFixed(0),
    endMegabytes.toFixed(0),
    ...pauseCells(pauses),
  ]);
}

function pauseCells(pauses: PauseSample | undefined): string[] {
  return [
    pauses?.turn.toFixed(1) ?? "-",
    pauses?.processor.toFixed(1) ?? "-",
    pauses?.long?.toFixed(0) ?? "-",
    pauses?.p999?.toFixed(2) ?? "-",
    pauses?.collection.toFixed(1) ?? "-",
    pauses?.collectionProcessor?.toFixed(1) ?? "-",
  ];
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}
