import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anyRecord } from "./fixtures/arbitraries.ts";
import { recordExamples } from "./fixtures/record-examples.ts";
import { Name } from "./name.ts";
import { checkRecordBody, readRecordBody, writeRecord } from "./resource-record.ts";
import { parseRecordType } from "./type-names.ts";
import { WireReader } from "./wire-reader.ts";
import { WireWriter } from "./wire-writer.ts";

/** The result of a reader for a record: its end, or the error. */
function verdict(octets: Uint8Array, read: (reader: WireReader) => void): unknown {
  const reader = new WireReader(octets, 12);
  try {
    read(reader);
    return reader.offset;
  } catch (error) {
    return error;
  }
}

function assertSameVerdict(octets: Uint8Array): void {
  const checked = verdict(octets, checkRecordBody);
  const whole = verdict(octets, (reader) => readRecordBody(reader, Name.root, reader.u16()));
  assert.deepEqual(checked, whole);
}

/** Type, class, TTL and RDATA, at the offset of a first name. */
function bodyOf(type: number, data: Uint8Array): Uint8Array {
  const writer = new WireWriter();
  writer.octets(new Uint8Array(12));
  writer.u16(type);
  writer.u16(1);
  writer.u32(3600);
  writer.u16(data.length);
  writer.octets(data);
  return writer.finish().slice();
}

test("checking a record refuses what reading it refuses: examples, cut off anywhere", () => {
  for (const { type, octets } of recordExamples)
    for (let length = 0; length <= octets.length; length++) {
      const body = bodyOf(parseRecordType(type) ?? 0, octets.subarray(0, length));
      assertSameVerdict(body);
      assertSameVerdict(body.subarray(0, body.length - 1));
    }
});

test("the same for records with changed octets", () => {
  const change = fc.record({ at: fc.nat(), octet: fc.integer({ min: 0, max: 255 }) });
  fc.assert(
    fc.property(anyRecord, fc.array(change, { maxLength: 3 }), (record, changes) => {
      const writer = new WireWriter();
      writer.octets(new Uint8Array(11));
      writeRecord(writer, { ...record, name: Name.root });
      const octets = writer.finish().slice();
      for (const { at, octet } of changes) octets[12 + (at % (octets.length - 12))] = octet;
      assertSameVerdict(octets);
    }),
    { numRuns: 500 },
  );
});
