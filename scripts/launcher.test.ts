import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, symlinkSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import { isSupported, OLDEST_NODE } from "../bin/find-node.mjs";
import { untilTrue } from "../test/support/until-true.ts";
import { skipWithout } from "./lib/system-tools.mjs";
import { makeTree, writeTree } from "./lib/test-tree.ts";

const MEBIBYTE = 2 ** 20;

const bin = join(import.meta.dirname, "..", "bin");

/** Stands for the program: prints how it was started, and the signals it gets until it reads "q" or gets SIGTERM. */
const PROGRAM = `
  export async function main(argv) {
    const { execArgv, env, pid } = process;
    console.log(JSON.stringify({ argv, execArgv, node: env.STARTED_BY ?? "none", launcher: env.PORTOLAN_LAUNCHER, pid }));
    if (argv[0] !== "wait") return Number.parseInt(argv[0] ?? "0") || 0;
    return new Promise((resolve) => {
      for (const signal of ["SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGTERM"]) {
        process.on(signal, () => {
          console.log("got " + signal);
          if (signal === "SIGTERM") process.exit(7);
        });
      }
      process.stdin.on("data", () => process.exit(8));
      setInterval(() => undefined, 60_000); // as an open socket does, with stdin or without
      console.log("ready");
    });
  }
`;

/** Runs the launcher as if under Node 20, or under a Node 22 that can replace its process. */
const AS_OLD_NODE = `
  import { launch } from "./bin/launch.mjs";
  const [, , how, ...argv] = process.argv;
  const execve = how === "execve" ? process.execve.bind(process) : undefined;
  await launch(argv, { version: "20.20.2", execve, memory: Number(process.env.MEMORY ?? Infinity) });
`;

/** Runs the launcher as if in a pod with so much memory. */
const IN_POD = `
  import { launch } from "./bin/launch.mjs";
  const [, , memory, ...argv] = process.argv;
  const { versions, execve } = process;
  await launch(argv, { version: versions.node, execve: execve.bind(process), memory: Number(memory) });
`;

/** The pinned Node of a test: the real one, which says in STARTED_BY where it stood. */
function fakeNode(name: string): string {
  return `#!/bin/sh\nSTARTED_BY=${name} exec "${process.execPath}" "$@"\n`;
}

function nodePackage(folder: string, version: string): Record<string, string> {
  return {
    [`${folder}/node/package.json`]: JSON.stringify({ name: "node", version }),
    [`${folder}/node/bin/node`]: fakeNode(`${folder}/${version}`),
  };
}

/** A project with Portolan installed in it, and these files beside. */
function makeInstallation(t: TestContext, files: Readonly<Record<string, string>>) {
  const root = makeTree(t, files);
  const home = join(root, "node_modules", "portolan");
  cpSync(bin, join(home, "bin"), { recursive: true });
  writeTree(home, {
    "package.json": '{ "type": "module" }',
    "as-old-node.mjs": AS_OLD_NODE,
    "in-pod.mjs": IN_POD,
  });
  for (const path of Object.keys(files).filter((path) => /\/node$/.test(path)))
    chmodSync(join(root, path), 0o755);
  return home;
}

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { status, signal, stdout, stderr } = spawnSync(command, args, {
    encoding: "utf8",
    env: { ...process.env, ...env },
  });
  return { status, signal, stderr, started: stdout === "" ? undefined : JSON.parse(stdout) };
}

const BUILT = { "node_modules/portolan/dist/cli/main.js": PROGRAM };
const PINNED = nodePackage("node_modules", "24.21.0");

test("runs the program in its own process where Node is new enough", (t) => {
  const home = makeInstallation(t, { ...BUILT, ...PINNED });
  const { status, started } = run(process.execPath, [join(home, "bin/portolan"), "3", "-conf", "x y"]);
  assert.deepEqual([status, started.argv, started.node], [3, ["3", "-conf", "x y"], "none"]);
});

test("a signal to reload that comes before the program listens opens no debugger", (t) => {
  const main = `
    import inspector from "node:inspector";
    export async function main() {
      process.kill(process.pid, "SIGUSR1");
      await new Promise((resolve) => setTimeout(resolve, 300));
      console.log(JSON.stringify({ url: inspector.url() ?? "none" }));
      return 0;
    }
  `;
  const home = makeInstallation(t, { "node_modules/portolan/dist/cli/main.js": main });
  const { status, started, stderr } = run(process.execPath, [join(home, "bin/portolan")]);
  assert.deepEqual([status, started, stderr], [0, { url: "none" }, ""]);
});

