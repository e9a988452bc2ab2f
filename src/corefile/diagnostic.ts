/**
 * The faults of a Corefile and their places. The parser, the server keys and every plugin's configuration report through one {@link
 * DiagnosticSink}, so that one run reports all faults and `portolan check` prints them in one form.
 */

/** A place in a file. A span of several lines starts here and continues for `length` code units. */
export interface Span {
  /** Path as it was opened, or the given name of text from another source. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 code units. */
  readonly column: number;
  /** In UTF-16 code units. */
  readonly length: number;
  /** The `import` that inserted this text; absent for text that was not imported. */
  readonly importedAt?: Span;
}

export type Severity = "error" | "warning";

export interface Diagnostic {
  /** Stable name in UPPER_SNAKE; those of this folder are listed in `diagnostic-codes.ts`. */
  readonly code: string;
  readonly severity: Severity;
  /** One line. Contains CoreDNS's message where CoreDNS has one. */
  readonly message: string;
  readonly span: Span;
  /** The correct text for this place. */
  readonly expected?: string;
  /** The known word most similar to the one found. */
  readonly suggestion?: string;
  readonly notes?: readonly string[];
}

export interface DiagnosticDetails {
  readonly expected?: string | undefined;
  readonly suggestion?: string | undefined;
  readonly notes?: readonly string[] | undefined;
}

/** Collects diagnostics in the order in which they are found. */
export class DiagnosticSink {
  readonly #diagnostics: Diagnostic[] = [];
  readonly #limit: number;
  #errors = 0;
  #warnings = 0;

  /** @param limit of errors, and of warnings; diagnostics beyond it are only counted. */
  constructor(limit = 1_000) {
    this.#limit = limit;
  }

  error(code: string, span: Span, message: string, details?: DiagnosticDetails): void {
    if (++this.#errors <= this.#limit) this.#add("error", code, span, message, details);
  }

  warning(code: string, span: Span, message: string, details?: DiagnosticDetails): void {
    if (++this.#warnings <= this.#limit) this.#add("warning", code, span, message, details);
  }

  /** Adds the diagnostics of another sink or of the parser. */
  addAll(diagnostics: readonly Diagnostic[]): void {
    for (const { severity, code, span, message, ...details } of diagnostics)
      this[severity](code, span, message, details);
  }

  get diagnostics(): readonly Diagnostic[] {
    return this.#diagnostics;
  }

  get hasErrors(): boolean {
    return this.#errors > 0;
  }

  get errorCount(): number {
    return this.#errors;
  }

  /** The number of diagnostics beyond the limits. */
  get dropped(): number {
    return this.#errors + this.#warnings - this.#diagnostics.length;
  }

  #add(severity: Severity, code: string, span: Span, message: string, details: DiagnosticDetails = {}): void {
    this.#diagnostics.push({
      code,
      severity,
      message,
      span,
      ...(details.expected !== undefined && { expected: details.expected }),
      ...(details.suggestion !== undefined && { suggestion: details.suggestion }),
      ...(details.notes !== undefined && details.notes.length > 0 && { notes: details.notes }),
    });
  }
}

/**
 * Prints a diagnostic for people, without colours and without final line break:
 *
 *     Corefile:4:5: error: Unknown directive 'forwrad'
 *       4 |     forwrad . 8.8.8.8
 *         |     ^^^^^^^
 *       help: did you mean 'forward'?
 *
 * @param sourceText the whole text of `diagnostic.span.file`; without it the source line is left out.
 */
export function formatDiagnostic(diagnostic: Diagnostic, sourceText?: string): string {
  const { span, severity, message, expected, suggestion, notes = [] } = diagnostic;
  const lines = [`${formatPlace(span)}: ${severity}: ${visible(message)}`];
  if (sourceText !== undefined) lines.push(...excerpt(span, sourceText));
  if (expected !== undefined) lines.push(`  help: expected ${visible(expected)}`);
  if (suggestion !== undefined) lines.push(`  help: did you mean ${quoteText(suggestion)}?`);
  for (const note of notes) lines.push(`  note: ${visible(note)}`);
  for (let site = span.importedAt; site !== undefined; site = site.importedAt) {
    lines.push(`  note: imported at ${formatPlace(site)}`);
  }
  return lines.join("\n");
}

/** `file:line:column`. */
export function formatPlace(span: Span): string {
  return `${visible(span.file)}:${span.line}:${span.column}`;
}

/** Quotes user text for a message: cut to a readable length, without terminal control characters. */
export function quoteText(text: string): string {
  return `'${visible(text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}...` : text)}'`;
}

const MAX_QUOTED = 100;
const MAX_EXCERPT = 160;

function excerpt(span: Span, sourceText: string): string[] {
  const source = lineOf(sourceText, span.line);
  if (source === undefined) return [];
  // A very long line is cut to a window that starts a little before the fault.
  const start = span.column - 1 <= MAX_EXCERPT / 2 ? 0 : span.column - 1 - MAX_EXCERPT / 4;
  const end = Math.min(source.length, start + MAX_EXCERPT);
  const faultStart = Math.min(span.column - 1, end);
  const faultEnd = Math.min(faultStart + span.length, end);

  const gutter = String(span.line);
  const before = visible(source.slice(start, faultStart));
  const fault = visible(source.slice(faultStart, faultEnd));
  const after = visible(source.slice(faultEnd, end));
  return [
    `  ${gutter} | ${before}${fault}${after}`,
    `  ${" ".repeat(gutter.length)} | ${" ".repeat(before.length)}${"^".repeat(Math.max(1, fault.length))}`,
  ];
}

function lineOf(text: string, line: number): string | undefined {
  let start = text.startsWith("\ufeff") ? 1 : 0;
  for (let current = 1; current < line; current++) {
    const newline = text.indexOf("\n", start);
    if (newline === -1) return undefined;
    start = newline + 1;
  }
  const end = text.indexOf("\n", start);
  return text.slice(start, end === -1 ? text.length : end).replace(/\r$/, "");
}

/** Replaces tabs by spaces; control, direction and other invisible characters by their number. */
function visible(text: string): string {
  return text
    .replaceAll("\t", "    ")
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
