import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { ClientWords, prefixMask } from "./client-words.ts";
import { FixedEndpoint } from "./endpoint.ts";

function read(text: string): ClientWords {
  const client = new ClientWords();
  client.words.fill(-1);
  client.read(new FixedEndpoint(text, 53, parseIpAddress(text) ?? assert.fail(text)));
  return client;
}

test("reads the address of either family, and a mapped one as IPv4", () => {
  for (const [text, family, octets] of [
    ["192.0.2.7", 4, [192, 0, 2, 7]],
    ["::ffff:192.0.2.7", 4, [192, 0, 2, 7]],
    ["2001:db8::7", 6, [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]],
  ] as const) {
    const client = read(text);
    assert.equal(client.family, family);
    assert.deepEqual([...client.octets.slice(0, octets.length)], octets);
  }
});

test("a mask keeps the first bits, and no others", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 16, maxLength: 16 }),
      fc.integer({ min: 1, max: 128 }),
      (octets, length) => {
        const client = new ClientWords();
        client.copy(new Int32Array(octets.slice().buffer), 0, 6);
        client.mask(prefixMask(length));
        for (let bit = 0; bit < 128; bit++) {
          const expected = bit < length ? ((octets[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1 : 0;
          assert.equal(((client.octets[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1, expected);
        }
      },
    ),
  );
});
