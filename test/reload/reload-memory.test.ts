/** Reloads leave nothing in memory. Counts the objects of the heap by class, after a full collection. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { queryObjects } from "node:v8";
import { nodeHost } from "../../src/corefile/node-host.ts";
import { ClusterStore } from "../../src/kubernetes/store/store.ts";
import { MemoryLog } from "../../src/lib/logging/log.ts";
import { MetricsRegistry } from "../../src/lib/metrics/metrics.ts";
import { SystemClock } from "../../src/lib/time/clock.ts";
import { systemRandom, thisMachine } from "../../src/server/configuration/machine.ts";
import { PluginRegistry } from "../../src/server/configuration/plugin-registry.ts";
import { Generation } from "../../src/server/run/generation.ts";
import { Server } from "../../src/server/server.ts";
import { DnsListener } from "../../src/server/serving/dns-listener.ts";
import { RouteTable } from "../../src/server/serving/route-table.ts";

const manifests = fileURLToPath(new URL("../fixtures/kubernetes", import.meta.url));

/** Changes with each reload in what a reload may change: plugins, zones, settings; the listener stays. */
const corefile = (number: number): string => `.:0 {
  bind 127.0.0.1
  health 127.0.0.1:0
  ready 127.0.0.1:0
  prometheus 127.0.0.1:0
  timeouts {
    idle ${10 + number}s
  }
  kubernetes cluster.local in-addr.arpa {
    manifests ${manifests}
    ttl ${number + 1}
  }
  hosts {
    192.0.2.${number} generation.example
    fallthrough
  }
  forward . 127.0.0.1:5353
  cache ${10 + number}
  errors
  log
}
`;

async function counted(type: abstract new (...args: never) => unknown): Promise<number> {
  // Promises of the reload that have run hold on to it until their turn is over.
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  return queryObjects(type as new () => unknown, { format: "count" });
}

/** With a Corefile that changes with each `number`. */
async function serverOf(number: () => number, log: MemoryLog): Promise<Server> {
  return new Server({
    source: () => ({ text: corefile(number()), file: "Corefile" }),
    registry: await PluginRegistry.builtIn(),
    host: nodeHost,
    machine: thisMachine({}),
    clock: new SystemClock(),
    random: systemRandom(),
    log,
    metrics: new MetricsRegistry(),
    version: "0.0.0",
  });
}

test("what a reload replaced is looked for at once where memory has grown much since: V8 does not see how much hangs on it", async () => {
  let number = 0;
  const stores = await counted(ClusterStore);
  const server = await serverOf(() => number, new MemoryLog());
  await server.start();
  try {
    let freed = 0;
    const ballast: Buffer[] = [];
    const registry = new FinalizationRegistry(() => freed++);
    for (number = 1; number <= 3; number++) {
      const { configuration } = server;
      assert.ok(configuration);
      registry.register(configuration, undefined);
      await server.reload();
      // The old configuration goes some turns later.
      ballast.push(Buffer.alloc(200 << 20, number));
    }
    // The last one may be held by the turn in which it was replaced.
    const deadline = performance.now() + 10_000;
    // Helpers of V8 need a processor, too.
    while (freed < 2 && performance.now() < deadline) await delay(10);
    assert.ok(freed >= 2, `${freed} of 3 configurations freed`);
    assert.equal(ballast.length, 3);
  } finally {
    await server.stop();
  }
  // The last configuration that was replaced goes behind the back of the stop, too.
  const deadline = performance.now() + 10_000;
  while ((await counted(ClusterStore)) > stores && performance.now() < deadline) await delay(10);
  assert.equal(await counted(ClusterStore), stores);
});

test("after ten reloads the heap holds one generation, with one cluster and one listener", async () => {
  let number = 0;
  const log = new MemoryLog();
  const server = await serverOf(() => number, log);
  // The memory of the previous test is freed in turns of its own.
  const patience = performance.now() + 10_000;
  while ((await counted(ClusterStore)) > 0 && performance.now() < patience) await delay(10);
  const before = {
    generations: await counted(Generation),
    stores: await counted(ClusterStore),
    routes: await counted(RouteTable),
    listeners: await counted(DnsListener),
  };
  await server.start();
  try {
    for (number = 1; number <= 10; number++) await server.reload();
    const deadline = performance.now() + 10_000;
    // The generation before the last is stopped behind the reload's back.
    while ((await counted(Generation)) - before.generations > 1 && performance.now() < deadline);
    assert.deepEqual(
      {
        generations: (await counted(Generation)) - before.generations,
        stores: (await counted(ClusterStore)) - before.stores,
        routes: (await counted(RouteTable)) - before.routes,
        listeners: (await counted(DnsListener)) - before.listeners,
      },
      { generations: 1, stores: 1, routes: 1, listeners: 1 },
      log.lines.filter((line) => line.includes("ERROR")).join("\n"),
    );
  } finally {
    await server.stop();
  }
});
