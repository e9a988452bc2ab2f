import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { parseTtl } from "./fields.ts";
import { anyRecord } from "./fixtures/arbitraries.ts";
import { recordExamples } from "./fixtures/record-examples.ts";
import { Name } from "./name.ts";
import { PresentationError } from "./rdata-scanner.ts";
import { isOpaque, type ResourceRecord } from "./record-kind.ts";
import { A, recordKinds } from "./record-table.ts";
import {
  canonicalData,
  dataFromWire,
  formatData,
  formatRecord,
  parseRecord,
  readRecord,
  writeRecord,
} from "./resource-record.ts";
import { RecordType } from "./type-names.ts";
import { WireError, WireReader } from "./wire-reader.ts";
import { WireWriter } from "./wire-writer.ts";

describe("parseRecord", () => {
  const heads: [text: string, printed: string][] = [
    ["a.example. 60 IN A 192.0.2.1", "a.example.\t60\tIN\tA\t192.0.2.1"],
    ["a.example IN 60 A 192.0.2.1", "a.example.\t60\tIN\tA\t192.0.2.1"],
    ["a.example. A 192.0.2.1", "a.example.\t3600\tIN\tA\t192.0.2.1"],
    ["a. 1h30m a 192.0.2.1 ; with a comment", "a.\t5400\tIN\tA\t192.0.2.1"],
    ["a. CH txt b", 'a.\t3600\tCH\tTXT\t"b"'],
    ["a. CLASS1 TYPE1 192.0.2.1", "a.\t3600\tIN\tA\t192.0.2.1"],
    ["a. class4711 type65280 \\# 1 ff", "a.\t3600\tCLASS4711\tTYPE65280\t\\# 1 FF"],
    [". 4294967295 NS .", ".\t4294967295\tIN\tNS\t."],
    ["@ MX 10 @", ".\t3600\tIN\tMX\t10 ."],
    ["a. ( 60\n IN ; why\n A ) 192.0.2.1", "a.\t60\tIN\tA\t192.0.2.1"],
    // ANY is a class before a type, and a type before other text.
    ["a. 0 ANY A \\# 0", "a.\t0\tANY\tA\t\\# 0"],
    ["a. 0 ANY ANY \\# 0", "a.\t0\tANY\tANY\t\\# 0"],
    ["a. 0 IN ANY \\# 0", "a.\t0\tIN\tANY\t\\# 0"],
    ["a. 0 ANY \\# 0", "a.\t0\tIN\tANY\t\\# 0"],
    ["a. 0 NONE TXT b", 'a.\t0\tNONE\tTXT\t"b"'],
  ];
  for (const [text, printed] of heads) {
    it(JSON.stringify(text), () => {
      const record = parseRecord(text);
      assert.equal(formatRecord(record), printed);
      assert.deepEqual(parseRecord(printed), record);
    });
  }

  it("completes names with the origin and uses the given TTL", () => {
    const origin = Name.parse("example.org");
    assert.equal(
      formatRecord(parseRecord("@ NS ns", { origin, ttl: 5 })),
      "example.org.\t5\tIN\tNS\tns.example.org.",
    );
    assert.equal(
      formatRecord(parseRecord("w 7 CNAME .", { origin, ttl: 5 })),
      "w.example.org.\t7\tIN\tCNAME\t.",
    );
  });

  const bad: [text: string, column: number, reason: RegExp][] = [
    ["", 1, /an owner name is expected/],
    ["a.", 3, /a record type is expected/],
    ["a. 60 IN", 9, /a record type is expected/],
    ["a..b A 192.0.2.1", 1, /empty label/],
    ["a. NONSENSE b", 4, /"NONSENSE" is not a record type/],
    ["a. 60 60 A 192.0.2.1", 7, /"60" is not a record type/],
    ["a. IN CH A 192.0.2.1", 7, /"CH" is not a record type/],
    ["a. 4294967296 A 192.0.2.1", 4, /not a record type/],
    ["a. -1 A 192.0.2.1", 4, /not a record type/],
    ["a. A 192.0.2.1 b", 16, /unexpected "b" after the A data/],
    ["a. TYPE65280 abcd", 4, /write \\# LENGTH HEX/],
    ["a. TYPE65536 \\# 0", 4, /not a record type/],
    ["a. OPT .", 4, /no text form/],
    ["a. A \\# 3 010203", 11, /octets are not A data/],
    ["a. A \\# 4 010203", 11, /not 4 octets/],
    ["a. A \\# 65536", 9, /from 0 to 65535/],
    ["a. A \\#", 8, /a length is expected/],
    ["a. NULL \\# 1 0", 14, /not 1 octets in hexadecimal/],
    ["a. MX \\# 4 000ac000", 12, /not MX data/],
    ['a. TXT "b', 8, /no closing quote/],
  ];
  for (const [text, column, reason] of bad) {
    it(`refuses ${JSON.stringify(text)}`, () => {
      assert.throws(
        () => parseRecord(text),
        (error: unknown) => {
          assert.ok(error instanceof PresentationError, `${error}`);
          assert.match(error.reason, reason);
          assert.equal(error.column, column);
          assert.equal(error.message, `column ${column}: ${error.reason}`);
          assert.equal(error.text, text);
          return true;
        },
      );
    });
  }

  it("distinguishes the mark of RFC 3597 from a text that looks like it", () => {
    assert.equal(formatData(parseRecord('a. TXT "\\#" 0')), '"#" "0"');
    assert.equal(formatData(parseRecord("a. TXT \\# 2 0161")), '"a"');
    assert.equal(formatData(parseRecord("a. TXT \\# 4 01 61 0162")), '"a" "b"');
  });

  it("throws only PresentationError", () => {
    const odd = [
      "",
      '""',
      "\\#",
      "\\",
      "-",
      ".",
      "(",
      '"',
      "0",
      "1",
      "65536",
      "1e9",
      "\\256",
      "ſ",
      "\u{1f600}",
      "=",
      "key1=",
    ];
    const pool = [...new Set([...odd, ...recordExamples.flatMap(({ text }) => text.split(" "))])];
    const word = fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom(...pool) },
      { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 8 }) },
    );
    const rdata = fc.array(word, { maxLength: 9 }).map((words) => words.join(" "));
    const type = fc.constantFrom(...recordKinds.map((kind) => kind.name), "TYPE1234", "OPT");
    const text = fc.oneof(
      { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 60 }) },
      { weight: 1, arbitrary: rdata },
      { weight: 8, arbitrary: fc.tuple(type, rdata).map(([type, rdata]) => `a. ${type} ${rdata}`) },
    );
    let accepted = 0;
    fc.assert(
      fc.property(text, (text) => {
        let record: ResourceRecord;
        try {
          record = parseRecord(text);
        } catch (error) {
          assert.ok(error instanceof PresentationError, `${error}`);
          return;
        }
        accepted++;
        assert.deepEqual(parseRecord(formatRecord(record)), record);
        assert.deepEqual(afterWire(record).data, record.data);
      }),
      { numRuns: 3000 },
    );
    assert.ok(accepted > 50, `only ${accepted} texts were records`);
  });
});

