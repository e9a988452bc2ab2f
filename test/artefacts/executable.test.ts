/** The program in one file: it starts as fast as the package, and can do all that the package can. */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { Artefacts, MAKE_PATIENCE, PACKAGE_VERSION, readBill, VERSION } from "../support/artefacts.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { dig, kdig } from "../support/dig.ts";
import { freePort } from "../support/free-ports.ts";
import { projectRoot } from "../support/portolan.ts";
import { Program, run } from "../support/program.ts";

/** Of the time that the package takes to start. */
const MOST = 1.3;
/** Starts of each, in turns: the quickest counts, as the machine does other things meanwhile. */
const STARTS = 15;

const LIGHTHOUSE = `
import { parseRecord, RecordType } from "portolan/dns";
import { definePlugin, directive } from "portolan/plugin";

const light: ReturnType<typeof parseRecord> = parseRecord('light.example. 5 IN TXT "two flashes"');

export default definePlugin({
  name: "lighthouse",
  summary: "Shows a light.",
  config: directive({}),
  create: () => ({
    handle: (query, next) =>
      query.type === RecordType.TXT ? query.reply({ answer: [light] }) : next(query),
  }),
});
`;

const missing =
  process.arch === "x64"
    ? skipWithout("x86_64-linux-gnu-strip", "aarch64-linux-gnu-strip", "tar")
    : "the executable that is started here is for x64";

