import { type CheckedFile, remedies } from "./checked-file.ts";

/** GitHub Actions workflow commands, one per line: GitHub shows them as annotations of the file. */
export function formatForGitHub(files: readonly CheckedFile[]): string {
  const lines = files.flatMap(({ diagnostics, inDocument }) =>
    diagnostics.map((diagnostic) => {
      const { code, severity, message } = diagnostic;
      const span = inDocument?.(diagnostic.span) ?? diagnostic.span;
      const properties = {
        file: span.file,
        line: span.line,
        col: span.column,
        endColumn: span.column + span.length,
        title: code,
      };
      const listed = Object.entries(properties).map(([name, value]) => `${name}=${property(String(value))}`);
      return `::${severity} ${listed.join(",")}::${data([message, ...remedies(diagnostic)].join("\n"))}\n`;
    }),
  );
  return lines.join("");
}

function data(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function property(text: string): string {
  return data(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
