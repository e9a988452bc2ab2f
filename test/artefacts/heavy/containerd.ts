/** The image as nodes of a cluster take it: imported by containerd, and started as a container. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { skipWithout, TOOL_PATH } from "../../../scripts/lib/system-tools.mjs";
import { Artefacts, MAKE_PATIENCE, PACKAGE_VERSION, VERSION } from "../../support/artefacts.ts";
import { dig } from "../../support/dig.ts";
import { freePort } from "../../support/free-ports.ts";
import { Program, run } from "../../support/program.ts";

const missing =
  process.getuid?.() === 0 && process.arch === "x64"
    ? skipWithout("containerd", "ctr", "runc", "dig")
    : "needs root, and an x64 machine";
const IMAGE = `docker.io/library/portolan:${VERSION}`;
const PLATFORMS = { amd64: "linux/amd64", arm64: "linux/arm64" };

/** A containerd of its own: no file and no socket of the machine's one, no registry, no CRI. */
class Containerd implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "portolan-containerd-"));
  readonly #daemon: Program;

  constructor() {
    const config = join(this.folder, "config.toml");
    writeFileSync(
      config,
      `version = 2
root = "${this.folder}/root"
state = "${this.folder}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "${this.#socket}"
[ttrpc]
  address = "${this.#socket}.ttrpc"
`,
    );
    this.#daemon = new Program("containerd", ["--config", config], { env: { PATH: TOOL_PATH } });
  }

  get #socket(): string {
    return join(this.folder, "containerd.sock");
  }

  /** Resolves once it answers. */
  async ready(): Promise<void> {
    await this.#daemon.waitForErrors(/containerd successfully booted/);
  }

  /** @throws where `ctr` fails */
  async ctr(...words: readonly string[]): Promise<string> {
    const { code, output, errors } = await run("ctr", ["--address", this.#socket, ...words], {
      env: { PATH: TOOL_PATH },
      patience: MAKE_PATIENCE,
    });
    assert.equal(code, 0, `ctr ${words.join(" ")}\n${output}${errors}`);
    return output;
  }

  /** `ctr run` in the network of the machine, with a root that cannot be written to. */
  run(name: string, corefile: string): Program {
    const file = join(this.folder, "Corefile");
    writeFileSync(file, corefile);
    const mount = `type=bind,src=${file},dst=/Corefile,options=rbind:ro`;
    const words = [
      "run",
      "--snapshotter",
      "native",
      "--net-host",
      "--read-only",
      "--mount",
      mount,
      IMAGE,
      name,
    ];
    return new Program("ctr", ["--address", this.#socket, ...words], { env: { PATH: TOOL_PATH } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#daemon.hasEnded) this.#daemon.kill("SIGTERM");
    await this.#daemon.ended;
    await this.#daemon[Symbol.asyncDispose]();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

describe("containerd", { skip: missing, timeout: MAKE_PATIENCE }, () => {
  const made = new Artefacts();
  const name = `portolan-${VERSION}-image`;

  before(async () => {
    await made.make("image");
  });
  after(() => made[Symbol.dispose]());

  for (const [title, file, platforms] of [
    ["what docker load takes, for amd64", `${name}-amd64.tar`, [PLATFORMS.amd64]],
    ["what docker load takes, for arm64", `${name}-arm64.tar`, [PLATFORMS.arm64]],
    ["the OCI layout of both", `${name}.tar`, [PLATFORMS.amd64, PLATFORMS.arm64]],
  ] as const) {
    test(`imports ${title}`, async () => {
      await using containerd = new Containerd();
      await containerd.ready();
      await containerd.ctr("images", "import", "--snapshotter", "native", "--all-platforms", made.path(file));
      const [, line = "", ...more] = (await containerd.ctr("images", "list")).trim().split("\n");
      assert.deepEqual(more, []);
      const [reference, , , , , offered = ""] = line.split(/\s+/);
      assert.equal(reference, IMAGE);
      assert.deepEqual(offered.split(","), platforms);
      // Every blob is there, and every layer could be laid out.
      assert.match(
        await containerd.ctr("images", "check", "--snapshotter", "native"),
        new RegExp(`^${RegExp.escape(IMAGE)} .*complete \\(.*true`, "m"),
      );
    });
  }

  test("runs the image, which answers dig as another user than root", async () => {
    await using containerd = new Containerd();
    await containerd.ready();
    await containerd.ctr("images", "import", "--snapshotter", "native", made.path(`${name}.tar`));
    const port = await freePort();
    const corefile = `.:${port} {\n bind 127.0.0.1\n template IN A . {\n answer "{{ .Name }} 5 IN A 192.0.2.7"\n }\n}\n`;
    const program = containerd.run("portolan", corefile);
    try {
      const [, version] = await program.waitForOutput(/^Portolan-(\S+)$/m);
      assert.equal(version, PACKAGE_VERSION);
      const { answer } = await dig({ address: "127.0.0.1", port }, "light.example");
      assert.deepEqual(answer, ["light.example. 5 IN A 192.0.2.7"]);
      const [, task = ""] = (await containerd.ctr("tasks", "list")).trim().split("\n");
      const [, pid = ""] = task.split(/\s+/);
      const { output } = await run("ps", ["-o", "uid=", "-p", pid]);
      assert.equal(output.trim(), "65532");
    } finally {
      await containerd.ctr("tasks", "kill", "--signal", "SIGTERM", "portolan");
      await program.ended;
      await program[Symbol.asyncDispose]();
      await containerd.ctr("containers", "delete", "portolan");
    }
  });
});
