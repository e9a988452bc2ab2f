import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
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

test("check reports a valid zone", async () => {
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
    "DIR/z:5:1: a second SOA record of the zone: it replaces the first\nzone example.org. has errors\n",
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
    "DIR/z: has DS records at its apex: they belong in the parent zone\nzone example.org. has errors\n",
  ],
] as const) {
  test(`check finds ${title}`, async () => {
    assert.deepEqual(await run({ z: text }, "check", "z", "example.org"), { code: 1, output });
  });
}

test("check warns of records that may be intended", async () => {
  const text =
    "$TTL 1\n@ SOA a. b. 1 1 1 1 1\n@ NS a.\nm MX 1 no\nx.test. A 192.0.2.1\nsub NS ns.sub\ns SRV 1 1 1 h.sub\n";
  assert.deepEqual(await run({ z: text }, "check", "z", "example.org"), {
    code: 0,
    output:
      "DIR/z:5:1: warning: ignored: the name does not lie in example.org.\n" +
      "DIR/z: warning: m.example.org./MX 'no.example.org.' has no address records (A or AAAA)\n" +
      "DIR/z: warning: sub.example.org./NS 'ns.sub.example.org.' has no REQUIRED GLUE address records (A or AAAA)\n" +
      "zone example.org. serial 1, 5 records: OK\n",
  });
});

const HEAD = "$TTL 1\n@ SOA a. b. 1 1 1 1 1\n@ NS ns\nns A 192.0.2.1\n";
const HEAD_LINES = 4;
/** Debian has it in the package bind9-utils. */
const CHECKZONE = "named-checkzone";
const skip = spawnSync(CHECKZONE, ["-v"]).error === undefined ? false : `not installed: ${CHECKZONE}`;

/** Ends of a zone file, with the exit code of `check` and its messages. */
const ENDS: readonly (readonly [title: string, text: string, code: number, told: readonly string[]])[] = [
  [
    "a delegation to a name that is not there",
    "sub NS no",
    0,
    ["warning: sub.example.org./NS 'no.example.org.' has no address records (A or AAAA)"],
  ],
  [
    "a delegation to an alias",
    "sub NS al\nal CNAME ns",
    0,
    ["warning: sub.example.org./NS 'al.example.org.' is a CNAME (illegal)"],
  ],
  [
    "a delegation without glue",
    "sub NS ns.sub\nsub NS ns",
    0,
    ["warning: sub.example.org./NS 'ns.sub.example.org.' has no REQUIRED GLUE address records (A or AAAA)"],
  ],
  ["a delegation with glue", "sub NS ns.sub\nns.sub AAAA ::1", 0, []],
  [
    "a delegation to a name below another one, without glue",
    "sub NS ns.other\nother NS a.",
    0,
    ["warning: sub.example.org./NS 'ns.other.example.org.' has no SIBLING GLUE address records (A or AAAA)"],
  ],
  [
    "a delegation to a name below another one, with other data",
    "sub NS ns.other\nother NS a.\nns.other TXT x",
    0,
    ["warning: sub.example.org./NS 'ns.other.example.org.' has no SIBLING GLUE address records (A or AAAA)"],
  ],
  [
    "a delegation to a name below another one, with glue",
    "sub NS ns.other\nother NS a.\nns.other A 192.0.2.2",
    0,
    [],
  ],
  ["a delegation to a wildcard", "sub NS a.w\n*.w A 192.0.2.2", 0, []],
  ["a name server of the zone below a delegation", "@ NS ns.sub\nsub NS ns", 0, []],
  [
    "a name server of the zone without address",
    "@ NS no",
    1,
    ["example.org./NS 'no.example.org.' has no address records (A or AAAA)"],
  ],
  [
    "a TTL that means 0",
    "x 4294967295 A 192.0.2.2",
    0,
    [":1:3: warning: a TTL above 2147483647 seconds means 0 (RFC 2181), not 4294967295"],
  ],
  ["a record of another class", "x CH TXT a", 1, [":1:1: ignored: class CH in a zone of class IN"]],
  [
    "an SOA record below the apex",
    "x SOA a. b. 1 1 1 1 1",
    1,
    [":1:1: ignored: an SOA record that is not at the apex example.org."],
  ],
  [
    "a record of another zone",
    "x.test. A 192.0.2.2",
    0,
    [":1:1: warning: ignored: the name does not lie in example.org."],
  ],
  [
    "quoted text over two lines",
    'x TXT "a\nb"',
    1,
    [":1:7: quoted text continues to line 6 and includes the line breaks"],
  ],
];

suite("check reports the zone and exits", () => {
  for (const [title, text, code, told] of ENDS) {
    test(`with ${code} for ${title}`, async () => {
      const ran = await run({ z: `${HEAD}${text}\n` }, "check", "z", "example.org");
      const lines = ran.output.trim().split("\n").slice(0, -1);
      const expected = told.map((line) =>
        line.replace(/^(:(\d+))?/, (_, place, number) =>
          place === undefined ? "DIR/z: " : `DIR/z:${Number(number) + HEAD_LINES}`,
        ),
      );
      assert.deepEqual([ran.code, lines], [code, expected]);
    });
  }
});

