import { createRequire } from "node:module";
import type { RE2JS } from "re2js";

/** The longest regular expression of an operator, in octets (docs/spec/coredns-behaviour.md#arguments). */
export const MAX_PATTERN_LENGTH = 10_000;

/** A regular expression that cannot be used. */
export class PatternError extends Error {
  readonly pattern: string;

  constructor(pattern: string, reason: string) {
    super(reason);
    this.name = "PatternError";
    this.pattern = pattern;
  }
}

/**
 * Compiles a regular expression in the syntax of Go's `regexp` package (RE2): linear time on any text, no look-around
 * and no back-references, `(?P<name>...)`, flags such as `(?i)` inside the pattern.
 *
 * @throws PatternError with `regex pattern too long: <n> > 10000`, or Go's message about the syntax (``error parsing
 * regexp: missing closing ): `(` ``).
 */
export function compilePattern(text: string): Pattern {
  const length = Buffer.byteLength(text);
  if (length > MAX_PATTERN_LENGTH) {
    throw new PatternError(text, `regex pattern too long: ${length} > ${MAX_PATTERN_LENGTH}`);
  }
  const { RE2JS, RE2JSException } = re2js();
  try {
    return new Pattern(RE2JS.compile(text));
  } catch (error) {
    if (error instanceof RE2JSException) throw new PatternError(text, error.message);
    throw error;
  }
}

/** Loaded with the first pattern: few Corefiles have one, and the library's character tables are large. */
function re2js(): typeof import("re2js") {
  return createRequire(import.meta.url)("re2js");
}

/** One place where a pattern matched. */
export interface PatternMatch {
  /** Its start in the text. */
  readonly index: number;
  /** The whole match, then each capture group; an unused group is empty, as in Go. */
  readonly groups: readonly string[];
}

/** A compiled regular expression. It matches anywhere in a text unless the expression is anchored. */
export class Pattern {
  readonly #compiled: RE2JS;
  /** The number of each named capture group. */
  readonly groupNumbers: ReadonlyMap<string, number>;

  constructor(compiled: RE2JS) {
    this.#compiled = compiled;
    this.groupNumbers = new Map(Object.entries(compiled.namedGroups()));
  }

  /** The expression as it was written. */
  get source(): string {
    return this.#compiled.pattern();
  }

  /** How many capture groups there are, without the whole match. */
  get groupCount(): number {
    return this.#compiled.groupCount();
  }

  test(text: string): boolean {
    return this.#compiled.test(text);
  }

  /** The first match. */
  match(text: string): PatternMatch | undefined {
    // Finding groups takes far longer than detecting that there is no match, the usual case.
    if (!this.#compiled.test(text)) return undefined;
    const matcher = this.#compiled.matcher(text);
    return matcher.find() ? this.#matchOf(matcher) : undefined;
  }

  /** Replaces every match with the result of `substitute`. Like Go, skips an empty match right after another match. */
  replace(text: string, substitute: (match: PatternMatch) => string): string {
    if (!this.#compiled.test(text)) return text;
    const matcher = this.#compiled.matcher(text);
    let result = "";
    let copied = 0;
    while (matcher.find()) {
      const start = matcher.start();
      const end = matcher.end();
      if (end === copied && start !== 0) continue;
      result += text.slice(copied, start) + substitute(this.#matchOf(matcher));
      copied = end;
    }
    return result + text.slice(copied);
  }

  #matchOf(matcher: ReturnType<RE2JS["matcher"]>): PatternMatch {
    const groups: string[] = [];
    for (let group = 0; group <= this.#compiled.groupCount(); group++)
      groups.push(matcher.group(group) ?? "");
    return { index: matcher.start(), groups };
  }
}
