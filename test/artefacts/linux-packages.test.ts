/** The packages for Debian and Red Hat's family: what is in them, and that it runs. `npm run test:artefacts` installs them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import {
  Artefacts,
  type Contents,
  contentsOfBill,
  contentsOfFolder,
  MAKE_PATIENCE,
  PACKAGE_VERSION,
  readBill,
  VERSION,
} from "../support/artefacts.ts";
import { dig } from "../support/dig.ts";
import { freePort } from "../support/free-ports.ts";
import { projectRoot } from "../support/portolan.ts";
import { Program, run } from "../support/program.ts";

const missing =
  process.arch === "x64"
    ? skipWithout("dpkg-deb", "rpmbuild", "x86_64-linux-gnu-strip", "bash")
    : "the packages that are started here are for x64";

/** How both order what comes before a version. */
const ORDERED = VERSION.replace("-dirty", "~dirty");

/** What a system needs beside the program itself. */
const SYSTEM_FILES = [
  "etc/portolan/Corefile",
  "usr/bin/portolan",
  "usr/lib/systemd/system/portolan.service",
  "usr/lib/sysusers.d/portolan.conf",
  "usr/share/bash-completion/completions/portolan",
  "usr/share/fish/vendor_completions.d/portolan.fish",
  "usr/share/man/man1/portolan.1.gz",
  "usr/share/man/man5/Corefile.5.gz",
  "usr/share/man/man7/portolan-cache.7.gz",
];

async function output(command: string, ...args: readonly string[]): Promise<string> {
  const ended = await run(command, args);
  assert.equal(ended.code, 0, ended.errors);
  return ended.output;
}

describe("the packages", { skip: missing, timeout: MAKE_PATIENCE }, () => {
  const made = new Artefacts();
  const deb = made.path(`portolan_${ORDERED}_amd64.deb`);
  const rpm = made.path(`portolan-${ORDERED}-1.x86_64.rpm`);
  const root = made.path("root");

  before(async () => {
    await made.make("packages", "--platform", "linux/amd64");
    await output("dpkg-deb", "--extract", deb, root);
  });
  after(() => made[Symbol.dispose]());

  test("for Debian has the files of its bill of materials", () => {
    const contents: Contents = contentsOfFolder(root);
    assert.deepEqual(contents, contentsOfBill(readBill(deb)));
    for (const path of [...SYSTEM_FILES, "usr/share/zsh/vendor-completions/_portolan"])
      assert.ok(path in contents, path);
  });

  test("for Debian keeps the Corefile of its user", async () => {
    assert.equal(await output("dpkg-deb", "--info", deb, "conffiles"), "/etc/portolan/Corefile\n");
    assert.equal(await output("dpkg-deb", "--field", deb, "Version"), `${ORDERED}\n`);
  });

  test("for Red Hat's family has the files of its bill of materials, and keeps the Corefile of its user", async () => {
    const query = async (...words: readonly string[]): Promise<string[]> =>
      (await output("rpm", "--query", "--package", rpm, ...words)).trim().split("\n");
    const format = "[%{FILENAMES} %{FILEMODES:perms} %{FILEDIGESTS}\n]";
    const files = (await query(`--queryformat=${format}`))
      .map((line) => line.split(" "))
      .filter(([, rights = ""]) => !rights.startsWith("d"));
    const hashes = Object.fromEntries(
      files.map(([path = "", rights, hash = ""]) => [path.slice(1), rights?.startsWith("l") ? "link" : hash]),
    );
    const billed = Object.entries(contentsOfBill(readBill(rpm))).map(([path, fact]) => {
      return [path, fact.startsWith("->") ? "link" : fact];
    });
    assert.deepEqual(hashes, Object.fromEntries(billed));
    for (const path of [...SYSTEM_FILES, "usr/share/zsh/site-functions/_portolan"])
      assert.ok(path in hashes, path);
    assert.deepEqual(await query("--configfiles"), ["/etc/portolan/Corefile"]);
  });

  test("have a program that runs on the Node beside it", { skip: skipWithout("dig") }, async () => {
    const program = join(root, "usr", "lib", "portolan");
    const words = [join(program, "bin", "portolan")];
    const { output: banner } = await run(join(program, "node"), [...words, "-version"], {
      env: { PORTOLAN_COMMIT: "" },
    });
    assert.match(banner, new RegExp(`^Portolan-${PACKAGE_VERSION}\n.* [0-9a-f]{12}(-dirty)?\n$`));
    // What a user who installs the package gets, on a port for tests.
    const corefile = readFileSync(join(root, "etc", "portolan", "Corefile"), "utf8");
    const port = await freePort();
    assert.match(corefile, /^\.:53 \{\n {4}bind 127\.0\.0\.1 ::1$/m);
    const here = corefile
      .replace(".:53", `.:${port}`)
      .replace("127.0.0.1 ::1", "127.0.0.1")
      .replace("/etc/resolv.conf", `127.0.0.1:${await freePort()}`);
    await using server = new Program(join(program, "node"), [...words, "-conf", "stdin"], { input: here });
    await server.waitForOutput(/^linux\/amd64, node/m);
    const { answer } = await dig({ address: "127.0.0.1", port }, "localhost");
    assert.deepEqual(
      answer.map((line) => line.split(" ").at(-1)),
      ["127.0.0.1"],
    );
  });
});

test("the service may do little: exposure 3.0 at most", {
  skip: skipWithout("systemd-analyze"),
}, async () => {
  const unit = join(projectRoot, "deploy", "linux", "portolan.service");
  const text = await output("systemd-analyze", "security", "--offline=true", "--no-pager", unit);
  const [, exposure] = /Overall exposure level for portolan\.service: ([\d.]+)/.exec(text) ?? [];
  assert.ok(Number(exposure) <= 3, text);
});
