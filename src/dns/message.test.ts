import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { anyMessage } from "./fixtures/arbitraries.ts";
import { damagedPacket, longestNamePacket, pointerChainPacket } from "./fixtures/hostile-packets.ts";
import { decodeMessage, encodeMessage, type Message, makeQuery } from "./message.ts";
import { Name } from "./name.ts";
import { Flag, Opcode, Rcode } from "./numbers.ts";
import { fromHex, toHex } from "./octets.ts";
import { PresentationError } from "./rdata-scanner.ts";
import type { ResourceRecord } from "./record-kind.ts";
import { A, NS, TXT } from "./record-table.ts";
import { formatRecord, parseRecord } from "./resource-record.ts";
import { RecordType } from "./type-names.ts";
import { WireError, type WireErrorCode } from "./wire-reader.ts";

const EMPTY: Message = {
  id: 0,
  flags: 0,
  opcode: 0,
  rcode: 0,
  questions: [],
  answer: [],
  authority: [],
  additional: [],
  edns: undefined,
};
const EDNS = { udpSize: 1232, version: 0, dnssecOk: false, options: [] };

function octets(hex: string): Uint8Array {
  const octets = fromHex(hex.replaceAll(/\s/g, ""));
  assert.ok(octets, hex);
  return octets;
}

function throwsWireError(run: () => unknown, code: WireErrorCode): void {
  assert.throws(run, (error: unknown) => {
    assert.ok(error instanceof WireError, `${error}`);
    assert.equal(error.code, code);
    return true;
  });
}

/** With owners and question names in lower case: compression may give them the case of an earlier name. */
function withoutOwnerCase(message: Message): Message {
  const lowered = (records: readonly ResourceRecord[]) =>
    records.map((record) => ({ ...record, name: record.name.toLowerCase() }));
  return {
    ...message,
    questions: message.questions.map((question) => ({ ...question, name: question.name.toLowerCase() })),
    answer: lowered(message.answer),
    authority: lowered(message.authority),
    additional: lowered(message.additional),
  };
}

