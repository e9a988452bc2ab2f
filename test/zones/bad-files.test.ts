/**
 * Files that are missing, no files, unreadable, no text, huge or pipes, wherever the program takes one: it says so in one line that names
 * the file, ends or goes on as documented, and neither hangs nor reads what has no end.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { namedPorts } from "../support/free-ports.ts";
import { portolan, runPortolan } from "../support/portolan.ts";

const skip = process.platform === "linux" ? false : "makes pipes, and reads /proc";
/** Far more than any of it takes, and far less than reading a pipe would. Milliseconds. */
const PATIENCE = 20_000;

const folder = mkdtempSync(join(tmpdir(), "portolan-bad-files-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Root may read everything, so what is unreadable is so for other reasons than permission. */
const KINDS = {
  missing: { path: join(folder, "missing.ts"), reason: /no such file|no file|does not exist|not found/i },
  "below a file": {
    path: join(folder, "plain", "below.ts"),
    reason: /no such file|no file|does not exist|not found|ENOTDIR|not a directory/,
  },
  "a folder": {
    path: join(folder, "folder.ts"),
    reason: /is a directory|a directory without a Corefile|not a regular file|is not a file/,
  },
  "a circle of links": {
    path: join(folder, "circle.ts"),
    reason: /ELOOP|in a circle|too many symbolic links/,
  },
  unreadable: { path: "/proc/self/mem", reason: /EIO/ },
  "no text": {
    path: join(folder, "binary.ts"),
    reason: /not a text file|NUL|not a snapshot|not a Kubernetes object/,
  },
  // Node itself refuses files from 2 GiB on, and reads what is smaller.
  huge: { path: join(folder, "huge.ts"), reason: /larger than \d+ MiB/ },
  "a pipe": {
    path: join(folder, "pipe.ts"),
    reason: /not a regular file|is not a file|neither a file nor a folder/,
  },
} as const;
type Kind = keyof typeof KINDS;
const ALL = Object.keys(KINDS).filter((kind): kind is Kind => kind in KINDS);

if (skip === false) {
  writeFileSync(join(folder, "plain"), "plain\n");
  mkdirSync(KINDS["a folder"].path);
  symlinkSync("circle.ts", KINDS["a circle of links"].path);
  writeFileSync(KINDS["no text"].path, "a\0b\0\n");
  writeFileSync(KINDS.huge.path, "");
  // Without a disk block of its own.
  truncateSync(KINDS.huge.path, 1900 * 1024 * 1024);
  execFileSync("mkfifo", [KINDS["a pipe"].path]);
  writeFileSync(join(folder, "Corefile"), ".:0 {\n    whoami\n}\n");
  writeFileSync(join(folder, "mine"), ".:0 {\n    bind 127.0.0.1\n    mine\n}\n");
}

/** Of all that was printed, the one line that names the file and what is wrong with it; nothing is a stack trace. */
function assertOneLine(printed: string, kind: Kind): void {
  const { path, reason } = KINDS[kind];
  const lines = printed.split("\n").filter((line) => line.includes(path) && reason.test(line));
  assert.equal(lines.length, 1, printed);
  assert.doesNotMatch(printed, /^\s+at |node:(fs|internal)/m);
}

interface Command {
  readonly args: (path: string) => readonly string[];
  /** The documented one. */
  readonly code: number;
}

const COMMANDS: Readonly<Record<string, Command>> = {
  "-conf": { args: (path) => ["-conf", path], code: 1 },
  "-plugin-cfg": { args: (path) => ["-conf", "Corefile", "-plugin-cfg", path], code: 1 },
  "-plugin": { args: (path) => ["-conf", "mine", "-plugin", `mine:${path}`], code: 1 },
  check: { args: (path) => ["check", path], code: 2 },
  "check -plugin-cfg": { args: (path) => ["check", "-plugin-cfg", path, "Corefile"], code: 2 },
  "check -plugin": { args: (path) => ["check", "-plugin", `mine:${path}`, "mine"], code: 1 },
  "explain -conf": { args: (path) => ["explain", "-conf", path, "example.org"], code: 2 },
  test: { args: (path) => ["test", path], code: 2 },
  "plugin test": { args: (path) => ["plugin", "test", path], code: 2 },
};

for (const [title, { args, code }] of Object.entries(COMMANDS)) {
  describe(`portolan ${title}`, { skip }, () => {
    for (const kind of ALL) {
      test(kind, async () => {
        const ended = await runPortolan(args(KINDS[kind].path), { cwd: folder, patience: PATIENCE });
        assertOneLine(`${ended.output}${ended.errors}`, kind);
        assert.equal(ended.code, code);
      });
    }
  });
}

describe("portolan plugin new", { skip }, () => {
  for (const name of ["folder", "plain"]) {
    test(`into a ${name} that is there`, async () => {
      const cwd = mkdtempSync(join(folder, "new-"));
      if (name === "folder") mkdirSync(join(cwd, name));
      else writeFileSync(join(cwd, name), "");
      const { code, output, errors } = await runPortolan(["plugin", "new", name], {
        cwd,
        patience: PATIENCE,
      });
      assert.deepEqual(
        [code, output, errors],
        [2, "", `there is a file or folder ${name} here already: take another name, or another folder\n`],
      );
    });
  }
});

interface Line {
  /** In a server block. */
  readonly line: (path: string) => string;
  /** With these the program does not start, and ends with 1. */
  readonly refused: readonly Kind[];
  /** With these it starts, and logs the line. */
  readonly logged: readonly Kind[];
}

const NOT_REACHED: readonly Kind[] = ["below a file", "a circle of links"];
const without = (kinds: readonly Kind[], ...others: readonly Kind[]): Kind[] =>
  kinds.filter((kind) => !others.includes(kind));
const API = "endpoint https://127.0.0.1:9";

const LINES: Readonly<Record<string, Line>> = {
  import: { line: (path) => `import ${path}`, refused: ALL, logged: [] },
  forward: { line: (path) => `forward . ${path}`, refused: ALL, logged: [] },
  autopath: { line: (path) => `autopath ${path}`, refused: ALL, logged: [] },
  hosts: { line: (path) => `hosts ${path}`, refused: NOT_REACHED, logged: without(ALL, ...NOT_REACHED) },
  "loadbalance weighted": {
    line: (path) => `loadbalance weighted ${path}`,
    refused: ["no text"],
    logged: without(ALL, "no text"),
  },
  "kubernetes manifests": {
    line: (path) => `kubernetes cluster.local {\n manifests ${path}\n}`,
    refused: ["missing", "below a file", "a circle of links"],
    // A folder is what belongs there.
    logged: ["no text", "huge"],
  },
  "kubernetes kubeconfig": {
    line: (path) => `kubernetes cluster.local {\n kubeconfig ${path} mine\n}`,
    refused: ALL,
    logged: [],
  },
  "kubernetes snapshot": {
    line: (path) => `kubernetes cluster.local {\n ${API}\n snapshot ${path}\n}`,
    refused: [],
    // At the very first start the file is missing.
    logged: without(ALL, "missing"),
  },
};

for (const [title, { line, refused, logged }] of Object.entries(LINES)) {
  describe(`in a Corefile: ${title}`, { skip }, () => {
    const corefile = async (kind: Kind): Promise<string> => {
      const port = await namedPorts();
      return `.:${port("dns")} {\n bind 127.0.0.1\n ${line(KINDS[kind].path)}\n}\n`;
    };
    for (const kind of refused) {
      test(`is refused: ${kind}`, async () => {
        const ended = await runPortolan(["-conf", "stdin"], {
          cwd: folder,
          input: await corefile(kind),
          patience: PATIENCE,
        });
        assertOneLine(`${ended.output}${ended.errors}`, kind);
        assert.equal(ended.code, 1);
      });
    }
    for (const kind of logged) {
      test(`is logged: ${kind}`, async () => {
        const input = await corefile(kind);
        await using program = portolan(["-conf", "stdin"], { cwd: folder, input, patience: PATIENCE });
        await program.waitForOutput(/^\w+\/\w+, node\d/m);
        assertOneLine(program.output, kind);
        assert.equal(program.hasEnded, false);
      });
    }
  });
}

describe("in a Corefile: kubernetes tls", { skip }, () => {
  for (const kind of without(ALL, "no text")) {
    test(`is logged: ${kind}`, async () => {
      const { path, reason } = KINDS[kind];
      const port = await namedPorts();
      const input = `.:${port("dns")} {\n bind 127.0.0.1\n kubernetes cluster.local {\n ${API}\n tls ${path} ${path} ${path}\n }\n}\n`;
      await using program = portolan(["-conf", "stdin"], { cwd: folder, input, patience: PATIENCE });
      // One a kind of object, and again at each try.
      const [found] = await program.waitForOutput(
        /cannot list services: cannot read the certificate authority .*$/m,
      );
      assert.ok(found.includes(path) && reason.test(found), found);
    });
  }
});
