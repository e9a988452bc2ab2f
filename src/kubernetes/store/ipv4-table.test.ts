import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Ipv4Table } from "./ipv4-table.ts";

const VALUES = Array.from({ length: 4 }, (_, number) => ({ number }));

test("holds what a Map holds, whatever is set and deleted", () => {
  // Few addresses, close to each other and far apart, so that many stand in each other's places.
  const key = fc.oneof(
    fc.integer({ min: -8, max: 40 }),
    fc.constantFrom(-0x8000_0000, 0x7fff_ffff, 0x0a00_0001),
  );
  const step = fc.record({ key, value: fc.option(fc.constantFrom(...VALUES), { nil: undefined }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const table = new Ipv4Table<object>();
      const map = new Map<number, object>();
      for (const { key: at, value } of steps) {
        if (value === undefined) {
          table.delete(at);
          map.delete(at);
        } else {
          table.set(at, value);
          map.set(at, value);
        }
        assert.equal(table.size, map.size);
      }
      for (let at = -10; at < 50; at++) assert.equal(table.get(at), map.get(at));
      for (const at of map.keys()) assert.equal(table.get(at), map.get(at));
    }),
  );
});

test("grows and shrinks", () => {
  const table = new Ipv4Table<object>();
  const network = 0x0a00_0000;
  for (let host = 0; host < 50_000; host++) table.set(network + host, VALUES[host % 4] ?? {});
  assert.equal(table.size, 50_000);
  for (let host = 0; host < 50_000; host++) assert.equal(table.get(network + host), VALUES[host % 4]);
  for (let host = 0; host < 50_000; host++) if (host % 1000 !== 7) table.delete(network + host);
  assert.equal(table.size, 50);
  assert.equal(table.get(network + 1), undefined);
  for (let host = 7; host < 50_000; host += 1000) assert.equal(table.get(network + host), VALUES[host % 4]);
});
