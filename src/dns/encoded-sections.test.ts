import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { EncodedSections, NO_SECTIONS, type RecordSections } from "./encoded-sections.ts";
import { anyMessage } from "./fixtures/arbitraries.ts";
import { damagedPacket, longestNamePacket, pointerChainPacket } from "./fixtures/hostile-packets.ts";
import { lines, QUESTION, SECTIONS, START, sent } from "./fixtures/replies.ts";
import { decodeMessage, encodeMessage, type Message, makeQuery } from "./message.ts";
import { Name } from "./name.ts";
import { fromHex, toHex } from "./octets.ts";
import { A, TXT } from "./record-table.ts";
import { RecordType } from "./type-names.ts";
import { WireError, type WireErrorCode } from "./wire-reader.ts";

const EDNS = { udpSize: 1232, version: 0, dnssecOk: false, options: [{ code: 10, data: new Uint8Array(8) }] };

function reply(sections: Partial<RecordSections>, rest: Partial<Message> = {}): Message {
  return { ...makeQuery(QUESTION), flags: 0x8000, ...NO_SECTIONS, ...sections, ...rest };
}

function octets(hex: string): Uint8Array {
  const octets = fromHex(hex.replaceAll(/\s/g, ""));
  assert.ok(octets, hex);
  return octets;
}

function scan(bytes: Uint8Array) {
  return EncodedSections.scan(bytes, bytes.length);
}

function throwsWireError(run: () => unknown, code: WireErrorCode): void {
  assert.throws(run, (error: unknown) => {
    assert.ok(error instanceof WireError, `${error}`);
    assert.equal(error.code, code);
    return true;
  });
}

describe("EncodedSections.encode", () => {
  it("writes the octets that follow the question in a message", () => {
    const { encoded, complete } = EncodedSections.encode(QUESTION, SECTIONS);
    assert.equal(complete, true);
    assert.equal(encoded.start, START);
    assert.equal(
      toHex(encoded.bytes.subarray(START, encoded.end)),
      toHex(encodeMessage(reply(SECTIONS)).subarray(START)),
    );
    assert.deepEqual(
      [encoded.answerCount, encoded.authorityCount, encoded.additionalCount, encoded.count],
      [2, 1, 2, 5],
    );
  });

  it("fits any spelling of the question's name", () => {
    const { encoded } = EncodedSections.encode(QUESTION, SECTIONS);
    const question = { ...QUESTION, name: Name.parse("wWw.eXAMPLE.oRG") };
    const { answer, authority, additional } = decodeMessage(sent(encoded, question));
    assert.equal(answer[0]?.name.toString(), "wWw.eXAMPLE.oRG.");
    const spelled = lines(SECTIONS).flat().join().toLowerCase();
    assert.equal(lines({ answer, authority, additional }).flat().join().toLowerCase(), spelled);
  });

  it("returns type, TTL, owner and record by index", () => {
    const { encoded } = EncodedSections.encode(QUESTION, SECTIONS);
    const all = [...SECTIONS.answer, ...SECTIONS.authority, ...SECTIONS.additional];
    for (const [index, record] of all.entries()) {
      assert.equal(encoded.typeAt(index), record.type);
      assert.equal(encoded.ttlAt(index), record.ttl);
      assert.equal(encoded.ownerAt(index).equals(record.name), true);
      assert.deepEqual(encoded.recordAt(index).data, record.data);
    }
    assert.equal(encoded.recordStarts.length, 6);
    assert.equal(encoded.recordStarts[0], START);
    assert.equal(encoded.recordStarts[5], encoded.end);
  });

  it("leaves out the first record that does not fit and all following ones", () => {
    const large = TXT.create(QUESTION.name, 1, {
      strings: Array.from({ length: 100 }, () => new Uint8Array(255)),
    });
    const small = A.create(QUESTION.name, 1, { address: "192.0.2.1" });
    const sections = { answer: [large, large, small, large, small], authority: [small], additional: [small] };
    const { encoded, complete } = EncodedSections.encode(QUESTION, sections);
    assert.equal(complete, false);
    assert.deepEqual([encoded.answerCount, encoded.authorityCount, encoded.additionalCount], [3, 0, 0]);
    assert.equal(encoded.end, encoded.bytes.length);
    assert.deepEqual(
      encoded.decode().answer.map((record) => record.type),
      [16, 16, 1],
    );
    assert.deepEqual(decodeMessage(sent(encoded)).answer.length, 3);
  });

  it("does not confuse an invalid record with one that does not fit", () => {
    const answer = [TXT.create(QUESTION.name, 1, { strings: [new Uint8Array(256)] })];
    assert.throws(() => EncodedSections.encode(QUESTION, { ...NO_SECTIONS, answer }), RangeError);
  });
});

