import { posix } from "node:path";
import type { Violation } from "./floors.ts";

/** The file behind `portolan/plugin`, relative to `src/`. */
export const CONTRACT = "plugin/index.ts";

/** How many names the contract may have: an author reads all of them. */
export const MOST_NAMES = 60;

/** A name that plugins import from `portolan/plugin`. */
export interface ContractName {
  /** The file that defines it, relative to `src/`. */
  readonly file: string;
  /** Exported as a type alone, also where it is a class. */
  readonly isType: boolean;
}

/** @param source text of {@link CONTRACT}, which only exports what other files define */
export function contractNames(source: string): Map<string, ContractName> {
  const names = new Map<string, ContractName>();
  for (const { word, specifier, named } of clauses(source)) {
    if (word !== "export") continue;
    const file = posix.join(posix.dirname(CONTRACT), specifier);
    for (const { name, isType } of named) names.set(name, { file, isType });
  }
  return names;
}

/**
 * The one way to import: a plugin takes the names of the contract from the contract, and everything else from the file that defines it. All
 * other folders name files alone.
 * @param path relative to `src/`
 */
export function checkContractImports(
  path: string,
  source: string,
  contract: ReadonlyMap<string, ContractName>,
): Violation[] {
  const isPlugin = path.startsWith("plugins/");
  return clauses(source).flatMap(({ specifier, line, named }) => {
    const target = posix.join(posix.dirname(path), specifier);
    const problem = (reason: string) => ({ path, line, message: `imports ${specifier}: ${reason}` });
    if (!isPlugin) return target === CONTRACT ? [problem("only plugins do, all others name the file")] : [];
    return named.flatMap(({ name, isType }) => {
      const known = contract.get(name);
      if (known?.file !== target || (known.isType && !isType)) return [];
      return [problem(`${name} is part of the contract, import it from ${CONTRACT}`)];
    });
  });
}

interface Clause {
  readonly word: string;
  readonly specifier: string;
  readonly line: number;
  readonly named: readonly { readonly name: string; readonly isType: boolean }[];
}

/** Imports and exports by name, in the form that the formatter gives them. */
function clauses(source: string): Clause[] {
  return [...source.matchAll(CLAUSE)].map((match) => {
    const [, word = "", allTypes = "", list = "", specifier = ""] = match;
    const named = [...list.matchAll(NAMED)].map(([, type, name = ""]) => {
      return { name, isType: allTypes !== "" || type !== undefined };
    });
    return { word, specifier, named, line: source.slice(0, match.index).split("\n").length };
  });
}

const CLAUSE = /^(import|export)\s+(type\s+)?\{([^}]*)\}\s+from\s+"([^"]+)"/gm;
const NAMED = /(?:^|,)\s*(type\s+)?(\w+)/g;
