/** Memory and pauses, as a part of the page. */
import type { MemoryResults, RunSample, StepSample } from "../memory/memory-results.ts";

/** @returns empty where it was never measured */
export function memorySection(results: MemoryResults | undefined): string {
  if (results === undefined) return "";
  const { machine, startedAt, names, runs, seconds } = results;
  return `## Memory and pauses

Measured by itself: ${startedAt.slice(0, 10)}, commit ${machine.commit}, Node ${machine.node}, ${machine.processor}. Each load lasts ${seconds} s. A turn is the longest one
of the event loop, collections included: by the clock, and on the processor, which is less where the threads of V8 or other programs had it
meanwhile.

${[namesTable(names), ...runs.map(runTable)].filter((table) => table !== "").join("\n\n")}
`;
}

function namesTable(names: MemoryResults["names"]): string {
  if (names.length === 0) return "";
  const rows = names.map(
    ({ server, names: count, megabytes }) =>
      `| ${server} | ${count.toLocaleString("en-US")} | ${megabytes.toFixed(0)} |`,
  );
  return ["| server | cached names | RSS MB |", "|---|---:|---:|", ...rows].join("\n");
}

function runTable({ name, about, restMegabytes, peakMegabytes, steps }: RunSample): string {
  return [
    `\`${name}\`: ${about}. At rest ${restMegabytes.toFixed(0)} MB, at most ${peakMegabytes.toFixed(0)} MB.`,
    "",
    "| load | queries/s | lost | peak MB | after, MB | longest turn, ms | on the processor, ms | longest collection, ms |",
    "|---|---:|---:|---:|---:|---:|---:|---:|",
    ...steps.map(stepRow),
  ].join("\n");
}

function stepRow(sample: StepSample): string {
  const { step, queriesPerSecond, lost, peakMegabytes, endMegabytes, pauses } = sample;
  return `| ${[
    step,
    queriesPerSecond.toFixed(0),
    `${lost}`,
    peakMegabytes.toFixed(0),
    endMegabytes.toFixed(0),
    pauses?.turn.toFixed(1) ?? "-",
    pauses?.processor.toFixed(1) ?? "-",
    pauses?.collection.toFixed(1) ?? "-",
  ].join(" | ")} |`;
}
