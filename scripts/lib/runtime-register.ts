const ROOM = "src/runtime/";
export const REGISTER = `${ROOM}README.md`;

/** What only src/runtime may do, and how a source says that it does. */
const TRICKS: readonly (readonly [what: string, pattern: RegExp])[] = [
  ["sets a flag of V8", /\bsetFlagsFromString\b/],
  ["loads koffi", /(?:import|require)\(\s*["']koffi["']|import (?!type\b)[^;]*from ["']koffi["']/],
  ["takes private parts of Node", /\bprocess\.(?:binding|_linkedBinding)\b|\binternalBinding\b/],
  // Files below lib/, src/ or dist/ of a package: what a package exports has no such path.
  [
    "imports a private file of a package",
    /(?:from|import|require)\(?\s*["'`](?!\.|node:)(?:@[\w.-]+\/)?[\w.-]+\/(?:lib|src|dist|build)\//,
  ],
];

/**
 * @param sources by path: those of src/ without tests, and the register
 * @returns a line for each file that breaks the rule
 */
export function runtimeProblems(sources: ReadonlyMap<string, string>): string[] {
  const register = sources.get(REGISTER) ?? "";
  const problems: string[] = [];
  for (const [path, source] of sources) {
    if (path === REGISTER) continue;
    if (path.startsWith(ROOM)) {
      const name = path.slice(ROOM.length);
      if (!register.includes(`\`${name}\``)) problems.push(`${path}: is not in ${REGISTER}`);
      continue;
    }
    for (const [what, pattern] of TRICKS)
      if (pattern.test(source)) problems.push(`${path}: ${what}: only ${ROOM} may`);
  }
  return problems;
}