/** Folders of executables for PATH: those of the system for `readlink`, and first one with such a `node`. */
function pathWithNode(t: TestContext, text: string): string {
  const folder = makeTree(t, { node: text });
  chmodSync(join(folder, "node"), 0o755);
  return [folder, "/usr/bin", "/bin"].join(delimiter);
}

const TOO_OLD = "#!/bin/sh\necho 'the old Node was started' >&2\nexit 97\n";

test("as a command, becomes the pinned Node without a start of the one in PATH", async (t) => {
  const home = makeInstallation(t, { ...BUILT, ...PINNED });
  const env = { ...process.env, PATH: pathWithNode(t, TOO_OLD) };
  const command = join(home, "..", ".bin", "portolan");
  writeTree(join(home, ".."), { ".bin/.keep": "" });
  symlinkSync(join("..", "portolan", "bin", "portolan"), command);
  for (const [file, cwd] of [
    [command, "/"],
    ["./.bin/portolan", join(home, "..")],
  ] as const) {
    const child = spawn(file, ["4", "x y", ""], { env, cwd, stdio: ["ignore", "pipe", "inherit"] });
    const ended = once(child, "close");
    const { lines } = lineReader(child);
    assert.deepEqual(await ended, [4, null]);
    const { pid, argv, node } = JSON.parse(lines()[0] ?? "");
    assert.deepEqual([pid, argv, node], [child.pid, ["4", "x y", ""], "node_modules/24.21.0"]);
  }
});

test("as a command, prefers its own Node, and becomes the one in PATH where no other is new enough", (t) => {
  const own = "node_modules/portolan/node_modules";
  const env = { PATH: pathWithNode(t, fakeNode("PATH")) };
  const startedBy = (files: Readonly<Record<string, string>>) => {
    const home = makeInstallation(t, { ...BUILT, ...files });
    const { status, started } = run(join(home, "bin/portolan"), ["3"], env);
    assert.equal(status, 3);
    return started.node;
  };
  assert.equal(startedBy({ ...PINNED, ...nodePackage(own, `${OLDEST_NODE}.0`) }), `${own}/${OLDEST_NODE}.0`);
  assert.equal(startedBy({ ...PINNED, ...nodePackage(own, "24.10.9") }), "node_modules/24.21.0");
  assert.equal(startedBy(nodePackage("node_modules", "22.20.0")), "PATH");
  assert.equal(startedBy(nodePackage("node_modules", "26.0.0")), "node_modules/26.0.0");
  assert.equal(startedBy(nodePackage("node_modules", "new")), "PATH");
  assert.equal(startedBy({}), "PATH");
});

test("as a command, says that there is no Node at all", (t) => {
  const home = makeInstallation(t, BUILT);
  const { status, stderr } = run(join(home, "bin/portolan"), [], { PATH: join(home, "bin") });
  assert.equal(status, 127);
  assert.equal(
    stderr,
    `Portolan needs Node ${OLDEST_NODE} or newer, and there is no node in PATH. Install it: https://nodejs.org\n`,
  );
});

for (const how of ["spawn", "execve"]) {
  test(`hands over to the pinned Node (${how})`, (t) => {
    const home = makeInstallation(t, { ...BUILT, ...PINNED });
    const { status, started } = run(process.execPath, [join(home, "as-old-node.mjs"), how, "5", "x y"]);
    assert.deepEqual([status, started.argv, started.node], [5, ["5", "x y"], "node_modules/24.21.0"]);
  });
}

test("has V8 leave the young generation room where memory is short", (t) => {
  const home = makeInstallation(t, { ...BUILT, ...PINNED });
  const start = (memory: number, env: NodeJS.ProcessEnv = {}) => {
    const child = run(process.execPath, [join(home, "in-pod.mjs"), `${memory}`, "-conf", "x y"], env);
    assert.equal(child.stderr, "");
    return child.started;
  };
  const room = ["--max-semi-space-size=2"];
  const { argv, execArgv, launcher } = start(170 * MEBIBYTE, { PORTOLAN_LAUNCHER: "1" });
  assert.deepEqual([argv, execArgv, launcher], [["-conf", "x y"], room, undefined]);
  assert.deepEqual(start(513 * MEBIBYTE).execArgv, []);
  assert.deepEqual(start(170 * MEBIBYTE, { NODE_OPTIONS: "--max-semi-space-size=4" }).execArgv, []);
  // What it hands over to another Node says so at once.
  for (const how of ["spawn", "execve"]) {
    const script = join(home, "as-old-node.mjs");
    const child = run(process.execPath, [script, how, "-conf", "x"], { MEMORY: `${170 * MEBIBYTE}` });
    assert.deepEqual(child.started.execArgv, room);
  }
});

