import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { dataArbitraries, recordsOf } from "./fixtures/arbitraries.ts";
import { recordExamples } from "./fixtures/record-examples.ts";
import { Name } from "./name.ts";
import { toHex } from "./octets.ts";
import { opaqueText } from "./rdata-scanner.ts";
import { isOpaque, type RecordKind, type ResourceRecord } from "./record-kind.ts";
import * as table from "./record-table.ts";
import { recordKind, recordKinds } from "./record-table.ts";
import { canonicalData, dataFromWire, formatData, formatRecord, parseRecord } from "./resource-record.ts";
import { RecordType, type RecordTypeName, recordTypeName } from "./type-names.ts";
import { WireError } from "./wire-reader.ts";
import { WireWriter } from "./wire-writer.ts";

const parse = (type: string, text: string) => parseRecord(`owner.example. 300 IN ${type} ${text}`);

function recordFrom(type: string, octets: Uint8Array): ResourceRecord {
  const number = RecordType[type as RecordTypeName];
  return { name: Name.root, type: number, class: 1, ttl: 0, data: dataFromWire(number, octets) };
}

/** RDATA without compression. */
function dataOctets(record: ResourceRecord): Uint8Array {
  const writer = new WireWriter({ compress: false });
  kindOf(record).writeData(writer, record.data);
  return writer.finish();
}

function kindOf(record: ResourceRecord): RecordKind<unknown> {
  const kind = recordKind(record.type);
  assert.ok(kind);
  return kind;
}

describe("the record table", () => {
  it("has each type once, under its mnemonic, and exports each row", () => {
    const exported = new Set<unknown>(Object.values(table));
    for (const kind of recordKinds) {
      assert.equal(RecordType[kind.name as RecordTypeName], kind.type);
      assert.equal(recordTypeName(kind.type), kind.name);
      assert.equal(recordKind(kind.type), kind);
      assert.ok(exported.has(kind), kind.name);
    }
    assert.equal(new Set(recordKinds.map((kind) => kind.type)).size, recordKinds.length);
  });

  it("has a row for every type except those without data or without text", () => {
    const without = Object.entries(RecordType).filter(([, type]) => recordKind(type) === undefined);
    assert.deepEqual(without.map(([name]) => name).sort(), [
      "ANY",
      "AXFR",
      "IXFR",
      "MAILA",
      "MAILB",
      "NULL",
      "OPT",
      "UINFO",
      "UNSPEC",
    ]);
  });

  it("has two examples and a generator for every row", () => {
    for (const { name } of recordKinds) {
      assert.ok(recordExamples.filter((example) => example.type === name).length >= 2, name);
      assert.ok(name in dataArbitraries, name);
    }
  });
});

describe("an example of RDATA", () => {
  for (const { type, text, octets, printed } of recordExamples) {
    it(`${type} ${text}`, () => {
      const record = parse(type, text);
      assert.equal(toHex(dataOctets(record)), toHex(octets));
      assert.equal(kindOf(record).is(record), true);
      assert.deepEqual(Object.keys(record.data ?? {}).sort(), kindOf(record).fieldNames.toSorted());

      const read = recordFrom(type, octets);
      assert.deepEqual(read.data, record.data);
      assert.equal(formatData(read), printed);
      assert.deepEqual(parse(type, printed), record);
      assert.deepEqual(parse(type, opaqueText(octets)), record);

      for (let length = 1; length < octets.length; length++) {
        try {
          recordFrom(type, octets.subarray(0, length));
        } catch (error) {
          assert.ok(error instanceof WireError, `${error}`);
        }
      }
    });
  }
});

describe("every row", () => {
  for (const { name: type } of recordKinds) {
    it(`${type} can be read back from its text and its octets`, () => {
      fc.assert(
        fc.property(recordsOf(type), (record) => {
          const printed = formatRecord(record);
          const readBack = parseRecord(printed);
          if (!isOpaque(readBack.data)) assert.deepEqual(readBack, record);
          else assert.equal(toHex(readBack.data.octets), toHex(dataOctets(record)));

          assert.deepEqual(dataFromWire(record.type, dataOctets(record)), record.data);
          const canonical = canonicalData(record);
          const again = canonicalData({ ...record, data: dataFromWire(record.type, canonical) });
          assert.deepEqual(again, canonical);
        }),
        { numRuns: 20 },
      );
    });
  }
});

