/** The packed endpoint sets against a plain map of the same ones. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { parseIpAddress } from "../../../lib/net/ip-address.ts";
import { type AddressKey, addressKey } from "../../objects/addresses.ts";
import { equalEndpointSets } from "../../objects/equality.ts";
import type { EndpointGroup, EndpointSet, Port } from "../../objects/objects.ts";
import { type EndpointAddress, packGroups } from "../../objects/reduce-endpoints.ts";
import { ServiceIndex } from "../services/service-index.ts";
import { ChangeRecorder } from "../tables/store-change.ts";

/** Each number of steps is a run of its own; the long form takes millions. */
const STEPS = Number(process.env.PORTOLAN_ENDPOINT_STEPS ?? 300);

/** As the index, with an object for each. Sets of an address stand in the order in which they got it, those of a service as they came. */
class Model {
  readonly #sets = new Map<string, EndpointSet>();
  readonly #holders = new Map<AddressKey, string[]>();
  readonly #ofService = new Map<string, string[]>();

  put(set: EndpointSet): boolean {
    const id = idOf(set);
    const old = this.#sets.get(id);
    if (old !== undefined && equalEndpointSets(old, set)) return false;
    if (old !== undefined && old.service !== set.service) this.delete(set);
    this.#sets.set(id, set);
    const after = keysOf(set);
    for (const key of after) join(this.#holders, key, id);
    for (const [key, ids] of this.#holders) if (!after.has(key)) leave(ids, id);
    join(this.#ofService, serviceOf(set), id);
    return true;
  }

  delete(set: Pick<EndpointSet, "namespace" | "name">): void {
    const id = idOf(set);
    this.#sets.delete(id);
    for (const ids of [...this.#holders.values(), ...this.#ofService.values()]) leave(ids, id);
  }

  keep(ids: ReadonlySet<string>): void {
    for (const set of this.all()) if (!ids.has(idOf(set))) this.delete(set);
  }

  all(): EndpointSet[] {
    return [...this.#sets.values()];
  }

  at(key: AddressKey): EndpointSet[] {
    return this.#named(this.#holders.get(key));
  }

  of(service: string): EndpointSet[] {
    return this.#named(this.#ofService.get(service));
  }

  #named(ids: readonly string[] = []): EndpointSet[] {
    return ids.flatMap((id) => this.#sets.get(id) ?? []);
  }
}

function join<K>(lists: Map<K, string[]>, key: K, id: string): void {
  const list = lists.get(key) ?? [];
  if (!list.includes(id)) list.push(id);
  lists.set(key, list);
}

function leave(ids: string[], id: string): void {
  if (ids.includes(id)) ids.splice(ids.indexOf(id), 1);
}

const idOf = ({ namespace, name }: Pick<EndpointSet, "namespace" | "name">): string => `${namespace}/${name}`;
const serviceOf = ({ namespace, service }: EndpointSet): string => `${service}.${namespace}`;

function keysOf({ groups }: EndpointSet): Set<AddressKey> {
  const keys = new Set<AddressKey>();
  for (const { addresses, addressLength } of groups)
    for (let at = 0; at < addresses.length; at += addressLength)
      keys.add(addressKey(addresses, at, addressLength));
  return keys;
}

/** With all that is read on demand. */
function plain({ namespace, name, service, groups }: EndpointSet): EndpointSet {
  const read = ({
    addressLength,
    addresses,
    count,
    readyCount,
    labels,
    zones,
    ports,
  }: EndpointGroup): EndpointGroup => ({
    addressLength,
    addresses: Uint8Array.from(addresses),
    count,
    readyCount,
    labels,
    zones,
    ports,
  });
  return { namespace, name, service, groups: groups.map(read) };
}

const sorted = (sets: Iterable<EndpointSet>): EndpointSet[] =>
  [...sets].sort((one, other) => (idOf(one) < idOf(other) ? -1 : 1));

const NAMESPACES = ["shop", "sh"];
const NAMES = ["web-1", "web-2", "web.3", "", "wéb", "web-7d9f8b6c5-x2x4z-a-long-one"];
const SERVICES = ["web", "db", "we"];
const ADDRESSES = ["10.0.0.1", "10.0.0.2", "10.0.1.1", "::a00:1", "fd00::1", "fd00::2", "0.0.0.0"].map(
  (text) => parseIpAddress(text) ?? assert.fail(text),
);
const PORTS: readonly (readonly Port[])[] = [
  [],
  [{ name: "http", number: 80, protocol: "tcp" }],
  [
    { name: "", number: 65_535, protocol: "sctp" },
    { name: "a-name-that-is-longer-than-that", number: 53, protocol: "udp" },
  ],
];
/** One that no block has room for is still kept. */
const LABELS = ["", "", "", "db-0", "db-1.east", "dé", "x".repeat(300)];

const address: fc.Arbitrary<EndpointAddress> = fc.record({
  octets: fc.constantFrom(...ADDRESSES),
  ready: fc.boolean(),
  label: fc.constantFrom(...LABELS),
  zone: fc.constantFrom("", "", "eu-1a", "eu-1b"),
});
const identity = fc.tuple(fc.constantFrom(...NAMESPACES), fc.constantFrom(...NAMES));
const endpointSet: fc.Arbitrary<EndpointSet> = fc
  .tuple(
    identity,
    fc.constantFrom(...SERVICES),
    fc.array(fc.tuple(fc.array(address, { maxLength: 4 }), fc.constantFrom(...PORTS)), { maxLength: 2 }),
  )
  .map(([[namespace, name], service, groups]) => ({
    namespace,
    name,
    service,
    groups: groups.flatMap(([addresses, ports]) => packGroups(addresses, ports)),
  }));

type Step =
  | { readonly kind: "put"; readonly set: EndpointSet }
  | { readonly kind: "delete"; readonly identity: readonly [string, string] }
  | { readonly kind: "list"; readonly sets: readonly EndpointSet[] };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: endpointSet.map((set): Step => ({ kind: "put", set })) },
  { weight: 4, arbitrary: identity.map((each): Step => ({ kind: "delete", identity: each })) },
  {
    weight: 1,
    arbitrary: fc.array(endpointSet, { maxLength: 5 }).map((sets): Step => ({ kind: "list", sets })),
  },
);

function apply(index: ServiceIndex, model: Model, each: Step): void {
  const change = new ChangeRecorder();
  change.listening = true;
  if (each.kind === "put") {
    assert.equal(index.putEndpoints(each.set, change), model.put(each.set));
  } else if (each.kind === "delete") {
    const [namespace, name] = each.identity;
    index.deleteEndpoints({ namespace, name }, change);
    model.delete({ namespace, name });
  } else {
    const listing = index.listEndpoints();
    for (const set of each.sets) {
      index.putEndpoints(set, change);
      listing.note(set);
      model.put(set);
    }
    for (const gone of listing.rest()) if (gone !== undefined) index.deleteEndpoints(gone, change);
    model.keep(new Set(each.sets.map(idOf)));
  }
}

function assertEqual(index: ServiceIndex, model: Model): void {
  assert.deepEqual(sorted(index.endpointSets()), sorted(model.all()));
  for (const octets of ADDRESSES) {
    const key = addressKey(octets);
    assert.deepEqual(index.endpointSetsAt(key).map(plain), model.at(key));
  }
  for (const namespace of NAMESPACES) {
    for (const service of SERVICES) {
      const entry = index.entry(`${service}.${namespace}`);
      const expected = model.of(`${service}.${namespace}`);
      assert.deepEqual(entry?.endpointSets.map(plain) ?? [], expected);
      assert.equal(entry?.hasEndpointSets ?? false, expected.length > 0);
      // Read twice, as what was gathered is kept, and once more from a copy.
      for (const endpoints of [entry?.endpoints, entry?.endpoints, entry?.copyEndpoints()()]) {
        const groups = endpoints?.groups.map((group) => plain({ ...NO_SET, groups: [group] }).groups[0]);
        assert.deepEqual(
          groups ?? [],
          expected.flatMap((set) => set.groups),
        );
      }
    }
  }
}

const NO_SET: EndpointSet = { namespace: "", name: "", service: "", groups: [] };

describe("packed endpoint sets", () => {
  it("are those of a map after any steps", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const index = new ServiceIndex();
        const model = new Model();
        for (const each of steps) {
          apply(index, model, each);
          assertEqual(index, model);
        }
      }),
      { numRuns: STEPS },
    );
  });

  it("come and go in their thousands, take no more octets the second time, and are found the while", () => {
    const index = new ServiceIndex();
    const change = new ChangeRecorder();
    const perSet = 20;
    const make = (n: number, round: number): EndpointSet => {
      const addresses = Array.from({ length: perSet }, (_, at): EndpointAddress => {
        const number = n * perSet + at;
        const octets = Uint8Array.of(10, number >> 16, number >> 8, number);
        return { octets, ready: at % 7 !== round, label: "", zone: "" };
      });
      const name = `web-${n}-${round}${n.toString(36)}`;
      return {
        namespace: `team-${n % 40}`,
        name,
        service: `web-${n}`,
        groups: packGroups(addresses, PORTS[1] ?? []),
      };
    };
    const count = 3_000;
    let octets = 0;
    for (let round = 0; round < 3; round++) {
      for (let n = 0; n < count; n++) assert.ok(index.putEndpoints(make(n, round), change));
      for (let n = 0; n < count; n += 97) {
        const set = make(n, round);
        for (const key of keysOf(set)) assert.deepEqual(index.endpointSetsAt(key).map(plain), [set]);
        assert.ok(!index.putEndpoints(set, change), "it says nothing new");
      }
      assert.equal(index.endpointAddressCount, perSet * count);
      if (round === 0) octets = index.octets;
      else assert.equal(index.octets, octets);
      for (let n = 0; n < count; n++) assert.ok(index.deleteEndpoints(make(n, round), change));
      assert.deepEqual([...index.endpointSets()], []);
      assert.equal(index.endpointAddressCount, 0);
    }
    assert.ok(octets < 40 * perSet * count, `${octets / count / perSet} octets an endpoint`);
  });

  it("hold still in a copy, whatever comes to be where they stood", () => {
    const index = new ServiceIndex();
    const change = new ChangeRecorder();
    const make = (name: string, last: number): EndpointSet => ({
      namespace: "shop",
      name,
      service: "db",
      groups: packGroups(
        [{ octets: Uint8Array.of(10, 0, 0, last), ready: true, label: `db-${last}`, zone: "" }],
        PORTS[1] ?? [],
      ),
    });
    index.putEndpoints(make("one", 1), change);
    index.putEndpoints(make("two", 2), change);
    const copy = index.entry("db.shop")?.copyEndpoints();
    for (let last = 3; last < 200; last++) index.putEndpoints(make("one", last), change);
    index.deleteEndpoints({ namespace: "shop", name: "two" }, change);
    const labels = copy?.().groups.flatMap(({ labels }) => labels);
    assert.deepEqual(labels, ["db-1", "db-2"]);
  });

  it("of thousands of endpoints are kept as they come", () => {
    const index = new ServiceIndex();
    const change = new ChangeRecorder();
    const addresses = Array.from({ length: 20_000 }, (_, n): EndpointAddress => {
      return { octets: Uint8Array.of(10, 1, n >> 8, n), ready: n % 2 === 0, label: "", zone: "" };
    });
    const set = { namespace: "shop", name: "all", service: "db", groups: packGroups(addresses, []) };
    const small = { ...set, groups: packGroups(addresses.slice(0, 1), []) };
    for (const each of [set, small, set]) {
      assert.ok(index.putEndpoints(each, change));
      assert.ok(!index.putEndpoints(each, change));
      assert.deepEqual([...index.endpointSets()], [each]);
      assert.equal(index.endpointAddressCount, keysOf(each).size);
    }
    index.putEndpoints({ ...set, name: "x".repeat(254) }, change);
    assert.ok(index.deleteEndpoints(set, change));
    assert.deepEqual([...index.endpointSets()], []);
  });
});
