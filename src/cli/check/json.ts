import type { Span } from "../../corefile/diagnostic.ts";
import type { CheckedFile } from "./checked-file.ts";

/** One object. Lines and columns count from 1; columns and lengths are in UTF-16 code units. */
export function formatAsJson(files: readonly CheckedFile[]): string {
  const diagnostics = files.flatMap((file) =>
    file.diagnostics.map(({ span, ...diagnostic }) => ({
      ...diagnostic,
      file: span.file,
      line: span.line,
      column: span.column,
      length: span.length,
      ...(span.importedAt !== undefined && { importedAt: importSites(span.importedAt) }),
    })),
  );
  const errors = diagnostics.filter(({ severity }) => severity === "error").length;
  const report = {
    files: files.map(({ file }) => file),
    errors,
    warnings: diagnostics.length - errors,
    diagnostics,
  };
  return `${JSON.stringify(report, undefined, 2)}\n`;
}

/** Innermost `import` first. */
function importSites(first: Span): { file: string; line: number; column: number }[] {
  const sites: { file: string; line: number; column: number }[] = [];
  for (let site: Span | undefined = first; site !== undefined; site = site.importedAt) {
    const { file, line, column } = site;
    sites.push({ file, line, column });
  }
  return sites;
}