/** The types of RFC 1035, the only ones whose names may be compressed (RFC 3597 section 4). */
const COMPRESSED = new Set(["NS", "MD", "MF", "CNAME", "SOA", "MB", "MG", "MR", "PTR", "MINFO", "MX"]);

/** RFC 4034 section 6.2, without NSEC (RFC 6840 section 5.1). */
const LOWERED = new Set(
  [...COMPRESSED].concat("RP AFSDB RT SIG PX NXT NAPTR KX SRV DNAME A6 RRSIG".split(" ")),
);

/** The names in data, including lists. */
function namesIn(data: unknown): Name[] {
  return Object.values(data ?? {})
    .flat()
    .filter((value) => value instanceof Name);
}

describe("names in RDATA", () => {
  const withNames = recordExamples.filter(({ type, text }) => {
    return namesIn(parse(type, text).data).some((name) => !name.isRoot);
  });

  it("are compressed only in the types of RFC 1035", () => {
    const shortened = new Set<string>();
    for (const { type, text, octets } of withNames) {
      const record = parse(type, text);
      const writer = new WireWriter();
      writer.octets(new Uint8Array(12));
      for (const name of namesIn(record.data)) writer.name(name);
      const start = writer.offset;
      kindOf(record).writeData(writer, record.data);
      const written = writer.finish().subarray(start);
      if (COMPRESSED.has(type)) assert.ok(written.length < octets.length, type);
      else assert.equal(toHex(written), toHex(octets), type);
      if (written.length < octets.length) shortened.add(type);
    }
    assert.deepEqual(shortened, COMPRESSED);
  });

  it("are in lower case in the canonical form of the types that RFC 4034 section 6.2 lists", () => {
    const lowered = new Set<string>();
    for (const type of new Set(withNames.map((example) => example.type))) {
      fc.assert(
        fc.property(recordsOf(type), (record) => {
          const plain = toHex(dataOctets(record));
          const canonical = toHex(canonicalData(record));
          if (!LOWERED.has(type)) assert.equal(canonical, plain);
          else if (canonical !== plain) lowered.add(type);
          // Only the names change.
          for (const name of namesIn(record.data)) {
            const expected = LOWERED.has(type) ? name.folded : name.wire;
            assert.ok(canonical.includes(toHex(expected)), formatRecord(record));
          }
          assert.equal(canonical.length, plain.length);
        }),
        { numRuns: 30 },
      );
    }
    assert.deepEqual([...lowered].sort(), [...LOWERED].sort());
  });
});

describe("RecordKind", () => {
  it("narrows records of its type, but not those held as octets", () => {
    const record = parse("MX", "10 mail.example.");
    assert.equal(table.MX.is(record), true);
    assert.equal(table.A.is(record), false);
    if (table.MX.is(record)) assert.equal(record.data.exchange.toString(), "mail.example.");
    assert.equal(table.MX.is(parse("MX", "\\# 0")), false);
  });

  it("creates records of class IN by default", () => {
    const name = Name.parse("a.example");
    assert.deepEqual(
      table.A.create(name, 5, { address: "192.0.2.1" }),
      parseRecord("a.example. 5 IN A 192.0.2.1"),
    );
    assert.equal(table.TXT.create(name, 5, { strings: [] }, 3).class, 3);
  });

  it("splits a text that is longer than one string", () => {
    const record = parse("TXT", `"${"x".repeat(300)}" "" ${"y".repeat(255)}`);
    assert.ok(table.TXT.is(record));
    assert.deepEqual(
      record.data.strings.map(({ length }) => length),
      [255, 45, 0, 255],
    );
  });

  it("sorts and merges the values of a bit map", () => {
    const record = parse("NSEC", "a. TYPE65535 RRSIG A TYPE300 A CAA NS");
    assert.deepEqual(dataFromWire(record.type, dataOctets(record)), record.data);
    assert.equal(formatData(record), "a. A NS RRSIG CAA TYPE300 TYPE65535");
    const unordered = table.WKS.create(Name.root, 0, {
      address: "192.0.2.1",
      protocol: 17,
      ports: [65535, 53, 53, 0],
    });
    assert.deepEqual(dataFromWire(unordered.type, dataOctets(unordered)), {
      ...unordered.data,
      ports: [0, 53, 65535],
    });
  });
});
