import assert from "node:assert/strict";
import { test } from "node:test";
import { addressKey } from "../kubernetes/objects/addresses.ts";
import { NO_LABELS } from "../kubernetes/objects/shared-values.ts";
import { ClusterStore } from "../kubernetes/store/store.ts";
import { parseIpAddress } from "../lib/net/ip-address.ts";
import { FakeClock } from "../lib/time/clock.ts";
import { Workloads } from "./workloads.ts";

const clock = new FakeClock();
const store = new ClusterStore({ clock, kinds: ["pods"] });

class OfOneCluster extends Workloads {
  override stores(): ClusterStore[] {
    return [store];
  }
}

function putPod(name: string, address: string): void {
  const octets = parseIpAddress(address);
  assert.ok(octets);
  store.put("pods", { namespace: "shop", name, addresses: [addressKey(octets)], labels: NO_LABELS });
}

test("a pod that asks before the cluster tells of it is known a second later", () => {
  let now = 0;
  const workloads = new OfOneCluster(
    () => undefined,
    () => now,
  );
  assert.equal(workloads.of("10.1.0.7"), undefined);
  putPod("web", "10.1.0.7");
  now += 1_001;
  assert.equal(workloads.of("10.1.0.7"), "shop/web");
  assert.equal(workloads.namespaceOf("10.1.0.7"), "shop");
});

test("an address with another pod has its name after ten seconds", () => {
  let now = 0;
  const workloads = new OfOneCluster(
    () => undefined,
    () => now,
  );
  putPod("one", "10.1.0.8");
  assert.equal(workloads.of("10.1.0.8"), "shop/one");
  store.delete("pods", { namespace: "shop", name: "one" });
  putPod("other", "10.1.0.8");
  now += 10_001;
  assert.equal(workloads.of("10.1.0.8"), "shop/other");
});
