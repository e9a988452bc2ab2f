/** The console's part of the page. */
import type {
  ConsoleResults,
  PageLoad,
  PageLoads,
  PageSample,
  StreamSample,
} from "../console/console-results.ts";
import { spreadOf } from "../numbers/statistics.ts";

/** @returns empty where it was never measured */
export function consoleSection(results: ConsoleResults | undefined): string {
  if (results === undefined) return "";
  const { machine, startedAt, streams, page } = results;
  const seconds = streams[0]?.seconds.toFixed(0) ?? "0";
  return `## The console

Measured by itself: ${startedAt.slice(0, 10)}, commit ${machine.commit}, Node ${machine.node}, ${machine.processor}.

Its stream under as many queries as the server answers, for ${seconds} s, while a client of the events and \`portolan tail\` read it and a third
client reads nothing. Looked at and missed together are what has finished.

| threads | queries/s | RSS MB before | in the middle | after | finished | looked at | missed | rows to the client | left out | rows to tail | left out | rows dropped |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
${streams.map(streamRow).join("\n")}
${page === undefined ? "" : `\n${pageTable(page)}`}`;
}

function streamRow(sample: StreamSample): string {
  const { threads, queriesPerSecond, megabytes, finished, told, missed, followed, tailed, droppedRows } =
    sample;
  const at = (share: number): string =>
    megabytes[Math.round(share * (megabytes.length - 1))]?.toFixed(1) ?? "-";
  const counts = [
    finished,
    told,
    missed,
    followed.rows,
    followed.leftOut,
    tailed.rows,
    tailed.leftOut,
    droppedRows,
  ];
  const figures = [threads, Math.round(queriesPerSecond)].map(whole);
  return `| ${[...figures, at(0), at(0.5), at(1), ...counts.map(whole)].join(" | ")} |`;
}

function pageTable({ chromium, page, empty, fromOtherSite }: PageSample): string {
  const other = fromOtherSite && rows("from a tab with another page", fromOtherSite);
  return `Its page in Chromium ${chromium} over the loopback interface, ${page.length} times beside an empty page, each in a profile without
a cache. Milliseconds from the start of the navigation. The goal is for a tab that shows a page of another site, as a person's tab does. In an
empty tab (\`about:blank\`) Chromium keeps the process that it has for an empty page, and takes another one for the console, because of
\`cross-origin-opener-policy\`: the time for it counts there for the console only.

| | event \`load\` | first frame with figures | follows the server |
|---|---:|---:|---:|
${[...(other ?? []), ...rows("from an empty tab", { page, empty })].join("\n")}
`;
}

function rows(from: string, { page, empty }: PageLoads): readonly string[] {
  const row = (name: string, loads: readonly PageLoad[]): string =>
    `| ${name}, ${from} | ${cell(loads.map(({ loaded }) => loaded))} | ${cell(loads.map(({ shown }) => shown))} | ${cell(loads.flatMap(({ live }) => live ?? []))} |`;
  return [row("the console", page), row("an empty page", empty)];
}

function cell(values: readonly number[]): string {
  const spread = spreadOf(values);
  if (spread === undefined) return "-";
  return `${spread.median.toFixed(0)} (${spread.min.toFixed(0)}–${spread.max.toFixed(0)})`;
}

function whole(value: number): string {
  return value.toLocaleString("en-US");
}