suite("named-checkzone exits with the same code", { skip }, () => {
  for (const [title, text, code] of ENDS) {
    test(`with ${code} for ${title}`, () => {
      const folder = mkdtempSync(join(tmpdir(), "portolan-zone-"));
      try {
        const file = join(folder, "z");
        writeFileSync(file, `${HEAD}${text}\n`);
        // "local" stops it from using the machine's resolver.
        assert.equal(spawnSync(CHECKZONE, ["-i", "local", "example.org", file]).status, code);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });
  }
});

/** Runs the command and keeps its two streams apart. */
async function streams(
  files: Readonly<Record<string, string>>,
  ...words: readonly string[]
): Promise<{ readonly code: number; readonly printed: string; readonly complained: string }> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-zone-"));
  let [printed, complained] = ["", ""];
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    const code = await zone(
      words.map((word) => (word in files ? join(folder, word) : word)),
      {
        print: async (text) => {
          printed += text;
        },
        complain: (text) => {
          complained += text;
        },
      },
    );
    return { code, printed, complained: complained.replaceAll(folder, "DIR") };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("print and diff write faults and warnings to standard error, and only the zone to standard output", async () => {
  const bad = `${HEAD}x A y\n`;
  const strange = `${HEAD}x.test. A 192.0.2.2\ny 4294967295 A 192.0.2.3\n`;
  assert.deepEqual(await streams({ bad }, "print", "bad", "example.org"), {
    code: 1,
    printed: "",
    complained: 'DIR/bad:5:5: not an IPv4 address: "y"\nzone example.org. has errors\n',
  });
  const warnings = (file: string): string =>
    `DIR/${file}:6:3: warning: a TTL above 2147483647 seconds means 0 (RFC 2181), not 4294967295\n`;
  const ignored = "DIR/strange:5:1: warning: ignored: the name does not lie in example.org.\n";
  const printed = await streams({ strange }, "print", "strange", "example.org");
  assert.deepEqual([printed.code, printed.complained], [0, ignored + warnings("strange")]);
  assert.match(
    printed.printed,
    /^example\.org\.\t1\tIN\tSOA\t.*\n.*\n.*\ny\.example\.org\.\t0\tIN\tA\t192\.0\.2\.3\n$/,
  );
  const compared = await streams({ strange, good: HEAD }, "diff", "strange", "good", "example.org");
  assert.deepEqual([compared.code, compared.complained], [1, ignored + warnings("strange")]);
  assert.equal(compared.printed, "- y.example.org.\t0\tIN\tA\t192.0.2.3\n");
  const failed = await streams({ good: HEAD, bad }, "diff", "good", "bad", "example.org");
  assert.deepEqual([failed.code, failed.printed], [2, ""]);
  assert.match(failed.complained, /^DIR\/bad:5:5: not an IPv4 address/);
});

test("without ORIGIN, the owner of the SOA record is the zone, whatever the name of the file", async () => {
  const body = "NS ns\nns A 192.0.2.1\n";
  const said = async (name: string, text: string): Promise<Ran> => run({ [name]: text }, "check", name);
  const good = { code: 0, output: "zone example.org. serial 1, 3 records: OK\n" };
  assert.deepEqual(await said("my-zone.txt", `$TTL 1\nexample.org. SOA a. b. 1 1 1 1 1\n ${body}`), good);
  assert.deepEqual(
    await said(
      "db.other.test",
      `$TTL 1\n$ORIGIN org.\nexample SOA a. b. 1 1 1 1 1\n ${body.replaceAll("ns", "ns.example")}`,
    ),
    good,
  );
  assert.deepEqual(await said("db.example.org", `$TTL 1\n@ SOA a. b. 1 1 1 1 1\n ${body}`), good);
  const without = await said("db.example.org", "$TTL 1\nx A 192.0.2.1\n");
  assert.equal(without.code, 1);
  assert.match(without.output, /has no SOA record for origin example\.org\.\n/);
  const text = `$TTL 1\nexample.org. SOA a. b. 1 1 1 1 1\n ${body}`;
  assert.deepEqual(await run({ one: text, two: text }, "diff", "one", "two"), { code: 0, output: "" });
  assert.equal((await run({ one: text }, "check", "one", "example.net")).code, 1);
});

test("zones come from standard input and from pipes", async () => {
  const command = async (
    ...words: readonly string[]
  ): Promise<{ readonly code: unknown; readonly output: string }> => {
    const [node = "", ...args] = portolanWords(...words);
    // Needs a real pipe, as shells make them: Node gives its children sockets.
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

test("a byte order mark is not part of the zone", async () => {
  assert.equal((await run({ z: `\ufeff${GOOD}` }, "check", "z", "example.org")).code, 0);
  assert.equal((await run({ z: GOOD.replace("@ NS", "\ufeff@ NS") }, "check", "z", "example.org")).code, 1);
});

test("print writes the records in canonical order", async () => {
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

test("diff shows removed and added records, and its exit code says whether there are any", async () => {
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
  test(`is refused: ${words.join(" ")}`, async () => {
    assert.equal((await run({}, ...words)).code, 2);
  });
}

/** Runs the program, and kills it if it does not end by itself. */
async function bounded(...words: readonly string[]): Promise<Ran> {
  const [command = "", ...args] = portolanWords(...words);
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], timeout: 30_000 });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output += data));
  const [code] = await once(child, "close");
  return { code: code ?? -1, output };
}

for (const words of [["check"], ["print"]] as const)
  test(`${words[0]} refuses endless included files, as the server does`, async () => {
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

test("an endless device is refused, too", async () => {
  const { code, output } = await bounded("zone", "check", "/dev/zero", "example.org");
  assert.match(output, /\/dev\/zero is a device/);
  assert.notEqual(code, 0);
});
