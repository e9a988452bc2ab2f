import assert from "node:assert/strict";
import { test } from "node:test";
import type { Port } from "./objects.ts";
import { SharedValues } from "./shared-values.ts";

test("equal lists of ports are one list, whatever came in between", () => {
  const shared = new SharedValues();
  const lists: (readonly Port[])[] = [
    [],
    [{ name: "http", number: 80, protocol: "tcp" }],
    // Kept at the same place: another number, name, protocol, and length.
    [{ name: "http", number: 80 + 64, protocol: "tcp" }],
    [{ name: "web", number: 80, protocol: "tcp" }],
    [{ name: "http", number: 80, protocol: "udp" }],
    [
      { name: "http", number: 80, protocol: "tcp" },
      { name: "metrics", number: 9000, protocol: "tcp" },
    ],
  ];
  const first = lists.map((ports) => shared.portList(structuredClone(ports)));
  for (const [index, ports] of lists.entries()) {
    assert.deepEqual(first[index], ports);
    assert.equal(shared.portList(structuredClone(ports)), first[index]);
    assert.equal(shared.portList(structuredClone(ports)), first[index]);
  }
  assert.equal(new Set(first).size, lists.length);
});
