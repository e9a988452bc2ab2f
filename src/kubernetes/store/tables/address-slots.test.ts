import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock } from "../../../lib/time/clock.ts";
import { type AddressKey, addressKey, addressOfKey } from "../../objects/addresses.ts";
import { NO_LABELS } from "../../objects/shared-values.ts";
import { ClusterStore } from "../store.ts";
import { AddressSlots } from "./address-slots.ts";
import { hashText, spread } from "./hashes.ts";

/** The address of IPv4 with the same hash as one of IPv6: who may make objects can choose either. */
function twinOf(key: string): number {
  return unspread(hashText(0, key));
}

/** {@link spread} the other way round. */
function unspread(hash: number): number {
  let value = hash ^ (hash >>> 16);
  value = Math.imul(value, inverseOf(0xc2b2_ae35));
  value ^= (value >>> 13) ^ (value >>> 26);
  value = Math.imul(value, inverseOf(0x85eb_ca6b));
  return value ^ (value >>> 16);
}

/** By Newton's method, modulo 2^32. */
function inverseOf(factor: number): number {
  let inverse = factor;
  for (let step = 0; step < 5; step++) inverse = Math.imul(inverse, 2 - Math.imul(factor, inverse));
  return inverse;
}

const six = addressKey(Uint8Array.of(0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)) as string;
const four = twinOf(six);

function slotsOf(index: AddressSlots, key: AddressKey): number[] {
  const slots: number[] = [];
  for (let entry = index.first(key); entry >= 0; entry = index.after(entry)) slots.push(index.slot(entry));
  return slots;
}

test("two families have one hash here", () => {
  assert.equal(spread(four), hashText(0, six));
});

test("addresses of the other family with the same hash are neither found nor deleted", () => {
  const index = new AddressSlots();
  for (const slot of [5, 3, 0]) index.add(six, slot);
  for (const slot of [3, 7]) index.add(four, slot);
  index.add(six, 8);
  assert.deepEqual(
    [slotsOf(index, six), slotsOf(index, four)],
    [
      [5, 3, 0, 8],
      [3, 7],
    ],
  );
  index.delete(four, 3);
  index.delete(four, 5);
  assert.deepEqual([slotsOf(index, six), slotsOf(index, four)], [[5, 3, 0, 8], [7]]);
  index.delete(six, 3);
  assert.deepEqual([slotsOf(index, six), slotsOf(index, four)], [[5, 0, 8], [7]]);
  assert.deepEqual([index.size, index.ipv4Size], [4, 1]);
});

describe("no service has an IPv4 address because of an IPv6 address", () => {
  const store = new ClusterStore({
    clock: new FakeClock(),
    kinds: ["namespaces", "services", "endpoints", "pods"],
  });
  const identity = { namespace: "shop", name: "web" };
  store.put("namespaces", { namespace: "", name: "shop" });
  store.put("services", {
    ...identity,
    type: "clusterIP",
    clusterAddresses: [addressOfKey(six)],
    externalName: "",
    ports: [],
    publishNotReadyAddresses: false,
    externalAddresses: ["fd00::1"],
  });
  store.put("endpoints", {
    ...identity,
    service: "web",
    groups: [
      {
        addressLength: 16,
        addresses: addressOfKey(six),
        count: 1,
        readyCount: 1,
        labels: undefined,
        zones: undefined,
        ports: [],
      },
    ],
  });
  store.put("pods", { ...identity, addresses: [six], labels: NO_LABELS });
  for (const [what, at] of [
    ["service", (key: AddressKey) => store.services.servicesAt(key)],
    ["service outside", (key: AddressKey) => store.services.external.at(key)],
    ["endpoint set", (key: AddressKey) => store.services.endpointSetsAt(key)],
    ["pod", (key: AddressKey) => store.pods.at(key)],
  ] as const)
    test(what, () => assert.deepEqual([at(six).length, at(four).length], [1, 0]));
});
