import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { EncodedSections, type ScannedMessage } from "./encoded-sections.ts";
import { anyMessage } from "./fixtures/arbitraries.ts";
import { damagedPacket, longestNamePacket, pointerChainPacket } from "./fixtures/hostile-packets.ts";
import { QUESTION } from "./fixtures/replies.ts";
import { encodeMessage } from "./message.ts";
import { readU16 } from "./octets.ts";
import { findSections, UNUSUAL } from "./usual-sections.ts";
import { WireError, WireReader } from "./wire-reader.ts";

/** End of the question, if there is a valid one. */
function questionEnd(packet: Uint8Array): number | undefined {
  if (packet.length < 12 || readU16(packet, 4) !== 1) return undefined;
  const reader = new WireReader(packet, 12);
  try {
    reader.checkName(false);
    reader.skip(4);
    return reader.offset;
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}

function scan(packet: Uint8Array): ScannedMessage | undefined {
  try {
    return EncodedSections.scan(packet, packet.length, true);
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}

function describeSections(sections: EncodedSections): unknown {
  const { start, end, count, answerCount, authorityCount, additionalCount, firstTypeOffset } = sections;
  return {
    ...{ start, end, answerCount, authorityCount, additionalCount, firstTypeOffset },
    recordStarts: [...sections.recordStarts.subarray(0, count + 1)],
    typeOffsets: [...sections.typeOffsets.subarray(0, count)],
    runs: sections.addressRuns,
  };
}

/** Checks that it finds what a scan finds, or returns UNUSUAL. @returns whether it found the records */
function agrees(packet: Uint8Array): boolean {
  const start = questionEnd(packet);
  if (start === undefined) return false;
  const sections = EncodedSections.forLending(0xffff, 0xffff / 11);
  // Old octets must not be taken for a part of the message.
  sections.bytes.fill(0xc0);
  sections.bytes.set(packet);
  const optOffset = findSections(sections, packet.length, start);
  const scanned = scan(packet);
  const isUsual = scanned !== undefined && !scanned.irregular && scanned.encoded.bytes === packet;
  assert.equal(optOffset !== UNUSUAL, isUsual);
  if (optOffset === UNUSUAL || scanned === undefined) return false;
  assert.equal(optOffset, scanned.optOffset);
  assert.deepEqual(describeSections(sections), describeSections(scanned.encoded));
  return true;
}

test("finds in replies what a scan finds", () => {
  let found = 0;
  const property = fc.property(anyMessage, (message) => {
    if (agrees(encodeMessage({ ...message, questions: [QUESTION] }))) found++;
  });
  fc.assert(property, { numRuns: 300 });
  assert.ok(found > 250, `${found}`);
});

test("leaves damaged packets to a scan, unless the scan accepts them", () => {
  fc.assert(
    fc.property(damagedPacket, (packet) => void agrees(packet)),
    { numRuns: 3_000 },
  );
});

test("leaves a packet that is cut off anywhere to a scan", () => {
  const message = { id: 1, flags: 0x8000, questions: [QUESTION] };
  fc.assert(
    fc.property(anyMessage, (other) => {
      const packet = encodeMessage({ ...other, ...message });
      for (let length = 12; length < packet.length; length++) agrees(packet.subarray(0, length));
    }),
    { numRuns: 20 },
  );
});

test("is not kept busy by pointers to pointers", () => {
  assert.equal(agrees(pointerChainPacket(40_000)), false);
  assert.equal(agrees(longestNamePacket(1_000)), true);
  // Their owners unpack to more than a scan accepts.
  assert.equal(agrees(longestNamePacket()), false);
});

test("leaves a message with more records than there is room for to a scan", () => {
  const packet = longestNamePacket(2_000);
  const sections = EncodedSections.forLending(0xffff, readU16(packet, 6) - 1);
  sections.bytes.set(packet);
  assert.equal(findSections(sections, packet.length, questionEnd(packet) ?? 0), UNUSUAL);
});
