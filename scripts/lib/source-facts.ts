import { parseSync, Visitor } from "rolldown/utils";

/** Another module that a source file names. */
export interface ModuleReference {
  /** As written: "./name.ts", "node:fs". */
  readonly specifier: string;
  readonly line: number;
}

/** What the checks of the project look at in a source file. Lines count from 1. */
export interface SourceFacts {
  /**
   * The modules that the file imports or re-exports, types included: declarations, `import()` with a literal, also as a type, and
   * `new URL("...", import.meta.url)`, which is how a worker's file is named.
   */
  readonly references: readonly ModuleReference[];
  /** Lines of `export default`, and of `default` as the name of an export. */
  readonly defaultExports: readonly number[];
  /** Lines of `!` behind an expression or a declared name. */
  readonly assertions: readonly number[];
  /** Lines that end the process: `process.exit` and its relatives. */
  readonly exits: readonly number[];
}

const EXITS = new Set(["exit", "abort", "reallyExit"]);

/**
 * @param path tells the parser the language by its ending
 * @throws Error where the text is not JavaScript or TypeScript
 */
export function readSource(path: string, source: string): SourceFacts {
  const { program, errors } = parseSync(path, source);
  const error = errors.find(({ severity }) => severity === "Error");
  if (error !== undefined) throw new Error(`${path}: ${error.message}`);
  const lineOf = lineFinder(source);
  const references: { readonly specifier: string; readonly start: number }[] = [];
  const defaultExports: number[] = [];
  const assertions: number[] = [];
  const exits: number[] = [];
  const refersTo = (
    node: { readonly type: string; readonly start: number; readonly value?: unknown } | null,
  ) => {
    if (node?.type === "Literal" && typeof node.value === "string")
      references.push({ specifier: node.value, start: node.start });
  };
  const visitor = new Visitor({
    ImportDeclaration({ source, specifiers }) {
      refersTo(source);
      if (!/^(node:)?process$/.test(source.value)) return;
      for (const specifier of specifiers)
        if (specifier.type === "ImportSpecifier" && nameOf(specifier.imported) === "exit")
          exits.push(specifier.start);
    },
    ExportAllDeclaration: ({ source }) => refersTo(source),
    ExportNamedDeclaration({ source, specifiers }) {
      refersTo(source);
      for (const { exported } of specifiers)
        if (nameOf(exported) === "default") defaultExports.push(exported.start);
    },
    ExportDefaultDeclaration: ({ start }) => void defaultExports.push(start),
    ImportExpression: ({ source }) => refersTo(source),
    TSImportType: ({ source }) => refersTo(source),
    NewExpression({ callee, arguments: [path, base] }) {
      if (callee.type !== "Identifier" || callee.name !== "URL" || path?.type !== "Literal") return;
      const isBesideThisFile =
        base?.type === "MemberExpression" &&
        base.object.type === "MetaProperty" &&
        nameOf(base.property) === "url";
      if (isBesideThisFile && /\.[cm]?[jt]s$/.test(String(path.value))) refersTo(path);
    },
    MemberExpression({ object, property, start }) {
      const owner = object.type === "MemberExpression" ? object.property : object;
      if (nameOf(owner) === "process" && EXITS.has(nameOf(property))) exits.push(start);
    },
    TSNonNullExpression: ({ end }) => void assertions.push(end - 1),
    VariableDeclarator: ({ definite, start }) => void (definite && assertions.push(start)),
    PropertyDefinition: ({ definite, start }) => void (definite && assertions.push(start)),
  });
  visitor.visit(program);
  const inOrder = references.toSorted((a, b) => a.start - b.start);
  return {
    references: inOrder.map(({ specifier, start }) => ({ specifier, line: lineOf(start) })),
    defaultExports: defaultExports.map(lineOf),
    assertions: assertions.map(lineOf),
    exits: exits.map(lineOf),
  };
}

/** Of an identifier or a string in its place. */
function nameOf(node: { readonly type: string; readonly name?: unknown; readonly value?: unknown }): string {
  return String(node.type === "Literal" ? node.value : node.name);
}

function lineFinder(source: string): (offset: number) => number {
  const starts = [0];
  for (let at = source.indexOf("\n"); at >= 0; at = source.indexOf("\n", at + 1)) starts.push(at + 1);
  return (offset) => {
    let [low, high] = [0, starts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}
