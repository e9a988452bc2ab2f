import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { PluginTest } from "../../plugin/testing.ts";
import kubernetes from "./index.ts";

const fixture = fileURLToPath(new URL("../../../test/fixtures/kubernetes", import.meta.url));

async function remembered(isReload: boolean): Promise<number> {
  const plugin = PluginTest.of(kubernetes, `kubernetes cluster.local {\nmanifests ${fixture}\n}`);
  if (isReload) for (const instance of plugin.instances) await instance.inherit?.([]);
  await plugin.start();
  for (let turn = 0; turn < 3; turn++) await nextTurn();
  const { body } = await plugin.metrics.expose();
  await plugin.stop();
  return Number(/^portolan_memory_answers_bytes (\d+)$/m.exec(body)?.[1]);
}

test("the first configuration answers a question about a service before the first client query", async () => {
  assert.ok((await remembered(false)) > 0);
});

test("a reload does not rehearse", async () => {
  assert.equal(await remembered(true), 0);
});
