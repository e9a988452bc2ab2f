import type { Diagnostic, Span } from "../../corefile/diagnostic.ts";
import { corefileDiagnosticCodes } from "../../corefile/diagnostic-codes.ts";
import { version } from "../../lib/text/version.ts";
import { lintRules } from "../../lint/lint.ts";
import { type CheckedFile, remedies } from "./checked-file.ts";

/** SARIF 2.1.0, one run. */
export function formatAsSarif(files: readonly CheckedFile[]): string {
  const diagnostics = files.flatMap(({ diagnostics, inDocument }) =>
    diagnostics.map((each) => ({ ...each, span: inDocument?.(each.span) ?? each.span })),
  );
  const codes = [...new Set(diagnostics.map(({ code }) => code))].sort();
  const log = {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [
      {
        tool: { driver: { name: "portolan check", version, rules: codes.map(describeRule) } },
        columnKind: "utf16CodeUnits",
        results: diagnostics.map((diagnostic) => describeResult(diagnostic, codes)),
      },
    ],
  };
  return `${JSON.stringify(log, undefined, 2)}\n`;
}

const DESCRIPTIONS: ReadonlyMap<string, string> = new Map([
  ...Object.entries(corefileDiagnosticCodes),
  ...lintRules.map(({ code, about }) => [code, about] as const),
]);

function describeRule(code: string): object {
  const text = DESCRIPTIONS.get(code);
  return { id: code, ...(text !== undefined && { shortDescription: { text } }) };
}

function describeResult(diagnostic: Diagnostic, codes: readonly string[]): object {
  const { code, severity, span, message } = diagnostic;
  const sites: object[] = [];
  for (let site = span.importedAt; site !== undefined; site = site.importedAt)
    sites.push({ ...location(site), message: { text: "imported here" } });
  return {
    ruleId: code,
    ruleIndex: codes.indexOf(code),
    level: severity,
    message: { text: [message, ...remedies(diagnostic)].join("\n") },
    locations: [location(span)],
    ...(sites.length > 0 && { relatedLocations: sites }),
  };
}

function location({ file, line, column, length }: Span): object {
  return {
    physicalLocation: {
      artifactLocation: { uri: file.split(/[\\/]/).map(encodeURIComponent).join("/") },
      region: { startLine: line, startColumn: column, endColumn: column + length },
    },
  };
}
