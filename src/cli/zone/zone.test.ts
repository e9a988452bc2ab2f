import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { portolanWords } from "../../../test/support/portolan.ts";
import { zone } from "./zone.ts";

interface Ran {
  readonly code: number;
  readonly output: string;
}

/** Runs the command over these files; `DIR` in its output stands for their folder. */
async function run(files: Readonly<Record<string, string>>, ...words: readonly string[]): Promise<Ran> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-zone-"));
  const written: string[] = [];
  const take = (text: string): void => void written.push(text);
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    const argv = words.map((word) => (word in files || word.startsWith("./") ? join(folder, word) : word));
    const code = await zone(argv, { print: async (text) => take(text), complain: take });
    return { code, output: written.join("").replaceAll(folder, "DIR") };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const GOOD =
  "$TTL 60\n@ SOA ns h 7 1 1 1 1\n@ NS ns\nns A 192.0.2.1\nb.a TXT x\nWWW CNAME ns\n*.w A 192.0.2.9\nm MX 1 z.w\n";

test("check says that a zone is in order", async () => {
  assert.deepEqual(await run({ "db.example.org": GOOD }, "check", "db.example.org"), {
    code: 0,
    output: "zone example.org. serial 7, 7 records: OK\n",
  });
});

for (const [title, text, output] of [
  [
    "faults of the text, all of them",
    "@ 60 SOA a. b. 1 1 1 1 1\nx A\ny FOO\n",
    'DIR/z:2:4: text ends where an IPv4 address is expected\nDIR/z:3:3: "FOO" is not a record type\nzone example.org. has errors\n',
  ],
  [
    "no SOA record",
    "x 60 A 192.0.2.1\n",
    'DIR/z: file "DIR/z" has no SOA record for origin example.org.\nzone example.org. has errors\n',
  ],
  ["no NS records", "@ 60 SOA a. b. 1 1 1 1 1\n", "DIR/z: has no NS records\nzone example.org. has errors\n"],
  [
    "a name server without address",
    "$TTL 1\n@ SOA a. b. 1 1 1 1 1\n@ NS ns\n",
    "DIR/z: example.org./NS 'ns.example.org.' has no address records (A or AAAA)\nzone example.org. has errors\n",
  ],
  [
    "a name server that is an alias",
    "$TTL 1\n@ SOA a. b. 1 1 1 1 1\n@ NS ns\nns CNAME a.\n",
    "DIR/z: example.org./NS 'ns.example.org.' is a CNAME (illegal)\nzone example.org. has errors\n",
  ],
  [
    "a second SOA record",
    "$TTL 1\n@ SOA a. b. 1 1 1 1 1\n@ NS a.\n@ SOA a. b. 1 1 1 1 1\n@ SOA a. b. 2 1 1 1 1\n",
    "DIR/z:5:1: a second SOA record of the zone: it takes the place of the first\nzone example.org. has errors\n",
  ],
  [
    "data beside an alias",
    "$TTL 1\n@ SOA a. b. 1 1 1 1 1\n@ NS a.\nx CNAME a.\nx A 192.0.2.1\n",
    "DIR/z:5:1: other data beside a CNAME record\nzone example.org. has errors\n",
  ],
  [
    "a second DNAME record",
    "$TTL 1\n@ SOA a. b. 1 1 1 1 1\n@ NS a.\nx DNAME a.\nx DNAME b.\n",
    "DIR/z:5:1: a second DNAME record of this name\nzone example.org. has errors\n",
  ],
  [
    "DS records at the apex",
    "$TTL 1\n@ SOA a. b. 1 1 1 1 1\n@ NS a.\n@ DS 1 13 2 00\n",
    "DIR/z: has DS records at its apex: they belong into the parent zone\nzone example.org. has errors\n",
  ],
] as const) {
  test(`check finds ${title}`, async () => {
    assert.deepEqual(await run({ z: text }, "check", "z", "example.org"), { code: 1, output });
  });
}

test("check warns of what may be meant so", async () => {
  const text =
    "$TTL 1\n@ SOA a. b. 1 1 1 1 1\n@ NS a.\nm MX 1 no\nx.test. A 192.0.2.1\nsub NS ns.sub\ns SRV 1 1 1 h.sub\n";
  assert.deepEqual(await run({ z: text }, "check", "z", "example.org"), {
    code: 1,
    output:
      "DIR/z:5:1: warning: ignored: the name does not lie in example.org.\n" +
      "DIR/z: warning: m.example.org./MX 'no.example.org.' has no address records (A or AAAA)\n" +
      "DIR/z: sub.example.org./NS 'ns.sub.example.org.' has no address records (A or AAAA)\n" +
      "zone example.org. has errors\n",
  });
});

