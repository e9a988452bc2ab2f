/** Catalog zones (RFC 9432): zones come and go with their catalog, a file of this server or one that Knot generates. */
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { createServer, type EmbeddedServer } from "../../src/index.ts";
import { freePort } from "../support/free-ports.ts";
import { Peer } from "../support/peers.ts";
import { sampleOf, serialOf, untilSerial, withFolder } from "../support/zone-copies.ts";

const APEX = (serial: number): string =>
  `$TTL 60\n@ SOA ns.invalid. h.invalid. ${serial} 3600 3600 86400 5\n@ NS ns.invalid.\n`;

/** @param lines such as `one.zones PTR a.example.` */
const catalogText = (serial: number, ...lines: string[]): string =>
  `${APEX(serial)}version TXT "2"\n${lines.join("\n")}\n`;

const axfrs = (metrics: string, zone: string): number =>
  sampleOf(metrics, `portolan_transfer_in_total{zone="${zone}",result="axfr"}`);

const members = (metrics: string, catalog: string): number =>
  sampleOf(metrics, `portolan_catalog_members{catalog="${catalog}"}`);

/** Two catalogs and three zones, from files that are reread at once; the secondary gets NOTIFY. */
class Pair implements AsyncDisposable {
  readonly port: number;
  readonly folder: string;
  readonly log: string[] = [];
  readonly server: EmbeddedServer;
  #serial = 1;

  private constructor(server: EmbeddedServer, port: number, folder: string, log: string[]) {
    this.server = server;
    this.port = port;
    this.folder = folder;
    this.log = log;
  }

  static async start(folder: string): Promise<Pair> {
    const [primary, secondary] = [await freePort(), await freePort()];
    for (const zone of ["a.example", "b.example", "c.test"]) writeFileSync(join(folder, zone), APEX(1));
    writeFileSync(
      join(folder, "first"),
      catalogText(1, "One.zones PTR A.example.", "two.zones PTR b.example.", "three.zones PTR c.test."),
    );
    writeFileSync(join(folder, "second"), catalogText(1));
    const file = (zone: string, name: string) =>
      ` file ${join(folder, name)} ${zone} {\n  reload 100ms\n }\n`;
    const log: string[] = [];
    const server = await createServer({
      corefile: `
.:${primary} {
 bind 127.0.0.1
${file("first.catalog", "first")}${file("second.catalog", "second")}${file("a.example", "a.example")}${file("b.example", "b.example")}${file("c.test", "c.test")}
 transfer {
  to 127.0.0.1:${secondary}
 }
}
.:${secondary} {
 bind 127.0.0.1
 secondary first.catalog {
  transfer from 127.0.0.1:${primary}
  catalog example
  directory ${join(folder, "kept")}
 }
 secondary second.catalog {
  transfer from 127.0.0.1:${primary}
  catalog
 }
}
`,
      file: join(folder, "Corefile"),
      log: (line) => log.push(line),
    });
    await server.start();
    return new Pair(server, secondary, folder, log);
  }

