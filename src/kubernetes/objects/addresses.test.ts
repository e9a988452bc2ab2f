import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Name } from "../../dns/name.ts";
import { formatIpAddress, parseIpAddress } from "../../lib/net/ip-address.ts";
import { addressOfReverseName } from "../store/tables/reverse-names.ts";
import {
  addressKey,
  addressOfKey,
  dashedAddress,
  formatAddressKey,
  parseDashedAddress,
} from "./addresses.ts";

const octets = fc.oneof(
  fc.uint8Array({ minLength: 4, maxLength: 4 }),
  fc.uint8Array({ minLength: 16, maxLength: 16 }),
);

function reverseName(address: Uint8Array): string {
  if (address.length === 4) return `${[...address].reverse().join(".")}.in-addr.arpa.`;
  const nibbles = Buffer.from(address).toString("hex").split("").reverse();
  return `${nibbles.join(".")}.ip6.arpa.`;
}

describe("addressKey", () => {
  it("is equal for equal addresses alone, and leads back to them", () => {
    fc.assert(
      fc.property(octets, octets, (one, other) => {
        assert.deepEqual([...addressOfKey(addressKey(one))], [...one]);
        assert.equal(addressKey(one) === addressKey(other), formatIpAddress(one) === formatIpAddress(other));
      }),
    );
  });

  it("reads from the middle of packed addresses", () => {
    const packed = Uint8Array.of(1, 2, 3, 4, 255, 254, 253, 252);
    assert.equal(formatAddressKey(addressKey(packed, 4, 4)), "255.254.253.252");
  });
});

describe("dashedAddress", () => {
  const cases: [address: string, label: string][] = [
    ["10.244.1.5", "10-244-1-5"],
    ["fd00:10:244:1::21", "fd00-10-244-1--21"],
    ["fd00:10:244:2::", "fd00-10-244-2--0"],
    ["::1", "--1"],
  ];
  for (const [address, label] of cases) {
    it(`${address} is ${label}, and back`, () => {
      const parsed = parseIpAddress(address) ?? assert.fail();
      assert.equal(dashedAddress(parsed, 0, parsed.length === 4 ? 4 : 16), label);
      assert.equal(formatIpAddress(parseDashedAddress(label) ?? assert.fail()), address);
    });
  }

  for (const label of ["300-2-3-4", "1-2-3", "blah", "", "-", "1-2-3-04", "1--2-3-4-5-6-7-8-9", "a-b-c-d"]) {
    it(`"${label}" is no address`, () => assert.equal(parseDashedAddress(label), undefined));
  }
});

describe("addressOfReverseName", () => {
  it("reads what RFC 1035 and RFC 3596 write", () => {
    fc.assert(
      fc.property(octets, (address) => {
        const key = addressOfReverseName(Name.parse(reverseName(address).toUpperCase()));
        assert.equal(key, addressKey(address));
      }),
    );
  });

  const others = [
    ...["in-addr.arpa.", "10.in-addr.arpa.", "1.1.0.96.10.in-addr.arpa.", "01.0.96.10.in-addr.arpa."],
    ...[
      "256.0.96.10.in-addr.arpa.",
      "a.0.96.10.in-addr.arpa.",
      "1.0.96.10.in-addr.example.",
      "1000.0.0.10.in-addr.arpa.",
    ],
    ...[
      `${"0.".repeat(31)}ip6.arpa.`,
      `${"0.".repeat(31)}00.ip6.arpa.`,
      `${"0.".repeat(31)}g.ip6.arpa.`,
      ".",
    ],
  ];
  for (const name of others) {
    it(`${name} is no complete address`, () =>
      assert.equal(addressOfReverseName(Name.parse(name)), undefined));
  }
});
