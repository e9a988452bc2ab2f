/** The package for npm: its size, what is in it, and that it runs where it is installed. */
import assert from "node:assert/strict";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import {
  Artefacts,
  contentsOfBill,
  MAKE_PATIENCE,
  PACKAGE_VERSION,
  readBill,
  VERSION,
} from "../support/artefacts.ts";
import { dig } from "../support/dig.ts";
import { freePort } from "../support/free-ports.ts";
import { projectRoot } from "../support/portolan.ts";
import { Program, run } from "../support/program.ts";

/** Octets. */
const MOST = 2_000_000;

describe("the package for npm", { timeout: MAKE_PATIENCE }, () => {
  const made = new Artefacts();
  const archive = made.path(`portolan-${VERSION}.tgz`);

  before(async () => {
    await made.make("npm");
    writeFileSync(made.path("package.json"), '{"private":true}');
    const words = [
      "install",
      "--prefix",
      made.folder,
      "--no-audit",
      "--no-fund",
      "--prefer-offline",
      archive,
    ];
    const { code, errors } = await run("npm", words, { cwd: made.folder, patience: MAKE_PATIENCE });
    assert.equal(code, 0, errors);
  });
  after(() => made[Symbol.dispose]());

  test("takes at most 2 MB, with types and man pages", () => {
    const { size } = statSync(archive);
    assert.ok(size <= MOST, `${size} octets`);
    const contents = contentsOfBill(readBill(archive));
    for (const path of [
      "dist/index.d.ts",
      "dist/plugin/index.d.ts",
      "man/portolan.1",
      "man/Corefile.5",
      "LICENSE",
    ])
      assert.ok(path in contents, path);
  });

  test("has the files of its bill of materials", async () => {
    const { output } = await run("tar", ["--list", "--gzip", "--file", archive]);
    const files = output
      .trim()
      .split("\n")
      .map((path) => path.replace(/^package\//, ""));
    assert.deepEqual(files.sort(), Object.keys(contentsOfBill(readBill(archive))).sort());
  });

  test("runs where it is installed, without the packages for development", {
    skip: skipWithout("dig"),
  }, async () => {
    const command = made.path(join("node_modules", ".bin", "portolan"));
    const env = { PORTOLAN_COMMIT: "" };
    const { output } = await run(process.execPath, [command, "-version"], { env });
    assert.match(output, new RegExp(`^Portolan-${PACKAGE_VERSION}\n.* [0-9a-f]{12}(-dirty)?\n$`));
    assert.ok(!existsSync(made.path(join("node_modules", "typescript"))));
    const port = await freePort();
    const corefile = `.:${port} {\n bind 127.0.0.1\n whoami\n}\n`;
    await using server = new Program(process.execPath, [command, "-conf", "stdin"], { env, input: corefile });
    await server.waitForOutput(/^linux\/\w+, node/m);
    assert.equal((await dig({ address: "127.0.0.1", port }, "example.org")).status, "NOERROR");
    assert.doesNotMatch(server.output, /one datagram at a time/);
  });

  test("has types that a program in TypeScript is checked against", async () => {
    writeFileSync(
      made.path("user.ts"),
      'import { definePlugin } from "portolan/plugin";\nexport const define: typeof definePlugin = definePlugin;\n// @ts-expect-error\nexport const wrong: number = definePlugin;\n',
    );
    const compiler = join(projectRoot, "node_modules", "typescript", "bin", "tsc");
    const ofNode = ["--types", "node", "--typeRoots", join(projectRoot, "node_modules", "@types")];
    const options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2024", ...ofNode];
    const { code, output } = await run(process.execPath, [compiler, ...options, "user.ts"], {
      cwd: made.folder,
    });
    assert.equal(code, 0, output);
  });
});
