import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Name } from "../name.ts";
import { dataFromWire, formatRecord } from "../resource-record.ts";
import { formatZoneTextFault } from "./fault.ts";
import { type ReadZoneTextOptions, readZoneText } from "./read.ts";

const origin = Name.parse("example.org.");

/** Records and faults of text that is read a few octets at a time. */
async function read(text: string, portion: number): Promise<string[]> {
  const found: string[] = [];
  const octets = Buffer.from(text);
  let at = 0;
  const files: ReadZoneTextOptions["files"] = {
    async open(file) {
      const readNext = async (target: Uint8Array): Promise<number> => {
        const chunk = octets.subarray(at, at + Math.min(portion, target.length));
        target.set(chunk);
        at += chunk.length;
        return chunk.length;
      };
      return { file, text: { read: readNext, close: async () => undefined } };
    },
  };
  const sink: ReadZoneTextOptions["sink"] = {
    record({ owner, ownerLength, type, class: recordClass, ttl, rdata, rdataLength, line }) {
      const name = Name.fromCheckedWire(owner.slice(0, ownerLength));
      const data = dataFromWire(type, rdata.slice(0, rdataLength));
      const printed = formatRecord({ name, type, class: recordClass, ttl, data }).replaceAll("\t", " ");
      found.push(`${line}: ${printed}`);
      return undefined;
    },
  };
  const faults = await readZoneText({ file: "db", files, origin, sink });
  return [...found, ...faults.list.map(formatZoneTextFault)];
}

const AFTER = "z 1 A 192.0.2.9\n";

suite("quoted text over several lines", () => {
  for (const [title, text, expected] of [
    [
      "in parentheses, as keys are pasted",
      `k 1 TXT ( "v=DKIM1; k=rsa; "\n "p=MIGf\nMA0G\nCS" )\n${AFTER}`,
      [
        '1: k.example.org. 1 IN TXT "v=DKIM1; k=rsa; " "p=MIGf\\010MA0G\\010CS"',
        "5: z.example.org. 1 IN A 192.0.2.9",
        "db:2:2: warning: quoted text continues to line 4 and includes the line breaks",
      ],
    ],
    [
      "without parentheses",
      `k 1 TXT "p=MIGf\nMA0GCS" ; key\n${AFTER}`,
      [
        '1: k.example.org. 1 IN TXT "p=MIGf\\010MA0GCS"',
        "3: z.example.org. 1 IN A 192.0.2.9",
        "db:1:9: warning: quoted text continues to line 2 and includes the line breaks",
      ],
    ],
    [
      "with carriage returns, which stay in it",
      `k 1 HINFO "a\r\nb" c\r\n${AFTER}`,
      [
        '1: k.example.org. 1 IN HINFO "a\\013\\010b" "c"',
        "3: z.example.org. 1 IN A 192.0.2.9",
        "db:1:11: warning: quoted text continues to line 2 and includes the line breaks",
      ],
    ],
    [
      "with a backslash in front of the line break, and with several texts: the first is named",
      `k 1 TXT "a\\\nb" "c\nd"\n${AFTER}`,
      [
        '1: k.example.org. 1 IN TXT "a\\010b" "c\\010d"',
        "4: z.example.org. 1 IN A 192.0.2.9",
        "db:1:9: warning: quoted text continues to line 2 and includes the line breaks",
      ],
    ],
    [
      "in what $GENERATE makes, with one warning",
      `$GENERATE 1-3 k$ 1 TXT "$\n"\n${AFTER}`,
      [
        '1: k1.example.org. 1 IN TXT "1\\010"',
        '1: k2.example.org. 1 IN TXT "2\\010"',
        '1: k3.example.org. 1 IN TXT "3\\010"',
        "3: z.example.org. 1 IN A 192.0.2.9",
        "db:1:24: warning: quoted text continues to line 2 and includes the line breaks",
      ],
    ],
    [
      "that ends with the file",
      '\nk 1 TXT "a\nb"',
      [
        '2: k.example.org. 1 IN TXT "a\\010b"',
        "db:2:9: warning: quoted text continues to line 3 and includes the line breaks",
      ],
    ],
  ] as const) {
    test(title, async () => {
      for (const portion of [1, 5, 1_000_000]) assert.deepEqual(await read(text, portion), expected);
    });
  }
});

suite("a missing closing quote is reported with the line of the opening one, and affects only that line", () => {
  const after = "3: z.example.org. 1 IN A 192.0.2.9";
  for (const [title, text, expected] of [
    [
      "without another quote in the file",
      `\nk 1 TXT "v=1\n${AFTER}`,
      "db:2:9: quoted text has no closing quote",
    ],
    [
      "with other text in quotes behind it",
      `\nk 1 TXT "v=1\n${AFTER}y 1 TXT "w"\n`,
      "db:2:9: quoted text has no closing quote: the next one, in line 4, opens another text",
    ],
    [
      "with other text that begins with an escape",
      `\nk 1 TXT "v=1\n${AFTER}y 1 TXT "\\w"\n`,
      "db:2:9: quoted text has no closing quote: the next one, in line 4, opens another text",
    ],
    [
      "with other text that is empty",
      `\nk 1 TXT "v=1\n${AFTER}y 1 TXT ""\n`,
      "db:2:9: quoted text has no closing quote: the next one, in line 4, opens another text",
    ],
    ["at the end", `\n\n${AFTER}k 1 TXT "v=1`, "db:4:9: quoted text has no closing quote"],
  ] as const) {
    test(title, async () => {
      for (const portion of [1, 1_000_000]) {
        const found = await read(text, portion);
        assert.ok(found.includes(after), found.join("\n"));
        assert.deepEqual(
          found.filter((line) => line.startsWith("db:")),
          [expected],
        );
      }
    });
  }

  test("in a large file, without reading all of it as one text", async () => {
    const found = await read(`k 1 TXT "v=1\n${AFTER.repeat(60_000)}`, 1_000_000);
    assert.equal(found.length, 60_001);
    assert.equal(found.at(-1), "db:1:9: quoted text has no closing quote");
  });

  test("and if other text ends the quote, a warning names the lines between", async () => {
    assert.deepEqual(await read(`k 1 TXT "v=1\n${AFTER}y 1 TXT " w"\n${AFTER}`, 7), [
      "4: z.example.org. 1 IN A 192.0.2.9",
      "db:1:9: warning: quoted text continues to line 3 and includes the line breaks",
      "db:3:12: quoted text has no closing quote",
    ]);
  });
});

test("a word has no line break, escaped or not", async () => {
  const found = await read(`k 1 TXT a\\\nb 1 A 192.0.2.1\n`, 3);
  assert.deepEqual(found, ["2: b.example.org. 1 IN A 192.0.2.1", "db:1:9: backslash at the end of a line"]);
});

test("a fault is reported in one short line, whatever its text", async () => {
  const found = await read(`k 1 A "${"x\n".repeat(5_000)}"\n`, 1_000_000);
  assert.match(found[0] ?? "", /^db:1:7: warning: quoted text continues to line 5001 /);
  assert.match(found[1] ?? "", /^db:1:7: not an IPv4 address: "x\\010x\\010.*…$/);
  assert.ok((found[1] ?? "").length < 1_500 && !(found[1] ?? "").includes("\n"));
});
