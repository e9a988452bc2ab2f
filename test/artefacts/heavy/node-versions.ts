/** The package for npm on the versions of Node that people have. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Artefacts, MAKE_PATIENCE, PACKAGE_VERSION, VERSION } from "../../support/artefacts.ts";
import { dig } from "../../support/dig.ts";
import { freePort } from "../../support/free-ports.ts";
import { Program, run } from "../../support/program.ts";

describe("the package for npm", { timeout: MAKE_PATIENCE }, () => {
  const made = new Artefacts();
  before(() => made.make("npm"));
  after(() => made[Symbol.dispose]());

  for (const version of ["20", "22", "24"])
    test(`is installed and runs on Node ${version}, with Node 24 beside it`, async () => {
      using folders = new Artefacts();
      const install = async (name: string, ...packages: readonly string[]): Promise<string> => {
        const folder = folders.path(name);
        const words = ["install", "--prefix", folder, "--no-audit", "--no-fund", ...packages];
        const { code, errors } = await run("npm", words, { cwd: folders.folder, patience: MAKE_PATIENCE });
        assert.equal(code, 0, errors);
        return join(folder, "node_modules");
      };
      writeFileSync(folders.path("package.json"), "{}");
      const node = join(await install("node", `node@${version}`), "node", "bin");
      const modules = await install(
        "portolan",
        made.path(`portolan-${VERSION}.tgz`),
        ...(version === "24" ? [] : ["node@24"]),
      );
      const env = { PATH: [node, process.env.PATH].join(delimiter), PORTOLAN_COMMIT: "" };
      assert.match((await run("node", ["--version"], { env })).output, new RegExp(`^v${version}\\.`));
      const portolan = join(modules, ".bin", "portolan");
      const { output, errors } = await run(portolan, ["-version"], { env });
      assert.match(
        output,
        new RegExp(`^Portolan-${PACKAGE_VERSION}\n.*, node24\\.[\\d.]+, [0-9a-f]{12}`),
        errors,
      );
      const port = await freePort();
      const corefile = `.:${port} {\n bind 127.0.0.1\n whoami\n}\n`;
      await using server = new Program(portolan, ["-conf", "stdin"], { env, input: corefile });
      await server.waitForOutput(/^linux\/\w+, node24/m);
      assert.equal((await dig({ address: "127.0.0.1", port }, "example.org")).status, "NOERROR");
    });
});