test("hands over from an old Node in PATH", {
  skip: oldNodes().length === 0 && "no Node older than 24.11 in PATH",
}, (t) => {
  const home = makeInstallation(t, { ...BUILT, ...PINNED });
  for (const node of oldNodes()) {
    const { status, started } = run(node, [join(home, "bin/portolan"), "6"]);
    assert.deepEqual([status, started.node], [6, "node_modules/24.21.0"]);
  }
});

function oldNodes(): string[] {
  return (process.env.PATH ?? "").split(delimiter).flatMap((folder) => {
    const node = join(folder, "node");
    const { status, stdout } = spawnSync(node, ["--version"], { encoding: "utf8" });
    return status === 0 && /^v2\d/.test(stdout) && !isSupported(stdout.trim().slice(1)) ? [node] : [];
  });
}

test("prefers its own Node to the project's, and passes over one that is too old", (t) => {
  const own = "node_modules/portolan/node_modules";
  const startedBy = (files: Readonly<Record<string, string>>) => {
    const home = makeInstallation(t, { ...BUILT, ...files });
    return run(process.execPath, [join(home, "as-old-node.mjs"), "spawn"]).started?.node;
  };
  assert.equal(startedBy({ ...PINNED, ...nodePackage(own, "24.11.0") }), `${own}/24.11.0`);
  assert.equal(startedBy({ ...PINNED, ...nodePackage(own, "24.10.9") }), "node_modules/24.21.0");
  assert.equal(startedBy({ ...PINNED, ...nodePackage(own, "22.20.0") }), "node_modules/24.21.0");
  assert.equal(startedBy({ "node_modules/.bin/node": fakeNode("bin") }), "bin");
});

test("names the remedy where there is no Node to run with", (t) => {
  const home = makeInstallation(t, { ...BUILT, ...nodePackage("node_modules", "22.20.0") });
  const { status, stderr, started } = run(process.execPath, [join(home, "as-old-node.mjs"), "spawn"]);
  assert.deepEqual([status, started], [1, undefined]);
  assert.match(
    stderr,
    /^Portolan needs Node 24\.11 or newer; this is Node 20\.20\.2 \(.*\)\.\n.*\n {2}npm install node@24\n$/,
  );
  writeTree(home, { "package-lock.json": "{}" });
  assert.match(run(process.execPath, [join(home, "as-old-node.mjs"), "spawn"]).stderr, /npm ci\n$/);
});

test("says when the program is missing", (t) => {
  const { status, stderr } = run(process.execPath, [join(makeInstallation(t, {}), "bin/portolan")]);
  assert.equal(status, 1);
  assert.match(stderr, /program is missing from .*portolan\..*\n.*npm run build/);
});

test("runs the sources of a checkout unless the build is newer", (t) => {
  const checkout = makeTree(t, {
    "package.json": '{ "type": "module" }',
    "src/cli/main.ts": "export const main = async (): Promise<number> => 9;",
  });
  cpSync(bin, join(checkout, "bin"), { recursive: true });
  const status = () => run(process.execPath, [join(checkout, "bin/portolan")]).status;
  assert.equal(status(), 9);
  writeTree(checkout, { "dist/cli/main.js": "export const main = async () => 10;" });
  assert.equal(status(), 9);
  writeTree(checkout, { "dist/.built": "" });
  assert.equal(status(), 10);
});

/** What the process has printed, as lines; resolves when one of them is the wanted one. */
function lineReader(child: ChildProcess) {
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
    child.emit("printed");
  });
  const lines = () => text.split(/\r?\n/);
  // A terminal shows the key itself before what it caused: "^Cgot SIGINT".
  const until = (line: string) =>
    untilTrue(() => lines().some((printed) => printed.endsWith(line)), { what: line, log: () => text });
  return { lines, until };
}

const SIGNALS = ["SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGTERM"] as const;

