import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { recordsOf } from "../fixtures/arbitraries.ts";
import { Name } from "../name.ts";
import { toHex } from "../octets.ts";
import { recordKinds } from "../record-table.ts";
import { formatRecord, parseRecord, plainData } from "../resource-record.ts";
import { formatZoneTextFault } from "./fault.ts";
import { parseZoneText } from "./read.ts";

const origin = Name.parse("example.org.");

/** Text as a Latin-1 editor writes it: octets above 127 as they are, not as `\ddd`. */
function unescapedText(text: string): Uint8Array {
  const raw = text.replace(/\\(?:(\d{3})|.)/g, (sequence, digits?: string) =>
    digits !== undefined && Number(digits) >= 0x80 ? String.fromCharCode(Number(digits)) : sequence,
  );
  return new Uint8Array(Buffer.from(raw, "latin1"));
}

suite("octets stay the same in the text of every type", () => {
  for (const { name: type } of recordKinds) {
    // They belong to messages, and zone text refuses them.
    if (type === "TKEY" || type === "TSIG") continue;
    test(type, () => {
      fc.assert(
        fc.property(recordsOf(type), (record) => {
          const asked = { ...record, class: 1, ttl: 60 };
          const printed = formatRecord(asked);
          const { records, faults } = parseZoneText(unescapedText(`${printed}\n`));
          assert.deepEqual(faults, []);
          assert.deepEqual(records.map(formatRecord), [printed]);
          assert.deepEqual(
            records.map((read) => toHex(plainData(read))),
            [toHex(plainData(asked))],
          );
        }),
        { numRuns: 60 },
      );
    });
  }
});

for (const [text, expected] of [
  ["a 1 CAA 0 issue gr\xfc", 'a.example.org. 1 IN CAA 0 issue "gr\\252"'],
  ['a 1 HINFO "gr\xfc" x', 'a.example.org. 1 IN HINFO "gr\\252" "x"'],
  [
    "a 1 HTTPS 1 gr\xfc alpn=\xff key9=\\\xfe",
    'a.example.org. 1 IN HTTPS 1 gr\\252.example.org. alpn="\\255" key9="\\254"',
  ],
  [
    "a 1 NAPTR 1 2 \x80 \x81 \x82 \x83",
    'a.example.org. 1 IN NAPTR 1 2 "\\128" "\\129" "\\130" \\131.example.org.',
  ],
  ["a 1 NSEC b\xfc A", "a.example.org. 1 IN NSEC b\\252.example.org. A"],
  ["a 1 IPSECKEY 1 3 2 b\xfc", "a.example.org. 1 IN IPSECKEY 1 3 2 b\\252.example.org."],
] as const) {
  test(`octets of Latin-1: ${JSON.stringify(text)}`, () => {
    const { records, faults } = parseZoneText(new Uint8Array(Buffer.from(text, "latin1")), { origin });
    assert.deepEqual(faults, []);
    assert.deepEqual(
      records.map((record) => formatRecord(record).replaceAll("\t", " ")),
      [expected],
    );
  });
}

test("JavaScript text is read as its octets in UTF-8, in owners, names and strings", () => {
  const record = parseRecord('grüße.example. 60 IN NAPTR 1 2 "é" "\\é" "😀" ü.example.');
  assert.equal(
    formatRecord(record).replaceAll("\t", " "),
    'gr\\195\\188\\195\\159e.example. 60 IN NAPTR 1 2 "\\195\\169" "\\195\\169" "\\240\\159\\152\\128" \\195\\188.example.',
  );
});

test("faults show text as it was written", () => {
  const shown = (text: string): string[] =>
    parseZoneText(text, { origin, file: "db" }).faults.map(formatZoneTextFault);
  assert.deepEqual(shown("a 1 LOC grüße"), ['db:1:9: degrees must be a number from 0 to 90, not "grüße"']);
  assert.deepEqual(shown("a 1 RP a ü..ö"), [
    'db:1:10: a domain name: not a domain name: "ü..ö": empty label',
  ]);
});
