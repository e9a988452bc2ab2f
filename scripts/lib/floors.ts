import { posix } from "node:path";
import { type ModuleReference, readSource } from "./source-facts.ts";

/** A file that breaks a rule of the house. */
export interface Violation {
  /** Relative to `src/`, with slashes: "dns/name.ts". */
  readonly path: string;
  /** 0 where the file as a whole is meant. */
  readonly line: number;
  readonly message: string;
}

/** The folders of `src/`, lowest first. A file imports from its own folder and from those before it. */
export const FLOORS = [
  "lib",
  "runtime",
  "quic",
  "dns",
  "corefile",
  "expression",
  "plugin",
  "upstream",
  "zones",
  "etcd",
  "kubernetes",
  "console",
  "plugins",
  "transports",
  "lint",
  "server",
  "predecessors",
  "cli",
];

/**
 * The rooms of the largest floors, in rows from the lowest up: a file imports from its own room and from rows below. A room inside of another
 * room's folder has its table under the path of that folder. "*" are the files that stand in no room.
 */
export const ROOMS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  lib: [["text", "time"], ["collections"], ["files"], ["net", "logging"], ["metrics"]],
  expression: [["values"], ["syntax"], ["evaluation"], ["functions"], ["compiling"], ["*"], ["templates"]],
  plugin: [
    ["message"],
    ["query"],
    ["chain", "config", "facts", "packed", "stream"],
    ["contract"],
    ["services", "limits"],
    ["*"],
  ],
  upstream: [["config"], ["exchange"], ["tcp", "udp"], ["encrypted"], ["http2"], ["*"], ["quic"]],
  zones: [
    ["data"],
    ["answers", "changes"],
    ["serving"],
    ["backed", "updates", "threads"],
    ["files", "backends"],
    ["signing", "taking", "transfer"],
  ],
  kubernetes: [["objects"], ["store"], ["answers", "api", "manifests", "snapshot"], ["reasons", "external"]],
  "kubernetes/api": [["protobuf"], ["access"], ["client"], ["watch"], ["*"]],
  "kubernetes/store": [["tables"], ["pods", "endpoints"], ["services"], ["*"], ["mesh", "sharing"]],
  server: [
    ["serving"],
    ["isolation"],
    ["configuration"],
    ["explaining", "memory"],
    ["run"],
    ["threads"],
    ["*"],
  ],
};

/** Of a file, without its imports: these are as long as the paths in them. */
const MAX_LINES = 450;

/** How a file begins that may be longer: it is generated, or it is a table whose rows belong together. */
const LONG_FILE_MARK = /^\/\/ (Generated|Table)\b/;

/** Checks one TypeScript file of `src/`. */
export function checkSource(path: string, source: string): Violation[] {
  const facts = readSource(path, source);
  const found: Omit<Violation, "path">[] = [
    ...facts.references.flatMap((reference) => {
      const message = importProblem(path, reference);
      return message === undefined ? [] : [{ line: reference.line, message }];
    }),
    ...(floorOf(path) === "cli" ? [] : at(facts.exits, "ends the process: only src/cli may")),
    ...at(facts.assertions, "asserts with ! that a value is there"),
    ...(isEntryOfPlugin(path)
      ? []
      : at(facts.defaultExports, "has a default export: only the index.ts of a plugin has one")),
    ...length(source),
  ];
  return found.map((violation) => ({ path, ...violation })).sort((a, b) => a.line - b.line);
}

/** Checks which files there are: `paths` are all files of `src/`, relative to it. */
export function checkLayout(paths: readonly string[]): Violation[] {
  const strays = paths
    .filter((path) => path.endsWith(".ts") && path !== "index.ts" && !FLOORS.includes(floorOf(path)))
    .map((path) => ({ path, line: 0, message: `stands on no floor: ${FLOORS.join(", ")}` }));
  const plugins = new Set(paths.flatMap((path) => pluginOf(path) ?? []));
  const unfinished = [...plugins].flatMap((name) => {
    const inside = paths.filter((path) => pluginOf(path) === name);
    const folder = `plugins/${name}`;
    const missing = [
      ...(inside.includes(`${folder}/index.ts`) ? [] : ["index.ts"]),
      ...(inside.includes(`${folder}/README.md`) ? [] : ["README.md"]),
      ...(inside.some(isTest) ? [] : ["a test"]),
    ];
    return missing.map((what) => ({ path: folder, line: 0, message: `has not ${what}` }));
  });
  return [...strays, ...unfinished];
}

