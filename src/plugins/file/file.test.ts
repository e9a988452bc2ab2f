import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, unlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { DROPPED, SetupError } from "../../plugin/index.ts";
import { answering, ConfigRefused, PluginTest, records, until } from "../../plugin/testing.ts";
import file from "./index.ts";

let folder = "";
let stamp = 1_700_000_000;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "portolan-file-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const HEAD = "$TTL 60\n@ SOA ns.other.test. h.other.test. SERIAL 4 3 2 1\n@ NS ns.other.test.\n";

/** Writes a file with a distinct time stamp: two writes in one second could have the same. */
function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  stamp += 10;
  utimesSync(path, stamp, stamp);
  return path;
}

function zone(serial: number, lines: string): string {
  return `${HEAD.replace("SERIAL", String(serial))}${lines}\n`;
}

function serve(options = "", zones = "example.org") {
  return PluginTest.of(file, `file ${join(folder, "db")} ${zones} {\n${options}\n}`);
}

async function addresses(running: ReturnType<typeof serve>, name = "www.example.org."): Promise<string[]> {
  return (await running.ask({ name })).answer;
}

test("loads a file with another serial, and invalidates the caches of the block", async () => {
  write("db", zone(10, "www A 192.0.2.1"));
  const forgotten: string[] = [];
  const cache = {
    name: "cache",
    instance: { forget: (names: readonly unknown[]) => void forgotten.push(...names.map(String)) },
  };
  const running = PluginTest.of(file, `file ${join(folder, "db")} example.org {\n reload 1s\n}`, {
    neighbours: [cache],
  });
  await running.start();
  assert.deepEqual(await addresses(running), ["www.example.org. 60 IN A 192.0.2.1"]);
  for (const serial of [11, 5, 0]) {
    write("db", zone(serial, `www A 192.0.2.${serial + 2}`));
    await running.clock.settle(1_000);
    await until(() => running.log.lines.some((line) => line.includes(`with ${serial} SOA serial`)));
    assert.deepEqual(await addresses(running), [`www.example.org. 60 IN A 192.0.2.${serial + 2}`]);
  }
  assert.ok(forgotten.includes("example.org."));
  await running.stop();
});

test("keeps the zone when the serial is the same, unless reload_by_mtime is given", async () => {
  for (const [options, expected] of [
    ["reload 1s", "192.0.2.1"],
    ["reload 1s\nreload_by_mtime", "192.0.2.2"],
  ] as const) {
    write("db", zone(10, "www A 192.0.2.1"));
    const running = serve(options);
    await running.start();
    write("db", zone(10, "www A 192.0.2.2"));
    await running.clock.settle(1_000);
    await until(() => running.clock.pendingTimers > 0);
    assert.deepEqual(await addresses(running), [`www.example.org. 60 IN A ${expected}`]);
    await running.stop();
  }
});

test("a file that was read while incomplete is read again with the same serial", async () => {
  const start = zone(11, "www A 192.0.2.11");
  write("db", zone(10, "www A 192.0.2.10"));
  const running = serve("reload 1s");
  await running.start();
  const look = async (): Promise<void> => {
    await running.clock.settle(1_000);
    await until(() => running.clock.pendingTimers > 0);
  };
  const says = (text: string): boolean => running.log.lines.some((line) => line.includes(text));
  write("db", start);
  await look();
  await until(() => says("with 11 SOA serial"));
  // Writes half of a line, then the whole file.
  write("db", `${start}last A 192.0.`);
  await look();
  await until(() => says('not an IPv4 address: "192.0."'));
  write("db", `${start}last A 192.0.2.1\n`);
  await look();
  await until(() => says("was read before"));
  assert.deepEqual(await addresses(running, "last.example.org."), ["last.example.org. 60 IN A 192.0.2.1"]);
  // Replaces the file, and appends much later: the serial counts.
  write("new", `${start}last A 192.0.2.2 ; with more to it\n`);
  renameSync(join(folder, "new"), join(folder, "db"));
  await look();
  stamp += 60;
  write("db", `${start}last A 192.0.2.3 ; with still more to it\n`);
  await look();
  await look();
  assert.deepEqual(await addresses(running, "last.example.org."), ["last.example.org. 60 IN A 192.0.2.1"]);
  await running.stop();
});

