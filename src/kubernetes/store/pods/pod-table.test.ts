/** The packed pods against a plain map of the same ones. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { ColumnMemory } from "../../../lib/collections/slab/column-memory.ts";
import { parseIpAddress } from "../../../lib/net/ip-address.ts";
import { type AddressKey, addressKey } from "../../objects/addresses.ts";
import { equalPods } from "../../objects/equality.ts";
import type { Pod } from "../../objects/objects.ts";
import { NO_LABELS } from "../../objects/shared-values.ts";
import { ChangeRecorder } from "../tables/store-change.ts";
import { PodIndex } from "./pod-index.ts";
import { copyPod, MAX_ADDRESSES, MAX_NAME_LENGTH } from "./pod-table.ts";

/** Each number of steps is a run of its own; the long form takes millions. */
const STEPS = Number(process.env.PORTOLAN_POD_STEPS ?? 300);
const LABELS: readonly ReadonlyMap<string, string>[] = [
  NO_LABELS,
  new Map([["app", "web"]]),
  new Map([["app", "db"]]),
  new Map([
    ["wéb", ""],
    ["app", "ñ"],
  ]),
  // The same in another order.
  new Map([
    ["app", "ñ"],
    ["wéb", ""],
  ]),
];

function key(text: string): AddressKey {
  return addressKey(parseIpAddress(text) ?? assert.fail(text));
}

/** As {@link PodIndex}, with an object for each. Pods stand in the order in which they got what they are looked up by. */
class Model {
  readonly #pods = new Map<string, Pod>();

  put(pod: Pod): void {
    const id = `${pod.namespace}/${pod.name}`;
    const old = this.#pods.get(id);
    if (old !== undefined && equalPods(old, pod)) return;
    this.#pods.delete(id);
    if (pod.addresses.length > 0) this.#pods.set(id, pod);
  }

  delete(namespace: string, name: string): void {
    this.#pods.delete(`${namespace}/${name}`);
  }

  keep(names: ReadonlySet<string>): void {
    for (const id of this.#pods.keys()) if (!names.has(id)) this.#pods.delete(id);
  }

  all(): Pod[] {
    return [...this.#pods.values()];
  }

  at(address: AddressKey): Pod[] {
    return this.all().filter(({ addresses }) => addresses.includes(address));
  }

  named(namespace: string, name: string): Pod | undefined {
    return this.#pods.get(`${namespace}/${name}`);
  }
}

const NAMESPACES = ["shop", "sh", "default"];
const NAMES = [
  "web-1",
  "web-2",
  "we-b-1",
  "web-7d9f8b6c5-x2x4z",
  "web-7d9f8b6c5-x2x4y",
  "web",
  "-",
  "",
  "wéb-ñ",
  "a.b-c",
];
const ADDRESSES = ["10.0.0.1", "10.0.0.2", "10.0.1.1", "::a00:1", "fd00::1", "fd00::2", "0.0.0.0"].map(key);

const identity = fc.tuple(fc.constantFrom(...NAMESPACES), fc.constantFrom(...NAMES));
const pod: fc.Arbitrary<Pod> = fc
  .tuple(identity, fc.subarray(ADDRESSES, { maxLength: 3 }), fc.constantFrom(...LABELS), fc.boolean())
  .map(([[namespace, name], addresses, labels, isOnHost]) =>
    isOnHost
      ? { namespace, name, addresses, labels, hostNetwork: true }
      : { namespace, name, addresses, labels },
  );

type Step =
  | { readonly kind: "put"; readonly pod: Pod }
  | { readonly kind: "delete"; readonly identity: readonly [string, string] }
  | { readonly kind: "list"; readonly pods: readonly Pod[] };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: pod.map((each): Step => ({ kind: "put", pod: each })) },
  { weight: 4, arbitrary: identity.map((each): Step => ({ kind: "delete", identity: each })) },
  { weight: 1, arbitrary: fc.array(pod, { maxLength: 8 }).map((pods): Step => ({ kind: "list", pods })) },
);

function apply(index: PodIndex, model: Model, each: Step): void {
  const change = new ChangeRecorder();
  if (each.kind === "put") {
    index.put(each.pod, change);
    model.put(each.pod);
  } else if (each.kind === "delete") {
    const [namespace, name] = each.identity;
    index.delete({ namespace, name }, change);
    model.delete(namespace, name);
  } else {
    const listing = index.listing();
    for (const one of each.pods) {
      index.put(one, change);
      listing.note(one);
      model.put(one);
    }
    for (const gone of listing.rest()) if (gone !== undefined) index.delete(gone, change);
    model.keep(new Set(each.pods.map(({ namespace, name }) => `${namespace}/${name}`)));
  }
}

/** The same pods, as another thread sees them. */
class Reader {
  readonly memory = new ColumnMemory();
  readonly index = new PodIndex(this.memory);

  attach(writer: ColumnMemory): void {
    const join = () => this.memory.join(structuredClone(writer.share()));
    this.memory.join(structuredClone(writer.share(join)));
  }
}