test("zones come from standard input and from pipes", async () => {
  const command = async (
    ...words: readonly string[]
  ): Promise<{ readonly code: unknown; readonly output: string }> => {
    const [node = "", ...args] = portolanWords(...words);
    // A pipe, as shells make them: Node itself gives its children sockets.
    const script = 'printf %s "$ZONE" | "$@" 2>&1';
    const child = spawn("sh", ["-c", script, "sh", node, ...args], { env: { ...process.env, ZONE: GOOD } });
    const output: string[] = [];
    child.stdout.setEncoding("utf8").on("data", (text: string) => output.push(text));
    const [code] = await once(child, "close");
    return { code, output: output.join("") };
  };
  const good = { code: 0, output: "zone example.org. serial 7, 7 records: OK\n" };
  assert.deepEqual(await command("zone", "check", "-", "example.org"), good);
  assert.deepEqual(await command("zone", "check", "/dev/stdin", "example.org"), good);
  const { code, output } = await command("zone", "check", "-");
  assert.deepEqual([code, output], [2, '"-" names no origin: add one after the file\n']);
  const usage = await run({}, "check", "--help");
  assert.equal(usage.code, 0);
  assert.match(usage.output, /^Usage: portolan zone check FILE/);
});

test("a byte order mark is no part of the zone", async () => {
  assert.equal((await run({ z: `\ufeff${GOOD}` }, "check", "z", "example.org")).code, 0);
  assert.equal((await run({ z: GOOD.replace("@ NS", "\ufeff@ NS") }, "check", "z", "example.org")).code, 1);
});

test("print gives the records in canonical order", async () => {
  const { code, output } = await run({ "example.org.zone": GOOD }, "print", "example.org.zone");
  assert.equal(code, 0);
  assert.deepEqual(
    output
      .trim()
      .split("\n")
      .map((line) =>
        line
          .split("\t")
          .filter((_, at) => at === 0 || at === 3)
          .join(" "),
      ),
    [
      "example.org. SOA",
      "example.org. NS",
      "b.a.example.org. TXT",
      "m.example.org. MX",
      "ns.example.org. A",
      "*.w.example.org. A",
      "www.example.org. CNAME",
    ],
  );
});

test("diff says what went and what came, and with its exit code whether anything did", async () => {
  const other = GOOD.replace(" 7 ", " 8 ").replace("b.a TXT x", "b.a TXT y");
  assert.deepEqual(await run({ "db.example.org": GOOD, b: GOOD }, "diff", "db.example.org", "b"), {
    code: 0,
    output: "",
  });
  const { code, output } = await run({ "db.example.org": GOOD, b: other }, "diff", "db.example.org", "b");
  assert.equal(code, 1);
  assert.equal(
    output.replaceAll("\t", " "),
    '- example.org. 60 IN SOA ns.example.org. h.example.org. 7 1 1 1 1\n- b.a.example.org. 60 IN TXT "x"\n' +
      '+ example.org. 60 IN SOA ns.example.org. h.example.org. 8 1 1 1 1\n+ b.a.example.org. 60 IN TXT "y"\n',
  );
});

for (const words of [
  [],
  ["check"],
  ["frob", "z"],
  ["check", "a", "b", "c"],
  ["check", "./none", "example.org"],
  ["check", "./none", "a..b"],
]) {
  test(`cannot do: ${words.join(" ")}`, async () => {
    assert.equal((await run({}, ...words)).code, 2);
  });
}

/** The program, ended where it does not end by itself. */
async function bounded(...words: readonly string[]): Promise<Ran> {
  const [command = "", ...args] = portolanWords(...words);
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], timeout: 30_000 });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output += data));
  const [code] = await once(child, "close");
  return { code: code ?? -1, output };
}

for (const words of [["check"], ["print"]] as const)
  test(`${words[0]} reads nothing without an end that a zone includes, as the server does not`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "portolan-zone-"));
    try {
      execFileSync("mkfifo", [join(folder, "pipe")]);
      for (const included of ["/dev/zero", "pipe"]) {
        writeFileSync(join(folder, "db.example.org"), `${GOOD}$INCLUDE ${included}\n`);
        const { code, output } = await bounded(
          "zone",
          ...words,
          join(folder, "db.example.org"),
          "example.org",
        );
        assert.match(output, new RegExp(`${included} is not a regular file`));
        assert.equal(code, 1);
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

test("a device without an end is no zone either", async () => {
  const { code, output } = await bounded("zone", "check", "/dev/zero", "example.org");
  assert.match(output, /\/dev\/zero is a device/);
  assert.notEqual(code, 0);
});