/** The record after encoding and decoding; RDATA without octets becomes opaque, see the test of empty RDATA. */
function afterWire(record: ResourceRecord): ResourceRecord {
  const writer = new WireWriter();
  writer.octets(new Uint8Array(12));
  writeRecord(writer, record);
  const read = readRecord(new WireReader(writer.finish(), 12));
  if (isOpaque(read.data) && read.data.octets.length === 0) return { ...read, data: record.data };
  return read;
}

describe("records", () => {
  it("can be read back from their text and their octets", () => {
    fc.assert(
      fc.property(anyRecord, (record) => {
        assert.deepEqual(parseRecord(formatRecord(record)), record);
        assert.deepEqual(afterWire(record), record);
      }),
      { numRuns: 300 },
    );
  });

  it("may have no RDATA, whatever their type (RFC 2136 section 2.4)", () => {
    for (const type of [RecordType.A, RecordType.SOA, RecordType.TXT, 65280]) {
      const data = dataFromWire(type, new Uint8Array(0));
      assert.deepEqual(data, { octets: new Uint8Array(0) });
      const record = { name: Name.root, type, class: 255, ttl: 0, data };
      assert.deepEqual(afterWire(record), record);
      assert.deepEqual(parseRecord(formatRecord(record)), record);
    }
  });

  it("keep a TTL above 2^31 - 1 as it is (RFC 8767 section 4)", () => {
    const record = A.create(Name.root, 0xffffffff, { address: "192.0.2.1" });
    assert.equal(afterWire(record).ttl, 0xffffffff);
  });

  it("of unknown type only accept octets", () => {
    const record = { name: Name.root, type: 65280, class: 1, ttl: 0, data: { address: "192.0.2.1" } };
    assert.throws(() => writeRecord(new WireWriter(), record), TypeError);
    assert.throws(() => canonicalData(record), TypeError);
  });

  it("of a known type may be given as octets", () => {
    const record = {
      ...A.create(Name.root, 0, { address: "0.0.0.0" }),
      data: { octets: Uint8Array.of(192, 0, 2, 1) },
    };
    assert.deepEqual(afterWire(record).data, { address: "192.0.2.1" });
    assert.equal(formatData(record), "\\# 4 C0000201");
  });

  it("of type OPT are refused", () => {
    const writer = new WireWriter();
    writeRecord(writer, {
      name: Name.root,
      type: RecordType.OPT,
      class: 512,
      ttl: 0,
      data: { octets: new Uint8Array(0) },
    });
    assert.throws(() => readRecord(new WireReader(writer.finish())), WireError);
  });

  it("have RDATA of exactly the given length", () => {
    const octets = Uint8Array.of(0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 192, 0, 2, 1, 77);
    const reader = new WireReader(octets);
    assert.deepEqual(readRecord(reader).data, { address: "192.0.2.1" });
    assert.equal(reader.remaining, 1);
    for (const length of [3, 5, 6]) {
      octets[10] = length;
      assert.throws(() => readRecord(new WireReader(octets)), WireError);
    }
  });
});

describe("parseTtl", () => {
  it("reads seconds and units", () => {
    const cases: [text: string, seconds: number | undefined][] = [
      ["0", 0],
      ["007", 7],
      ["4294967295", 4294967295],
      ["4294967296", undefined],
      ["1w2d3h4m5s", 788645],
      ["1H", 3600],
      ["1h1h", 7200],
      ["7101w", 4294684800],
      ["7102w", undefined],
      ["", undefined],
      ["h", undefined],
      ["1h30", undefined],
      ["1.5h", undefined],
      ["-1", undefined],
      ["1K", undefined],
      ["9".repeat(400), undefined],
      [`${"9".repeat(400)}w`, undefined],
    ];
    for (const [text, seconds] of cases) assert.equal(parseTtl(text), seconds, text);
  });
});
