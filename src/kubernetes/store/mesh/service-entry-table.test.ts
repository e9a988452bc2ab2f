import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Name } from "../../../dns/name.ts";
import { formatIpAddress, parseIpAddress } from "../../../lib/net/ip-address.ts";
import { FakeClock } from "../../../lib/time/clock.ts";
import type { MeshHost, ServiceEntry } from "../../objects/objects.ts";
import { ServiceEntryTable } from "./service-entry-table.ts";

const KIND = "serviceentries";

function host(text: string, ...addresses: readonly string[]): MeshHost {
  const isWildcard = text.startsWith("*.");
  return {
    name: Name.parse(isWildcard ? text.slice(2) : text),
    isWildcard,
    addresses: addresses.flatMap((address) => parseIpAddress(address) ?? []),
    isAutomatic: addresses.length === 0,
  };
}

function entry(name: string, created: number, ...hosts: readonly MeshHost[]): ServiceEntry {
  return { namespace: "mesh", name, created, hosts };
}

function addresses(table: ServiceEntryTable, name: string, length: 4 | 16 = 4): string[] | undefined {
  const slot = table.find(Name.parse(name));
  if (slot === undefined) return undefined;
  const octets = table.addresses(slot, length);
  return Array.from({ length: octets.length / length }, (_, index) =>
    formatIpAddress(octets.subarray(index * length, (index + 1) * length)),
  );
}

const LABELS = ["a", "b", "c"];
const names = fc
  .array(fc.constantFrom(...LABELS), { minLength: 1, maxLength: 4 })
  .map((labels) => labels.join("."));
const hosts = fc.record({ name: names, isWildcard: fc.boolean(), address: fc.integer({ min: 0, max: 255 }) });
const steps = fc.array(
  fc.record({
    entry: fc.constantFrom("one", "two", "three", "four"),
    created: fc.integer({ min: 0, max: 3 }),
    hosts: fc.array(hosts, { maxLength: 3 }),
    way: fc.constantFrom("put", "delete", "list"),
  }),
  { maxLength: 30 },
);

/** The same in plain objects. */
function findPlainly(entries: ReadonlyMap<string, ServiceEntry>, asked: string): string | undefined {
  const newestFirst = [...entries.values()].sort(
    (one, other) => other.created - one.created || (one.name < other.name ? 1 : -1),
  );
  const labels = asked.split(".");
  for (let cut = 0; cut < labels.length; cut++) {
    const suffix = `${labels.slice(cut).join(".")}.`;
    for (const { name, hosts: own } of newestFirst) {
      if (own.some((each) => each.isWildcard === cut > 0 && each.name.toString() === suffix))
        return `mesh/${name}`;
    }
  }
  return undefined;
}

test("finds what a plain map of all entries would find", () => {
  fc.assert(
    fc.property(steps, fc.array(names, { minLength: 1, maxLength: 5 }), (all, asked) => {
      const table = new ServiceEntryTable(new FakeClock());
      const plain = new Map<string, ServiceEntry>();
      for (const step of all) {
        const made = step.hosts.map(({ name, isWildcard, address }) =>
          host(`${isWildcard ? "*." : ""}${name}`, `10.0.0.${address}`),
        );
        const next = entry(step.entry, step.created, ...made);
        if (step.way === "delete" || made.length === 0) {
          table.delete(KIND, next);
          plain.delete(next.name);
        } else if (step.way === "put") {
          table.put(KIND, next);
          plain.set(next.name, next);
        } else {
          table.replaceAll([next]);
          plain.clear();
          plain.set(next.name, next);
        }
        assert.equal(table.entries, plain.size);
        assert.equal(
          table.hosts,
          [...plain.values()].reduce((sum, each) => sum + each.hosts.length, 0),
        );
        for (const name of asked) {
          const slot = table.find(Name.parse(name));
          assert.equal(slot === undefined ? undefined : table.entryOf(slot), findPlainly(plain, name), name);
        }
      }
    }),
  );
});

test("keeps the addresses of both families, and takes what is no longer there away", () => {
  const table = new ServiceEntryTable(new FakeClock());
  table.put(KIND, entry("one", 1, host("a.global", "127.255.0.2", "2001:db8::1", "127.255.0.3")));
  assert.deepEqual(addresses(table, "A.GLOBAL."), ["127.255.0.2", "127.255.0.3"]);
  assert.deepEqual(addresses(table, "a.global.", 16), ["2001:db8::1"]);
  const listing = table.relist(KIND);
  listing.put(entry("two", 1, host("b.global", "127.255.0.9")));
  listing.commit();
  assert.equal(addresses(table, "a.global."), undefined);
  assert.deepEqual(addresses(table, "b.global."), ["127.255.0.9"]);
});

test("says which hosts changed, and nothing when nothing did", () => {
  const table = new ServiceEntryTable(new FakeClock());
  const heard: string[] = [];
  table.onChange(({ name, isWildcard }) => heard.push(`${isWildcard ? "*." : ""}${name}`));
  const first = entry("one", 1, host("a.global", "10.0.0.1"), host("*.b.global", "10.0.0.1"));
  table.put(KIND, first);
  assert.deepEqual(heard.splice(0), ["a.global.", "*.b.global."]);
  table.put(KIND, entry("one", 1, host("a.global", "10.0.0.1"), host("*.b.global", "10.0.0.1")));
  table.replaceAll([first]);
  assert.deepEqual(heard, []);
  table.put(KIND, entry("one", 1, host("c.global", "10.0.0.1")));
  assert.deepEqual(heard.splice(0), ["a.global.", "*.b.global.", "c.global."]);
  table.delete(KIND, first);
  assert.deepEqual(heard, ["c.global."]);
});

test("gives addresses by a hash of namespace and host, each to one host", () => {
  const table = new ServiceEntryTable(new FakeClock());
  const count = 3_000;
  for (let n = 0; n < count; n++) table.put(KIND, entry(`e${n}`, n, host(`h${n}.example`)));
  const given = Array.from({ length: count }, (_, n) => addresses(table, `h${n}.example.`)?.[0] ?? "");
  assert.equal(new Set(given).size, count);
  for (const address of given) assert.match(address, /^240\.240\.\d+\.(?!0$|255$)\d+$/);
  assert.match(addresses(table, "h0.example.", 16)?.[0] ?? "", /^2001:2::f0f0:[0-9a-f]+$/);
  const alone = new ServiceEntryTable(new FakeClock());
  alone.put(KIND, entry("lone", 0, host("lone.example")));
  const again = new ServiceEntryTable(new FakeClock());
  again.put(KIND, entry("another-name", 7, host("lone.example")));
  assert.deepEqual(addresses(alone, "lone.example."), addresses(again, "lone.example."));
  table.delete(KIND, entry("e0", 0));
  assert.equal(addresses(table, "h0.example."), undefined);
});

test("stays small", () => {
  const table = new ServiceEntryTable(new FakeClock());
  for (let n = 0; n < 20_000; n++)
    table.put(
      KIND,
      entry(`entry-${n}`, n, host(`service-${n}.team-${n % 50}.global`, `10.1.${n >> 8}.${n & 255}`)),
    );
  assert.ok(table.octets / table.hosts < 180, `${table.octets / table.hosts} octets a host`);
});