describe("decodeMessage", () => {
  it("reads a reply as a server sends it", () => {
    const message = decodeMessage(
      octets(
        `beef 8580 0001 0002 0000 0001
        03777777 07657861 6d706c65 00 0001 0001
        c00c 0005 0001 0000003c 0006 03617070 c010
        c029 0001 0001 00000005 0004 c0000201
        00 0029 04d0 00 00 8000 0000`,
      ),
    );
    assert.equal(message.id, 0xbeef);
    assert.equal(message.flags, Flag.QR | Flag.AA | Flag.RD | Flag.RA);
    assert.equal(message.opcode, Opcode.QUERY);
    assert.equal(message.rcode, Rcode.NOERROR);
    assert.deepEqual(message.questions, [{ name: Name.parse("www.example"), type: 1, class: 1 }]);
    assert.deepEqual(message.answer.map(formatRecord), [
      "www.example.\t60\tIN\tCNAME\tapp.example.",
      "app.example.\t5\tIN\tA\t192.0.2.1",
    ]);
    assert.deepEqual(message.additional, []);
    assert.deepEqual(message.edns, { ...EDNS, dnssecOk: true });
  });

  it("accepts OPT anywhere in the additional section, and its part of the rcode", () => {
    const record = "00 0010 0001 00000000 0002 0161";
    const opt = "00 0029 0200 01 00 0000 0000";
    for (const additional of [opt + record + record, record + opt + record, record + record + opt]) {
      const message = decodeMessage(octets(`0000 8000 0000 0000 0000 0003 ${additional}`));
      assert.equal(message.rcode, Rcode.BADVERS);
      assert.equal(message.additional.length, 2);
      assert.equal(message.edns?.udpSize, 512);
    }
  });

  it("keeps no reference to the packet", () => {
    const packet = Buffer.from(
      encodeMessage({ ...EMPTY, additional: [parseRecord("a. TXT b")], edns: EDNS }),
    );
    const message = decodeMessage(packet);
    const before = formatRecord(message.additional[0] ?? parseRecord(". NS ."));
    packet.fill(0xff);
    assert.deepEqual(message.additional.map(formatRecord), [before]);
  });

  const opt = "00 0029 0200 00 00 0000 0000";
  const bad: [what: string, hex: string, code: WireErrorCode][] = [
    ["no header", "", "SHORT_INPUT"],
    ["half a header", "0000 8000 0000 0000 0000 00", "SHORT_INPUT"],
    ["a question cut off", "0000 8000 0001 0000 0000 0000 00 0001 00", "SHORT_INPUT"],
    ["counts that lie", "0000 8000 ffff ffff ffff ffff", "SHORT_INPUT"],
    ["one record too few", `0000 8000 0000 0000 0000 0002 ${opt}`, "SHORT_INPUT"],
    ["octets after the last record", "0000 8000 0000 0000 0000 0000 00", "TRAILING_OCTETS"],
    ["two OPT records", `0000 8000 0000 0000 0000 0002 ${opt} ${opt}`, "BAD_RDATA"],
    ["OPT as answer", `0000 8000 0000 0001 0000 0000 ${opt}`, "BAD_RDATA"],
    ["OPT as authority", `0000 8000 0000 0000 0001 0000 ${opt}`, "BAD_RDATA"],
    ["OPT with an owner", `0000 8000 0000 0000 0000 0001 0161 ${opt}`, "BAD_RDATA"],
    [
      "RDATA behind the end",
      "0000 8000 0000 0001 0000 0000 00 0001 0001 00000000 0004 c00002",
      "SHORT_INPUT",
    ],
    [
      "RDATA longer than its fields",
      "0000 8000 0000 0001 0000 0000 00 0001 0001 00000000 0005 c000020100",
      "TRAILING_OCTETS",
    ],
    [
      "an owner that points into the header",
      "0000 8000 0000 0001 0000 0000 c004 0001 0001 00000000 0000",
      "BAD_POINTER",
    ],
  ];
  for (const [what, hex, code] of bad) {
    it(`refuses ${what}`, () => throwsWireError(() => decodeMessage(octets(hex)), code));
  }

  it("refuses pointers in a list of names, which two octets each could fill", () => {
    const hip = (server: string) => {
      const rdata = `01 02 0001 aa bb ${server}`.replaceAll(" ", "");
      const length = (rdata.length / 2).toString(16).padStart(4, "0");
      return octets(
        `0000 8000 0001 0001 0000 0000 0161 00 0037 0001 c00c 0037 0001 00000000 ${length} ${rdata}`,
      );
    };
    assert.equal(decodeMessage(hip("016100")).answer.length, 1);
    throwsWireError(() => decodeMessage(hip("c00c")), "BAD_POINTER");
  });

  it("refuses a message cut off anywhere", () => {
    const message = encodeMessage({
      ...EMPTY,
      questions: [{ name: Name.parse("a.example"), type: 15, class: 1 }],
      answer: [parseRecord("a.example. MX 10 mail.example."), parseRecord("a.example. TXT b c")],
      authority: [parseRecord("example. SOA ns.example. host.example. 1 2 3 4 5")],
      edns: { ...EDNS, options: [{ code: 3, data: Uint8Array.of(1) }] },
    });
    for (let length = 0; length < message.length; length++)
      assert.throws(() => decodeMessage(message.subarray(0, length)), WireError, `${length}`);
  });

  it("throws only WireError, and can encode and print every message that it accepts", () => {
    let accepted = 0;
    fc.assert(
      fc.property(damagedPacket, (packet) => {
        let message: Message;
        try {
          message = decodeMessage(packet);
        } catch (error) {
          assert.ok(error instanceof WireError, `${error}`);
          return;
        }
        accepted++;
        assert.deepEqual(withoutOwnerCase(decodeMessage(encodeMessage(message))), withoutOwnerCase(message));
        for (const record of [...message.answer, ...message.authority, ...message.additional])
          readBack(record);
      }),
      { numRuns: 600 },
    );
    assert.ok(accepted > 20, `only ${accepted} packets were messages`);
  });

  it("does bounded work for pointers that lead to pointers", () => {
    const packet = pointerChainPacket();
    const { bytes, reads } = counted(packet);
    throwsWireError(() => decodeMessage(bytes), "BAD_POINTER");
    assert.ok(reads() < 2000, `${reads()} octets read`);
  });

  it("does bounded work for many pointers to the longest name", () => {
    const { answer } = decodeMessage(longestNamePacket());
    assert.ok(answer.length > 4000);
    assert.equal(answer.at(-1)?.name.labelCount, 127);

    const { bytes, reads } = counted(longestNamePacket(8000));
    const names = decodeMessage(bytes).answer.length * 3;
    assert.ok(names > 1000);
    assert.ok(reads() < names * 1000, `${reads() / names} octets read for a name`);
  });
});

/** Service parameters that contradict each other have no text; everything else can be read back. */
function readBack(record: ResourceRecord): void {
  const text = formatRecord(record);
  try {
    assert.deepEqual(parseRecord(text), record);
  } catch (error) {
    if (!(error instanceof PresentationError)) throw error;
    assert.ok(record.type === RecordType.SVCB || record.type === RecordType.HTTPS, text);
  }
}