  /** Writes a catalog with the next serial, and waits until the secondary has it. */
  async write(name: string, text: (serial: number) => string): Promise<void> {
    this.writeUnseen(name, text);
    await untilSerial(this.port, this.#serial, () => this.log.join("\n"), `${name}.catalog.`);
  }

  /** Writes what the secondary will not take. */
  writeUnseen(name: string, text: (serial: number) => string): void {
    writeFileSync(join(this.folder, name), text(++this.#serial));
  }

  async until(condition: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + 30_000;
    while (!(await condition())) {
      await nextTurn();
      if (performance.now() > deadline) throw new Error(`did not come:\n${this.log.join("\n")}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
  }
}

test("zones come and go with a catalog, begin anew with another label, and stay when the catalog is broken", () =>
  withFolder(async (folder) => {
    await using pair = await Pair.start(folder);
    const { port, server } = pair;
    await untilSerial(port, 1, () => pair.log.join("\n"), "a.example.");
    await untilSerial(port, 1, () => pair.log.join("\n"), "b.example.");
    assert.equal(members(await server.metrics(), "first.catalog."), 2);
    assert.ok(pair.log.some((line) => /c\.test\. is not served: the name is not in a zone/.test(line)));
    const kept = join(folder, "kept", "b.example.zone");
    await pair.until(async () => existsSync(kept));

    await pair.write("first", (serial) => catalogText(serial, "one.zones PTR a.example."));
    await pair.until(async () => (await serialOf(port, "b.example.")) === undefined);
    await pair.until(async () => !existsSync(kept));
    assert.equal(axfrs(await server.metrics(), "a.example."), 1);

    await pair.write("first", (serial) => catalogText(serial, "other.zones PTR a.example."));
    await pair.until(async () => axfrs(await server.metrics(), "a.example.") === 2);
    await untilSerial(port, 1, () => pair.log.join("\n"), "a.example.");

    for (const broken of [
      (serial: number) => catalogText(serial).replace('"2"', '"3"'),
      (serial: number) => catalogText(serial, "x.zones PTR a.example.", "y.zones PTR a.example."),
      (serial: number) => catalogText(serial, "x.zones PTR a.example.", "x.zones PTR b.example."),
    ]) {
      const failed = 'portolan_transfer_in_total{zone="first.catalog.",result="failed"}';
      const before = sampleOf(await server.metrics(), failed);
      pair.writeUnseen("first", broken);
      await pair.until(async () => sampleOf(await server.metrics(), failed) > before);
      assert.equal(await serialOf(port, "a.example."), 1);
      await pair.write("first", (serial) => catalogText(serial, "other.zones PTR a.example."));
    }
  }));

test("a zone goes from one catalog to another when the first one says so, and keeps its records", () =>
  withFolder(async (folder) => {
    await using pair = await Pair.start(folder);
    const { port, server } = pair;
    await untilSerial(port, 1, () => pair.log.join("\n"), "a.example.");
    await pair.write("second", (serial) => catalogText(serial, "one.zones PTR a.example."));
    await pair.until(async () =>
      pair.log.some((line) => line.includes("it is a member of the catalog first.catalog.")),
    );
    assert.equal(members(await server.metrics(), "second.catalog."), 0);
    await pair.write("first", (serial) =>
      catalogText(serial, "one.zones PTR a.example.", "coo.one.zones PTR second.catalog."),
    );
    await pair.until(async () => members(await server.metrics(), "second.catalog.") === 1);
    assert.equal(await serialOf(port, "a.example."), 1);
    await pair.write("first", (serial) => catalogText(serial));
    assert.equal(await serialOf(port, "a.example."), 1);
    assert.equal(axfrs(await server.metrics(), "a.example."), 1);
  }));

test("a reload of the configuration keeps the zones of a catalog", () =>
  withFolder(async (folder) => {
    await using pair = await Pair.start(folder);
    const { port, server } = pair;
    await untilSerial(port, 1, () => pair.log.join("\n"), "a.example.");
    await server.reload();
    assert.equal(await serialOf(port, "a.example."), 1);
    assert.equal(axfrs(await server.metrics(), "a.example."), 1);
    await pair.write("first", (serial) => catalogText(serial));
    await pair.until(async () => (await serialOf(port, "a.example.")) === undefined);
  }));

test("zones of a catalog that Knot generates", { skip: skipWithout("knotd") }, () =>
  withFolder(async (folder) => {
    const port = await freePort();
    await using knot = await Peer.start("knotd", (knotPort) => ({
      args: ["-c", "knotd.conf"],
      config: [
        `server:\n  rundir: "."\n  listen: 127.0.0.1@${knotPort}`,
        'database:\n  storage: "."',
        `remote:\n  - id: other\n    address: 127.0.0.1@${port}`,
        "acl:\n  - id: all\n    address: 127.0.0.1\n    action: transfer",
        'template:\n  - id: default\n    storage: "."\n    acl: all\n    notify: other\n    semantic-checks: off',
        "zone:\n  - domain: catalog.example\n    catalog-role: generate",
        ...["a", "b"].map(
          (name) =>
            `  - domain: ${name}.example\n    file: zone\n    catalog-role: member\n    catalog-zone: catalog.example`,
        ),
      ],
      files: { zone: APEX(7) },
    }));
    const corefile = `.:${port} {\n bind 127.0.0.1\n secondary catalog.example {\n  transfer from 127.0.0.1:${knot.port}\n  catalog\n }\n}\n`;
    await using server = await createServer({ corefile, file: join(folder, "Corefile") });
    await server.start();
    await untilSerial(port, 7, () => knot.program.describe(), "a.example.");
    await untilSerial(port, 7, () => knot.program.describe(), "b.example.");
  }),
);
