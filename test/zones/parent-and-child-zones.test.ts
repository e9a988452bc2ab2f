/** A zone and its child on one server: DS records are the parent's, everything else below the cut the child's (RFC 4035 section 3.1.4.1). */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { createServer, type EmbeddedServer } from "../../src/index.ts";
import { freePort } from "../support/free-ports.ts";
import { untilTrue } from "../support/until-true.ts";

const HEAD = "$TTL 60\n@ SOA ns.other.test. h.other.test. 7 7200 3600 86400 30\n@ NS ns.other.test.\n";
const digest = (octet: string): string => `12345 13 2 ${octet.repeat(32)}`;
const ZONES: Readonly<Record<string, string>> = {
  test: `example NS ns.other.test.\nexample DS ${digest("AA")}\n`,
  "example.test": `sub NS ns.other.test.\nsub DS ${digest("BB")}\n`,
  "sub.example.test": "www A 192.0.2.1\n",
  "elsewhere.example.test": "www A 192.0.2.2\n",
};
const ofParent = (name: string, octet: string): string => `aa ${name}. DS ${digest(octet)}`;
const noData = (apex: string): string => `aa ${apex}. SOA`;

/** Questions for DS, by what comes first in the answer. */
const CHILD_AND_PARENT: Readonly<Record<string, string>> = {
  "sub.example.test": ofParent("sub.example.test", "BB"),
  "SUB.example.test": ofParent("SUB.example.test", "BB"),
  "www.sub.example.test": noData("sub.example.test"),
  "example.test": noData("example.test"),
};

suite("parent and child zone on one server", () => {
  let folder = "";
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "portolan-parents-"));
    for (const [zone, lines] of Object.entries(ZONES)) {
      writeFileSync(join(folder, zone), HEAD + lines);
      mkdirSync(join(folder, `of-${zone}`));
      writeFileSync(join(folder, `of-${zone}`, `db.${zone}`), HEAD + lines);
    }
    mkdirSync(join(folder, "two"));
    for (const zone of ["example.test", "sub.example.test"])
      writeFileSync(join(folder, "two", `db.${zone}`), HEAD + ZONES[zone]);
    writeFileSync(join(folder, "root"), `${HEAD}test NS ns.other.test.\ntest DS ${digest("CC")}\n`);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const file = (zone: string): string => `file ${join(folder, zone)} ${zone}\n`;
  const auto = (name: string): string => `auto {\ndirectory ${join(folder, name)} db\\.(.*) {1}\n}\n`;

  async function serve(...blocks: readonly (readonly [zone: string, lines: string])[]) {
    const port = await freePort();
    const corefile = blocks.map(([zone, lines]) => `${zone}:${port} {\nbind 127.0.0.1\n${lines}}\n`).join("");
    const server = await createServer({ corefile, file: join(folder, "Corefile") });
    await server.start();
    return server;
  }

  async function check(server: EmbeddedServer, expected: Readonly<Record<string, string>>): Promise<void> {
    for (const [name, first] of Object.entries(expected)) {
      const { authoritative, answer, authority } = await server.ask({ name, type: "DS" });
      const [record = ""] = [...answer, ...authority];
      const shown = record.replace(/ \d+ IN /, " ").replace(/ SOA .*/, " SOA");
      assert.equal(`${authoritative ? "aa " : ""}${shown}`, first, `DS of ${name}`);
    }
  }

  for (const [title, lines] of [
    ["two files", () => file("example.test") + file("sub.example.test")],
    ["a folder of zones", () => auto("two")],
    [
      "a file for the child and a folder with the parent",
      () => file("sub.example.test") + auto("of-example.test"),
    ],
  ] as const) {
    test(`one block with ${title}: the parent has the DS records of the child`, async () => {
      await using server = await serve([".", lines()]);
      await check(server, CHILD_AND_PARENT);
      assert.deepEqual((await server.ask({ name: "www.sub.example.test" })).answer, [
        "www.sub.example.test. 60 IN A 192.0.2.1",
      ]);
    });
  }

  test("one block with copies from a primary: the parent has the DS records of the child", async () => {
    await using primary = await serve([".", `${auto("two")}transfer {\nto *\n}\n`]);
    const from = `transfer from 127.0.0.1:${primary.addresses[0]?.port}`;
    await using server = await serve([".", `secondary example.test sub.example.test {\n${from}\n}\n`]);
    for (const name of ["example.test", "sub.example.test"])
      await untilTrue(async () => (await server.ask({ name, type: "SOA" })).rcode === 0);
    await check(server, CHILD_AND_PARENT);
  });

  test("a block each: the next zone above has the DS records, and only those of the apex", async () => {
    const zones = ["test", "example.test", "sub.example.test"];
    await using server = await serve(...zones.map((zone) => [zone, file(zone)] as const));
    await check(server, {
      ...CHILD_AND_PARENT,
      "example.test": ofParent("example.test", "AA"),
      test: noData("test"),
    });
  });

  test("a zone further up is no parent: it delegates or lacks the name", async () => {
    await using server = await serve([".", file("test") + file("sub.example.test")]);
    await check(server, { "sub.example.test": noData("sub.example.test") });
    await using other = await serve([".", file("example.test") + file("elsewhere.example.test")]);
    await check(other, { "elsewhere.example.test": noData("elsewhere.example.test") });
  });

  test("a block with the root zone has the DS records of top-level domains, one that asks resolvers has not", async () => {
    const test = ["test", file("test")] as const;
    await using server = await serve([".", `file ${join(folder, "root")} .\n`], test);
    await check(server, { test: ofParent("test", "CC"), "example.test": ofParent("example.test", "AA") });
    await using other = await serve([".", "whoami\n"], test);
    await check(other, { test: noData("test") });
  });
});
