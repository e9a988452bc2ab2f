import assert from "node:assert/strict";
import { test } from "node:test";
import { codeOctets, RecordWriter, readCode, readRecords } from "./records.ts";

test("records can be read as written, and leave their writer empty", () => {
  const writer = new RecordWriter();
  const large = new Uint8Array(50_000).fill(7);
  writer.add(1, 0xffff_ffff, 2, new Uint8Array(0));
  writer.add(3, 4, 0xffff_ffff, large);
  writer.add(5, 6, 7, codeOctets(0x107));
  const records: unknown[] = [];
  readRecords(writer.take(), (kind, connection, stream, payload) =>
    records.push([kind, connection, stream, payload.length === 4 ? readCode(payload) : payload.length]),
  );
  assert.deepEqual(records, [
    [1, 0xffff_ffff, 2, 0],
    [3, 4, 0xffff_ffff, 50_000],
    [5, 6, 7, 0x107],
  ]);
  assert.ok(writer.isEmpty);
  readRecords(writer.take(), () => assert.fail("unexpected record"));
});
