/**
 * `fallthrough` passes on queries for names that a zone does not have. An alias is a name that the zone has, whatever becomes of its
 * target (RFC 1034 section 4.3.2): the zone answers with it, and only the target is looked up behind it.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import fc from "fast-check";
import { createServer, type EmbeddedServer } from "../../src/index.ts";
import { freePort } from "../support/free-ports.ts";
import { randomZone } from "../support/random-zone.ts";
import { Route53Server } from "../support/route53-server.ts";
import { untilTrue } from "../support/until-true.ts";

const HEAD = "$TTL 60\n@ SOA ns.other.test. h.other.test. 7 7200 3600 86400 30\n@ NS ns.other.test.\n";
const FIRST = `${HEAD}gone CNAME nope
out CNAME nope.c.test.
in CNAME www.c.test.
dn DNAME www
dx DNAME c.test.
long DNAME ${"x".repeat(63)}.${"y".repeat(63)}.${"z".repeat(63)}.c.test.
*.wild CNAME nope.c.test.
a.empty A 192.0.2.9
`;
const SECOND = `${HEAD}www A 192.0.2.1\nback CNAME nope.a.test.\n`;

/** The plugin behind the zones: it has an address for `upstream` and nothing else. */
const BEHIND = `template ANY ANY . {
  match ^(.*[.])?(nope|www)[.]a[.]test[.]$
  answer "{{ .Name }} 60 IN A 203.0.113.9"
  fallthrough
}
template ANY ANY . {
  rcode NXDOMAIN
  authority ". 60 IN SOA ns.behind.test. h.behind.test. 1 2 3 4 5"
}`;

