import type { Violation } from "./floors.ts";

/**
 * Finds types that two files export under one name: a reader who searches for the name should find one thing.
 * @param sources text by path, relative to `src/`. Generated files are left out: their names are not ours.
 */
export function checkTypeNames(sources: ReadonlyMap<string, string>): Violation[] {
  const places = new Map<string, { path: string; line: number }>();
  const found: Violation[] = [];
  for (const [path, source] of sources) {
    if (path.endsWith(".test.ts") || source.startsWith("// Generated")) continue;
    for (const match of source.matchAll(EXPORTED_TYPE)) {
      const [, name = ""] = match;
      const line = source.slice(0, match.index).split("\n").length;
      const first = places.get(name);
      if (first === undefined) places.set(name, { path, line });
      else if (first.path !== path)
        found.push({
          path,
          line,
          message: `exports a type ${name}, as src/${first.path}:${first.line} does`,
        });
    }
  }
  return found;
}

const EXPORTED_TYPE = /^export (?:declare )?(?:abstract )?(?:interface|type|class) (\w+)/gm;
