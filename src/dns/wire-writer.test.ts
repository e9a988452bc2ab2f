import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { anyName } from "./fixtures/arbitraries.ts";
import { Name } from "./name.ts";
import { toHex } from "./octets.ts";
import { WireError, WireReader } from "./wire-reader.ts";
import { WireWriter } from "./wire-writer.ts";

const parse = (text: string) => Name.parse(text);

/** A writer positioned after the header of a message. */
function writer(options: ConstructorParameters<typeof WireWriter>[0] = {}): WireWriter {
  const writer = new WireWriter(options);
  writer.octets(new Uint8Array(12));
  return writer;
}

const tooLarge = (error: unknown) => error instanceof WireError && error.code === "TOO_LARGE";

describe("WireWriter", () => {
  it("writes numbers in network order", () => {
    const writer = new WireWriter({ capacity: 1 });
    writer.u8(0xfe);
    writer.u16(0xfffd);
    writer.u32(0xfffcfbfa);
    writer.u48(0xfff9f8f7f6f5);
    writer.u64(0xfff4f3f2f1f0efeen);
    assert.equal(toHex(writer.finish()), "fefffdfffcfbfafff9f8f7f6f5fff4f3f2f1f0efee");
  });

  it("grows up to its limit, and leaves everything in place beyond it", () => {
    const writer = new WireWriter({ capacity: 2, limit: 5 });
    writer.u32(0x01020304);
    assert.throws(() => writer.u16(5), tooLarge);
    assert.throws(() => writer.octets(new Uint8Array(2)), tooLarge);
    assert.throws(() => writer.name(parse("a")), tooLarge);
    writer.u8(5);
    assert.equal(toHex(writer.finish()), "0102030405");
    assert.throws(() => writer.u8(6), tooLarge);

    const message = new WireWriter();
    message.octets(new Uint8Array(65535));
    assert.throws(() => message.u8(0), tooLarge);
  });

  it("fills in lengths", () => {
    const writer = new WireWriter();
    const outer = writer.openLength();
    writer.u8(7);
    const inner = writer.openLength();
    writer.octets(new Uint8Array(300));
    writer.closeLength(inner);
    writer.closeLength(outer);
    assert.equal(toHex(writer.finish().subarray(0, 5)), "012f07012c");
  });

  it("refuses character strings longer than a length octet can count", () => {
    const writer = new WireWriter();
    writer.characterString(new Uint8Array(255));
    assert.equal(writer.offset, 256);
    assert.throws(() => writer.characterString(new Uint8Array(256)), RangeError);
  });
});

describe("WireWriter.name", () => {
  it("points to the longest suffix that is already written", () => {
    const out = writer();
    for (const text of ["F.ISI.ARPA", "FOO.F.ISI.ARPA", "ARPA", ".", "x.ISI.ARPA", "F.ISI.ARPA"])
      out.name(parse(text));
    assert.equal(
      toHex(out.finish().subarray(12)),
      ["0146034953490441525041" + "00", "03464f4fc00c", "c012", "00", "0178c00e", "c00c"].join(""),
    );
  });

  it("points to names written in full, but does not compress names where that is forbidden", () => {
    const out = writer();
    out.name(parse("a.example"), false);
    out.name(parse("b.example"), false);
    out.name(parse("c.example"), true);
    assert.equal(
      toHex(out.finish().subarray(12)),
      "0161076578616d706c6500" + "0162076578616d706c6500" + "0163c00e",
    );
  });

  it("ignores case where allowed, and keeps it where required", () => {
    const out = writer();
    out.name(parse("www.Example.ORG"));
    out.name(parse("WWW.example.org"));
    out.name(parse("a.example.org"), true, true);
    out.name(parse("b.Example.ORG"), true, true);
    const reader = new WireReader(out.finish(), 12);
    assert.deepEqual(
      Array.from({ length: 4 }, () => reader.name().toString()),
      ["www.Example.ORG.", "www.Example.ORG.", "a.example.org.", "b.Example.ORG."],
    );
    assert.equal(reader.remaining, 0);
    assert.equal(out.offset, 12 + 17 + 2 + 15 + 4);
  });

  it("distinguishes names with equal hashes", () => {
    const [one, other] = [parse("7vw"), parse("65ak")];
    assert.equal(one.hash, other.hash);
    const out = writer();
    for (const name of [one, other, one, other, one.prepend("x"), other.prepend("x")]) out.name(name);
    const reader = new WireReader(out.finish(), 12);
    assert.deepEqual(
      Array.from({ length: 6 }, () => reader.name().toString()),
      ["7vw.", "65ak.", "7vw.", "65ak.", "x.7vw.", "x.65ak."],
    );
  });

  it("never points to names that were taken back", () => {
    const out = writer();
    out.name(parse("example.org"));
    const start = out.offset;
    out.name(parse("www.example.org"));
    out.rewind(start);
    out.name(parse("www.example.org"));
    out.name(parse("www.example.org"));
    assert.equal(toHex(out.finish().subarray(start)), `03777777c00cc0${start.toString(16)}`);
  });

  it("remembers names again after they were taken back", () => {
    const out = writer();
    out.name(parse("www.example.org"));
    out.rewind(12);
    out.octets(new Uint8Array(5));
    out.name(parse("www.example.org"));
    out.name(parse("www.example.org"));
    assert.equal(toHex(out.finish().subarray(-2)), "c011");
  });

  it("never points to names that did not fit", () => {
    const out = writer({ limit: 30 });
    out.octets(new Uint8Array(12));
    assert.throws(() => out.name(parse("example")), tooLarge);
    out.rewind(24);
    out.name(parse("abcd"));
    assert.equal(toHex(out.finish().subarray(24)), "046162636400");
  });

  it("never points beyond 0x3fff", () => {
    const out = writer();
    out.octets(new Uint8Array(0x3ffc - 12));
    // "a" is at 0x3ffc, "bc" at 0x3ffe, "d" at 0x4001.
    out.name(parse("a.bc.d"));
    const start = out.offset;
    for (const text of ["a.bc.d", "bc.d", "d", "d"]) out.name(parse(text));
    assert.equal(toHex(out.finish().subarray(start)), "fffc" + "fffe" + "016400" + "016400");
  });

  it("compresses nothing if told so, and lowers case in canonical form", () => {
    const plain = writer({ compress: false });
    const canonical = writer({ canonical: true });
    for (const out of [plain, canonical]) {
      out.name(parse("A.b"));
      out.name(parse("A.b"));
    }
    assert.equal(toHex(plain.finish().subarray(12)), "0141016200".repeat(2));
    assert.equal(toHex(canonical.finish().subarray(12)), "0161016200".repeat(2));
  });

  it("writes names that read back unchanged", () => {
    const written = fc.array(fc.tuple(anyName, fc.boolean(), fc.boolean()), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(written, fc.nat(0x4000), (names, gap) => {
        const out = writer();
        out.octets(new Uint8Array(gap));
        for (const [name, compress, keepSpelling] of names) out.name(name, compress, keepSpelling);
        const bytes = out.finish();
        const reader = new WireReader(bytes, 12 + gap);
        for (const [name, compress, keepSpelling] of names) {
          const start = reader.offset;
          const read = reader.name();
          assert.deepEqual(read.folded, name.folded);
          if (keepSpelling || !compress) assert.deepEqual(read.wire, name.wire);
          if (!compress) assert.equal(reader.offset - start, name.wire.length);
        }
        assert.equal(reader.remaining, 0);
      }),
    );
  });
});
