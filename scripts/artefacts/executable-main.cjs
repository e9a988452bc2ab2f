// What runs first in the single executable. The program is many modules, files that it reads, and an addon that the system has to load from a file: all of that
// is laid into a folder of the user's cache at the first start, and later starts find it there.
process.on("SIGUSR1", () => {
  // Nothing to load again yet. Without a listener Node would open its debugger.
});

const { chmodSync, lstatSync, mkdirSync, renameSync, rmSync, writeFileSync } = require("node:fs");
const { createRequire } = require("node:module");
const { tmpdir } = require("node:os");
const path = require("node:path");
const sea = require("node:sea");

const program = findProgram(sea.getAsset("digest", "utf8"));
const [option, preload = "", test, ...files] = process.argv.slice(2);
// `portolan plugin test` starts the program as if it were Node, to run tests.
if (option === "--import" && test === "--test") load("run-tests.cjs").runTests(preload, files);
else load("portolan");

/** @param {string} name of a file beside the launcher */
function load(name) {
  const file = path.join(program, "bin", name);
  return createRequire(file)(file);
}

/**
 * The folder with the program, which is unpacked unless it is there.
 * @param {string} digest
 * @returns {string}
 */
function findProgram(digest) {
  const tried = [];
  for (const folder of cacheFolders()) {
    try {
      const found = path.join(folder, digest);
      if (!isPrivateFolder(folder) || !isPrivateFolder(found)) unpackTo(folder, found);
      return found;
    } catch (error) {
      tried.push(`  ${folder}: ${error instanceof Error ? error.message : error}`);
    }
  }
  console.error(["Portolan can unpack its program nowhere:", ...tried].join("\n"));
  console.error("Set XDG_CACHE_HOME to a folder that it may write to.");
  process.exit(1);
}

/** @returns {string[]} the best one first */
function cacheFolders() {
  const { CACHE_DIRECTORY, XDG_CACHE_HOME, HOME } = process.env;
  const own = `portolan-${process.getuid?.() ?? 0}`;
  return [
    ...(CACHE_DIRECTORY ? [path.join(CACHE_DIRECTORY, "program")] : []),
    ...(XDG_CACHE_HOME ? [path.join(XDG_CACHE_HOME, "portolan")] : []),
    ...(HOME && HOME !== "/" ? [path.join(HOME, ".cache", "portolan")] : []),
    path.join("/dev/shm", own),
    path.join(tmpdir(), own),
  ];
}

/**
 * Whether a folder is there and is only this user's: what is in it is run, and another user could have put it there.
 * @param {string} folder
 */
function isPrivateFolder(folder) {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (found === undefined) return false;
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o022) !== 0)
    throw new Error("it is not a folder that only this user may write to");
  return true;
}

/**
 * @param {string} folder
 * @param {string} target inside it
 */
function unpackTo(folder, target) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  isPrivateFolder(folder);
  const work = `${target}.${process.pid}`;
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { mode: 0o700 });
  try {
    for (const [name, octets, isProgram] of packedFiles()) {
      const file = path.join(work, name);
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, octets);
      if (isProgram) chmodSync(file, 0o755);
    }
    renameSync(work, target);
  } catch (error) {
    rmSync(work, { recursive: true, force: true });
    // Another start may have been as quick.
    if (!isPrivateFolder(target)) throw error;
  }
}

/**
 * Out of the asset: four octets with the length of a table, the table in JSON, and the files one after the other.
 * @returns {Generator<[name: string, octets: Buffer, isProgram: boolean]>}
 */
function* packedFiles() {
  const { zstdDecompressSync } = require("node:zlib");
  const all = zstdDecompressSync(Buffer.from(sea.getRawAsset("program")));
  const start = 4 + all.readUInt32BE(0);
  /** @type {[name: string, length: number, isProgram: boolean][]} */
  const table = JSON.parse(all.toString("utf8", 4, start));
  let at = start;
  for (const [name, length, isProgram] of table) {
    yield [name, all.subarray(at, at + length), isProgram];
    at += length;
  }
}
