import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { className, opcodeOf, parseClass, parseRcode, Rcode, rcodeName } from "./numbers.ts";
import { parseRecordType, RecordType, recordTypeName } from "./type-names.ts";

describe("mnemonics", () => {
  it("name record types in any case, and others by number (RFC 3597 section 5)", () => {
    for (const [name, type] of Object.entries(RecordType)) {
      assert.equal(parseRecordType(name), type);
      assert.equal(parseRecordType(name.toLowerCase()), type);
      assert.equal(recordTypeName(type), name);
    }
    assert.equal(parseRecordType("TYPE1"), 1);
    assert.equal(parseRecordType("type65535"), 65535);
    assert.equal(recordTypeName(65535), "TYPE65535");
    const none = [
      "",
      "TYPE",
      "TYPE65536",
      "TYPE-1",
      "TYPE1.5",
      "TYPE0x1",
      "TYPE000001",
      " A",
      "A ",
      "TYPE A",
      "dſ",
      "ıxfr",
      "toString",
    ];
    for (const text of none) assert.equal(parseRecordType(text), undefined, text);
  });

  it("name classes", () => {
    assert.deepEqual(["IN", "ch", "Hs", "NONE", "any", "CLASS17"].map(parseClass), [1, 3, 4, 254, 255, 17]);
    assert.deepEqual([1, 3, 4, 254, 255, 17].map(className), ["IN", "CH", "HS", "NONE", "ANY", "CLASS17"]);
    for (const text of ["", "CLASS", "CLASS65536", "TYPE1", "constructor"])
      assert.equal(parseClass(text), undefined);
  });

  it("name rcodes, and others by bare number", () => {
    for (const [name, rcode] of Object.entries(Rcode)) {
      assert.equal(parseRcode(name.toLowerCase()), rcode);
      assert.equal(parseRcode(String(rcode)), rcode);
      assert.equal(rcodeName(rcode), name);
    }
    assert.equal(rcodeName(3841), "3841");
    assert.equal(parseRcode("4095"), 4095);
    for (const text of ["", "4096", "-1", "NOSUCH", "toString", "__proto__", "ſERVFAIL"])
      assert.equal(parseRcode(text), undefined);
  });

  it("opcodeOf reads bits 11 to 14 of the second header word", () => {
    assert.equal(opcodeOf(0x8000), 0);
    assert.equal(opcodeOf(0xa800), 5);
    assert.equal(opcodeOf(0xffff), 15);
  });
});
