import assert from "node:assert/strict";
import { test } from "node:test";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import {
  decodeLease,
  decodeLogin,
  decodeRange,
  decodeWatch,
  encodeLeaseQuestion,
  encodeLogin,
  encodeRange,
  encodeTransaction,
  encodeWatch,
  MessageError,
} from "./messages.ts";

const octets = (text: string): Uint8Array => new TextEncoder().encode(text);
const hex = (message: Uint8Array): string => Buffer.from(message).toString("hex");

/** A message whose fields are numbers, octets, or messages. */
function message(
  ...fields: readonly (readonly [field: number, value: number | bigint | Uint8Array])[]
): Uint8Array {
  const writer = new BinaryWriter();
  for (const [field, value] of fields) {
    if (value instanceof Uint8Array) writer.tag(field, WireType.LengthDelimited).bytes(value);
    else writer.tag(field, WireType.Varint).int64(value);
  }
  return writer.finish();
}

for (const [title, encoded, expected] of [
  ["a range of one key", encodeRange({ from: octets("a"), limit: 0, revision: 0 }), "0a0161"],
  [
    "a range with a limit, at a revision",
    encodeRange({ from: octets("a"), to: octets("b"), limit: 500, revision: 7 }),
    "0a0161120162" + "18f403" + "2007",
  ],
  [
    "a transaction",
    encodeTransaction([
      { put: octets("k"), value: octets("v") },
      { remove: { from: octets("a"), to: octets("b") } },
      { remove: { from: octets("c") } },
    ]),
    "1208" + "1206" + "0a016b120176" + "1208" + "1a06" + "0a0161120162" + "1205" + "1a03" + "0a0163",
  ],
  [
    "a watch, with progress and in fragments",
    encodeWatch({ from: octets("a"), to: octets("b") }, 3, 9),
    "0a0e" + "0a0161120162" + "1809" + "2001" + "3803" + "4001",
  ],
  ["a question for a lease", encodeLeaseQuestion(300n), "08ac02"],
  ["a login", encodeLogin("u", "p"), "0a0175120170"],
] as const)
  test(`${title} is encoded as in etcd's definitions`, () => {
    assert.equal(hex(encoded), expected);
  });

const HEADER = message([1, 1], [2, 2], [3, 41], [4, 5]);
const ENTRY = message([1, octets("k")], [2, 30], [3, 40], [4, 2], [5, octets("v")], [6, 1n << 62n]);

test("a range is read, fields of other versions are skipped", () => {
  const reply = decodeRange(
    message([1, HEADER], [2, ENTRY], [2, message([1, octets("z")])], [3, 1], [4, 900]),
  );
  const { revision, more, entries } = reply;
  assert.deepEqual([revision, more], [41, true]);
  assert.deepEqual(
    entries.map(({ key, value, lease, modRevision }) => [hex(key), hex(value), lease, modRevision]),
    [
      ["6b", "76", 1n << 62n, 40],
      ["7a", "", 0n, 0],
    ],
  );
});

test("a watch is read with its events: no type is a put, 1 a removal", () => {
  const reply = decodeWatch(
    message(
      [1, HEADER],
      [2, 3],
      [5, 12],
      [6, octets("compacted")],
      [7, 1],
      [11, message([2, ENTRY])],
      [11, message([1, 1], [2, message([1, octets("gone")], [3, 41])])],
    ),
  );
  const { events, ...rest } = reply;
  assert.deepEqual(rest, {
    watchId: 3,
    revision: 41,
    created: false,
    canceled: false,
    compactRevision: 12,
    reason: "compacted",
    isPart: true,
  });
  assert.deepEqual(
    events.map(({ key, deleted, modRevision }) => [Buffer.from(key).toString(), deleted, modRevision]),
    [
      ["k", false, 40],
      ["gone", true, 41],
    ],
  );
});

test("an expired lease has -1 s left", () => {
  assert.deepEqual(decodeLease(message([2, 7], [3, -1n], [4, 60])), { ttl: -1, granted: 60 });
});

test("the token of a login is read", () => {
  assert.equal(decodeLogin(message([1, HEADER], [2, octets("token.1")])), "token.1");
});

const WHOLE = message([1, HEADER], [2, ENTRY], [3, 1]);

test("a message that is cut off is an error of its own, or one with fewer fields", () => {
  let refused = 0;
  for (let length = 0; length < WHOLE.length; length++) {
    try {
      decodeRange(WHOLE.subarray(0, length));
    } catch (error) {
      assert.ok(error instanceof MessageError, String(error));
      refused++;
    }
  }
  // Only the ends of fields are ends of messages: the beginning, the header and the entry.
  assert.equal(refused, WHOLE.length - 3);
});