test("a file with faults keeps the old zone, and each fault is in the log with its place", async () => {
  const path = write("db", zone(10, "www A 192.0.2.1"));
  const running = serve("reload 1s");
  await running.start();
  write("db", zone(11, "www A 192.0.2.300\nx FOO bar"));
  await running.clock.settle(1_000);
  await until(() => running.log.lines.some((line) => line.includes("Parsing zone")));
  const complaint = running.log.lines.find((line) => line.includes("Parsing zone")) ?? "";
  assert.match(
    complaint,
    /db:4:7: not an IPv4 address: "192\.0\.2\.300"; .*db:5:3: "FOO" is not a record type/,
  );
  assert.deepEqual(await addresses(running), ["www.example.org. 60 IN A 192.0.2.1"]);
  unlinkSync(path);
  await running.clock.settle(1_000);
  await until(() => running.log.lines.some((line) => line.includes("no such file or directory")));
  assert.deepEqual(await addresses(running), ["www.example.org. 60 IN A 192.0.2.1"]);
  await running.stop();
});

test("a missing file is waited for, with SERVFAIL until it exists", async () => {
  const running = serve("reload 1s");
  await running.start();
  assert.match(
    running.log.lines.join("\n"),
    /Failed to open "open .*db: no such file or directory": trying again in 1s/,
  );
  const outcome = await running.outcome({ name: "www.example.org." });
  assert.equal(outcome.kind === "failed" && outcome.rcode, 2);
  write("db", zone(3, "www A 192.0.2.3"));
  await running.clock.settle(1_000);
  await until(() => running.log.lines.some((line) => line.includes("with 3 SOA serial")));
  assert.deepEqual(await addresses(running), ["www.example.org. 60 IN A 192.0.2.3"]);
  await running.stop();
});

for (const [title, text, message] of [
  ["no SOA record", "$TTL 60\nwww A 192.0.2.1\n", /has no SOA record for origin example\.org\./],
  ["an unclosed parenthesis", zone(1, "www TXT ( a"), /db:4:9: parenthesis is never closed/],
  ["an unclosed quote", zone(1, 'www TXT "a'), /db:4:9: quoted text has no closing quote/],
  [
    "a missing include",
    zone(1, "$INCLUDE nowhere"),
    /db:4:10: failed to open nowhere: no such file or directory/,
  ],
  ["an include of itself", zone(1, "$INCLUDE db"), /too deeply nested \$INCLUDE/],
  ["an unknown directive", zone(1, "$FOO x"), /db:4:1: unknown directive \$FOO/],
  ["a long label", zone(1, `${"a".repeat(64)} A 192.0.2.1`), /label longer than 63 octets/],
] as const) {
  test(`does not start with ${title}`, async () => {
    write("db", text);
    await assert.rejects(
      serve().start(),
      (error) => error instanceof SetupError && message.test(error.message),
    );
  });
}

test("does not start without the file if reloads are off", async () => {
  await assert.rejects(serve("reload 0").start(), /open .*db: no such file or directory/);
});

test("a questionable but usable zone gets a warning", async () => {
  write("db", zone(1, "a CNAME b\na TXT x\nelsewhere.test. A 192.0.2.1\nb CH TXT x\n@ SOA ns h 2 1 1 1 1"));
  const running = serve();
  await running.start();
  const log = running.log.lines.join("\n");
  assert.match(log, /db:5:1: warning: other data beside a CNAME record/);
  assert.match(log, /db:6:1: warning: ignored: the name does not lie in example\.org\./);
  assert.match(log, /db:7:1: warning: ignored: class CH in a zone of class IN/);
  assert.match(log, /db:8:1: warning: a second SOA record of the zone: it replaces the first/);
  await running.stop();
});

