import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import dynupdate from "./index.ts";

const FILE = "file db";
const ALLOW = "allow k @ A";

for (const [args, lines, message] of [
  ["dyn.test", [ALLOW], "file is required"],
  ["dyn.test", [FILE], "at least one allow rule is required"],
  ["dyn.test", ["file", ALLOW], "Wrong argument count or unexpected line ending after 'file'"],
  ["dyn.test", ["file db x", ALLOW], "Wrong argument count or unexpected line ending after 'x'"],
  ["dyn.test", [FILE, FILE, ALLOW], "file specified more than once"],
  ["dyn.test", [FILE, "allow"], "allow requires KEY NAME and at least one RR type"],
  ["dyn.test", [FILE, "allow k"], "allow requires KEY NAME and at least one RR type"],
  ["dyn.test", [FILE, "allow k @"], "allow requires KEY NAME and at least one RR type"],
  ["dyn.test", [FILE, "allow k @ * A"], "wildcard RR type must be the only type in an allow rule"],
  ["dyn.test", [FILE, "allow k @ A *"], "wildcard RR type must be the only type in an allow rule"],
  ["dyn.test", [FILE, "allow k @ FOO"], 'invalid RR type "FOO" in allow rule'],
  ["dyn.test", [FILE, "allow k @ RRSIG"], 'invalid RR type "RRSIG" in allow rule'],
  ["dyn.test", [FILE, "allow k @ DS"], 'invalid RR type "DS" in allow rule'],
  ["dyn.test", [FILE, "allow k @ ZONEMD"], 'invalid RR type "ZONEMD" in allow rule'],
  ["dyn.test", [FILE, "allow k @ AXFR"], 'invalid RR type "AXFR" in allow rule'],
  ["dyn.test", [FILE, "allow k @ OPT"], 'invalid RR type "OPT" in allow rule'],
  ["dyn.test", [FILE, "allow k..b @ A"], 'invalid TSIG key "k..b"'],
  ["dyn.test", [FILE, "allow * @ A"], 'invalid TSIG key "*"'],
  ["dyn.test", [FILE, "allow @ @ A"], 'invalid TSIG key "@"'],
  ["dyn.test", [FILE, 'allow "" @ A'], 'invalid TSIG key ""'],
  ["dyn.test", [FILE, 'allow k "" A'], 'allow name "" is outside zone "dyn.test."'],
  ["dyn.test", [FILE, "allow k www.other. A"], 'allow name "www.other." is outside zone "dyn.test."'],
  ["dyn.test", [FILE, "allow k www A"], 'allow name "www" is outside zone "dyn.test."'],
  ["dyn.test", [FILE, "allow k www..dyn.test. A"], 'allow name "www..dyn.test." is outside zone "dyn.test."'],
  ["a.test b.test", [FILE, ALLOW], "exactly one zone is allowed"],
  ["10.0.0.0/23", [FILE, ALLOW], 'invalid zone "10.0.0.0/23"'],
  ["dyn.test", [FILE, ALLOW, "database"], "Wrong argument count or unexpected line ending after 'database'"],
  ["dyn.test", [FILE, ALLOW, "database a", "database b"], "database specified more than once"],
  ["dyn.test", [FILE, ALLOW, "database db"], "database and seed must be different files"],
  ["dyn.test", [FILE, ALLOW, "database ./db"], "database and seed must be different files"],
  ["dyn.test", [FILE, ALLOW, 'database ""'], "Wrong argument count or unexpected line ending after ''"],
  ...["max_records", "max_bytes", "max_update_records"].flatMap((limit) => [
    ["dyn.test", [FILE, ALLOW, `${limit} 0`], `${limit} requires a positive integer`] as const,
    ["dyn.test", [FILE, ALLOW, `${limit} -1`], `${limit} requires a positive integer`] as const,
    ["dyn.test", [FILE, ALLOW, `${limit} 1k`], `${limit} requires a positive integer`] as const,
    ["dyn.test", [FILE, ALLOW, `${limit} 5`, `${limit} 6`], `${limit} specified more than once`] as const,
    [
      "dyn.test",
      [FILE, ALLOW, `${limit} 1 2`],
      "Wrong argument count or unexpected line ending after '2'",
    ] as const,
  ]),
] as const) {
  test(`refuses 'dynupdate ${args}' with ${JSON.stringify(lines)}`, () => {
    assert.throws(
      () => PluginTest.of(dynupdate, `dynupdate ${args} {\n${lines.join("\n")}\n}`),
      (error) => error instanceof ConfigRefused && error.message.includes(message),
    );
  });
}

