/** The container image: made without a container engine, and started by runc. */
import assert from "node:assert/strict";
import { cpSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { skipWithout, TOOL_PATH } from "../../scripts/lib/system-tools.mjs";
import {
  Artefacts,
  contentsOfBill,
  contentsOfFolder,
  MAKE_PATIENCE,
  PACKAGE_VERSION,
  readBill,
  VERSION,
} from "../support/artefacts.ts";
import { Container, LaidOutImage } from "../support/container.ts";
import { dig } from "../support/dig.ts";
import { freePort } from "../support/free-ports.ts";
import { projectRoot } from "../support/portolan.ts";
import { Program, run } from "../support/program.ts";

/** Octets. */
const MOST = 45_000_000;
const ARCHITECTURES = ["amd64", "arm64"];
const NAME = `portolan-${VERSION}-image`;

const missing =
  process.getuid?.() === 0
    ? skipWithout("apt-get", "dpkg-deb", "x86_64-linux-gnu-strip", "aarch64-linux-gnu-strip", "zstd")
    : "needs root: files of an image belong to it";

describe("the image", { skip: missing, timeout: MAKE_PATIENCE }, () => {
  const made = new Artefacts();
  let said = "";
  const rootfs = (architecture: string): string => made.path(`rootfs-${architecture}`);
  const image = (architecture: string): LaidOutImage => new LaidOutImage(made.path(NAME), architecture);

  before(async () => {
    said = await made.make("image");
    for (const architecture of ARCHITECTURES) await image(architecture).unpack(rootfs(architecture));
  });
  after(() => made[Symbol.dispose]());

  for (const architecture of ARCHITECTURES) {
    test(`for ${architecture} takes at most 45 MB, and says what it is`, () => {
      const { size } = statSync(made.path(`${NAME}-${architecture}.tar`));
      assert.ok(size <= MOST, `${size} octets`);
      assert.match(
        said,
        new RegExp(`^linux/${architecture}  [\\d.]+ MB compressed  ${image(architecture).digest}$`, "m"),
      );
      const { architecture: of, config } = image(architecture).configuration;
      assert.equal(of, architecture);
      assert.equal(config.User, "65532:65532");
      const label = (name: string) => config.Labels[`org.opencontainers.image.${name}`];
      assert.equal(label("version"), VERSION);
      assert.match(label("revision") ?? "", /^([0-9a-f]{12}(-dirty)?|unknown)$/);
      assert.equal(label("licenses"), "Apache-2.0");
      assert.ok(URL.canParse(label("source") ?? ""));
    });

    test(`for ${architecture} has the files that its bill of materials lists, and no others`, () => {
      const bill = readBill(made.path(`${NAME}-${architecture}.tar`));
      assert.deepEqual([bill.bomFormat, bill.specVersion], ["CycloneDX", "1.6"]);
      assert.deepEqual(contentsOfBill(bill), contentsOfFolder(rootfs(architecture)));
      const names = bill.components.map(({ name }) => name);
      for (const name of ["portolan", "undici", "koffi", "libc6", "yaml"])
        assert.ok(names.includes(name), name);
    });
  }

  test("is the same when it is made again", async () => {
    using again = new Artefacts();
    await again.make("image", "--platform", "linux/amd64");
    assert.equal(new LaidOutImage(again.path(NAME), "amd64").digest, image("amd64").digest);
  });

  test("is what skopeo takes, as a layout and as docker save has it", {
    skip: skipWithout("skopeo"),
  }, async () => {
    for (const architecture of ARCHITECTURES)
      for (const source of [
        `oci:${made.path(NAME)}:${VERSION}`,
        `oci-archive:${made.path(`${NAME}.tar`)}`,
        `docker-archive:${made.path(`${NAME}-${architecture}.tar`)}`,
      ]) {
        const { output, errors } = await run("skopeo", ["--override-arch", architecture, "inspect", source]);
        assert.ok(errors === "", errors);
        assert.equal(JSON.parse(output).Architecture, architecture, source);
      }
  });

  test("serves port 53 as another user than root, with one capability and a root that cannot be written to", {
    skip: skipWithout("runc", "nsenter", "ip", "dig"),
  }, async () => {
    await using container = Container.start(
      rootfs("amd64"),
      image("amd64").configuration,
      '.:53 {\n template IN A . {\n answer "{{ .Name }} 5 IN A 192.0.2.7"\n }\n}\n',
    );
    const banner = await container.program.waitForOutput(/^Portolan-(\S+)\nlinux\/amd64, node[\d.]+, \S+$/m);
    assert.equal(banner[1], PACKAGE_VERSION);
    await container.inNetwork("ip", "link", "set", "lo", "up");
    const answer = await container.inNetwork("dig", "@127.0.0.1", "+short", "+tries=1", "light.example");
    assert.equal(answer, "192.0.2.7\n");
    // koffi, which batched UDP rests on, would be missing otherwise.
    assert.doesNotMatch(container.program.output, /one datagram at a time/);
    const { Uid, CapEff, CapBnd } = await container.status();
    assert.deepEqual(
      [Uid?.split("\t")[1], CapEff, CapBnd],
      ["65532", "0000000000000400", "0000000000000400"],
    );
    const write = "require('fs').writeFileSync('/opt/x', '')";
    await assert.rejects(container.exec("/usr/local/bin/node", "-e", write), /EROFS/);
    assert.match(await container.exec("/usr/local/bin/portolan", "help"), /portolan is a DNS server/);
  });

  test("answers on arm64, under QEMU, with batched UDP", {
    skip: skipWithout("qemu-aarch64-static", "dig"),
  }, async () => {
    const root = rootfs("arm64");
    const port = await freePort();
    cpSync("/usr/bin/qemu-aarch64-static", join(root, "qemu"));
    mkdirSync(join(root, "etc", "coredns"));
    writeFileSync(
      join(root, "etc", "coredns", "Corefile"),
      `.:${port} {\n bind 127.0.0.1\n template IN A . {\n answer "{{ .Name }} 5 IN A 192.0.2.7"\n }\n}\n`,
    );
    const { Entrypoint } = image("arm64").configuration.config;
    const words = [...Entrypoint, "-conf", "/etc/coredns/Corefile"];
    await using program = new Program("chroot", [root, "/qemu", ...words], {
      env: { PATH: TOOL_PATH, NODE_OPTIONS: "--max-semi-space-size=2" },
      patience: 120_000,
    });
    await program.waitForOutput(/^linux\/arm64, node/m);
    const server = { address: "127.0.0.1", port };
    assert.deepEqual((await dig(server, "light.example")).answer, ["light.example. 5 IN A 192.0.2.7"]);
    assert.doesNotMatch(program.output, /one datagram at a time/);
  });
});

test("a platform without a Node of npm is refused by its name", async () => {
  const args = ["scripts/artefact.mjs", "image", "--platform", "linux/riscv64"];
  const { code, errors } = await run(process.execPath, args, { cwd: projectRoot });
  assert.equal(code, 1);
  assert.match(
    errors,
    /^Nothing can be made for linux\/riscv64: npm has Node [\d.]+ for linux\/amd64 and linux\/arm64/,
  );
});

test("a tool that is missing is named with its Debian package", async () => {
  using empty = new Artefacts();
  const args = ["scripts/artefacts/main.ts", "release", "--out", empty.folder];
  const { code, errors } = await run(process.execPath, args, {
    cwd: projectRoot,
    env: { PATH: empty.folder },
  });
  assert.equal(code, 1);
  assert.match(errors, /rpmbuild[\s\S]*apt-get install --no-install-recommends [\w\s-]*\brpm\b/);
});
