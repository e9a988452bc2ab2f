import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { decodeMessage, encodeMessage, makeQuery } from "../../dns/message.ts";
import { Name } from "../../dns/name.ts";
import { BLOCK, QueryPadder } from "./query-padding.ts";

const NAME = fc
  .array(fc.stringMatching(/^[a-z0-9]{1,20}$/), { minLength: 1, maxLength: 8 })
  .map((labels) => Name.parse(labels.join(".")));
const EDNS = fc.option(
  fc.record({
    udpSize: fc.integer({ min: 512, max: 4096 }),
    version: fc.constant(0),
    dnssecOk: fc.boolean(),
    options: fc.array(
      fc.record({ code: fc.constantFrom(3, 8, 10), data: fc.uint8Array({ maxLength: 40 }) }),
      { maxLength: 3 },
    ),
  }),
  { nil: undefined },
);
const padder = new QueryPadder();

function questionEndOf(name: Name): number {
  return 12 + name.wire.length + 4;
}

describe("padding of queries", () => {
  it("fills queries up to a multiple of 128 octets, and changes nothing else", () => {
    fc.assert(
      fc.property(NAME, EDNS, (name, edns) => {
        const query = encodeMessage({ ...makeQuery({ name, type: 1 }), edns });
        const padded = padder.pad(query, query.length, questionEndOf(name));
        assert.equal(padded.length % BLOCK, 0);
        assert.ok(padded.length - query.length < BLOCK + 15);
        const before = decodeMessage(query);
        const after = decodeMessage(padded);
        const { options: added = [], ...rest } = after.edns ?? {};
        assert.equal(added.at(-1)?.code, 12);
        assert.ok(added.at(-1)?.data.every((octet) => octet === 0));
        assert.deepEqual(added.slice(0, -1), before.edns?.options ?? []);
        if (before.edns === undefined) assert.equal(after.edns?.dnssecOk, false);
        else assert.deepEqual({ ...rest, options: before.edns.options }, before.edns);
        assert.deepEqual({ ...after, edns: undefined }, { ...before, edns: undefined });
      }),
    );
  });

  it("reads only the part of a longer buffer that is the query", () => {
    const name = Name.parse("example.org.");
    const query = encodeMessage(makeQuery({ name, type: 1 }));
    const buffer = new Uint8Array(512).fill(0xff);
    buffer.set(query);
    assert.deepEqual(
      padder.pad(buffer, query.length, questionEndOf(name)),
      new QueryPadder().pad(query, query.length, questionEndOf(name)),
    );
  });

  it("leaves queries alone that are padded, signed, or unusual", () => {
    const name = Name.parse("example.org.");
    const question = { name, type: 1 };
    const padded = encodeMessage({
      ...makeQuery(question),
      edns: { udpSize: 512, version: 0, dnssecOk: false, options: [{ code: 12, data: new Uint8Array(3) }] },
    });
    const plain = encodeMessage(makeQuery(question));
    // One additional record that is not an OPT.
    const signed = Uint8Array.of(...plain, 0, 0, 250, 0, 255, 0, 0, 0, 0, 0, 0);
    signed[11] = 1;
    const cut = Uint8Array.of(...plain, 0, 0, 41);
    cut[11] = 1;
    const trailing = Uint8Array.of(...plain, 7);
    const ixfr = plain.slice();
    ixfr[9] = 1;
    for (const query of [padded, signed, cut, trailing, ixfr])
      assert.deepEqual(padder.pad(query, query.length, plain.length), query);
  });
});