describe("EncodedSections.empty", () => {
  it("has no records for a question of any length", () => {
    const encoded = EncodedSections.empty(START);
    assert.deepEqual([encoded.start, encoded.end, encoded.count], [START, START, 0]);
    assert.deepEqual(encoded.decode(), NO_SECTIONS);
    assert.equal(encoded.minimalTtl(30), 30);
    assert.deepEqual(encoded.addressRuns, []);
    assert.equal(encoded.answerOnly(), encoded);
    assert.deepEqual(decodeMessage(sent(encoded)).questions, [QUESTION]);
  });
});

describe("EncodedSections.scan", () => {
  it("keeps the octets if there is no OPT", () => {
    const bytes = encodeMessage(reply(SECTIONS));
    const { encoded, optOffset, extendedRcodeBits } = scan(bytes);
    assert.equal(encoded.bytes, bytes);
    assert.deepEqual([encoded.start, encoded.end], [START, bytes.length]);
    assert.deepEqual([optOffset, extendedRcodeBits], [-1, 0]);
    assert.deepEqual(toHex(sent(encoded).subarray(START)), toHex(bytes.subarray(START)));
    assert.deepEqual(lines(encoded.decode()), lines(decodeMessage(bytes)));
  });

  it("leaves out OPT at the end", () => {
    const bytes = encodeMessage(reply(SECTIONS, { rcode: 0xab1, edns: EDNS }));
    const { encoded, optOffset, extendedRcodeBits } = scan(bytes);
    assert.equal(extendedRcodeBits, 0xab);
    assert.equal(toHex(bytes.subarray(optOffset - 1, optOffset + 4)), "00002904d0");
    assert.equal(encoded.end, optOffset - 1);
    assert.equal(encoded.additionalCount, 2);
    assert.equal(toHex(sent(encoded)), toHex(sent(EncodedSections.encode(QUESTION, SECTIONS).encoded)));
  });

  it("leaves out OPT if it is the only record", () => {
    const { encoded, optOffset } = scan(encodeMessage(reply({}, { edns: EDNS })));
    assert.deepEqual([encoded.count, encoded.start, encoded.end, optOffset], [0, START, START, START + 1]);
  });

  it("leaves out OPT before other records, which it encodes again", () => {
    const question = "03777777 07657861 6d706c65 036f7267 00 0001 0001";
    const opt = "00 0029 0200 02 00 0000 0000";
    // The second record's owner and target point behind OPT.
    const additional = `${opt} 0161 c010 0010 0001 00000005 0002 0178 c03c 000c 0001 00000006 0004 0162 c03c`;
    const bytes = octets(
      `0000 8001 0001 0001 0000 0003 ${question} c00c 0001 0001 00000007 0004 c0000201 ${additional}`,
    );
    const { encoded, optOffset, extendedRcodeBits } = scan(bytes);
    assert.equal(extendedRcodeBits, 2);
    assert.equal(bytes[optOffset + 1], RecordType.OPT);
    assert.deepEqual([encoded.answerCount, encoded.authorityCount, encoded.additionalCount], [1, 0, 2]);
    const { answer, authority, additional: rest } = decodeMessage(bytes);
    assert.deepEqual(lines(encoded.decode()), lines({ answer, authority, additional: rest }));
    assert.deepEqual(
      decodeMessage(sent(encoded, { ...QUESTION, name: Name.parse("www.example.org") })).additional,
      rest,
    );
  });

  it("reads only the given number of octets", () => {
    const message = encodeMessage(reply(SECTIONS));
    const buffer = new Uint8Array(message.length + 100).fill(0xc0);
    buffer.set(message);
    assert.deepEqual(
      lines(EncodedSections.scan(buffer, message.length).encoded.decode()),
      lines(decodeMessage(message)),
    );
    throwsWireError(() => EncodedSections.scan(buffer, message.length + 1), "TRAILING_OCTETS");
    throwsWireError(() => EncodedSections.scan(message, message.length + 1), "SHORT_INPUT");
  });

  it("reads no octets after the message, even if OPT precedes a record that leads there", () => {
    // The name server's name is a pointer to a label that begins in the TTL and would end after the message.
    const message = octets(`0000 8000 0001 0000 0000 0002 0161 00 0001 0001
      00 0029 0200 00 00 0000 0000  c00c 0002 0001 07616263 0002 c024`);
    const buffer = new Uint8Array(message.length + 1);
    buffer.set(message);
    throwsWireError(() => EncodedSections.scan(buffer, message.length), "SHORT_INPUT");
  });

  const question = "0161 00 0001 0001";
  const opt = "00 0029 0200 00 00 0000 0000";
  const a = "c00c 0001 0001 00000007 0004 c0000201";
  const bad: [what: string, hex: string, code: WireErrorCode][] = [
    ["nothing", "", "SHORT_INPUT"],
    ["half a header", "0000 8000 0001 0000 0000 00", "SHORT_INPUT"],
    ["no question", "0000 8000 0000 0000 0000 0000", "BAD_RDATA"],
    ["two questions", `0000 8000 0002 0000 0000 0000 ${question} ${question}`, "BAD_RDATA"],
    ["a question cut off", "0000 8000 0001 0000 0000 0000 0161 00 0001 00", "SHORT_INPUT"],
    ["a question that is a pointer", "0000 8000 0001 0000 0000 0000 c004 0001 0001", "BAD_POINTER"],
    [
      "a question of 256 octets",
      `0000 8000 0001 0000 0000 0000 ${"0161".repeat(127)} 0161 00 0001 0001`,
      "NAME_TOO_LONG",
    ],
    ["counts that lie", `0000 8000 0001 ffff ffff ffff ${question} ${a}`, "SHORT_INPUT"],
    ["counts that lie by one", `0000 8000 0001 0002 0000 0000 ${question} ${a}`, "SHORT_INPUT"],
    ["counts one below", `0000 8000 0001 0001 0000 0000 ${question} ${a} ${a}`, "TRAILING_OCTETS"],
    [
      "RDATA behind the end",
      `0000 8000 0001 0001 0000 0000 ${question} c00c 0001 0001 00000007 0005 c0000201`,
      "SHORT_INPUT",
    ],
    [
      "an owner that points at itself",
      `0000 8000 0001 0001 0000 0000 ${question} ${a.replace("c00c", "c013")}`,
      "BAD_POINTER",
    ],
    [
      "an owner that points into the header",
      `0000 8000 0001 0001 0000 0000 ${question} ${a.replace("c00c", "c00b")}`,
      "BAD_POINTER",
    ],
    [
      "an owner of an unknown kind of label",
      `0000 8000 0001 0001 0000 0000 ${question} ${a.replace("c00c", "400c")}`,
      "BAD_LABEL",
    ],
    ["OPT as answer", `0000 8000 0001 0001 0000 0000 ${question} ${opt}`, "BAD_RDATA"],
    ["OPT as authority", `0000 8000 0001 0000 0001 0000 ${question} ${opt}`, "BAD_RDATA"],
    ["two OPT records", `0000 8000 0001 0000 0000 0002 ${question} ${opt} ${opt}`, "BAD_RDATA"],
    ["OPT with an owner", `0000 8000 0001 0000 0000 0001 ${question} 0161 ${opt}`, "BAD_RDATA"],
    [
      "bad RDATA behind OPT",
      `0000 8000 0001 0000 0000 0002 ${question} ${opt} ${a.replace("0004", "0003").slice(0, -2)}`,
      "SHORT_INPUT",
    ],
  ];
  for (const [what, hex, code] of bad)
    it(`refuses ${what}`, () => throwsWireError(() => scan(octets(hex)), code));

  it("refuses a message cut off anywhere", () => {
    const message = encodeMessage(reply(SECTIONS, { edns: EDNS }));
    for (let length = 0; length < message.length; length++) {
      assert.throws(() => EncodedSections.scan(message, length), WireError, `${length}`);
      assert.throws(() => scan(message.subarray(0, length)), WireError, `${length}`);
    }
  });

  it("refuses more octets than a message has", () => {
    const message = new Uint8Array(65536 + 40);
    message.set(octets(`0000 8000 0001 0002 0000 0000 ${question} 00 ff00 0001 00000000 fff0`));
    message.set(octets("00 ff00 0001 00000000 0000"), 19 + 11 + 0xfff0);
    throwsWireError(() => EncodedSections.scan(message, 19 + 11 + 0xfff0 + 11), "TOO_LARGE");
  });

  it("takes a message of 65535 octets", () => {
    const strings = Array.from({ length: 254 }, () => new Uint8Array(255));
    const rest = 65535 - START - 12 - 254 * 256;
    const answer = [
      TXT.create(QUESTION.name, 1, {
        strings: [...strings, new Uint8Array(rest - 256 - 1), new Uint8Array(255)],
      }),
    ];
    const message = encodeMessage(reply({ answer }));
    assert.equal(message.length, 65535);
    assert.equal(scan(message).encoded.end, 65535);
  });

  it("refuses records that are too large once names are written in full", () => {
    // Names of SRV must not be compressed; these are, and OPT before them forces a new encoding.
    const label = `3f${"61".repeat(63)}`;
    const name = `${label.repeat(3)} 3d${"62".repeat(61)} 00`;
    const srv = "c00c 0021 0001 00000001 0008 0000 0000 0000 c00c";
    const count = 300;
    const counts = (count + 1).toString(16).padStart(4, "0");
    const bytes = octets(`0000 8000 0001 0000 0000 ${counts} ${name} 0001 0001 ${opt} ${srv.repeat(count)}`);
    throwsWireError(() => scan(bytes), "TOO_LARGE");
  });

  it("gives the same records as decodeMessage, whatever the message", () => {
    fc.assert(
      fc.property(anyMessage, (message) => {
        const bytes = encodeMessage({ ...message, questions: [QUESTION] });
        const { answer, authority, additional, rcode } = decodeMessage(bytes);
        const { encoded, extendedRcodeBits } = scan(bytes);
        assert.deepEqual(encoded.decode(), { answer, authority, additional });
        assert.equal((extendedRcodeBits << 4) | ((bytes[3] ?? 0) & 0xf), rcode);
        assert.deepEqual(scan(sent(encoded)).encoded.decode(), { answer, authority, additional });
        const answers = encoded.answerOnly();
        assert.deepEqual(answers.decode(), { ...NO_SECTIONS, answer });
        assert.deepEqual(scan(sent(answers)).encoded.decode(), { ...NO_SECTIONS, answer });
      }),
      { numRuns: 150 },
    );
  });

  it("throws only WireError, as do all functions of its result", () => {
    let accepted = 0;
    fc.assert(
      fc.property(damagedPacket, (packet) => {
        let encoded: EncodedSections;
        try {
          ({ encoded } = scan(packet));
        } catch (error) {
          assert.ok(error instanceof WireError, `${error}`);
          return;
        }
        accepted++;
        for (let index = 0; index < encoded.count; index++) encoded.ownerAt(index);
        assert.ok(encoded.minimalTtl(10) <= 10);
        for (const run of encoded.addressRuns)
          assert.ok(run.first + run.stride * (run.count - 1) + run.size <= encoded.end);
        try {
          encoded.decode();
        } catch (error) {
          assert.ok(error instanceof WireError, `${error}`);
        }
      }),
      { numRuns: 600 },
    );
    assert.ok(accepted > 20, `only ${accepted} packets were messages`);
  });

  it("accepts what decodeMessage accepts, given one question that is not a pointer", () => {
    fc.assert(
      fc.property(damagedPacket, (packet) => {
        let message: Message;
        try {
          message = decodeMessage(packet);
        } catch {
          return;
        }
        if (message.questions.length !== 1) return;
        const { answer, authority, additional } = message;
        const withoutOpt = lines({ answer, authority, additional });
        assert.deepEqual(lines(scan(packet).encoded.decode()), withoutOpt);
      }),
      { numRuns: 300 },
    );
  });

  it("follows neither endless chains of pointers nor thousands to one long name", () => {
    throwsWireError(() => scan(pointerChainPacket()), "BAD_POINTER");
    throwsWireError(() => scan(longestNamePacket()), "TOO_LARGE");
  });
});
