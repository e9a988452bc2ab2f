/** "A plugin in one file" and "Write a plugin in ten minutes", done as CONTRIBUTING.md says, word for word, in a copy of the project. */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { after, test } from "node:test";
import { type FencedBlock, fencedBlocks, sections } from "../../scripts/lib/markdown.ts";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { writeTree } from "../../scripts/lib/test-tree.ts";
import { toolPath } from "../../scripts/lib/tool-path.ts";
import { waitForServer } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import { readmeProblems } from "../support/plugin-readme.ts";
import { projectRoot } from "../support/portolan.ts";
import { Program, run } from "../support/program.ts";

const PORT = 10053;

const page = readFileSync(join(projectRoot, "CONTRIBUTING.md"), "utf8");
const blocks = blocksOf("Write a plugin in ten minutes");

const copy = mkdtempSync(join(tmpdir(), "portolan-contributing-"));
after(() => rmSync(copy, { recursive: true, force: true }));
copyProject();
const written = writeFiles(blocks);
const folder = dirname(written[0] ?? "");

test("every block of code is a file, a line of one, or a command", () => {
  assert.deepEqual(written, [
    "src/plugins/sinkhole/index.ts",
    "src/plugins/sinkhole/handler.ts",
    "src/plugins/plugin.cfg",
    "src/plugins/sinkhole/sinkhole.test.ts",
    "src/plugins/sinkhole/README.md",
  ]);
  const others = blocks.filter(({ introduction }) => fileOf(introduction) === undefined);
  assert.deepEqual(
    others.map(({ language }) => language),
    ["sh", "sh", "console", "sh"],
  );
});

test("the plugin's own test passes", async () => {
  const command = commands().find((text) => text.startsWith("npm test"));
  assert.ok(command !== undefined);
  const { code, output, errors } = await run("sh", ["-c", command], { cwd: copy });
  assert.equal(code, 0, output + errors);
  assert.match(output, /^[1-9]\d* passed, 0 failed, 0 skipped\n$/m);
});

test("the plugin passes the checks", async () => {
  assert.ok(commands().includes("npm run check\n"));
  // Other files in the copied tree are not the subject here.
  writeFileSync(
    join(copy, "tsconfig.sinkhole.json"),
    JSON.stringify({ extends: "./tsconfig.json", include: [folder] }),
  );
  for (const [tool, ...args] of [
    ["biome", "ci", "--colors=off", folder],
    ["oxlint", "--type-aware", folder],
    ["tsc", "-p", "tsconfig.sinkhole.json", "--pretty", "false"],
  ] as const) {
    const { code, output, errors } = await run(process.execPath, [toolPath(projectRoot, tool), ...args], {
      cwd: copy,
    });
    assert.equal(code, 0, `${tool}:\n${output}${errors}`);
  }
  const floors = await run(process.execPath, [join("scripts", "check-floors.ts"), "."], { cwd: copy });
  assert.doesNotMatch(floors.output, /sinkhole/);
  assert.equal(floors.errors, "");
});

test("its README has what the README of a plugin has", () => {
  assert.deepEqual(
    readmeProblems(basename(folder), readFileSync(join(copy, folder, "README.md"), "utf8")),
    [],
  );
});

test("the examples of its README start", async () => {
  const readme = readFileSync(join(copy, folder, "README.md"), "utf8");
  const [example] = fencedBlocks(readme).filter(({ language }) => language === "corefile");
  assert.ok(example !== undefined);
  await using server = await serve(example.text);
  assert.equal(server.program.hasEnded, false);
});

test("the server answers as shown", { skip: skipWithout("dig") }, async () => {
  const [, corefile = ""] =
    /^npx portolan -conf stdin <<'END'\n([\s\S]*)END\n$/.exec(
      commands().find((text) => text.startsWith("npx")) ?? "",
    ) ?? [];
  await using server = await serve(corefile);
  const session = blocks.find(({ language }) => language === "console")?.text ?? "";
  const shown = Array.from(session.matchAll(/^\$ (.*)\n((?!\$ ).*\n)/gm));
  assert.equal(shown.length, 2);
  for (const [, command = "", expected = ""] of shown) {
    const { output } = await run("sh", ["-c", command.replaceAll(String(PORT), String(server.port))]);
    assert.equal(withoutId(output), withoutId(expected));
  }
});

