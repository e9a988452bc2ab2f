import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { addressOfReverseName, Name } from "../../dns/index.ts";
import { formatIpAddress } from "../../lib/net/ip-address.ts";
import { HostTable } from "./host-table.ts";
import { parseHostsLine, readHostsFile } from "./hosts-file.ts";

const octets = fc.oneof(
  fc.uint8Array({ minLength: 4, maxLength: 4 }),
  fc.uint8Array({ minLength: 16, maxLength: 16 }),
);
const label = fc.stringMatching(/^[a-zA-Z0-9_-]{1,8}$/);
const hostname = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join("."));

test("any bytes are read to the end, and each entry has an address and a name", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (content) => {
      await readHostsFile(content, (line) => {
        assert.ok(line.octets.length === 4 || line.octets.length === 16);
        assert.ok(line.names.length > 0);
      });
    }),
  );
});

test("a written file is read back", () => {
  fc.assert(
    fc.property(
      octets,
      fc.array(hostname, { minLength: 1 }),
      fc.constantFrom(" ", "\t", "  "),
      (address, names, gap) => {
        const line = parseHostsLine(`${[formatIpAddress(address), ...names].join(gap)} # comment`);
        assert.deepEqual(line?.names, names);
        assert.ok(Buffer.from(address).subarray(-line.octets.length).equals(line.octets));
      },
    ),
  );
});

test("the table finds its entries in any case, and nothing else", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(hostname, { selector: (name) => name.toLowerCase(), minLength: 2 }),
      (names) => {
        const [absent, ...present] = names.map((name) => Name.parse(name));
        assert.ok(absent !== undefined);
        const table = new HostTable();
        for (const name of present) table.add(name, Uint8Array.of(192, 0, 2, 1), true);
        for (const name of present) {
          const upper = Name.parse(name.toString().toUpperCase()).wire;
          assert.deepEqual(table.find(upper, 0, upper.length)?.ipv4, ["192.0.2.1"]);
        }
        assert.equal(table.find(absent.wire, 0, absent.wire.length), undefined);
        assert.equal(table.size, present.length * 2);
        assert.deepEqual(
          table.findAddress("192.0.2.1")?.names(1_000).map(String),
          present.map((name) => String(name.toLowerCase())),
        );
      },
    ),
  );
});

test("reverse names map to their address", () => {
  fc.assert(
    fc.property(octets, (address) => {
      const digits =
        address.length === 4 ? [...address].map(String) : Buffer.from(address).toString("hex").split("");
      const zone = address.length === 4 ? "in-addr.arpa." : "ip6.arpa.";
      assert.equal(
        addressOfReverseName(Name.parse(`${digits.reverse().join(".")}.${zone}`)),
        formatIpAddress(address),
      );
    }),
  );
});

for (const name of [
  "in-addr.arpa.",
  "256.0.0.1.in-addr.arpa.",
  "1.1.1.1.1.in-addr.arpa.",
  "a.b.c.d.in-addr.arpa.",
]) {
  test(`${name} is no address`, () => assert.equal(addressOfReverseName(Name.parse(name)), undefined));
}

test(`nor are nibbles of two digits`, () => {
  assert.equal(addressOfReverseName(Name.parse(`10.${"0.".repeat(30)}0.ip6.arpa.`)), undefined);
  assert.equal(addressOfReverseName(Name.parse(`g.${"0.".repeat(30)}0.ip6.arpa.`)), undefined);
});
