/** `portolan check` finds no error in a Corefile exactly if the server starts with it. */
import assert from "node:assert/strict";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { parseAllDocuments } from "yaml";
import { fencedBlocks } from "../../scripts/lib/markdown.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { projectRoot, runPortolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";
import { STARTS_INSIDE, type Start } from "../support/starts-inside.ts";

/**
 * Parts that depend on the server's environment, and not on the Corefile: a cluster around it, or an account in a
 * cloud.
 */
const NOT_HERE = /in-cluster configuration: |failed to initialize (?:azure|clouddns|route53) plugin: /;

/** Corefiles that once were judged differently, and their neighbours. */
const MORE: Readonly<Record<string, string>> = {
  "all addresses, and one": ".:53 {\n whoami\n}\nexample.org:53 {\n bind 127.0.0.2\n whoami\n}\n",
  "both words for all addresses": ".:53 {\n bind 127.0.0.1 0.0.0.0 ::\n whoami\n}\n",
  "one address in two spellings": ".:53 {\n bind ::1\n whoami\n}\n.:53 {\n bind 0:0::1\n whoami\n}\n",
  "two protocols on one port": ".:853 {\n whoami\n}\ntls://. {\n whoami\n}\n",
  "two protocols at two addresses":
    ".:853 {\n bind 127.0.0.1\n whoami\n}\ntls://. {\n bind 127.0.0.2\n whoami\n}\n",
  "two protocols at one address and all of them":
    ".:853 {\n whoami\n}\ntls://. {\n bind 127.0.0.2\n whoami\n}\n",
  "an HTTP endpoint on the port of a server block": ".:8080 {\n health\n whoami\n}\n",
  "an HTTP endpoint on the port of a server block elsewhere":
    ".:8080 {\n bind 127.0.0.2\n health 127.0.0.1:8080\n whoami\n}\n",
  "an HTTP endpoint in two spellings":
    ".:53 {\n prometheus localhost:9153\n whoami\n}\n.:54 {\n prometheus 127.0.0.1:9153\n whoami\n}\n",
  "all HTTP endpoints on one port":
    ".:53 {\n health :80\n ready :80\n prometheus :80\n pprof :80\n whoami\n}\n",
  "k8s_external alone": ".:53 {\n k8s_external example.org\n}\n",
  "the same zone with and without bind": ".:53 {\n whoami\n}\n.:53 {\n bind 127.0.0.2\n whoami\n}\n",
};

const PAGES = ["*.md", "docs/**/*.md", "src/*/README.md", "src/plugins/*/README.md", "examples/**/README.md"];

function read(path: string): string {
  return readFileSync(join(projectRoot, path), "utf8");
}

function found(pattern: string | readonly string[]): string[] {
  return globSync(pattern, { cwd: projectRoot }).sort();
}

/** All Corefiles of the project, by where they stand. */
function corefiles(): Map<string, string> {
  const all = new Map<string, string>();
  for (const page of found(PAGES)) {
    for (const { language, text, line } of fencedBlocks(read(page)))
      if (language === "corefile") all.set(`${page}:${line}`, text);
  }
  for (const file of found("examples/**/Corefile*")) all.set(file, read(file));
  for (const file of found("deploy/kubernetes/**/*.yaml")) {
    for (const [index, document] of parseAllDocuments(read(file)).entries()) {
      const text: unknown = document.toJS()?.data?.Corefile;
      if (typeof text === "string") all.set(`${file}#${index}`, text);
    }
  }
  for (const [title, text] of Object.entries(MORE)) all.set(title, text);
  for (const file of found("test/fixtures/wrong-corefiles/*.txt")) {
    const [text = ""] = read(file).split(/^---\n/m);
    all.set(file, text);
  }
  return all;
}

interface Report {
  readonly diagnostics: readonly {
    readonly file: string;
    readonly severity: string;
    readonly message: string;
  }[];
}

/** Milliseconds. A start takes a tenth of a second, and many times that on a busy machine. */
const PATIENCE_FOR_ONE = 1_500;

test("check and the start agree on every Corefile of the project", {
  skip: (await NetworkNamespace.whyNot()) ?? false,
}, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "portolan-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const places = new Map<string, string>();
  for (const [place, text] of corefiles()) {
    const file = join(folder, String(places.size), "Corefile");
    mkdirSync(dirname(file));
    // No client queries these servers, so the time for late queries is not needed.
    writeFileSync(file, text.replaceAll(/lameduck \S+/g, "lameduck 0s"));
    places.set(file, place);
  }
  assert.ok(places.size > 150, `${places.size} Corefiles`);
  const files = [...places.keys()];

  await using network = await NetworkNamespace.make();
  const [command = "", ...args] = network.words(process.execPath, STARTS_INSIDE);
  // All of them are one run of a program, so its patience is that of all.
  const patience = files.length * PATIENCE_FOR_ONE;
  const started = await run(command, args, { cwd: projectRoot, input: files.join("\n"), patience });
  // Plugins of the examples print something themselves.
  const lines = started.output.split("\n").filter((line) => line.startsWith('{"file":'));
  const starts: Start[] = lines.map((line) => JSON.parse(line));
  const checked = await runPortolan(["check", "-format", "json", ...files], {
    cwd: projectRoot,
    patience,
  });
  const { diagnostics }: Report = JSON.parse(checked.output);
  const disagreements: string[] = [];
  let notHere = 0;
  for (const { file, failure } of starts) {
    const own = diagnostics.filter((each) => dirname(each.file) === dirname(file));
    const errors = own.filter(({ severity }) => severity === "error");
    if (errors.length > 0 === (failure !== undefined)) continue;
    if (failure !== undefined && NOT_HERE.test(failure)) {
      notHere++;
      continue;
    }
    disagreements.push(
      `${places.get(file)}: check ${errors.map(({ message }) => message).join("; ") || "finds no error"}, start ${failure ?? "succeeds"}`,
    );
  }
  assert.equal(starts.length, files.length, started.errors);
  assert.deepEqual(disagreements, []);
  const succeeded = starts.filter(({ failure }) => failure === undefined).length;
  assert.ok(succeeded > 100, `${succeeded} starts succeeded`);
  assert.ok(notHere < 12, `${notHere} starts failed because of where they were`);
});
