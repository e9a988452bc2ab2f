// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the forms of $GENERATE look like placeholders.
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { Name } from "../name.ts";
import { formatRecord } from "../resource-record.ts";
import { RecordType } from "../type-names.ts";
import { formatZoneTextFault, ZoneTextFaults } from "./fault.ts";
import type { ZoneTextRecord } from "./parser.ts";
import { parseZoneText, readZoneText, type ZoneTextFiles } from "./read.ts";

const origin = Name.parse("example.org.");

function lines(text: string): string[] {
  return parseZoneText(text, { origin }).records.map((record) => formatRecord(record).replaceAll("\t", " "));
}

function faults(text: string): string[] {
  return parseZoneText(text, { origin, file: "db" }).faults.map(formatZoneTextFault);
}

suite("records", () => {
  for (const [title, text, expected] of [
    [
      "TTL and class in either order",
      "a 60 IN A 192.0.2.1\nb IN 1h A 192.0.2.2",
      ["a.example.org. 60 IN A 192.0.2.1", "b.example.org. 3600 IN A 192.0.2.2"],
    ],
    [
      "the owner of the record before",
      "a 60 A 192.0.2.1\n  60 A 192.0.2.2",
      ["a.example.org. 60 IN A 192.0.2.1", "a.example.org. 60 IN A 192.0.2.2"],
    ],
    ["the origin as first owner", " 60 A 192.0.2.1", ["example.org. 60 IN A 192.0.2.1"]],
    [
      "parentheses and comments",
      "a ( 60 ; c\n IN\n A\n 192.0.2.1 ) ; d",
      ["a.example.org. 60 IN A 192.0.2.1"],
    ],
    ["TTL units", "a 1w2d A 192.0.2.1", ["a.example.org. 777600 IN A 192.0.2.1"]],
    ["escapes in names", "a\\.b\\046c 1 A 192.0.2.1", ["a\\.b\\.c.example.org. 1 IN A 192.0.2.1"]],
    ["escapes in text", 'a 1 TXT "x\\"y" z\\065', ['a.example.org. 1 IN TXT "x\\"y" "zA"']],
    ["text of 255 octets", `a 1 TXT ${"x".repeat(255)}`, [`a.example.org. 1 IN TXT "${"x".repeat(255)}"`]],
    [
      "longer text, in several strings",
      `a 1 TXT "${"x".repeat(254)}\\255${"y".repeat(255)}z" "" b`,
      [`a.example.org. 1 IN TXT "${"x".repeat(254)}\\255" "${"y".repeat(255)}" "z" "" "b"`],
    ],
    ["the form of RFC 3597 for a known type", "a 1 A \\# 4 c0000201", ["a.example.org. 1 IN A 192.0.2.1"]],
    ["a type without name", "a 1 CLASS1 TYPE65280 \\# 2 abcd", ["a.example.org. 1 IN TYPE65280 \\# 2 ABCD"]],
    ["$ORIGIN and $TTL", "$TTL 5\n$ORIGIN sub\na A 192.0.2.1", ["a.sub.example.org. 5 IN A 192.0.2.1"]],
    [
      "the SOA's minimum without any TTL",
      "@ SOA a. b. 1 2 3 4 77\na A 192.0.2.1",
      ["example.org. 77 IN SOA a. b. 1 2 3 4 77", "a.example.org. 77 IN A 192.0.2.1"],
    ],
    [
      "carriage returns",
      "a 1 A 192.0.2.1\r\nb 1 A 192.0.2.2\r\n",
      ["a.example.org. 1 IN A 192.0.2.1", "b.example.org. 1 IN A 192.0.2.2"],
    ],
    [
      "a type as owner name",
      "a 1 A 192.0.2.1\nmx 1 A 192.0.2.2",
      ["a.example.org. 1 IN A 192.0.2.1", "mx.example.org. 1 IN A 192.0.2.2"],
    ],
    [
      "a TTL that means 0",
      "$TTL 4294967295\na A 192.0.2.1\nb 2147483648 A 192.0.2.2",
      ["a.example.org. 0 IN A 192.0.2.1", "b.example.org. 0 IN A 192.0.2.2"],
    ],
    [
      "octets that are not ASCII",
      "caf\u00e9 1 CNAME \u00e4",
      ["caf\\195\\169.example.org. 1 IN CNAME \\195\\164.example.org."],
    ],
    [
      "behind $GENERATE, the owner before it",
      "last 1 A 192.0.2.3\n$GENERATE 1-2 g$ 1 A 192.0.2.$\n 1 TXT x",
      [
        "last.example.org. 1 IN A 192.0.2.3",
        "g1.example.org. 1 IN A 192.0.2.1",
        "g2.example.org. 1 IN A 192.0.2.2",
        'last.example.org. 1 IN TXT "x"',
      ],
    ],
    ["no line end at the end", "a 1 MX 10 mail", ["a.example.org. 1 IN MX 10 mail.example.org."]],
    [
      "$GENERATE with forms",
      "$GENERATE 9-11/2 h${1,3,x} 1 A 10.0.0.$",
      ["h00a.example.org. 1 IN A 10.0.0.9", "h00c.example.org. 1 IN A 10.0.0.11"],
    ],
    [
      "$GENERATE with a dollar and nibbles",
      '$GENERATE 26-26 ${0,3,n} 1 TXT "\\$ $"',
      ['a.1.example.org. 1 IN TXT "$ 26"'],
    ],
    [
      "$GENERATE with nibbles of an even width, which end in a dot as with BIND",
      "$GENERATE 26-26 ${0,4,n}ip6 1 A 10.0.0.1\n$GENERATE 300-300 ${0,2,N}ip6 1 A 10.0.0.1",
      ["a.1.ip6.example.org. 1 IN A 10.0.0.1", "C.2.1ip6.example.org. 1 IN A 10.0.0.1"],
    ],
  ] as const) {
    test(title, () => assert.deepEqual(lines(text), expected));
  }
});

