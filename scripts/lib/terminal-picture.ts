/** What a command prints in a terminal, as an SVG in the colours that its reader prefers. */

/** Of a character and a line, in the units of the drawing. */
const WIDTH = 8.4;
const LINE = 19;
const MARGIN = 20;

/** @param lines the command with its prompt, then what it printed */
export function terminalPicture(title: string, lines: readonly string[]): string {
  const columns = Math.max(...lines.map((line) => line.length));
  const width = Math.ceil(columns * WIDTH + 2 * MARGIN);
  const height = lines.length * LINE + 2 * MARGIN;
  const rows = lines.map((line, index) => {
    const y = MARGIN + (index + 0.75) * LINE;
    const kind = line.startsWith("$ ") ? ' class="command"' : "";
    return `<text x="${MARGIN}" y="${y}"${kind}>${escapeXml(line)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeXml(title)}">
<style>
rect { fill: #f6f5ef; stroke: #d8d5c8; }
text { fill: #1b1f22; font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; }
.command { fill: #0b5a83; font-weight: bold; }
@media (prefers-color-scheme: dark) {
rect { fill: #13181c; stroke: #39424a; }
text { fill: #e8e9e4; }
.command { fill: #5cb3dd; }
}
</style>
<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8"/>
${rows.join("\n")}
</svg>
`;
}

function escapeXml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