describe("the executable", { skip: missing, timeout: MAKE_PATIENCE }, () => {
  const made = new Artefacts();
  const executable = made.path(`portolan-${VERSION}-linux-x64`);
  const cache = made.path("cache");
  const inCache = { XDG_CACHE_HOME: cache, PORTOLAN_COMMIT: "" };

  before(async () => {
    await made.make("executable");
    // The first start unpacks.
    const { output } = await run(executable, ["-version"], { env: inCache });
    assert.match(output, new RegExp(`^Portolan-${PACKAGE_VERSION}\nlinux/amd64, node[\\d.]+, [0-9a-f]{12}`));
  });
  after(() => made[Symbol.dispose]());

  test("starts in at most 1.3 times the time of the package", async (t) => {
    const launcher = join(projectRoot, "bin", "portolan");
    const timeOf = async (command: string, ...args: readonly string[]): Promise<number> => {
      const start = performance.now();
      // The package does not ask git for its commit.
      const { code } = await run(command, [...args, "-plugins"], {
        env: { ...inCache, PORTOLAN_COMMIT: "x" },
      });
      assert.equal(code, 0);
      return performance.now() - start;
    };
    let [ofPackage, ofExecutable] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (let start = 0; start < STARTS; start++) {
      ofPackage = Math.min(ofPackage, await timeOf(process.execPath, launcher));
      ofExecutable = Math.min(ofExecutable, await timeOf(executable));
    }
    t.diagnostic(`package ${ofPackage.toFixed(0)} ms, executable ${ofExecutable.toFixed(0)} ms`);
    assert.ok(ofExecutable <= MOST * ofPackage, `${ofExecutable} ms, the package ${ofPackage} ms`);
  });

  test("lists in its bill of materials what it unpacks", () => {
    const [digest = ""] = readdirSync(join(cache, "portolan"));
    const unpacked = readdirSync(join(cache, "portolan", digest), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(join(cache, "portolan", digest).length + 1));
    const listed = readBill(executable).components.flatMap(({ components = [] }) => components);
    assert.deepEqual(unpacked.sort(), listed.map(({ name }) => name).sort());
  });

  test("serves with a plugin in TypeScript, on threads, and over QUIC", {
    skip: skipWithout("dig", "kdig"),
  }, async (t) => {
    const [dns, quic] = [await freePort(), await freePort()];
    const authority = new CertificateAuthority();
    const { certificate, key } = authority.issue({ commonName: "localhost", hosts: ["127.0.0.1"] });
    const folder = makeTree(t, {
      "lighthouse.ts": LIGHTHOUSE,
      "cert.pem": certificate,
      "key.pem": key,
      Corefile: `{
  plugin lighthouse ./lighthouse.ts before whoami
}
.:${dns} {
  bind 127.0.0.1
  multisocket 2
  lighthouse
  whoami
}
quic://.:${quic} {
  bind 127.0.0.1
  tls cert.pem key.pem
  lighthouse
}
`,
    });
    await using server = new Program(executable, ["-conf", "Corefile"], { cwd: folder, env: inCache });
    await server.waitForOutput(/^linux\/amd64, node/m);
    for (const ask of [
      () => dig({ address: "127.0.0.1", port: dns }, "light.example", "TXT"),
      () => kdig({ address: "127.0.0.1", port: quic }, "+quic", "light.example", "TXT"),
    ])
      assert.deepEqual((await ask()).answer, ['light.example. 5 IN TXT "two flashes"']);
    assert.doesNotMatch(server.output, /one datagram at a time/);
    assert.equal(server.errors, "");
  });

  test("makes a plugin, and runs its tests", async (t) => {
    const folder = makeTree(t, {});
    const options = { cwd: folder, env: inCache };
    assert.equal((await run(executable, ["plugin", "new", "greet"], options)).code, 0);
    const passed = await run(executable, ["plugin", "test"], options);
    assert.match(passed.output, /pass 4\n/, passed.errors);
    assert.equal(passed.code, 0);
    writeFileSync(join(folder, "greet", "greet.ts"), "export default undefined;\n");
    assert.notEqual((await run(executable, ["plugin", "test"], options)).code, 0);
  });

  test("explains, checks and helps", async (t) => {
    const folder = makeTree(t, { Corefile: ".:1053 {\n whoami\n}\n" });
    const said = async (...words: readonly string[]): Promise<string> => {
      const { code, output, errors } = await run(executable, words, { cwd: folder, env: inCache });
      assert.equal(code, 0, errors);
      return output;
    };
    assert.match(await said("explain", "example.org", "-conf", "Corefile"), /whoami/);
    assert.match(await said("check", "Corefile"), /no faults/);
    assert.match(await said("help", "cache"), /cache/);
    assert.match(await said("completion", "bash"), /portolan/);
  });

  test("runs nothing that another user may have put where it unpacks", async (t) => {
    const folder = makeTree(t, {});
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, "portolan"));
    chmodSync(join(folder, "portolan"), 0o777);
    const env = { XDG_CACHE_HOME: folder, HOME: join(folder, "home"), PORTOLAN_COMMIT: "" };
    mkdirSync(env.HOME);
    const { code, output } = await run(executable, ["-version"], { env });
    assert.equal(code, 0);
    assert.match(output, /^Portolan-/);
    assert.deepEqual(readdirSync(join(folder, "portolan")), []);
    assert.equal(readdirSync(join(env.HOME, ".cache", "portolan")).length, 1);
  });

  test("answers on arm64, under QEMU", {
    skip: skipWithout("qemu-aarch64-static", "dig", "/usr/aarch64-linux-gnu/lib/libstdc++.so.6"),
  }, async (t) => {
    const port = await freePort();
    const folder = makeTree(t, { Corefile: `.:${port} {\n bind 127.0.0.1\n whoami\n}\n` });
    const words = ["-L", "/usr/aarch64-linux-gnu", made.path(`portolan-${VERSION}-linux-arm64`)];
    await using server = new Program("qemu-aarch64-static", [...words, "-conf", "Corefile"], {
      cwd: folder,
      env: inCache,
      patience: 120_000,
    });
    await server.waitForOutput(/^linux\/arm64, node/m);
    assert.equal((await dig({ address: "127.0.0.1", port }, "example.org")).status, "NOERROR");
    assert.doesNotMatch(server.output, /one datagram at a time/);
  });
});