suite("faults", () => {
  for (const [text, expected] of [
    ["a 1 A 192.0.2.01", ['db:1:7: not an IPv4 address: "192.0.2.01"']],
    ["a 1 A 192.0.2.1 x", ['db:1:17: unexpected "x"']],
    ["a 1 A", ["db:1:6: text ends where an IPv4 address is expected"]],
    ["a 1 MX 70000 b", ['db:1:8: a number of 16 bits must be from 0 to 65535, not "70000"']],
    ["a A 192.0.2.1", ["db:1:3: no TTL: write one, or a $TTL line before it"]],
    ["a 4294967296 A 192.0.2.1", ['db:1:3: not a TTL: "4294967296"']],
    [
      "$TTL 4294967295\na 2147483648 A 192.0.2.1",
      [
        "db:1:6: warning: a TTL above 2147483647 seconds means 0 (RFC 2181), not 4294967295",
        "db:2:3: warning: a TTL above 2147483647 seconds means 0 (RFC 2181), not 2147483648",
      ],
    ],
    ["$GENERATE 0-1 p$ 1 PTR h${-1,3,d}", ['db:1:15: "${-1,3,d}" makes a negative number of 0']],
    ["a 1x A 192.0.2.1", ['db:1:3: not a TTL: "1x"']],
    ["a 1 AXFR", ["db:1:5: AXFR is only for questions: a zone cannot have such records"]],
    [`a 1 TXT ${"x".repeat(65_280)}`, ["db:1:9: RDATA longer than 65535 octets"]],
    [`a 1 HINFO ${"x".repeat(256)} b`, ["db:1:11: text longer than 255 octets; split it"]],
    ["a..b 1 A 192.0.2.1", ['db:1:1: not a domain name: "a..b": empty label']],
    ["a\\999 1 A 192.0.2.1", ['db:1:1: not a domain name: "a\\999": bad escape']],
    ["a 1 TXT )", ["db:1:9: closing parenthesis without an opening one"]],
    ["a 1 SRV (\n 1 2 x\n b )", ['db:2:6: a number of 16 bits must be from 0 to 65535, not "x"']],
    ["a 1 CAA 0 issue", ["db:1:16: text ends where a text is expected"]],
    ["$GENERATE 5-1 x 1 A 1.2.3.4", ['db:1:11: a range must not end before it begins: "5-1"']],
    ["$GENERATE 1-100000 x$ 1 A 1.2.3.4", ['db:1:11: a range of more than 65536 numbers: "1-100000"']],
    ["$GENERATE 1-2 x${1 1 A 1.2.3.4", ['db:1:15: not a form such as ${0,3,d}: "${1 1 A 1.2.3.4"']],
    [
      "x 1 A 1.2.3\ny 1 AAAA g",
      ['db:1:7: not an IPv4 address: "1.2.3"', 'db:2:10: not an IPv6 address: "g"'],
    ],
  ] as const) {
    test(JSON.stringify(text).slice(0, 60), () => assert.deepEqual(faults(text), expected));
  }

  test("no more than a hundred are kept", () => {
    assert.equal(faults("x\n".repeat(5_000)).length, 100);
  });

  test("an error replaces a warning", () => {
    const found = new ZoneTextFaults();
    const place = { file: "db", line: 1, column: 1 };
    for (let count = 0; count < 500; count++) found.add({ ...place, reason: "w", severity: "warning" });
    for (const reason of ["e", "f"]) found.add({ ...place, reason, severity: "error" });
    assert.equal(found.list.length, 100);
    assert.deepEqual(
      found.list.slice(-2).map(({ reason }) => reason),
      ["e", "f"],
    );
    for (let count = 0; count < 500; count++) found.add({ ...place, reason: "g", severity: "error" });
    assert.deepEqual([found.list.length, found.errors, found.warnings], [100, 502, 500]);
  });
});

