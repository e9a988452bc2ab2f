/** The image is what deploy/Dockerfile copies and runs: the same is done here in folders. */
import assert from "node:assert/strict";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, matchesGlob } from "node:path";
import { after, before, describe, test } from "node:test";
import { at, corefileOf, objectCalled, partAt, plainObjects } from "../support/deployment.ts";
import { freePort } from "../support/free-ports.ts";
import { projectRoot } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const DOCKERFILE = readFileSync(join(projectRoot, "deploy", "Dockerfile"), "utf8");
const manifest = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8"));
const packageLock = JSON.parse(readFileSync(join(projectRoot, "package-lock.json"), "utf8"));

const NODE_IMAGE = ["node:$", "{NODE_VERSION}-bookworm-slim"].join("");

/** Milliseconds, on a busy machine. */
const BUILD_TIME = 300_000;

interface Stage {
  readonly name: string;
  readonly image: string;
  /** Instructions with their arguments, each on one line. */
  readonly instructions: readonly (readonly [instruction: string, rest: string])[];
}

const stages = readStages(DOCKERFILE);
const build = stageCalled("build");
const image = stageCalled("program");

test("has a stage to build, one for the packages, the image, and that with the tools of node-cache", () => {
  assert.deepEqual(
    stages.map(({ name, image }) => [name, image]),
    [
      ["build", NODE_IMAGE],
      ["dependencies", NODE_IMAGE],
      ["program", NODE_IMAGE],
      ["node-cache", "program"],
      ["", "program"],
    ],
  );
  assert.deepEqual(stageCalled("").instructions, []);
});

test("runs on the Node that the tests run under", () => {
  const [, version] = /^ARG NODE_VERSION=(\S+)$/m.exec(DOCKERFILE) ?? [];
  assert.equal(version, manifest.devDependencies.node);
});

test("copies what is there and what the build may see", () => {
  const ignored = readFileSync(join(projectRoot, "deploy", "Dockerfile.dockerignore"), "utf8").split("\n");
  assert.ok(ignored.includes("*"));
  for (const stage of stages) {
    for (const source of copies(stage).flatMap(({ from, sources }) => (from === "" ? sources : []))) {
      assert.ok(existsSync(join(projectRoot, source)), source);
      assert.ok(
        ignored.some((line) => line.startsWith("!") && matchesGlob(source, line.slice(1))),
        `${source} is ignored`,
      );
    }
  }
});

test("installs by the lock file, and runs scripts that package.json has", () => {
  const commands = stages.map((stage) => valuesOf(stage, "RUN"));
  assert.deepEqual(commands, [
    ["npm ci --no-audit --no-fund", "npm run build"],
    [
      "node scripts/add-back-ends.mjs $BACK_ENDS",
      'if [ -z "$BACK_ENDS" ]; then npm ci --omit=dev --no-audit --no-fund; else npm install --omit=dev --no-audit --no-fund; fi',
    ],
    ["ln -s /opt/portolan/bin/portolan /usr/local/bin/portolan"],
    [
      "apt-get update && apt-get install -y --no-install-recommends iproute2 iptables nftables && rm -rf /var/lib/apt/lists/*",
    ],
    [],
  ]);
  assert.ok("build" in manifest.scripts);
});

test("node-cache is root, with the programs that it runs", () => {
  assert.deepEqual(valuesOf(stageCalled("node-cache"), "USER"), ["root"]);
  const source = readFileSync(join(projectRoot, "src/predecessors/node-cache/node-network.ts"), "utf8");
  const programs = new Set(
    Array.from(source.matchAll(/\brun\("(\w+)"|"(ip6?tables)"/g), ([, one, other]) => one ?? other),
  );
  assert.deepEqual(
    [...programs].map(String).toSorted((one, other) => one.localeCompare(other)),
    ["ip", "ip6tables", "iptables", "nft"],
  );
});

describe("the packages of back ends", () => {
  const folder = mkdtempSync(join(tmpdir(), "portolan-back-ends-"));
  after(() => rmSync(folder, { recursive: true, force: true }));

  async function add(...names: string[]) {
    cpSync(join(projectRoot, "package.json"), join(folder, "package.json"));
    const script = join(projectRoot, "scripts", "add-back-ends.mjs");
    const { code, errors } = await run(process.execPath, [script, ...names], { cwd: folder });
    return { code, errors, made: JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) };
  }

  test("come into the image by name, in the versions of the tests", async () => {
    const { code, made } = await add("route53", "azure", "clouddns");
    assert.equal(code, 0);
    for (const name of Object.keys(manifest.peerDependencies)) {
      assert.equal(made.dependencies[name], manifest.devDependencies[name]);
      assert.equal(made.devDependencies[name], undefined);
      assert.ok(packageLock.packages[`node_modules/${name}`].version === made.dependencies[name]);
    }
    assert.deepEqual((await add()).made, manifest);
  });

  test("are refused by an image without the files", async () => {
    const { code, errors, made } = await add("route53", "etcd");
    assert.deepEqual(
      [code, errors],
      [2, "No back end with a package: etcd. There are route53, azure, clouddns.\n"],
    );
    assert.deepEqual(made, manifest);
  });
});

test("is not root, and no other user than the manifests say", () => {
  const pod = partAt(objectCalled(plainObjects(), "Deployment portolan"), "spec.template.spec");
  const { runAsUser, runAsGroup } = partAt(pod, "securityContext");
  assert.deepEqual(valuesOf(image, "USER"), [`${runAsUser}:${runAsGroup}`]);
});

test("leaves probes to Kubernetes", () => {
  assert.deepEqual(valuesOf(image, "HEALTHCHECK"), []);
});

