import assert from "node:assert/strict";
import { test } from "node:test";
import type { Kind } from "../../kubernetes/objects/objects.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { MemoryNotice } from "./memory-notice.ts";

const MIB = 2 ** 20;

function notice(kinds: readonly Kind[] = ["namespaces", "services", "endpoints"]) {
  const clock = new FakeClock();
  const warnings: string[] = [];
  const now = { own: 100 * MIB, cluster: 30 * MIB };
  const store = {
    kinds: new Set(kinds),
    get octets() {
      return now.cluster;
    },
    pods: { octets: 12 * MIB },
  };
  const limit = 170 * MIB;
  const log = { warning: (text: string) => warnings.push(text) };
  const memory = new MemoryNotice({ limit, own: () => now.own, stores: [store], clock, log });
  return { clock, warnings, now, memory };
}

test("a cluster that outgrows the memory is logged once, with both figures and the options to change", () => {
  const { clock, warnings, now, memory } = notice(["services", "pods"]);
  memory.start();
  clock.advance(2_000);
  assert.deepEqual(warnings, []);
  now.own = 125 * MIB;
  clock.advance(2_000);
  assert.deepEqual(warnings, [
    "the cluster takes 30 MiB, and the server 125 MiB of the limit of 170 MiB: raise the memory limit, or the server may be killed; " +
      "options that store less of the cluster: pods insecure, which keeps none of the 12 MiB for pods; namespaces; labels " +
      "(portolan_memory_cluster_bytes shows how much)",
  ]);
  assert.equal(clock.pendingTimers, 0);
  // Another configuration serves the same cluster.
  memory.start();
  clock.advance(2_000);
  assert.equal(warnings.length, 1);
});

test("without pods the warning does not mention them", () => {
  const { clock, warnings, now, memory } = notice();
  memory.start();
  now.own = 160 * MIB;
  clock.advance(500);
  assert.match(warnings[0] ?? "", /store less of the cluster: namespaces; labels \(/);
});

test("memory of other parts does not count for the cluster", () => {
  const { clock, warnings, now, memory } = notice();
  memory.start();
  now.own = 165 * MIB;
  now.cluster = 20 * MIB;
  clock.advance(10_000);
  assert.deepEqual(warnings, []);
  memory.stop();
  assert.equal(clock.pendingTimers, 0);
});
