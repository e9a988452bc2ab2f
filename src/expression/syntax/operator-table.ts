/** The operators of the expression language, and their precedence. */

export interface Operator {
  readonly precedence: number;
  readonly isRight?: boolean;
}

export const BINARY: Readonly<Record<string, Operator>> = {
  "|": { precedence: 0 },
  or: { precedence: 10 },
  "||": { precedence: 10 },
  and: { precedence: 15 },
  "&&": { precedence: 15 },
  "==": { precedence: 20 },
  "!=": { precedence: 20 },
  "<": { precedence: 20 },
  ">": { precedence: 20 },
  "<=": { precedence: 20 },
  ">=": { precedence: 20 },
  in: { precedence: 20 },
  matches: { precedence: 20 },
  contains: { precedence: 20 },
  startsWith: { precedence: 20 },
  endsWith: { precedence: 20 },
  "..": { precedence: 25 },
  "+": { precedence: 30 },
  "-": { precedence: 30 },
  "*": { precedence: 60 },
  "/": { precedence: 60 },
  "%": { precedence: 60 },
  "**": { precedence: 100, isRight: true },
  "^": { precedence: 100, isRight: true },
  "??": { precedence: 500 },
};

export const UNARY: Readonly<Record<string, number>> = { not: 50, "!": 50, "-": 90, "+": 90 };

/** May be preceded by `not`. */
export const NEGATABLE: ReadonlySet<string> = new Set([
  "in",
  "matches",
  "contains",
  "startsWith",
  "endsWith",
]);

export const ORDERING: ReadonlySet<string> = new Set(["<", ">", "<=", ">="]);

/** One form of each operator, so that other modules only need to know that. */
export const CANONICAL: Readonly<Record<string, string>> = { "||": "or", "&&": "and", "^": "**", "!": "not" };
