/** The life of the Debian package in a system of its own: installed, upgraded, removed, purged. */
import assert from "node:assert/strict";
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { skipWithout, TOOL_PATH } from "../../../scripts/lib/system-tools.mjs";
import { Artefacts, MAKE_PATIENCE, PACKAGE_VERSION, VERSION } from "../../support/artefacts.ts";
import { dig } from "../../support/dig.ts";
import { freePort } from "../../support/free-ports.ts";
import { Program, run } from "../../support/program.ts";

const missing =
  process.getuid?.() === 0 && process.arch === "x64"
    ? skipWithout("mmdebstrap", "dpkg-deb", "dig")
    : "needs root, and an x64 machine";

async function output(command: string, ...args: readonly string[]): Promise<string> {
  const ended = await run(command, args, { patience: MAKE_PATIENCE, env: { PATH: TOOL_PATH } });
  assert.equal(ended.code, 0, `${[command, ...args].join(" ")}\n${ended.output}${ended.errors}`);
  return ended.output;
}

/** A small Debian like this machine's, from the servers that this machine's apt asks, in the same way. */
async function makeSystem(root: string): Promise<void> {
  const settings = (await output("apt-config", "dump", "Acquire")).split("\n");
  const release = readFileSync("/etc/os-release", "utf8");
  const [, suite = ""] = /^VERSION_CODENAME=(\w+)$/m.exec(release) ?? [];
  await output(
    "mmdebstrap",
    "--variant=apt",
    // What has no value is a heading.
    ...settings
      .filter((line) => /^\S+ ".+";$/.test(line))
      .map((line) => `--aptopt=${line.replace(/;$/, "")}`),
    suite,
    root,
    ...globSync("/etc/apt/{sources.list,sources.list.d/*.{list,sources}}"),
  );
}

describe("the package for Debian", { skip: missing, timeout: MAKE_PATIENCE }, () => {
  const made = new Artefacts();
  const root = made.path("root");
  const corefile = join(root, "etc", "portolan", "Corefile");
  const inRoot = (...words: readonly string[]): Promise<string> =>
    output(
      "chroot",
      root,
      "env",
      "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
      "DEBIAN_FRONTEND=noninteractive",
      ...words,
    );

  before(async () => {
    await Promise.all([made.make("packages", "--platform", "linux/amd64"), makeSystem(root)]);
    const deb = made.path(`portolan_${VERSION.replace("-dirty", "~dirty")}_amd64.deb`);
    await output("cp", deb, join(root, "tmp", "first.deb"));
    // The same with another version and another Corefile of its own.
    const next = made.path("next");
    await output("dpkg-deb", "--raw-extract", deb, next);
    const control = join(next, "DEBIAN", "control");
    writeFileSync(control, readFileSync(control, "utf8").replace(/^Version: .*$/m, "Version: 999"));
    writeFileSync(join(next, "etc", "portolan", "Corefile"), "# of the next version\n.:53 {\n whoami\n}\n");
    await output("dpkg-deb", "--root-owner-group", "-Znone", "--build", next, join(root, "tmp", "next.deb"));
    rmSync(next, { recursive: true });
  });
  after(() => made[Symbol.dispose]());

  test("is installed: user, command, and a server that runs as that user", async () => {
    await inRoot("dpkg", "--install", "/tmp/first.deb");
    assert.match(await inRoot("portolan", "-version"), new RegExp(`^Portolan-${PACKAGE_VERSION}\n`));
    assert.match(await inRoot("id", "portolan"), /^uid=[1-9]\d*\(portolan\) gid=\d+\(portolan\)/);
    const port = await freePort();
    // The kernel forgets what --kill-child set when the process changes its user.
    const asUser = [
      "setpriv",
      "--reuid=portolan",
      "--regid=portolan",
      "--clear-groups",
      "--pdeathsig=SIGKILL",
    ];
    // Node asks /proc for its memory.
    const inSystem = [
      "--fork",
      "--pid",
      "--kill-child",
      `--mount-proc=${join(root, "proc")}`,
      "chroot",
      root,
    ];
    await using server = new Program("unshare", [...inSystem, ...asUser, "portolan", "-conf", "stdin"], {
      env: { PATH: TOOL_PATH, HOME: "/nonexistent" },
      input: `.:${port} {\n bind 127.0.0.1\n whoami\n}\n`,
    });
    await server.waitForOutput(/^linux\/amd64, node/m);
    assert.equal((await dig({ address: "127.0.0.1", port }, "example.org")).status, "NOERROR");
    assert.doesNotMatch(server.output, /one datagram at a time/);
  });

  test("keeps the Corefile of its user through an upgrade", async () => {
    writeFileSync(corefile, "# mine\n");
    await inRoot("dpkg", "--force-confdef", "--force-confold", "--install", "/tmp/next.deb");
    assert.match(await inRoot("dpkg", "--status", "portolan"), /^Version: 999$/m);
    assert.equal(readFileSync(corefile, "utf8"), "# mine\n");
  });

  test("leaves the Corefile when it is removed, and nothing when it is purged", async () => {
    await inRoot("dpkg", "--remove", "portolan");
    assert.equal(existsSync(join(root, "usr", "bin", "portolan")), false);
    assert.equal(existsSync(join(root, "usr", "lib", "portolan")), false);
    assert.equal(readFileSync(corefile, "utf8"), "# mine\n");
    mkdirSync(join(root, "var", "lib", "portolan"), { recursive: true });
    await inRoot("dpkg", "--purge", "portolan");
    for (const path of ["etc/portolan", "var/lib/portolan", "usr/share/doc/portolan"])
      assert.equal(existsSync(join(root, path)), false, path);
  });
});
