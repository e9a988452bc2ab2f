import assert from "node:assert/strict";
import { it, test } from "node:test";
import fc from "fast-check";
import { parseNameservers, parseSearchList } from "./resolv-conf.ts";

it("reads only the nameserver lines", () => {
  const text = [
    "# made by a script",
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

it("accepts an address directly followed by a comment, and drops the zone index of an IPv4 address", () => {
  const read = (value: string) => parseNameservers(`nameserver ${value}`).map((address) => address.text);
  for (const value of [
    "127.0.0.1;x",
    "127.0.0.1#x",
    "127.0.0.1 ; x",
    "127.0.0.1%eth0",
    "127.0.0.1%",
    "127.0.0.1%lo;x",
  ])
    assert.deepEqual(read(value), ["127.0.0.1:53"], value);
  assert.deepEqual(read("::1%lo#x"), ["[::1%lo]:53"]);
  for (const value of [
    ";127.0.0.1",
    "127.0.0.1,127.0.0.2",
    "127.1",
    "127.0.0.1:53",
    "[::1]",
    "::1%",
    "%lo",
    "localhost",
  ])
    assert.deepEqual(read(value), [], value);
});

it("an empty file names no server", () => {
  assert.deepEqual(parseNameservers(""), []);
});

it("accepts any text", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      parseNameservers(`nameserver ${text}\n${text}`);
    }),
  );
});

test("the last search line wins", () => {
  const read = (...lines: string[]) => parseSearchList(lines.join("\n")).map(String);
  assert.deepEqual(read("nameserver 192.0.2.1"), []);
  assert.deepEqual(read("search a.example b.example.", " search\tc.example  D.example "), [
    "c.example.",
    "D.example.",
  ]);
  assert.deepEqual(read("search a.example", "domain b.example c.example"), ["b.example."]);
  assert.deepEqual(read("domain a.example", "# search x", "search . a..b c.example"), ["c.example."]);
});