test("names that do not exist may fall through, existing names may not", async () => {
  write("db", zone(1, "www A 192.0.2.1\nx.ent A 192.0.2.2\nsub NS ns.other.test."));
  const next = answering({ answer: records("elsewhere. 5 IN A 192.0.2.53") });
  const running = serve("fallthrough");
  await running.start();
  for (const [name, falls] of [
    ["nope.example.org.", true],
    ["ent.example.org.", true],
    ["www.example.org.", false],
    ["a.sub.example.org.", false],
  ] as const) {
    const { answer } = await running.ask({ name, next, type: "TXT" });
    assert.equal(answer.includes("elsewhere. 5 IN A 192.0.2.53"), falls, name);
  }
  await running.stop();
});

test("as the last plugin it refuses names outside its zones; NOTIFY is dropped, transfers are refused", async () => {
  write("db", zone(1, "www A 192.0.2.1"));
  const running = serve();
  await running.start();
  const stray = await running.outcome({ name: "example.net." });
  assert.equal(stray.kind === "failed" && stray.rcode, 5);
  const transfer = await running.outcome({ name: "example.org.", type: "AXFR", transport: "tcp" });
  assert.equal(transfer.kind === "failed" && transfer.rcode, 5);
  assert.equal(await running.outcome({ name: "example.org.", type: "SOA", opcode: 4 }), DROPPED);
  assert.match(running.log.lines.join("\n"), /Dropping notify from 192\.0\.2\.1 for example\.org\./);
  await running.stop();
});

test("a zone can be transferred with all its records; the caller adds the SOA at both ends", async () => {
  write("db", zone(7, "www A 192.0.2.1\n*.w TXT w"));
  const running = serve();
  await running.start();
  const source = running.instances[0]?.transferSource;
  const [apex] = source?.transferZones ?? [];
  const copy = apex && source?.transfer(apex);
  assert.equal(copy?.soa.data.serial, 7);
  assert.deepEqual(
    Array.from(copy?.records() ?? [], ({ name, type }) => `${name} ${type}`),
    ["example.org. 2", "www.example.org. 1", "*.w.example.org. 16"],
  );
  await running.stop();
});

