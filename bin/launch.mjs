import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";
import { isBuildCurrent } from "./build-state.mjs";
import { findCommit } from "./commit.mjs";
import { findNode, isSupported, OLDEST_NODE } from "./find-node.mjs";
import { availableMemory, heapArguments, isPlain, isServer, serves } from "./heap-arguments.mjs";
import { endWithParent, isRunByNpx, LAUNCHER_VARIABLE } from "./parent.mjs";

/**
 * What the launcher needs to know of the Node that runs it; a test gives its own.
 * @typedef {object} Host
 * @property {string} version as in `process.versions.node`
 * @property {((file: string, args: string[], env: NodeJS.ProcessEnv) => void) | undefined} execve
 *   replaces this process by another program; Node has it from 22.15 on, and not on Windows
 * @property {number} memory octets that this process may have
 */

/** Modules of Node that a server needs. */
const NEEDED = [
  "crypto",
  "dgram",
  "dns/promises",
  "fs/promises",
  "http",
  "net",
  "perf_hooks",
  "timers/promises",
  "vm",
  "worker_threads",
];

const packageRoot = dirname(dirname(fileURLToPath(import.meta.url)));

/** @type {Host} */
const thisNode = {
  version: process.versions.node,
  execve: process.execve?.bind(process),
  memory: availableMemory(),
};

/**
 * Runs Portolan: in this process where its Node is new enough, else under the Node that was installed with
 * the package. The exit code, or the signal that ended the program, becomes this process's own.
 * @param {string[]} argv the arguments after the program's name
 * @param {Host} host
 */
export async function launch(argv, host = thisNode) {
  const given = [...process.execArgv, process.env.NODE_OPTIONS ?? ""];
  const forHeap = isPlain(process.env) ? [] : heapArguments(argv, { memory: host.memory, given });
  const args = [...process.execArgv, ...forHeap, join(packageRoot, "bin", "portolan"), ...argv];
  if (forHeap.length > 0 && isSupported(host.version) && host.execve !== undefined) {
    host.execve(process.execPath, [process.execPath, ...args], process.env);
    return;
  }
  const { [LAUNCHER_VARIABLE]: launcher } = process.env;
  // What this program starts is not the launcher's.
  delete process.env[LAUNCHER_VARIABLE];
  if (isRunByNpx(process.env) || launcher === `${process.ppid}`) endWithParent();
  if (isSupported(host.version)) {
    await runHere(argv);
    return;
  }
  const node = findNode(packageRoot, process.execPath);
  if (node === undefined) {
    fail(
      `Portolan needs Node ${OLDEST_NODE} or newer; this is Node ${host.version} (${process.execPath}).`,
      "Install a newer Node (https://nodejs.org), or put one beside Portolan:",
      existsSync(join(packageRoot, "package-lock.json"))
        ? `  cd ${packageRoot} && npm ci`
        : "  npm install node@24",
    );
    return;
  }
  if (host.execve !== undefined) {
    host.execve(node, [node, ...args], process.env);
    return;
  }
  try {
    // Only here: it takes 3 to 5 ms to load.
    const { endLike, runAttached } = await import("./attached-process.mjs");
    const env = { ...process.env, [LAUNCHER_VARIABLE]: `${process.pid}` };
    endLike(await runAttached(node, args, { env }).ended);
  } catch (error) {
    fail(`Cannot start ${node}: ${error instanceof Error ? error.message : error}`);
  }
}

/** @param {string[]} argv */
async function runHere(argv) {
  const program = findProgram();
  if (program === undefined) {
    fail(
      `Portolan's program is missing from ${packageRoot}.`,
      "Install the package again, or build it: npm run build",
    );
    return;
  }
  await nextTurn();
  // For `-version`, the log and the metric; the threads of a server see it, too.
  if (serves(argv)) process.env.PORTOLAN_COMMIT ||= findCommit(packageRoot) ?? "unknown";
  // What Node has compiled of its own modules holds for the flags that Node started with: from another flag on it compiles them anew, and keeps
  // what it compiled for a thread that may come. For a server that is 10 to 20 ms and a megabyte.
  if (isServer(argv))
    for (const name of NEEDED) {
      process.getBuiltinModule(name);
      await nextTurn();
    }
  // Loading modules makes garbage for a moment, and V8 answers with a young generation of 16 MB that it never gives back. Who
  // serves lets it grow again.
  if (!isPlain(process.env)) {
    setFlagsFromString("--semi-space-growth-factor=1");
    // The heap is too small here for a collection to be under way. `collectYoungMeanwhile` says what it is for.
    setFlagsFromString("--no-separate-gc-phases");
  }
  await nextTurn();
  /** @type {{ main: (argv: readonly string[]) => Promise<number> }} */
  const { main } = await import(pathToFileURL(program).href);
  process.exitCode = await main(argv);
}

/** The built program; in a checkout the sources, where they are newer or nothing was built. */
function findProgram() {
  const built = join(packageRoot, "dist", "cli", "main.js");
  const source = join(packageRoot, "src", "cli", "main.ts");
  if (existsSync(source) && !(existsSync(built) && isBuildCurrent(packageRoot))) return source;
  return existsSync(built) ? built : undefined;
}

/** @param {string[]} lines */
function fail(...lines) {
  console.error(lines.join("\n"));
  process.exitCode = 1;
}