/** Files in memory that are read a few octets at a time. */
function filesOf(texts: Readonly<Record<string, string>>, portion: number): ZoneTextFiles {
  return {
    async open(file) {
      const text = texts[file];
      if (text === undefined) throw new Error(`no ${file}`);
      const octets = Buffer.from(text);
      let at = 0;
      const read = async (target: Uint8Array): Promise<number> => {
        const chunk = octets.subarray(at, at + Math.min(portion, target.length));
        target.set(chunk);
        at += chunk.length;
        return chunk.length;
      };
      return { file, text: { read, close: async () => undefined } };
    },
  };
}

async function readAll(texts: Readonly<Record<string, string>>, portion: number): Promise<string[]> {
  const found: string[] = [];
  const sink = {
    record: (record: {
      readonly line: number;
      readonly file: string;
      readonly type: number;
      readonly ttl: number;
    }) => {
      found.push(`${record.file}:${record.line} ${record.type} ${record.ttl}`);
      return undefined;
    },
  };
  const result = await readZoneText({ file: "db", files: filesOf(texts, portion), origin, sink });
  return [...found, ...result.list.map(formatZoneTextFault)];
}

test("the size of the portions does not change the result, with included files", async () => {
  const texts = {
    db: '$TTL 9\na A 192.0.2.1\n$INCLUDE more sub\nb TXT ( "x y"\n z ) ; end\nc A bad\n$INCLUDE none\nd A 192.0.2.2',
    more: "$TTL 5\ne A 192.0.2.3\nf (\n AAAA ::1 )\n",
  };
  const whole = await readAll(texts, 1_000_000);
  assert.deepEqual(whole, [
    "db:2 1 9",
    "more:2 1 5",
    "more:3 28 5",
    "db:4 16 9",
    "db:8 1 9",
    'db:6:5: not an IPv4 address: "bad"',
    "db:7:10: failed to open none: no none",
  ]);
  for (const portion of [1, 2, 3, 7, 16]) assert.deepEqual(await readAll(texts, portion), whole);
});

test("a $TTL of an included file applies to the records after it if they have no other", async () => {
  const soa = "@ SOA a. b. 1 2 3 4 7\n";
  const read = async (db: string, included: string): Promise<string[]> =>
    readAll({ db: `${db}a A 192.0.2.1\n$TTL 8\nb A 192.0.2.2`, included }, 1_000);
  const include = "$INCLUDE included\n";
  const own = "included:2 6 5";
  assert.deepEqual(await read(include, `$TTL 5\n${soa}`), [own, "db:2 1 5", "db:4 1 8"]);
  assert.deepEqual(await read(`$TTL 9\n${include}`, `$TTL 5\n${soa}`), [own, "db:3 1 9", "db:5 1 8"]);
  assert.deepEqual(await read(`${soa.replace("SOA", "60 SOA")}${include}`, "$TTL 5\n"), [
    "db:1 6 60",
    "db:3 1 60",
    "db:5 1 8",
  ]);
  const nested = {
    db: `${include}a A 192.0.2.1`,
    included: "$INCLUDE inner\nb A 192.0.2.2",
    inner: `$TTL 5\n${soa}`,
  };
  assert.deepEqual(await readAll(nested, 1_000), ["inner:2 6 5", "included:2 1 5", "db:2 1 5"]);
});