function compare(index: PodIndex, model: Model): void {
  assert.deepEqual(sorted(index.pods()), sorted(model.all()));
  for (const address of ADDRESSES) assert.deepEqual(index.at(address).map(copyPod), model.at(address));
  for (const namespace of NAMESPACES)
    for (const name of NAMES) {
      const found = index.named(namespace, name);
      assert.deepEqual(found && copyPod(found), model.named(namespace, name));
    }
}

const idOf = ({ namespace, name }: Pod): string => `${namespace}/${name}`;
const sorted = (pods: Iterable<Pod>): Pod[] =>
  [...pods].sort((one, other) => (idOf(one) < idOf(other) ? -1 : 1));

describe("packed pods", () => {
  it("are those of a map after any steps, for the writer and for readers in other threads", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.nat(80), (steps, sharedAt) => {
        const memory = new ColumnMemory();
        const index = new PodIndex(memory);
        const model = new Model();
        const reader = new Reader();
        for (const [at, each] of steps.entries()) {
          if (at === sharedAt) reader.attach(memory);
          apply(index, model, each);
        }
        compare(index, model);
        assert.equal(memory.isShared, sharedAt < steps.length, "one thread alone has no counter");
        // As one that comes later, where none has come yet.
        if (!memory.isShared) reader.attach(memory);
        assert.ok(reader.memory.beginReading());
        compare(reader.index, model);
        assert.ok(reader.memory.isWhole());
        assert.equal(reader.index.octets, 0, "counted where they are written");
      }),
      { numRuns: STEPS },
    );
  });

  it("get labels that no pod has had so far", () => {
    const index = new PodIndex();
    const bare: Pod = { namespace: "shop", name: "web-1", addresses: [key("10.0.0.1")], labels: NO_LABELS };
    index.put(bare, new ChangeRecorder());
    const labels = new Map([["app", "web"]]);
    index.put({ ...bare, labels }, new ChangeRecorder());
    assert.deepEqual(index.named("shop", "web-1")?.labels, labels);
    index.put(bare, new ChangeRecorder());
    assert.equal(index.named("shop", "web-1")?.labels.size, 0);
  });

  it("come and go in their thousands, take no more octets the second time, and are found the while", () => {
    const index = new PodIndex();
    const change = new ChangeRecorder();
    const make = (n: number, round: number): Pod => ({
      namespace: `team-${n % 40}`,
      name: `web-${n % 700}-${round}${n.toString(36)}`,
      addresses: [0x0a00_0000 + n],
      labels: LABELS[n % 4] ?? NO_LABELS,
    });
    const count = 30_000;
    let octets = 0;
    for (let round = 0; round < 3; round++) {
      for (let n = 0; n < count; n++) assert.ok(index.put(make(n, round), change));
      for (let n = 0; n < count; n += 997) {
        assert.deepEqual(index.at(0x0a00_0000 + n).map(copyPod), [make(n, round)]);
        const found = index.named(`team-${n % 40}`, make(n, round).name);
        assert.deepEqual(found && copyPod(found), make(n, round));
      }
      if (round === 0) octets = index.octets;
      else assert.equal(index.octets, octets);
      for (let n = 0; n < count; n++) assert.ok(index.delete(make(n, round), change));
      assert.deepEqual([...index.pods()], []);
    }
    assert.ok(octets < 90 * count, `${octets / count} octets a pod`);
  });

  it("of a name or with addresses that no API has are not kept", () => {
    const index = new PodIndex();
    const change = new ChangeRecorder();
    const usual: Pod = { namespace: "shop", name: "web-1", addresses: [1], labels: NO_LABELS };
    index.put(usual, change);
    index.put({ ...usual, name: "x".repeat(MAX_NAME_LENGTH + 1) }, change);
    index.put({ ...usual, namespace: "x".repeat(100_000) }, change);
    assert.equal(index.named("x".repeat(100_000), "web-1"), undefined);
    const many = Array.from({ length: MAX_ADDRESSES + 1 }, (_, at) => at);
    assert.ok(index.put({ ...usual, addresses: many }, change), "its former state is gone");
    assert.deepEqual([...index.pods()], []);
    const longest = { ...usual, name: "語".repeat(MAX_NAME_LENGTH), addresses: many.slice(1) };
    index.put(longest, change);
    assert.deepEqual([...index.pods()], [longest]);
  });

  it("have as many labels as 64 KiB hold", () => {
    const index = new PodIndex();
    const change = new ChangeRecorder();
    const all = Array.from({ length: 300 }, (_, at): [string, string] => [
      `label-${1000 + at}`,
      "x".repeat(300),
    ]);
    const bearer = { namespace: "shop", name: "web-1", addresses: [1], labels: new Map(all) };
    assert.ok(index.put(bearer, change));
    assert.ok(!index.put({ ...bearer, labels: new Map(all) }, change), "that is nothing new");
    const kept = index.named("shop", "web-1")?.labels ?? NO_LABELS;
    assert.ok(kept.size > 200);
    assert.deepEqual([...kept], all.slice(0, kept.size));
  });
});