/** The command line of the launcher: as a command, or as if under a Node that is too old. */
function commandLine(how: string, home: string): [command: string, ...args: string[]] {
  return how === "shell"
    ? [join(home, "bin", "portolan")]
    : [process.execPath, join(home, "as-old-node.mjs"), how];
}

for (const how of ["spawn", "execve", "shell"]) {
  test(`forwards signals and passes on the exit code (${how})`, async (t) => {
    const home = makeInstallation(t, { ...BUILT, ...PINNED });
    const [command, ...args] = commandLine(how, home);
    const child = spawn(command, [...args, "wait"], {
      stdio: ["pipe", "pipe", "inherit"],
      // Without a terminal: no keyboard could have sent the signal.
      detached: true,
    });
    const ended = once(child, "exit");
    const { lines, until } = lineReader(child);
    await until("ready");
    for (const signal of SIGNALS) {
      child.kill(signal);
      await until(`got ${signal}`);
    }
    assert.deepEqual(await ended, [7, null]);
    assert.deepEqual(
      lines().filter((line) => line.startsWith("got")),
      SIGNALS.map((signal) => `got ${signal}`),
    );
  });

  test(`ends by the signal that ended the program (${how})`, async (t) => {
    const home = makeInstallation(t, { ...BUILT, ...PINNED });
    const [command, ...args] = commandLine(how, home);
    const child = spawn(command, [...args, "wait"], { stdio: ["pipe", "pipe", "inherit"] });
    const ended = once(child, "exit");
    const { lines, until } = lineReader(child);
    await until("ready");
    process.kill(JSON.parse(lines()[0] ?? "").pid, "SIGKILL");
    assert.deepEqual(await ended, [null, "SIGKILL"]);
  });
}

for (const [how, commandIn] of [
  ["in one process", (home: string) => `"${process.execPath}" "${home}"/bin/portolan`],
  ["as a command", (home: string) => `"${home}"/bin/portolan`],
  ["as the child of an old Node", (home: string) => `"${process.execPath}" "${home}"/as-old-node.mjs spawn`],
] as const) {
  test(`ends with npx, which hands SIGTERM to no more than its shell (${how})`, {
    skip: skipWithout("npx"),
  }, async (t) => {
    const home = makeInstallation(t, { "package.json": "{}", ...BUILT, ...PINNED });
    const command = join(home, "..", ".bin", "portolan");
    writeTree(join(home, ".."), {
      ".bin/portolan": `#!/bin/sh\nexec ${commandIn(home)} "$@"\n`,
    });
    chmodSync(command, 0o755);
    const npx = spawn("npx", ["--no-install", "portolan", "wait"], {
      cwd: join(home, "..", ".."),
      stdio: ["ignore", "pipe", "inherit"],
    });
    // The last process that holds the pipe closes it.
    const ended = once(npx, "close");
    const { lines, until } = lineReader(npx);
    await until("ready");
    npx.kill("SIGTERM");
    await ended;
    assert.ok(lines().includes("got SIGTERM"));
  });
}

test("ends with a launcher that is killed without a word", async (t) => {
  const home = makeInstallation(t, { ...BUILT, ...PINNED });
  const child = spawn(process.execPath, [join(home, "as-old-node.mjs"), "spawn", "wait"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  // The last process that holds the pipe closes it.
  const ended = once(child, "close");
  const { lines, until } = lineReader(child);
  await until("ready");
  child.kill("SIGKILL");
  await ended;
  assert.ok(lines().includes("got SIGTERM"));
});

test("leaves Ctrl-C to the terminal, which tells the program itself", {
  skip: skipWithout("script"),
}, async (t) => {
  const home = makeInstallation(t, { ...BUILT, ...PINNED });
  // Without `exec` the shell stays in the terminal's foreground, gets the Ctrl-C as well and ends by it.
  const command = `exec '${process.execPath}' '${join(home, "as-old-node.mjs")}' spawn wait`;
  const child = spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  const { lines, until } = lineReader(child);
  await until("ready");
  child.stdin?.write("\x03");
  await until("got SIGINT");
  child.stdin?.write("q\n");
  assert.deepEqual(await ended, [8, null]);
  assert.equal(lines().filter((line) => line.endsWith("got SIGINT")).length, 1);
});

test("is executable in the repository", () => {
  const mode = execFileSync("stat", ["-c", "%a", join(bin, "portolan")], {
    encoding: "utf8",
  });
  assert.match(mode, /^[75]55\n$/);
});