for (const [title, text, place] of [
  [
    "at the closing brace: no file",
    `dynupdate dyn.test {\n${ALLOW}\n}`,
    "Corefile:4:1: error: file is required",
  ],
  [
    "at the closing brace: no rule",
    `dynupdate dyn.test {\n${FILE}\n}`,
    "Corefile:4:1: error: at least one allow rule is required",
  ],
  ["at the directive without a block", "dynupdate dyn.test", "Corefile:2:1: error: file is required"],
  [
    "for each line of a block",
    `dynupdate a.test {\n${FILE}\n${ALLOW}\n}\ndynupdate b.test {\n}`,
    "Corefile:7:1: error: file is required",
  ],
] as const) {
  test(`says what is missing ${title}`, () => {
    assert.throws(
      () => PluginTest.of(dynupdate, text),
      (error) => error instanceof ConfigRefused && error.message.includes(place),
    );
  });
}

const SEED = "$TTL 60\n@ SOA ns1 host 7 4 3 2 1\n@ NS ns1\nns1 A 192.0.2.1\n";

for (const [title, options, files, message] of [
  [
    "a seed that is missing",
    "file nope",
    {},
    /opening zone file "nope": open nope: no such file or directory/,
  ],
  [
    "a seed beyond max_records",
    "file db\nmax_records 2",
    { db: SEED },
    /zone file "db" exceeds configured limits/,
  ],
  [
    "a seed beyond max_bytes",
    "file db\nmax_bytes 4",
    { db: SEED },
    /zone file "db" exceeds configured limits/,
  ],
  [
    "a database in a directory that does not exist",
    "file db\ndatabase db-none/database",
    { db: SEED },
    /db-none\/database cannot be created: its directory does not exist$/,
  ],
  ["a directory as database", "file db\ndatabase /tmp", { db: SEED }, /: \/tmp is a directory: name a file$/],
  [
    "a bbolt database",
    "file db\ndatabase bolt",
    {
      db: SEED,
      bolt: Buffer.concat([Buffer.alloc(16), Buffer.of(0xed, 0xda, 0x0c, 0xed), Buffer.alloc(64)]),
    },
    /bolt is a bbolt database of CoreDNS/,
  ],
] as const) {
  test(`does not start with ${title}`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "portolan-dynupdate-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
    const running = PluginTest.of(
      dynupdate,
      `dynupdate dyn.test {\n${options.replaceAll(/(file|database) (db|bolt)/g, `$1 ${folder}/$2`)}\n${ALLOW}\n}`,
    );
    const shown = new RegExp(message.source.replace(/"db"/, `"${folder}/db"`));
    await assert.rejects(running.start(), shown);
    await running.stop();
  });
}

for (const [title, first, second, message] of [
  ["the zone", "a.test", "A.test", 'zone "a.test." has a dynupdate line already'],
  ["the database", "a.test", "b.test", 'database "d" is that of zone "a.test."'],
] as const) {
  test(`refuses a second line with ${title} of the first`, () => {
    const line = (zone: string): string => `dynupdate ${zone} {\n${FILE}\ndatabase d\n${ALLOW}\n}\n`;
    assert.throws(
      () => PluginTest.of(dynupdate, line(first) + line(second)),
      (error) => error instanceof ConfigRefused && error.message.includes(message),
    );
  });
}
