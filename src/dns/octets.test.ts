import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  copyOctets,
  FOLD,
  fromBase32Hex,
  fromBase64,
  fromHex,
  passingCopy,
  readU16,
  readU32,
  sameOctets,
  toBase32Hex,
  toBase64,
  toHex,
  toLatin1,
  writeU16,
  writeU32,
} from "./octets.ts";

const ascii = (text: string) => Uint8Array.from(Buffer.from(text, "latin1"));

describe("FOLD", () => {
  it("changes only A to Z", () => {
    for (let octet = 0; octet < 256; octet++) {
      const isUpper = octet >= 0x41 && octet <= 0x5a;
      assert.equal(FOLD[octet], isUpper ? octet + 32 : octet);
    }
  });
});

describe("numbers in network order", () => {
  it("are read and written at any offset", () => {
    const bytes = new Uint8Array(8);
    writeU16(bytes, 1, 0xfffe);
    writeU32(bytes, 3, 0xfedcba98);
    assert.deepEqual(bytes, Uint8Array.of(0, 0xff, 0xfe, 0xfe, 0xdc, 0xba, 0x98, 0));
    assert.equal(readU16(bytes, 1), 0xfffe);
    assert.equal(readU32(bytes, 3), 0xfedcba98);
  });
});

describe("copyOctets", () => {
  it("shares no memory with the copied octets, not even with a Buffer's", () => {
    const packet = Buffer.from("abcdef");
    const copy = copyOctets(packet, 1, 3);
    packet.fill(0);
    assert.deepEqual(copy, ascii("bc"));
    assert.equal(copy.buffer.byteLength, 2);
  });
});

describe("sameOctets", () => {
  it("compares length and every octet", () => {
    assert.equal(sameOctets(ascii("ab"), ascii("ab")), true);
    assert.equal(sameOctets(ascii("ab"), ascii("abc")), false);
    assert.equal(sameOctets(ascii("ab"), ascii("aB")), false);
    assert.equal(sameOctets(ascii(""), ascii("")), true);
  });
});

describe("texts of octets", () => {
  it("only cover the view, not the buffer behind it", () => {
    const view = ascii("xxfoobaryy").subarray(2, 8);
    assert.equal(toHex(view), "666f6f626172");
    assert.equal(toBase64(view), "Zm9vYmFy");
    assert.equal(toLatin1(view), "foobar");
    assert.equal(toBase32Hex(view), "CPNMUOJ1E8");
  });

  // RFC 4648 section 10.
  const vectors: [octets: string, base64: string, base32Hex: string][] = [
    ["", "", ""],
    ["f", "Zg==", "CO"],
    ["fo", "Zm8=", "CPNG"],
    ["foo", "Zm9v", "CPNMU"],
    ["foob", "Zm9vYg==", "CPNMUOG"],
    ["fooba", "Zm9vYmE=", "CPNMUOJ1"],
    ["foobar", "Zm9vYmFy", "CPNMUOJ1E8"],
  ];
  for (const [octets, base64, base32Hex] of vectors) {
    it(`"${octets}" is ${base64} and ${base32Hex}`, () => {
      assert.equal(toBase64(ascii(octets)), base64);
      assert.deepEqual(fromBase64(base64), ascii(octets));
      assert.deepEqual(fromBase64(base64.replaceAll("=", "")), ascii(octets));
      assert.equal(toBase32Hex(ascii(octets)), base32Hex);
      assert.deepEqual(fromBase32Hex(base32Hex), ascii(octets));
      assert.deepEqual(fromBase32Hex(base32Hex.toLowerCase()), ascii(octets));
    });
  }

  it("survive printing and reading", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (octets) => {
        assert.deepEqual(fromHex(toHex(octets)), octets);
        assert.deepEqual(fromHex(toHex(octets).toUpperCase()), octets);
        assert.deepEqual(fromBase64(toBase64(octets)), octets);
        assert.deepEqual(fromBase32Hex(toBase32Hex(octets)), octets);
      }),
    );
  });

  it("in other forms are refused", () => {
    for (const text of ["0", "0g", "0x00", " 00", "00 ", "0０"]) assert.equal(fromHex(text), undefined, text);
    const noBase64 = ["A", "Zg=", "Zm8==", "Zm9v=", "=", "Zg==Zg==", "Z g==", "Zh==", "Zm9=", "Zm9", "-_-_"];
    for (const text of noBase64) assert.equal(fromBase64(text), undefined, text);
    const noBase32 = ["C", "CO=", "CW", "CP", "ß", "ſſ", "CPN", "C O"];
    for (const text of noBase32) assert.equal(fromBase32Hex(text), undefined, text);
  });
});

describe("copies", () => {
  for (const length of [0, 1, 64, 65, 256, 257, 5000])
    it(`of ${length} octets are independent`, () => {
      const source = Uint8Array.from({ length: length + 10 }, (_, at) => at * 7);
      const expected = [...source.subarray(5, 5 + length)];
      const copies = [copyOctets(source, 5, 5 + length), passingCopy(source, 5, 5 + length)];
      source.fill(0);
      for (const copy of copies) assert.deepEqual([...copy], expected);
    });
});