/** The octets, and the number of reads. */
function counted(octets: Uint8Array): { bytes: Uint8Array; reads: () => number } {
  let count = 0;
  const bytes = new Proxy(octets, {
    get(target, key) {
      count++;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return { bytes, reads: () => count };
}

describe("encodeMessage", () => {
  it("writes messages that decode to the same", () => {
    fc.assert(
      fc.property(anyMessage, fc.boolean(), (message, compress) => {
        const decoded = decodeMessage(encodeMessage(message, { compress }));
        if (compress) assert.deepEqual(withoutOwnerCase(decoded), withoutOwnerCase(message));
        else assert.deepEqual(decoded, message);
      }),
      { numRuns: 300 },
    );
  });

  it("puts header words, questions and sections in their places", () => {
    const message: Message = {
      ...EMPTY,
      id: 0x1234,
      flags: Flag.QR | Flag.TC | Flag.CD,
      opcode: Opcode.UPDATE,
      rcode: Rcode.NOTZONE,
      questions: [{ name: Name.parse("z"), type: RecordType.SOA, class: 1 }],
      answer: [A.create(Name.parse("z"), 1, { address: "192.0.2.1" })],
      authority: [NS.create(Name.parse("z"), 2, { nameServer: Name.parse("z") })],
      additional: [],
    };
    assert.equal(
      toHex(encodeMessage(message)),
      toHex(
        octets(`1234 aa1a 0001 0001 0001 0000  017a00 0006 0001
          c00c 0001 0001 00000001 0004 c0000201  c00c 0002 0001 00000002 0002 c00c`),
      ),
    );
    assert.ok(encodeMessage(message, { compress: false }).length > encodeMessage(message).length);
  });

  it("writes owners in the case of the question, and keeps the case of RDATA", () => {
    const message = decodeMessage(
      encodeMessage({
        ...EMPTY,
        questions: [{ name: Name.parse("wWw.eXample"), type: 5, class: 1 }],
        answer: [
          parseRecord("www.example. CNAME App.Example."),
          parseRecord("app.example. CNAME x.eXample."),
        ],
      }),
    );
    assert.deepEqual(message.answer.map(formatRecord), [
      "wWw.eXample.\t3600\tIN\tCNAME\tApp.Example.",
      "App.Example.\t3600\tIN\tCNAME\tx.eXample.",
    ]);
  });

  it("puts OPT last, and TSIG after it (RFC 8945 section 5.1)", () => {
    const text = parseRecord("a. TXT b");
    const tsig = parseRecord("key. 0 ANY TSIG hmac-sha256. 1 300 0 1 0 0");
    const packet = encodeMessage({ ...EMPTY, additional: [text, tsig], edns: EDNS });
    const message = decodeMessage(packet);
    assert.deepEqual(message.additional, [text, tsig]);
    assert.deepEqual(message.edns, EDNS);
    const tsigStart = toHex(packet).lastIndexOf("036b657900");
    assert.equal(toHex(packet).slice(tsigStart - 22, tsigStart), "00002904d0000000000000");

    const withoutOpt = encodeMessage({ ...EMPTY, additional: [text, tsig] });
    assert.equal(withoutOpt.length, packet.length - 11);
  });

  it("splits the rcode between header and OPT, and refuses a large one without OPT", () => {
    for (const rcode of [0, 15, 16, 23, 4095]) {
      const packet = encodeMessage({ ...EMPTY, rcode, edns: EDNS });
      assert.equal((packet[3] ?? 0) & 0xf, rcode & 0xf);
      assert.equal(decodeMessage(packet).rcode, rcode);
    }
    assert.equal(decodeMessage(encodeMessage({ ...EMPTY, rcode: 15 })).rcode, 15);
    assert.throws(() => encodeMessage({ ...EMPTY, rcode: Rcode.BADVERS }), RangeError);
    assert.throws(() => encodeMessage({ ...EMPTY, rcode: 4096, edns: EDNS }), RangeError);
  });

  it("holds 65535 octets and not one more", () => {
    // Header, then the root, type, class, TTL and length, then strings of 256 octets.
    const strings = Array.from({ length: 255 }, () => new Uint8Array(255));
    const rest = 65535 - 12 - 11 - 255 * 256;
    const message = (last: number): Message => ({
      ...EMPTY,
      answer: [TXT.create(Name.root, 0, { strings: [...strings, new Uint8Array(last)] })],
    });
    const largest = encodeMessage(message(rest - 1));
    assert.equal(largest.length, 65535);
    assert.equal(decodeMessage(largest).answer.length, 1);
    throwsWireError(() => encodeMessage(message(rest)), "TOO_LARGE");
  });

  it("refuses data that cannot be encoded, and does not call it too large", () => {
    const answer = [TXT.create(Name.root, 0, { strings: [new Uint8Array(256)] })];
    assert.throws(() => encodeMessage({ ...EMPTY, answer }), RangeError);
    assert.throws(
      () =>
        encodeMessage({ ...EMPTY, answer: [{ ...A.create(Name.root, 0, { address: "" }), type: 65280 }] }),
      TypeError,
    );
  });
});

describe("makeQuery", () => {
  it("asks one question of class IN with RD set", () => {
    const name = Name.parse("example");
    assert.deepEqual(makeQuery({ name, type: RecordType.AAAA }), {
      ...EMPTY,
      flags: Flag.RD,
      questions: [{ name, type: RecordType.AAAA, class: 1 }],
    });
    const chaos = makeQuery({ name, type: RecordType.TXT, class: 3 }, { id: 7, flags: 0, edns: EDNS });
    assert.deepEqual(chaos, {
      ...EMPTY,
      id: 7,
      questions: [{ name, type: RecordType.TXT, class: 3 }],
      edns: EDNS,
    });
  });
});