for (const [text, message] of [
  ["file", /unexpected line ending after 'file'/],
  ["file db {\n reload x\n}", /time: invalid duration "x"/],
  ["file db {\n reload -5s\n}", /invalid negative duration/],
  ["file db {\n transfer to *\n}", /unknown property 'transfer'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(file, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}

test("a name redirected to the DNAME's owner has the DNAME in the answer once", async () => {
  write("db", zone(10, "ns DNAME example.org."));
  const running = serve();
  await running.start();
  const { answer } = await running.ask({ name: "ns.ns.example.org.", type: "DNAME" });
  assert.deepEqual(answer, [
    "ns.example.org. 60 IN DNAME example.org.",
    "ns.ns.example.org. 60 IN CNAME ns.example.org.",
  ]);
  await running.stop();
});

test("a DNAME that leads to itself is answered with itself and one CNAME", async () => {
  write("db", zone(10, "alias DNAME alias\na DNAME b\nb DNAME a"));
  const running = serve("fallthrough");
  await running.start();
  for (const type of ["A", "DNAME"]) {
    const loop = await running.ask({ name: "www.alias.example.org.", type });
    assert.equal(loop.rcode, 0);
    assert.deepEqual(loop.answer, [
      "alias.example.org. 60 IN DNAME alias.example.org.",
      "www.alias.example.org. 60 IN CNAME www.alias.example.org.",
    ]);
  }
  assert.deepEqual((await running.ask({ name: "www.a.example.org." })).answer, [
    "a.example.org. 60 IN DNAME b.example.org.",
    "www.a.example.org. 60 IN CNAME www.b.example.org.",
    "b.example.org. 60 IN DNAME a.example.org.",
    "www.b.example.org. 60 IN CNAME www.a.example.org.",
  ]);
  await running.stop();
});

test("names in record data keep their case, and are the same name in any", async () => {
  write(
    "db",
    zone(
      10,
      `_http._tcp PTR My\\032Printer._http._tcp
_http._tcp PTR my\\032printer._http._tcp
mail MX 10 Mail.Other.test.
also CNAME Over.There.Other.test.
srv SRV 1 2 80 Host.Other.test.
in CNAME WWW
www A 192.0.2.1`,
    ),
  );
  const running = serve("reload 1s");
  await running.start();
  const data = async (name: string, type: string): Promise<string[]> =>
    (await running.ask({ name: `${name}.example.org.`, type })).answer.map((line) =>
      line.split(" ").slice(4).join(" "),
    );
  assert.deepEqual(await data("_http._tcp", "PTR"), ["My\\032Printer._http._tcp.example.org."]);
  assert.deepEqual(await data("mail", "MX"), ["10 Mail.Other.test."]);
  assert.deepEqual(await data("also", "CNAME"), ["Over.There.Other.test."]);
  assert.deepEqual(await data("srv", "SRV"), ["1 2 80 Host.Other.test."]);
  assert.deepEqual(await data("in", "A"), ["WWW.example.org.", "192.0.2.1"]);
  // A change is found regardless of case.
  write("db", zone(11, "mail MX 10 mail.other.test.\nmail MX 20 Mail2.Other.test.\n_http._tcp PTR other"));
  await running.clock.settle(1_000);
  await until(() => running.log.lines.some((line) => line.includes("with 11 SOA serial")));
  assert.deepEqual(await data("mail", "MX"), ["10 Mail.Other.test.", "20 Mail2.Other.test."]);
  assert.deepEqual(await data("_http._tcp", "PTR"), ["other.example.org."]);
  await running.stop();
});

const LAB = `lab.example. 60 IN SOA ns.lab.example. h.lab.example. SERIAL 4 3 2 1
lab.example. 60 IN NS ns.lab.example.
web.lab.example. 60 IN A 192.0.2.7
*.apps.lab 60 IN A 192.0.2.8
elsewhere.test. 60 IN A 192.0.2.9
`;

test("a file whose SOA record is below its origin is served from there, with a warning that says what to write", async () => {
  write("db", LAB.replace("SERIAL", "1"));
  const running = serve("reload 1s", ".");
  await running.start();
  assert.match(
    running.log.lines.join("\n"),
    /"\S+db" has its SOA record at lab\.example\., not at \.: the zone lab\.example\. is served\. Name it in the Corefile: 'file \S+db lab\.example'/,
  );
  assert.deepEqual(await addresses(running, "web.lab.example."), ["web.lab.example. 60 IN A 192.0.2.7"]);
  const missing = await running.ask({ name: "none.lab.example." });
  assert.equal(missing.rcode, 3);
  assert.match(missing.authority[0] ?? "", /^lab\.example\. 1 IN SOA/);
  for (const name of ["elsewhere.test.", "example."]) {
    const outcome = await running.outcome({ name });
    assert.ok(outcome.kind === "failed" && outcome.rcode === 5, name);
  }
  // The names in the file are still relative to the origin.
  write("db", LAB.replace("SERIAL", "2").replace("lab 60", "lab.example. 60"));
  await running.clock.settle(1_000);
  await until(() => running.log.lines.some((line) => line.includes("with 2 SOA serial")));
  assert.deepEqual(await addresses(running, "x.apps.lab.example."), [
    "x.apps.lab.example. 60 IN A 192.0.2.8",
  ]);
  await running.stop();
});

test("such a file that appears later is served from its SOA record as well", async () => {
  const running = serve("reload 1s", "example");
  await running.start();
  write("db", LAB.replace("SERIAL", "1"));
  await running.clock.settle(1_000);
  await until(() => running.log.lines.some((line) => line.includes("with 1 SOA serial")));
  assert.deepEqual(await addresses(running, "web.lab.example."), ["web.lab.example. 60 IN A 192.0.2.7"]);
  await running.stop();
});

for (const [title, text, zones] of [
  ["beside the origin", LAB, "other.test"],
  ["below it, in a file with another fault", `${LAB}x.lab.example. 60 IN A 192.0.2.300\n`, "."],
  ["at another zone of the block", LAB, ". lab.example"],
] as const) {
  test(`a file whose SOA record is ${title} is refused`, async () => {
    write("db", text.replace("SERIAL", "1"));
    const running = serve("", zones);
    await assert.rejects(running.start(), SetupError);
    await running.stop();
  });
}