describe("what is built from the copies alone", () => {
  const folder = mkdtempSync(join(tmpdir(), "portolan-image-"));
  const built = join(folder, "build");
  const root = join(folder, "image");
  after(() => rmSync(folder, { recursive: true, force: true }));

  before(async () => {
    copyAll(build, built);
    symlinkSync(join(projectRoot, "node_modules"), join(built, "node_modules"));
    const { code, output, errors } = await run("npm", ["run", "build"], { cwd: built, patience: BUILD_TIME });
    assert.equal(code, 0, output + errors);

    copyAll(image, root);
    for (const path of productionPackages()) {
      cpSync(join(projectRoot, path), join(root, path), { recursive: true, verbatimSymlinks: true });
    }
  });

  /** The image's command, with the program where it is here. */
  function start(args: readonly string[]): ReturnType<typeof run> {
    const [program, script = "", ...rest]: string[] = JSON.parse(valuesOf(image, "ENTRYPOINT")[0] ?? "[]");
    assert.deepEqual([program, rest], ["node", []]);
    assert.ok(script.startsWith(`${workingDirectory()}/`));
    const here = join(root, script.slice(workingDirectory().length));
    return run(process.execPath, [here, ...args], { cwd: root, env: environment() });
  }

  test("is the program, in this version", async () => {
    const { code, output, errors } = await start(["-version"]);
    assert.deepEqual([code, errors], [0, ""]);
    assert.ok(output.startsWith(`Portolan-${manifest.version}\n`), output);
  });

  test("has every package and plugin that the Corefile of the manifests needs", async () => {
    writeFileSync(join(root, "Corefile"), corefileOf(plainObjects()));
    const { code, output, errors } = await start(["check", "Corefile"]);
    assert.equal(code, 0, output + errors);
    const packages = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies });
    const load = packages.filter(isInstalled).map((name) => `await import("${name}");`);
    const loaded = await run(process.execPath, ["--input-type=module", "-e", load.join("")], { cwd: root });
    assert.equal(loaded.code, 0, loaded.errors);
  });

  for (const [directive, name] of [
    ["route53 example.org.:Z1", "@aws-sdk/client-route-53"],
    ["azure group:example.org {\n subscription s\n}", "@azure/identity"],
    ["clouddns example.org.:project:zone", "google-auth-library"],
  ] as const) {
    test(`says in one line that ${name} is missing, and what to run`, async () => {
      writeFileSync(join(root, "Corefile"), `.:${await freePort()} {\n bind 127.0.0.1\n ${directive}\n}\n`);
      const { code, output, errors } = await start(["-conf", "Corefile"]);
      const lines = (output + errors).split("\n").filter((line) => line.includes(name));
      assert.deepEqual([code, lines.length], [1, 1], output + errors);
      assert.match(
        lines[0] ?? "",
        /package \S+ is not installed: run "npm install \S+" where Portolan is installed/,
      );
    });
  }

  function copyAll(stage: Stage, to: string): void {
    mkdirSync(to);
    for (const { from, sources, target } of copies(stage)) {
      for (const source of sources) {
        if (basename(source) === "node_modules") continue;
        const origin =
          from === "build" ? join(built, source.slice(workingDirectory().length)) : join(projectRoot, source);
        const isFolder = target.endsWith("/");
        cpSync(origin, isFolder ? join(to, target, basename(source)) : join(to, target), { recursive: true });
      }
    }
  }
});

function readStages(text: string): Stage[] {
  const lines = text.replaceAll(/\\\n\s*/g, "").split("\n");
  const found: { name: string; image: string; instructions: [string, string][] }[] = [];
  for (const line of lines) {
    if (line.startsWith("#") || line.trim() === "") continue;
    const [, instruction = "", rest = ""] = /^(\S+) (.*)$/.exec(line) ?? [];
    const [, from = "", name = ""] = /^(\S+)(?: AS (\S+))?$/.exec(rest) ?? [];
    if (instruction === "FROM") found.push({ name, image: from, instructions: [] });
    else found.at(-1)?.instructions.push([instruction, rest]);
  }
  return found;
}

function stageCalled(name: string): Stage {
  const stage = stages.find((each) => each.name === name);
  if (stage === undefined) throw new Error(`no stage "${name}"`);
  return stage;
}

function valuesOf(stage: Stage, instruction: string): string[] {
  return stage.instructions.flatMap(([name, rest]) => (name === instruction ? [rest] : []));
}

function copies(stage: Stage): { from: string; sources: string[]; target: string }[] {
  return valuesOf(stage, "COPY").map((rest) => {
    const [, from = "", paths = ""] = /^(?:--from=(\S+) )?(.*)$/.exec(rest) ?? [];
    const sources = paths.split(" ");
    return { from, target: sources.pop() ?? "", sources };
  });
}

function workingDirectory(): string {
  const [directory = ""] = valuesOf(image, "WORKDIR");
  return directory;
}

function environment(): NodeJS.ProcessEnv {
  const pairs = valuesOf(image, "ENV").flatMap((line) => line.split(" "));
  return Object.fromEntries(
    pairs.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]),
  );
}

/** As `npm ci --omit=dev` on this machine: packages for others are in the lock file and nowhere else. */
function productionPackages(): string[] {
  return Object.entries(packageLock.packages)
    .filter(([path, entry]) => path !== "" && at(entry, "dev") !== true)
    .map(([path]) => path)
    .filter((path) => existsSync(join(projectRoot, path)));
}

function isInstalled(name: string): boolean {
  return existsSync(join(projectRoot, "node_modules", name));
}
