import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { anyName } from "./fixtures/arbitraries.ts";
import { Name } from "./name.ts";
import { fromHex } from "./octets.ts";
import { WireError, type WireErrorCode, WireReader } from "./wire-reader.ts";

/** A message with any 12 header octets, followed by `hex`; blanks are ignored. */
function message(hex: string, header = "ffffffffffffffffffffffff"): Uint8Array {
  const octets = fromHex((header + hex).replaceAll(" ", ""));
  if (octets === undefined) throw new Error(`not hexadecimal: ${hex}`);
  return octets;
}

function throwsWireError(run: () => unknown, code: WireErrorCode, offset?: number): void {
  assert.throws(run, (error: unknown) => {
    assert.ok(error instanceof WireError, `${error}`);
    assert.equal(error.code, code);
    if (offset !== undefined) assert.equal(error.offset, offset);
    assert.match(error.message, new RegExp(`at octet ${error.offset}$`));
    return true;
  });
}

describe("WireReader", () => {
  it("reads numbers in network order", () => {
    const reader = new WireReader(message("", "fe fffd fffcfbfa fff9f8f7f6f5 fff4f3f2f1f0efee"));
    assert.equal(reader.u8(), 0xfe);
    assert.equal(reader.u16(), 0xfffd);
    assert.equal(reader.u32(), 0xfffcfbfa);
    assert.equal(reader.u48(), 0xfff9f8f7f6f5);
    assert.equal(reader.u64(), 0xfff4f3f2f1f0efeen);
    assert.equal(reader.remaining, 0);
  });

  it("does not read past its end, whether more octets follow or not", () => {
    const bytes = new Uint8Array(20);
    for (const end of [3, 20]) {
      const reader = () => new WireReader(bytes, end - 1, end);
      throwsWireError(() => reader().u16(), "SHORT_INPUT", end - 1);
      throwsWireError(() => reader().u32(), "SHORT_INPUT");
      throwsWireError(() => reader().u48(), "SHORT_INPUT");
      throwsWireError(() => reader().u64(), "SHORT_INPUT");
      throwsWireError(() => reader().octets(2), "SHORT_INPUT");
      throwsWireError(() => reader().skip(2), "SHORT_INPUT");
      assert.equal(reader().rest().length, 1);
    }
    throwsWireError(() => new WireReader(bytes, 20).u8(), "SHORT_INPUT", 20);
    throwsWireError(() => new WireReader(Uint8Array.of(2, 65)).characterString(), "SHORT_INPUT", 1);
    throwsWireError(() => new WireReader(new Uint8Array(0)).characterString(), "SHORT_INPUT", 0);
  });

  it("returns copies, also of a Buffer from a socket", () => {
    const packet = Buffer.from("\x03abc\x03def", "latin1");
    const reader = new WireReader(packet);
    const [string, rest] = [reader.characterString(), reader.rest()];
    packet.fill(0);
    assert.deepEqual(string, Uint8Array.of(0x61, 0x62, 0x63));
    assert.deepEqual(rest, Uint8Array.of(3, 0x64, 0x65, 0x66));
    assert.equal(Buffer.isBuffer(rest), false);
  });
});

