import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { parseNameservers } from "./resolv-conf.ts";

it("reads the nameserver lines and nothing else", () => {
  const text = [
    "# made by somebody",
    "; nameserver 192.0.2.1",
    "search default.svc.cluster.local svc.cluster.local",
    "nameserver 10.96.0.10",
    "  nameserver\t2001:db8::53  # the other one",
    "nameserver fe80::1%eth0",
    "nameserver dns.example.org",
    "nameserver",
    "nameservers 192.0.2.2",
    "options ndots:5\r",
    "nameserver 192.0.2.3\r",
  ].join("\n");
  assert.deepEqual(
    parseNameservers(text).map((address) => address.text),
    ["10.96.0.10:53", "[2001:db8::53]:53", "[fe80::1%eth0]:53", "192.0.2.3:53"],
  );
});

it("an empty file names nobody", () => {
  assert.deepEqual(parseNameservers(""), []);
});

it("takes any text", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      parseNameservers(`nameserver ${text}\n${text}`);
    }),
  );
});
