/** The packed services against a plain map of the same ones. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { parseIpAddress } from "../../../lib/net/ip-address.ts";
import { type AddressKey, addressKey } from "../../objects/addresses.ts";
import { equalExternally, equalServices } from "../../objects/equality.ts";
import type { Service } from "../../objects/objects.ts";
import { ServiceIndex } from "../services/service-index.ts";
import { copyService } from "./service-block.ts";
import { ChangeRecorder } from "./store-change.ts";

/** Each number of steps is a run of its own; the long form takes millions. */
const STEPS = Number(process.env.PORTOLAN_SERVICE_STEPS ?? 300);

const idOf = ({ namespace, name }: Pick<Service, "namespace" | "name">): string => `${name}.${namespace}`;

class Model {
  readonly services = new Map<string, Service>();

  put(service: Service): boolean {
    const old = this.services.get(idOf(service));
    if (old !== undefined && equalServices(old, service) && equalExternally(old, service)) return false;
    this.services.set(idOf(service), service);
    return true;
  }

  at(key: AddressKey): string[] {
    const services = [...this.services.values()].filter(({ clusterAddresses }) =>
      clusterAddresses.some((octets) => addressKey(octets) === key),
    );
    return services.map(idOf).sort();
  }
}

const NAMESPACES = ["shop", "sh"];
const NAMES = ["web", "db", "we", "a-name-that-is-longer-than-that"];
const ADDRESSES = ["10.0.0.1", "10.0.0.2", "::a00:1", "fd00::1"].map(
  (text) => parseIpAddress(text) ?? assert.fail(text),
);
/** One that no block has room for is still kept. */
const EXTERNAL = ["192.0.2.1", "2001:db8::1", "lb.example.org", "ñ.example", "x".repeat(300)];

const PORT = [
  fc.constantFrom("", "http", "a-name-that-is-longer"),
  fc.integer({ min: 1, max: 65_535 }),
  fc.constantFrom("tcp" as const, "udp" as const, "sctp" as const),
] as const;

const identity = fc.tuple(fc.constantFrom(...NAMESPACES), fc.constantFrom(...NAMES));
const service: fc.Arbitrary<Service> = fc
  .record({
    identity,
    type: fc.constantFrom("clusterIP" as const, "headless" as const, "externalName" as const),
    clusterAddresses: fc.subarray(ADDRESSES, { maxLength: 2 }),
    externalName: fc.constantFrom("", "", "db.example.org", "a-longer-name.of-a-host.example.org"),
    ports: fc.array(fc.tuple(...PORT), { maxLength: 3 }),
    publishNotReadyAddresses: fc.boolean(),
    externalAddresses: fc.subarray(EXTERNAL, { maxLength: 2 }),
  })
  .map(({ identity: [namespace, name], ports, ...rest }) => ({
    ...{ namespace, name, ...rest },
    ports: ports.map(([portName, number, protocol]) => ({ name: portName, number, protocol })),
  }));

type Step =
  | { readonly kind: "put"; readonly service: Service }
  | { readonly kind: "delete"; readonly identity: readonly [string, string] }
  | { readonly kind: "list"; readonly services: readonly Service[] };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: service.map((each): Step => ({ kind: "put", service: each })) },
  { weight: 4, arbitrary: identity.map((each): Step => ({ kind: "delete", identity: each })) },
  {
    weight: 1,
    arbitrary: fc.array(service, { maxLength: 5 }).map((services): Step => ({ kind: "list", services })),
  },
);

function apply(index: ServiceIndex, model: Model, each: Step): void {
  const change = new ChangeRecorder();
  change.listening = true;
  if (each.kind === "put") {
    assert.equal(index.putService(each.service, change), model.put(each.service));
  } else if (each.kind === "delete") {
    const [namespace, name] = each.identity;
    index.deleteService({ namespace, name }, change);
    model.services.delete(idOf({ namespace, name }));
  } else {
    const listing = index.listServices();
    for (const one of each.services) {
      index.putService(one, change);
      listing.note(one);
      model.put(one);
    }
    for (const gone of listing.rest()) if (gone !== undefined) index.deleteService(gone, change);
    const named = new Set(each.services.map(idOf));
    for (const id of model.services.keys()) if (!named.has(id)) model.services.delete(id);
  }
}

function assertEqual(index: ServiceIndex, model: Model): void {
  const sorted = (services: Iterable<Service>): Service[] =>
    [...services].sort((one, other) => (idOf(one) < idOf(other) ? -1 : 1));
  assert.deepEqual(sorted(index.services()), sorted(model.services.values()));
  for (const namespace of NAMESPACES) {
    for (const name of NAMES) {
      const expected = model.services.get(idOf({ namespace, name }));
      const entry = index.entry(idOf({ namespace, name }));
      assert.deepEqual(entry?.service && copyService(entry.service), expected);
      assert.equal(entry?.type, expected?.type);
      assert.equal(entry?.hasService ?? false, expected !== undefined);
      assert.equal(index.find(namespace, name)?.slot, entry?.slot);
    }
  }
  for (const octets of ADDRESSES) {
    const key = addressKey(octets);
    assert.deepEqual(
      index
        .servicesAt(key)
        .map((entry) => entry.key)
        .sort(),
      model.at(key),
    );
  }
  assert.deepEqual(
    Array.from(index.aliases(), idOf).sort(),
    [...model.services.values()]
      .filter(({ type }) => type === "externalName")
      .map(idOf)
      .sort(),
  );
}

describe("packed services", () => {
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

  it("come and go in their thousands, and take no more octets the second time", () => {
    const index = new ServiceIndex();
    const change = new ChangeRecorder();
    const make = (n: number, round: number): Service => ({
      namespace: `team-${n % 40}`,
      name: `web-${n}`,
      type: "clusterIP",
      clusterAddresses: [Uint8Array.of(10, n >> 16, n >> 8, n)],
      externalName: "",
      ports: [{ name: "http", number: 8_000 + round, protocol: "tcp" }],
      publishNotReadyAddresses: false,
      externalAddresses: [],
    });
    const count = 5_000;
    let octets = 0;
    for (let round = 0; round < 3; round++) {
      // The second time in the place of those that are there, the third time where they were.
      for (let n = 0; n < count; n++) assert.ok(index.putService(make(n, round), change));
      for (let n = 0; n < count; n++) assert.ok(!index.putService(make(n, round), change));
      assert.deepEqual(
        [...index.services()],
        Array.from({ length: count }, (_, n) => make(n, round)),
      );
      if (round === 0) octets = index.octets;
      else assert.equal(index.octets, octets);
      if (round === 1) for (let n = count; n > 0; n--) index.deleteService(make(n - 1, round), change);
    }
    // One part is reserved at a time, and a third of that is what finds services by address.
    assert.ok(octets < 300 * count, `${octets / count} octets a service`);
  });
});
