import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FULL_SIZE, nodeName, podAddress, podName, shapeServices, sliceSizes } from "./cluster-shape.ts";

const services = shapeServices(FULL_SIZE);

describe("the cluster", () => {
  test("has as many Services and pods as it is to have", () => {
    assert.equal(services.length, 8_000);
    assert.equal(
      services.reduce((sum, { pods }) => sum + pods, 0),
      150_000,
    );
    assert.equal(new Set(services.map(({ name, namespace }) => `${namespace}/${name}`)).size, 8_000);
  });

  test("has a few Services with hundreds of pods, and many with a few", () => {
    const sizes = Map.groupBy(services, ({ pods }) => pods);
    assert.deepEqual(
      [...sizes].map(([pods, { length }]) => [pods, length]).sort(([one = 0], [other = 0]) => one - other),
      [
        [5, 7_000],
        [50, 900],
        [700, 100],
      ],
    );
    assert.ok(services.some(({ isHeadless, pods }) => isHeadless && pods === 50));
  });

  test("gives each pod a name and an address of its own, on one of the nodes", () => {
    let next = 0;
    const names = new Set<string>();
    const addresses = new Set<string>();
    for (const service of services) {
      assert.equal(service.firstPod, next);
      next += service.pods;
      for (let pod = service.firstPod; pod < next; pod++) {
        names.add(`${service.namespace}/${podName(service, pod)}`);
        addresses.add(podAddress(pod));
      }
    }
    assert.deepEqual([names.size, addresses.size], [150_000, 150_000]);
    assert.equal(new Set(Array.from({ length: 20_000 }, (_, pod) => nodeName(pod, 5_000))).size, 5_000);
  });
});

test("slices are full but for the last one", () => {
  assert.deepEqual(sliceSizes(250, 100), [100, 100, 50]);
  assert.deepEqual(sliceSizes(200, 100), [100, 100]);
  assert.deepEqual(sliceSizes(0, 100), [0]);
});
