import { posix } from "node:path";
import { readSource } from "./source-facts.ts";

/** A source file and what it imports of the project: paths with slashes, relative to one root. Imports of types count. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

/** @param sources text by path */
export function importGraph(sources: ReadonlyMap<string, string>): ImportGraph {
  const graph = new Map<string, string[]>();
  for (const [path, source] of sources) {
    const targets = readSource(path, source)
      .references.filter(({ specifier }) => specifier.startsWith("."))
      .map(({ specifier }) => posix.join(posix.dirname(path), specifier))
      .filter((target) => sources.has(target));
    graph.set(path, [...new Set(targets)]);
  }
  return graph;
}

/**
 * Groups of files of which each imports all others, directly or through others (strongly connected components, Tarjan 1972).
 * Each group comes sorted; a graph without circles has none.
 */
export function circles(graph: ImportGraph): string[][] {
  const number = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const onStack = new Set<string>();
  const found: string[][] = [];
  const visit = (path: string): number => {
    const own = number.size;
    number.set(path, own);
    let low = own;
    stack.push(path);
    onStack.add(path);
    for (const target of graph.get(path) ?? []) {
      if (!number.has(target)) low = Math.min(low, visit(target));
      else if (onStack.has(target)) low = Math.min(low, number.get(target) ?? low);
    }
    lowest.set(path, low);
    if (low === own) {
      const group = stack.splice(stack.indexOf(path));
      for (const member of group) onStack.delete(member);
      if (group.length > 1) found.push(group.sort());
    }
    return low;
  };
  for (const path of graph.keys()) if (!number.has(path)) visit(path);
  return found;
}
