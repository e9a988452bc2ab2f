import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  readAddress,
  readAddressOctets,
  readFamily,
  readPort,
  writeSocketAddress,
} from "../runtime/linux/socket-address.ts";
import { addressBuffer, copyAddressWords, KeptEndpoint } from "./kept-endpoint.ts";

const octets = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });

test("a kept socket address stays the same, whatever becomes of the memory that it came from", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(4, 6),
      octets(4),
      // Every other one is an IPv4 address.
      fc.oneof(octets(16), octets(4)),
      fc.integer({ min: 0, max: 0xffff }),
      fc.integer({ min: 0, max: 0xffff_ffff }),
      fc.nat(3),
      (family, short, long, port, scope, slot) => {
        const words = new Int32Array(4 * 8);
        const bytes = new Uint8Array(words.buffer);
        const at = slot * 32;
        writeSocketAddress(bytes, at, family, family === 4 ? short : long, port, scope);
        const before = bytes.slice(at, at + 28);
        const kept = new KeptEndpoint(words, slot * 8);
        const copied = new Int32Array(4);
        const copiedFamily = copyAddressWords(words, slot * 8, copied);
        words.fill(-1);
        assert.deepEqual(
          [kept.address, kept.port, kept.family, kept.octets],
          [readAddress(before, 0), readPort(before, 0), readFamily(before, 0), readAddressOctets(before, 0)],
        );
        const own = new Int32Array(4);
        assert.equal(kept.copyAddress(own), copiedFamily);
        assert.deepEqual(own, copied);
        assert.equal(copiedFamily, kept.family);
        assert.deepEqual(new Uint8Array(copied.buffer).slice(0, copiedFamily === 4 ? 4 : 16), kept.octets);
        assert.equal(kept.snapshot(), kept);
        const written = addressBuffer();
        kept.writeTo(written.words);
        assert.deepEqual(written.octets, before);
      },
    ),
  );
});