function importProblem(path: string, { specifier }: ModuleReference): string | undefined {
  if (/^portolan(\/|$)/.test(specifier)) return `imports ${specifier}: inside src/ name the file`;
  if (!specifier.startsWith(".")) return undefined;
  const target = posix.join(posix.dirname(path), specifier);
  const says = (reason: string) => `imports ${specifier}: ${reason}`;
  if (isTest(path) && target.startsWith("../test/")) return undefined;
  if (target.startsWith("..")) return says("outside src/");
  if (isTestKit(target) && !isTest(path) && !isTestKit(path)) return says("the test kit is for tests");
  if (path === "index.ts")
    return floorOf(target) === "cli" ? says("the package's entry is below cli") : undefined;

  const from = FLOORS.indexOf(floorOf(path));
  const to = FLOORS.indexOf(floorOf(target));
  if (from < 0) return undefined;
  if (to < 0) return says("stands on no floor");
  if (isTest(path) && to <= FLOORS.indexOf("server")) return undefined;
  if (to > from) return says(`${FLOORS[to]} is above ${FLOORS[from]}`);
  const room = roomProblem(path, target);
  if (room !== undefined) return says(room);
  const [plugin, otherPlugin] = [pluginOf(path), pluginOf(target)];
  if (plugin !== undefined && otherPlugin !== undefined && plugin !== otherPlugin) {
    return says("a plugin never imports another");
  }
  return undefined;
}

/** Within a floor, and within a room that is divided again, arrows point down as well. */
function roomProblem(path: string, target: string): string | undefined {
  for (const [folder, rows] of Object.entries(ROOMS)) {
    const [from, to] = [roomIn(folder, path), roomIn(folder, target)];
    if (from === undefined || to === undefined || from === to) continue;
    const rowOf = (room: string): number => rows.findIndex((row) => row.includes(room));
    if (rowOf(from) < 0 || rowOf(to) < 0) return `${rowOf(from) < 0 ? from : to} is not a room of ${folder}`;
    if (rowOf(to) >= rowOf(from)) return `room ${to} is not below room ${from}`;
  }
  return undefined;
}

function at(lines: readonly number[], message: string): Omit<Violation, "path">[] {
  return lines.map((line) => ({ line, message }));
}

function isEntryOfPlugin(path: string): boolean {
  return /^plugins\/[^/]+\/index\.ts$/.test(path);
}

function length(source: string): Omit<Violation, "path">[] {
  const rest = source.replaceAll(/^import [^;]*;\n/gm, "");
  const lines = rest.split("\n").length - (rest.endsWith("\n") ? 1 : 0);
  if (lines <= MAX_LINES || LONG_FILE_MARK.test(source)) return [];
  return [{ line: 0, message: `has ${lines} lines; ${MAX_LINES} are the limit` }];
}

function isTest(path: string): boolean {
  return path.endsWith(".test.ts");
}

/** The published kit for testing a plugin. */
function isTestKit(path: string): boolean {
  return path.startsWith("plugin/testing");
}

/** "" for a file in `src/` itself. */
function floorOf(path: string): string {
  return path.includes("/") ? path.slice(0, path.indexOf("/")) : "";
}

/** "store" for "kubernetes/store/store.ts" in "kubernetes", "*" for a file in the folder itself; undefined for a file elsewhere. */
function roomIn(folder: string, path: string): string | undefined {
  if (!path.startsWith(`${folder}/`)) return undefined;
  const inside = path.slice(folder.length + 1);
  return inside.includes("/") ? inside.slice(0, inside.indexOf("/")) : "*";
}

/** The plugin that a file belongs to: "cache" for "plugins/cache/index.ts". */
function pluginOf(path: string): string | undefined {
  return /^plugins\/([^/]+)\//.exec(path)?.[1];
}
