/** Expressions and templates inside a Corefile: maps places in them to places in the Corefile. */
import type { DiagnosticSink, Span } from "../../corefile/diagnostic.ts";
import type { Token } from "../../corefile/tokens.ts";
import type { Environment } from "../../expression/evaluation/environment.ts";
import { compileExpression, type Expression } from "../../expression/expression.ts";
import { compileTemplate, placeOf, type Template } from "../../expression/templates/template.ts";
import { type Extent, LanguageError } from "../../expression/values/language-error.ts";

/**
 * An expression from the words of a line, joined by single spaces (src/plugins/view/README.md). Errors are reported
 * at their place.
 * @param what the prefix of the message: "could not compile expression"
 */
export function readExpression<F>(
  tokens: readonly Token[],
  environment: Environment<F>,
  report: DiagnosticSink,
  what: string,
): Expression<F> | undefined {
  const text = tokens.map((token) => token.text).join(" ");
  try {
    return compileExpression(text, environment);
  } catch (error) {
    if (!(error instanceof LanguageError)) throw error;
    const quoted = tokens.find((token) => token.quoted && token.text === token.raw);
    const notes =
      quoted === undefined
        ? []
        : ['a word that begins with " loses its quotes: write texts in expressions in single quotes'];
    report.error("EXPRESSION_SYNTAX", placeInTokens(tokens, error), `${what}: ${error.message}`, {
      suggestion: error.suggestion,
      notes,
    });
    return undefined;
  }
}

/** A template from one word. Errors are reported at their place, with line and column inside the template. */
export function readTemplate(token: Token, report: DiagnosticSink): Template | undefined {
  try {
    return compileTemplate(token.text);
  } catch (error) {
    if (!(error instanceof LanguageError)) throw error;
    const { line, column } = placeOf(token.text, error);
    const message = `could not compile template: line ${line}, column ${column}: ${error.message}`;
    report.error("TEMPLATE_SYNTAX", placeInTokens([token], error), message);
    return undefined;
  }
}

/** The span of a part of the words joined by single spaces. */
export function placeInTokens(tokens: readonly Token[], { start, end }: Extent): Span {
  let offset = 0;
  for (const token of tokens) {
    const behind = offset + token.text.length;
    if (start <= behind) return placeInToken(token, start - offset, Math.min(end, behind) - offset);
    offset = behind + 1;
  }
  const last = tokens.at(-1);
  if (last === undefined) throw new RangeError("a place in an empty text");
  return last.span;
}

function placeInToken(token: Token, start: number, end: number): Span {
  const { span, text, raw, quoted } = token;
  // Text from the environment has no place in the file.
  if (raw !== text) return span;
  const before = text.slice(0, start);
  const lines = before.split("\n");
  // In the file a quotation mark within quotes has a backslash in front, which the word lacks.
  const escapes = (part: string) => (quoted ? part.split('"').length - 1 : 0);
  const lastLine = lines.at(-1) ?? "";
  const column =
    lastLine.length + escapes(lastLine) + (lines.length === 1 ? span.column + (quoted ? 1 : 0) : 1);
  const length = Math.max(1, end - start + escapes(text.slice(start, end)));
  return { ...span, line: span.line + lines.length - 1, column, length };
}