test("a record without an owner after an included file has the owner before it; so has the first one in that file", async () => {
  const texts = {
    db: '$TTL 9\nmail A 192.0.2.1\n$INCLUDE more\n TXT "mail"',
    more: ' TXT "also"\nwww A 192.0.2.2\n$INCLUDE inner\n TXT "www"',
    inner: "deep A 192.0.2.3\n",
  };
  const owners: string[] = [];
  const sink = {
    record({ owner, ownerLength, type }: ZoneTextRecord): undefined {
      if (type === RecordType.TXT) owners.push(Name.fromCheckedWire(owner.slice(0, ownerLength)).toString());
    },
  };
  for (const portion of [1, 1_000]) {
    owners.length = 0;
    const faults = await readZoneText({ file: "db", files: filesOf(texts, portion), origin, sink });
    assert.deepEqual(faults.list, []);
    assert.deepEqual(owners, ["mail.example.org.", "www.example.org.", "mail.example.org."]);
  }
});

test("a large range is read in portions, and its lines have a maximum length", async () => {
  const long = "x".repeat(200);
  const texts = {
    db: `$GENERATE 0-65535 h$ 1 TXT ${long}\nz 1 A 192.0.2.9\n`,
  };
  let [pauses, most, records, atPause] = [0, 0, 0, 0];
  const sink = {
    record: () => {
      records++;
      return undefined;
    },
  };
  const pause = async (): Promise<void> => {
    pauses++;
    most = Math.max(most, records - atPause);
    atPause = records;
  };
  const found = await readZoneText({ file: "db", files: filesOf(texts, 100), origin, sink, pause });
  assert.equal(records, 65_537);
  assert.ok(pauses > 500 && most <= 100, `${pauses} pauses, ${most} records`);
  assert.deepEqual(found.list, []);
  const endless = `$GENERATE 0-65535 h ${"${0,999,d}".repeat(20)} 1 A 192.0.2.1\n`;
  assert.deepEqual(await readAll({ db: endless }, 1_000), ["db:1:19: the lines of $GENERATE are too long"]);
});

test("any octets are read to their end", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (octets) => {
      const { records, faults: found } = parseZoneText(octets, { origin });
      return records.length + found.length >= 0;
    }),
  );
  const words = fc.constantFrom(
    "a",
    "@",
    "A",
    "IN",
    "60",
    "(",
    ")",
    '"',
    "\\",
    ";",
    "\n",
    " ",
    "$TTL",
    "$GENERATE",
    "1-3",
    "${",
    "TXT",
    "\\#",
    "$ORIGIN",
    "$INCLUDE",
    "SOA",
    "HTTPS",
    "alpn=",
    "::1",
  );
  fc.assert(
    fc.property(fc.array(words, { maxLength: 30 }), (parts) => {
      for (const { line, column, reason } of parseZoneText(parts.join(" "), { origin }).faults) {
        assert.ok(line > 0 && column > 0 && reason !== "");
      }
    }),
  );
});

test("written records can be read back", () => {
  const label = fc.uint8Array({ minLength: 1, maxLength: 20 });
  const name = fc
    .array(label, { maxLength: 5 })
    .map((labels) => Name.fromLabels(labels.map((octets) => Buffer.from(octets).toString("latin1"))));
  const text = fc.array(fc.uint8Array({ maxLength: 40 }), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(name, name, text, fc.nat(), (owner, target, strings, ttl) => {
      const written = [
        formatRecord({ name: owner, type: 16, class: 1, ttl, data: { strings } }),
        formatRecord({ name: owner, type: 5, class: 1, ttl, data: { target } }),
      ];
      const { records, faults: found } = parseZoneText(`${written.join("\n")}\n`);
      assert.deepEqual(found, []);
      assert.deepEqual(records.map(formatRecord), written);
    }),
  );
});