describe("WireReader.name", () => {
  it("reads a name in full and one through pointers, and continues after the first pointer", () => {
    // 12 F.ISI.ARPA, 24 FOO -> 12, 30 -> ARPA, 32 root (RFC 1035 section 4.1.4).
    const reader = new WireReader(message("0146 03495349 0441525041 00 03464f4f c00c c012 00"), 12);
    const names = Array.from({ length: 4 }, () => reader.name().toString());
    assert.deepEqual(names, ["F.ISI.ARPA.", "FOO.F.ISI.ARPA.", "ARPA.", "."]);
    assert.equal(reader.remaining, 0);
  });

  it("keeps the spelling and returns no view of the packet", () => {
    const packet = Buffer.from(message("0141 0162 00"));
    const name = new WireReader(packet, 12).name();
    packet.fill(0x78);
    assert.equal(name.toString(), "A.b.");
  });

  const LABEL_63 = `3f${"61".repeat(63)}`;
  const bad: [what: string, hex: string, code: WireErrorCode, start?: number][] = [
    ["nothing", "", "SHORT_INPUT"],
    ["no end", "0161", "SHORT_INPUT"],
    ["a label cut off", "0361 61", "SHORT_INPUT"],
    ["a pointer cut off", "c0", "SHORT_INPUT"],
    ["a pointer to itself", "c00c", "BAD_POINTER"],
    ["a pointer forward", "c00e 00", "BAD_POINTER"],
    ["a pointer far beyond the end", "ffff", "BAD_POINTER"],
    ["a loop of two pointers", "c00e c00c", "BAD_POINTER", 14],
    ["a loop through a label", "0161 c00c", "BAD_POINTER"],
    ["a loop back into the piece that holds the pointer", "0161 0162 c00e", "BAD_POINTER"],
    ["a pointer into the header", "c00b", "BAD_POINTER"],
    ["a pointer to the start of the header", "0161 c000", "BAD_POINTER"],
    ["a label of kind 0x40 (RFC 2673)", "41 00 00", "BAD_LABEL"],
    ["a label of kind 0x80", "80 00", "BAD_LABEL"],
    ["256 octets", `${LABEL_63.repeat(3)} 3e${"62".repeat(62)} 00`, "NAME_TOO_LONG"],
    [
      "256 octets through a pointer",
      `${LABEL_63.repeat(3)} 00 3e${"62".repeat(62)} c00c`,
      "NAME_TOO_LONG",
      205,
    ],
    ["many labels", `${"0161".repeat(128)} 00`, "NAME_TOO_LONG"],
  ];
  for (const [what, hex, code, start = 12] of bad) {
    it(`refuses ${what}`, () => {
      throwsWireError(() => new WireReader(message(hex), start).name(), code);
      throwsWireError(() => new WireReader(message(hex), start).checkName(), code);
    });
  }

  it("accepts 255 octets in one piece and through a pointer", () => {
    const whole = `${LABEL_63.repeat(3)} 3d${"62".repeat(61)} 00`;
    assert.equal(new WireReader(message(whole), 12).name().wire.length, 255);
    const pieces = `${LABEL_63.repeat(3)} 00 3d${"62".repeat(61)} c00c`;
    assert.equal(new WireReader(message(pieces), 205).name().wire.length, 255);
  });

  it("follows as many pointers as a name has labels, and no more", () => {
    // Each piece is one label and a pointer to the previous piece; the last name has 127 labels and 126 pointers.
    let hex = "0161 00";
    const starts = [12];
    for (let piece = 1; piece < 127; piece++) {
      starts.push(12 + hex.replaceAll(" ", "").length / 2);
      hex += `0161 c0${(starts[piece - 1] ?? 0).toString(16).padStart(2, "0")}`.replace(/c0(...)$/, "c$1");
    }
    assert.equal(new WireReader(message(hex), starts.at(-1)).name().labelCount, 127);

    // Pointers to pointers carry no octets, so only their number can be limited.
    let chain = "00";
    for (let at = 13; at < 500; at += 2) chain += (0xc000 | (at === 13 ? 12 : at - 2)).toString(16);
    const bytes = message(chain);
    assert.equal(new WireReader(bytes, 13 + 2 * 126).name(), Name.root);
    throwsWireError(() => new WireReader(bytes, 13 + 2 * 127).name(), "BAD_POINTER");
  });

  it("does not leave its RDATA, except through a pointer", () => {
    const bytes = message("0161 00 0162 c00c");
    throwsWireError(() => new WireReader(bytes, 12, 14).name(), "SHORT_INPUT", 14);
    throwsWireError(() => new WireReader(bytes, 15, 18).name(), "SHORT_INPUT", 17);
    const reader = new WireReader(bytes, 15);
    reader.end = 19;
    assert.equal(reader.name().toString(), "b.a.");
  });

  it("does not read after the message in a larger buffer", () => {
    // The pointer leads back to a label that runs on into the remains of an earlier packet.
    const bytes = message("05 6162 c00c 78 00");
    throwsWireError(() => new WireReader(bytes, 15, 17).name(), "SHORT_INPUT", 12);
    assert.equal(new WireReader(bytes, 15).name().labelCount, 1);
  });

  it("refuses a pointer where none is allowed", () => {
    const bytes = message("0161 00 c00c");
    throwsWireError(() => new WireReader(bytes, 15).name(false), "BAD_POINTER");
    throwsWireError(() => new WireReader(bytes, 15).checkName(false), "BAD_POINTER");
    throwsWireError(() => new WireReader(bytes, 15, bytes.length, bytes.length).name(), "BAD_POINTER");
    assert.equal(new WireReader(bytes, 12).name(false).toString(), "a.");
  });
});

describe("WireReader.checkName and skipName", () => {
  it("stop where name does", () => {
    fc.assert(
      fc.property(anyName, anyName, (one, other) => {
        const bytes = new Uint8Array(12 + one.wire.length + other.wire.length + 1);
        bytes.set(one.wire, 12);
        bytes.set(other.wire.subarray(0, -1), 12 + one.wire.length);
        bytes.set([0xc0, 12], bytes.length - 2);
        for (const start of [12, 12 + one.wire.length]) {
          const ends = (["name", "checkName", "skipName"] as const).map((method) => {
            const reader = new WireReader(bytes, start);
            try {
              reader[method]();
            } catch (error) {
              // Only the whole name shows that the pieces are too long together.
              assert.ok(error instanceof WireError && error.code === "NAME_TOO_LONG");
              return undefined;
            }
            return reader.offset;
          });
          assert.equal(ends[0], ends[1]);
          if (ends[0] !== undefined) assert.equal(ends[2], ends[0]);
        }
      }),
    );
  });

  it("skipName refuses names that do not end", () => {
    for (const hex of ["", "0161", "05", "c0"])
      throwsWireError(() => new WireReader(message(hex), 12).skipName(), "SHORT_INPUT");
    throwsWireError(() => new WireReader(message("40"), 12).skipName(), "BAD_LABEL");
  });
});
