/** A Corefile without a server block serves something at the start, and nothing in place of what is served already. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { exchangeUdp, queryOctets } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import { Portolan, portolan, runPortolan } from "../support/portolan.ts";

const EMPTY = [
  ["nothing at all", ""],
  ["a comment", "# to be written\n"],
  ["a snippet", "(common) {\n    errors\n}\n"],
  ["an import of files that are not there", "import conf.d/*.conf\n"],
] as const;

/** RCODE of the reply to a query for `example.`; 0 is NOERROR, 3 NXDOMAIN. */
async function rcode(server: Portolan): Promise<number> {
  const reply = await exchangeUdp(server, queryOctets("example."));
  assert.ok(reply !== undefined, "no reply");
  return (reply[3] ?? 0) & 15;
}

const NXDOMAIN = 3;
const SERVFAIL = 2;

describe("at a reload", () => {
  for (const [title, text] of EMPTY) {
    test(`${title} is refused, and the old configuration stays`, async () => {
      await using server = await Portolan.start(
        (port) => `.:${port("dns")} {\n template ANY ANY {\n rcode NXDOMAIN\n }\n}`,
      );
      const log = await server.reload(() => text);
      assert.match(log, /\[ERROR\] Restart failed: Corefile:1:1: error: there is no server block/);
      assert.equal(await rcode(server), NXDOMAIN);
      const later = await server.reload(
        (port) => `.:${port("dns")} {\n template ANY ANY {\n rcode SERVFAIL\n }\n}`,
      );
      assert.match(later, /Reloading complete/);
      assert.equal(await rcode(server), SERVFAIL);
    });
  }

  test("the watch of reload goes on behind an empty file, and behind one without reload", async () => {
    const answering = (port: number, word: string, name: string) =>
      `.:${port} {\n ${word}\n template ANY ANY {\n rcode ${name}\n }\n}`;
    await using server = await Portolan.start((port) => answering(port("dns"), "reload 2s 0s", "NXDOMAIN"));
    let start = server.log.length;
    server.writeCorefile("");
    await server.waitForLog(/Corefile changed but reload failed: .*there is no server block/, start);
    start = server.log.length;
    server.writeCorefile(answering(server.port, "errors", "SERVFAIL"));
    await server.waitForLog(/Reloading complete[\s\S]*Running configuration SHA512/, start);
    assert.equal(await rcode(server), SERVFAIL);
    start = server.log.length;
    server.writeCorefile(answering(server.port, "errors", "NXDOMAIN"));
    await server.waitForLog(/Reloading complete/, start);
    assert.equal(await rcode(server), NXDOMAIN);
    const { code } = await server.stop();
    assert.equal(code, 0);
  });
});

test("each content that is refused counts once, be the fault the same, and is told once", async () => {
  await using server = await Portolan.start(
    (port) =>
      `.:${port("dns")} {\n reload 2s 0s\n prometheus 127.0.0.1:${port("metrics")}\n template ANY ANY {\n rcode NXDOMAIN\n }\n}`,
  );
  const failures = async (): Promise<number> => {
    const reply = await fetch(`http://127.0.0.1:${server.portOf("metrics")}/metrics`);
    return Number(/^coredns_reload_failed_total (\d+)$/m.exec(await reply.text())?.[1]);
  };
  const told = () => server.log.match(/Corefile changed but reload failed: /g)?.length ?? 0;
  const contents = [
    "",
    "# a comment\n",
    "# another comment\n",
    ".:53 {\n cach\n}\n",
    ".:53 {\n cach\n}\n# more\n",
  ];
  for (const [index, content] of contents.entries()) {
    const start = server.log.length;
    server.writeCorefile(content);
    await server.waitForLog(/Corefile changed but reload failed: /, start);
    assert.deepEqual([await failures(), told()], [index + 1, index + 1]);
  }
  // The watch has looked at the last one again before it finds what is in force.
  server.writeCorefile(EMPTY[1][1]);
  await server.waitForLog(/there is no server block[\s\S]*cach[\s\S]*there is no server block/);
  assert.deepEqual([await failures(), told()], [contents.length + 1, contents.length + 1]);
});

for (const [title, text] of EMPTY) {
  test(`check says of ${title} what is served, and strictly refuses it`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "portolan-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, "Corefile");
    writeFileSync(file, text);
    const checked = await runPortolan(["check", file]);
    assert.equal(checked.code, 0);
    assert.match(
      checked.output,
      /:1:1: warning: there is no server block, so the built-in one is served: whoami on port 53/,
    );
    assert.equal((await runPortolan(["check", "-strict", file])).code, 1);
  });
}

test("at the start the built-in server block is served, with a warning, and a reload leaves it", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "portolan-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "Corefile");
  writeFileSync(file, "");
  const port = await freePort();
  await using program = portolan(["-conf", file, "-dns.port", String(port)]);
  await program.waitForOutput(/^\w+\/\w+, node\d/m);
  assert.match(program.output, /\[WARNING\] \S*Corefile:1:1: warning: there is no server block/);
  assert.ok((await exchangeUdp({ address: "127.0.0.1", port }, queryOctets("example."))) !== undefined);
  writeFileSync(file, "# still nothing\n");
  program.kill("SIGUSR1");
  await program.waitForOutput(/\[INFO\] Reloading complete/);
});
