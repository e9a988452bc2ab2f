import type { Token } from "./source-tokens.ts";

/** Another module that a source file names. */
export interface ModuleReference {
  /** As written: "./name.ts", "node:fs". */
  readonly specifier: string;
  readonly line: number;
  /** The words between `import` and `from`, such as "type", "exit" and "as". */
  readonly clause: readonly string[];
}

/**
 * The modules that a file imports or re-exports, types included: declarations, `import()` with a literal, also as
 * a type, and `new URL("...", import.meta.url)`, which is how a worker's file is named.
 */
export function moduleReferences(tokens: readonly Token[]): ModuleReference[] {
  return tokens.flatMap((token, at) => {
    if (token.kind !== "word" || tokens[at - 1]?.text === ".") return [];
    if (token.text === "import") return importAt(tokens, at);
    if (token.text === "export") return reExportAt(tokens, at);
    if (token.text === "URL") return urlAt(tokens, at);
    return [];
  });
}

/** The lines of default exports: `export default`, and `default` as the name of something exported. */
export function defaultExports(tokens: readonly Token[]): number[] {
  return tokens.flatMap((token, at) => {
    if (token.kind !== "word" || token.text !== "export" || tokens[at - 1]?.text === ".") return [];
    if (tokens[at + 1]?.text === "default") return [token.line];
    const clause = exportClause(tokens, at);
    const exported = clause.filter((word, index) => {
      return word.text === "default" && clause[index + 1]?.text !== "as";
    });
    return exported.map(({ line }) => line);
  });
}

function importAt(tokens: readonly Token[], at: number): ModuleReference[] {
  const next = tokens[at + 1];
  if (next?.kind === "string") return [reference(next)];
  if (next?.text === "(") return literal(tokens[at + 2]);
  if (next === undefined || next.text === "." || next.text === ":") return [];
  return fromClause(tokens, at + 1);
}

function reExportAt(tokens: readonly Token[], at: number): ModuleReference[] {
  const start = tokens[at + 1]?.text === "type" ? at + 2 : at + 1;
  const first = tokens[start]?.text;
  if (first === "*") return fromClause(tokens, start);
  if (first !== "{") return [];
  const end = start + exportClause(tokens, at).length + 1;
  return tokens[end + 1]?.text === "from" ? literal(tokens[end + 2]) : [];
}

/** What stands between the braces of `export { ... }` or `export type { ... }`. */
function exportClause(tokens: readonly Token[], at: number): readonly Token[] {
  const open = tokens[at + 1]?.text === "type" ? at + 2 : at + 1;
  if (tokens[open]?.text !== "{") return [];
  const close = tokens.findIndex((token, index) => index > open && token.text === "}");
  return close < 0 ? [] : tokens.slice(open + 1, close);
}

/** `... from "specifier"`, where nothing but words, commas, braces and stars stands before. */
function fromClause(tokens: readonly Token[], start: number): ModuleReference[] {
  const clause: string[] = [];
  for (let at = start; at < tokens.length; at++) {
    const token = tokens[at];
    const next = tokens[at + 1];
    if (token?.text === "from" && next?.kind === "string") return [{ ...reference(next), clause }];
    if (token?.kind === "word") clause.push(token.text);
    else if (token === undefined || !/^[{},*]$/.test(token.text)) return [];
  }
  return [];
}

function urlAt(tokens: readonly Token[], at: number): ModuleReference[] {
  const [open, path, comma, base] = tokens.slice(at + 1, at + 5);
  if (open?.text !== "(" || comma?.text !== "," || base?.text !== "import") return [];
  return literal(path).filter(({ specifier }) => /\.[cm]?[jt]s$/.test(specifier));
}

function literal(token: Token | undefined): ModuleReference[] {
  return token?.kind === "string" ? [reference(token)] : [];
}

function reference({ text, line }: Token): ModuleReference {
  return { specifier: text.slice(1, -1), line, clause: [] };
}