suite("aliases of zones with fallthrough", () => {
  let folder = "";
  let behind: EmbeddedServer;
  let forward = "";
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "portolan-aliases-"));
    mkdirSync(join(folder, "zones"));
    writeFileSync(join(folder, "zones", "db.a.test"), FIRST);
    writeFileSync(join(folder, "zones", "db.c.test"), SECOND);
    behind = await serve(BEHIND);
    forward = `forward . 127.0.0.1:${behind.addresses[0]?.port}`;
  });
  after(async () => {
    await behind.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A block of its own on a port of its own. */
  async function serve(lines: string): Promise<EmbeddedServer> {
    const port = await freePort();
    const corefile = `.:${port} {\nbind 127.0.0.1\n${lines}\n}\n`;
    const server = await createServer({ corefile, file: join(folder, "Corefile") });
    await server.start();
    return server;
  }

  const path = (name: string): string => join(folder, name);
  const files = (options: string): string =>
    ["a", "c"]
      .map((each) => `file ${path(`zones/db.${each}.test`)} ${each}.test {\n${options}\n}\n`)
      .join("");

  async function shown(server: EmbeddedServer, name: string, type = "A"): Promise<string> {
    const { rcode, authoritative, answer, authority } = await server.ask({ name, type });
    const records = [...answer, ...authority.filter((line) => line.includes(" SOA "))];
    const short = records.map((line) => line.replace(/^(\S+) \d+ IN (\S+) ?(\S*).*/, "$1 $2 $3"));
    return `rcode ${rcode}${authoritative ? ", aa" : ""}: ${short.join("; ")}`;
  }

  const NXDOMAIN_OF_NEXT = ". SOA ns.behind.test.";
  const LONG = "i".repeat(63);
  /** Question, and the answer of a zone in front of what stands behind it. */
  const ANSWERS: readonly (readonly [name: string, type: string, answer: string])[] = [
    ["gone.a.test", "A", "rcode 0, aa: gone.a.test. CNAME nope.a.test.; nope.a.test. A 203.0.113.9"],
    ["out.a.test", "A", `rcode 3, aa: out.a.test. CNAME nope.c.test.; ${NXDOMAIN_OF_NEXT}`],
    ["in.a.test", "A", "rcode 0, aa: in.a.test. CNAME www.c.test.; www.c.test. A 192.0.2.1"],
    ["back.c.test", "A", "rcode 0, aa: back.c.test. CNAME nope.a.test.; nope.a.test. A 203.0.113.9"],
    [
      "z.dn.a.test",
      "A",
      "rcode 0, aa: dn.a.test. DNAME www.a.test.; z.dn.a.test. CNAME z.www.a.test.; z.www.a.test. A 203.0.113.9",
    ],
    [
      "nope.dx.a.test",
      "A",
      `rcode 3, aa: dx.a.test. DNAME c.test.; nope.dx.a.test. CNAME nope.c.test.; ${NXDOMAIN_OF_NEXT}`,
    ],
    ["x.wild.a.test", "A", `rcode 3, aa: x.wild.a.test. CNAME nope.c.test.; ${NXDOMAIN_OF_NEXT}`],
    // Names that fall through, in front of answers that must not remember it.
    ["missing.a.test", "A", `rcode 3, aa: ${NXDOMAIN_OF_NEXT}`],
    ["z.dn.a.test", "CNAME", "rcode 0, aa: dn.a.test. DNAME www.a.test.; z.dn.a.test. CNAME z.www.a.test."],
    ["empty.a.test", "A", `rcode 3, aa: ${NXDOMAIN_OF_NEXT}`],
    [
      `${LONG}.long.a.test`,
      "A",
      `rcode 6, aa: long.a.test. DNAME ${"x".repeat(63)}.${"y".repeat(63)}.${"z".repeat(63)}.c.test.`,
    ],
  ];

  for (const [kind, lines] of [
    ["file", () => files("fallthrough")],
    ["file behind cache", () => `cache\n${files("fallthrough")}`],
    ["auto", () => `auto {\ndirectory ${path("zones")} db\\.(.*) {1}\nfallthrough\n}\n`],
  ] as const) {
    test(`${kind} answers with the alias, and the next plugin is only asked for the target`, async () => {
      await using server = await serve(lines() + forward);
      for (const round of [1, 2])
        for (const [name, type, answer] of ANSWERS)
          assert.equal(await shown(server, name, type), answer, `${name} ${type}, round ${round}`);
    });
  }

  test("secondary answers with the alias, and the next plugin is only asked for the target", async () => {
    await using primary = await serve(`transfer {\nto *\n}\n${files("")}`);
    const from = `127.0.0.1:${primary.addresses[0]?.port}`;
    await using server = await serve(
      `secondary a.test c.test {\ntransfer from ${from}\nfallthrough\n}\n${forward}`,
    );
    for (const name of ["a.test", "c.test"])
      await untilTrue(async () => (await server.ask({ name, type: "SOA" })).rcode === 0);
    for (const [name, type, answer] of ANSWERS) assert.equal(await shown(server, name, type), answer, name);
  });

  test("a zone of a cloud answers with the alias, and the next plugin is only asked for the target", async () => {
    await using cloud = await Route53Server.start();
    const soa = { type: "SOA", values: ["ns.other.test. h.other.test. 7 7200 3600 86400 30"] };
    cloud.zones.set("A", [
      { name: "a.test.", ...soa },
      { name: "out.a.test.", type: "CNAME", values: ["nope.c.test."] },
      { name: "gone.a.test.", type: "CNAME", values: ["nope.a.test."] },
    ]);
    cloud.zones.set("C", [{ name: "c.test.", ...soa }]);
    const credentials = join(folder, "credentials");
    writeFileSync(credentials, "[default]\naws_access_key_id = AKIDSTATIC\naws_secret_access_key = secret\n");
    await using server = await serve(`route53 a.test.:A c.test.:C {
      aws_endpoint ${cloud.url}
      credentials default ${credentials}
      fallthrough
    }\n${forward}`);
    for (const [name, type, answer] of ANSWERS.slice(0, 2))
      assert.equal(await shown(server, name, type), answer, name);
  });

  test("with random zones, fallthrough changes no answer but those for names that a zone does not have", async () => {
    let aliases = 0;
    for (const { lines, questions } of fc.sample(randomZone, { numRuns: 6, seed: 20_261 })) {
      writeFileSync(path("random"), `${lines.join("\n")}\n`);
      writeFileSync(path("other"), `${HEAD}www A 192.0.2.1\n`);
      const both = (options: string): string =>
        `file ${path("random")} example.org {\n${options}\n}\nfile ${path("other")} other.test {\n${options}\n}\n${forward}`;
      await using plain = await serve(both(""));
      await using through = await serve(both("fallthrough"));
      await using cached = await serve(`cache\n${both("fallthrough")}`);
      for (const { name, type } of questions) {
        const expected = await plain.ask({ name, type });
        const answer = await through.ask({ name, type });
        const question = `${name} ${type}`;
        // The plugin behind the zones has targets that the zones lack.
        assert.deepEqual(answer.answer.slice(0, expected.answer.length), expected.answer, question);
        if (/ IN [CD]NAME /.test(expected.answer[0] ?? "")) aliases++;
        else if (expected.rcode === 3) assert.match(await shown(through, name, type), /ns\.behind\.test/);
        for (const _ of ["asked of the plugin", "asked of the cache"])
          assert.deepEqual(
            withoutTtls((await cached.ask({ name, type })).answer),
            withoutTtls(answer.answer),
            question,
          );
      }
    }
    assert.ok(aliases > 20, `${aliases} aliases were asked for`);
  });
});

function withoutTtls(lines: readonly string[]): string[] {
  return lines.map((line) => line.replace(/ \d+ IN /, " IN "));
}
