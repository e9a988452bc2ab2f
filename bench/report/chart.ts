/** The chart of the results: CPU time a query, one group of bars a workload. */
import type { Results } from "../results.ts";
import { cpuMicroseconds, figureAt, serversOf } from "./summary.ts";

const WIDTH = 860;
const MARGIN = 20;
/** Where the bars begin: names stand before it. */
const BARS_LEFT = 180;
/** Room behind the longest bar for its figure. */
const FIGURE_WIDTH = 130;
const BAR_HEIGHT = 16;
const BAR_GAP = 4;
const TITLE_HEIGHT = 26;
const GROUP_GAP = 18;
const HEADER_HEIGHT = 48;

/** Own servers in two blues, the floor in grey, the others apart from them and from each other. */
const COLOURS: Readonly<Record<string, string>> = {
  portolan: "#1f5fa8",
  "portolan-dgram": "#7fb0e0",
  unbound: "#c9822b",
  dnsmasq: "#5b8f4e",
  floor: "#9a9a9a",
};
const OTHER_COLOURS = ["#8a5fb0", "#b05f7a", "#4f9a9a"];

export function drawChart(results: Results): string {
  const groups = results.workloads.map(({ name, title }) => ({
    title,
    bars: serversOf(results, name).flatMap((server) => {
      const spread = figureAt(results, { workload: name, server }, cpuMicroseconds);
      return spread === undefined ? [] : [{ server, ...spread }];
    }),
  }));
  const most = Math.max(1, ...groups.flatMap(({ bars }) => bars.map(({ max }) => max)));
  const scale = (WIDTH - BARS_LEFT - FIGURE_WIDTH - MARGIN) / most;
  const colourOf = colours(results);

  let y = HEADER_HEIGHT;
  const shapes: string[] = [];
  for (const { title, bars } of groups) {
    shapes.push(text(MARGIN, y + 14, title, 'font-weight="600"'));
    y += TITLE_HEIGHT;
    for (const bar of bars) {
      shapes.push(...drawBar(y, bar, scale, colourOf(bar.server)));
      y += BAR_HEIGHT + BAR_GAP;
    }
    y += GROUP_GAP;
  }
  const heading = text(
    MARGIN,
    28,
    "CPU time of the server a query, microseconds (less is better)",
    'font-size="16"',
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${y}" viewBox="0 0 ${WIDTH} ${y}" role="img">
<title>CPU time a query, by workload and server</title>
<rect width="100%" height="100%" fill="#ffffff"/>
<g font-family="system-ui, sans-serif" font-size="12" fill="#222222">
${[heading, ...shapes].join("\n")}
</g>
</svg>
`;
}

interface Bar {
  readonly server: string;
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** A bar to the median, a line over the spread, and the figure. */
function drawBar(y: number, { server, median, min, max }: Bar, scale: number, colour: string): string[] {
  const middle = y + BAR_HEIGHT / 2;
  const [from, to] = [BARS_LEFT + min * scale, BARS_LEFT + max * scale].map(coordinate);
  const baseline = y + BAR_HEIGHT - 4;
  return [
    text(BARS_LEFT - 8, baseline, server, 'text-anchor="end"'),
    `<rect x="${BARS_LEFT}" y="${y}" width="${coordinate(median * scale)}" height="${BAR_HEIGHT}" fill="${colour}"/>`,
    `<line x1="${from}" y1="${middle}" x2="${to}" y2="${middle}" stroke="#222222"/>`,
    text(BARS_LEFT + max * scale + 8, baseline, median.toFixed(2), ""),
  ];
}

function text(x: number, y: number, content: string, attributes: string): string {
  return `<text x="${coordinate(x)}" y="${y}"${attributes && ` ${attributes}`}>${escapeXml(content)}</text>`;
}

function coordinate(value: number): string {
  return value.toFixed(1);
}

function escapeXml(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function colours({ servers }: Results): (server: string) => string {
  const others = servers.map(({ name }) => name).filter((name) => COLOURS[name] === undefined);
  return (server) =>
    COLOURS[server] ?? OTHER_COLOURS[others.indexOf(server) % OTHER_COLOURS.length] ?? "#555555";
}