test("a plugin in one file answers in the quickstart", { skip: skipWithout("dig") }, async () => {
  const steps = blocksOf("A plugin in one file");
  const [source, corefile, ...others] = writeFiles(steps);
  assert.equal(source, "examples/quickstart/lighthouse.ts");
  assert.ok(readFileSync(join(copy, source), "utf8").split("\n").length <= 31, "more than 30 lines");
  assert.ok(corefile !== undefined);
  assert.deepEqual(others, [corefile]);
  // The ports of the example may be in use.
  const port = await freePort();
  const path = join(copy, corefile);
  const ports = new Map([["1053", port], ...(await freePorts("18080", "18181", "19153"))]);
  const text = readFileSync(path, "utf8");
  writeFileSync(
    path,
    text.replaceAll(/(?<=:)(1053|18080|18181|19153)\b/g, (each) => `${ports.get(each)}`),
  );

  const command = steps.find(({ language }) => language === "sh")?.text ?? "";
  const session = steps.find(({ language }) => language === "console")?.text ?? "";
  const [, ask = "", answer = ""] = /^\$ (.*)\n([\s\S]*)$/.exec(session) ?? [];
  // The command at the end of `npm start` (scripts/start.test.ts): npm passes no signal on to it.
  assert.equal(command, "npm start\n");
  await using program = new Program(process.execPath, [join(copy, "bin", "portolan"), "-conf", corefile], {
    cwd: copy,
  });
  const deadline = AbortSignal.timeout(120_000);
  const server = { address: "127.0.0.1", port };
  assert.ok(await waitForServer(server, () => program.hasEnded || deadline.aborted), program.describe());
  const { output } = await run("sh", ["-c", ask.replace("-p 1053", `-p ${port}`)]);
  assert.equal(output.replaceAll(/\s+/g, " "), answer.replaceAll(/\s+/g, " "));
  await program.stop();
});

async function freePorts(...names: readonly string[]): Promise<[string, number][]> {
  return Promise.all(names.map(async (name) => [name, await freePort()] as [string, number]));
}

function blocksOf(title: string): readonly FencedBlock[] {
  const walkThrough = sections(page, 2).find((section) => section.title === title);
  assert.ok(walkThrough !== undefined);
  return fencedBlocks(walkThrough.text);
}

function copyProject(): void {
  for (const part of ["src", "scripts", "bin", "examples"]) {
    cpSync(join(projectRoot, part), join(copy, part), {
      recursive: true,
      filter: (path) => !path.endsWith(".test.ts") && basename(path) !== "fixtures",
    });
  }
  for (const file of [
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "tsconfig.build.json",
    "biome.json",
    ".oxlintrc.json",
  ])
    cpSync(join(projectRoot, file), join(copy, file));
  symlinkSync(join(projectRoot, "node_modules"), join(copy, "node_modules"));
}

interface NamedFile {
  readonly path: string;
  /** Where the block goes into a file that is there: in front of this line. */
  readonly inFrontOf: string | undefined;
}

/** The file that the line in front of a block names. */
function fileOf(introduction: string): NamedFile | undefined {
  const [, path, inFrontOf] =
    /^`([^`]+)`(?:, (?:a line|lines) in front of `([^`]+)`)?:$/.exec(introduction) ?? [];
  return path === undefined ? undefined : { path, inFrontOf };
}

function writeFiles(steps: readonly FencedBlock[]): string[] {
  return steps.flatMap(({ introduction, text }) => {
    const file = fileOf(introduction);
    if (file === undefined) return [];
    writeTree(copy, { [file.path]: contentOf(file, text) });
    return [file.path];
  });
}

function contentOf({ path, inFrontOf }: NamedFile, text: string): string {
  if (inFrontOf === undefined) return text;
  const before = readFileSync(join(copy, path), "utf8");
  assert.equal(before.split(`\n${inFrontOf}\n`).length, 2, `${path} has one line ${inFrontOf}`);
  return before.replace(`\n${inFrontOf}\n`, `\n${text}${inFrontOf}\n`);
}

function commands(): string[] {
  return blocks.filter(({ language }) => language === "sh").map(({ text }) => text);
}

/** Runs the program of the copy with a Corefile, on a port that is free, until it answers. */
async function serve(corefile: string) {
  assert.match(corefile, new RegExp(`:${PORT} `));
  const port = await freePort();
  const input = corefile.replaceAll(String(PORT), String(port));
  const launcher = join(copy, "bin", "portolan");
  const program = new Program(process.execPath, [launcher, "-conf", "stdin"], { cwd: copy, input });
  const deadline = AbortSignal.timeout(30_000);
  if (!(await waitForServer({ address: "127.0.0.1", port }, () => program.hasEnded || deadline.aborted))) {
    await program[Symbol.asyncDispose]();
    throw new Error(`does not answer:\n${program.describe()}`);
  }
  return { program, port, [Symbol.asyncDispose]: () => program[Symbol.asyncDispose]() };
}

function withoutId(text: string): string {
  return text.replaceAll(/id: \d+/g, "id: …");
}
