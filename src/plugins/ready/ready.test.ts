import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import type { PlacedPlugin } from "../../plugin/index.ts";
import { ConfigRefused, PluginTest, type PluginTestOptions } from "../../plugin/testing.ts";
import ready from "./index.ts";

/** A plugin whose readiness the test sets. */
function neighbour(name: string, state = { ready: false, asked: 0 }): PlacedPlugin & { state: typeof state } {
  const instance = {
    ready: () => {
      state.asked++;
      return state.ready;
    },
  };
  return { name, instance, state };
}

async function started(text: string, options: PluginTestOptions): Promise<PluginTest<unknown>> {
  const plugin = PluginTest.of(ready, text, options);
  await plugin.start();
  return plugin;
}

async function probe(plugin: PluginTest<unknown>, address = ":8181"): Promise<string> {
  const handler = plugin.http.get(`${address}/ready`);
  assert.ok(handler !== undefined);
  const server = createServer(handler).listen(0, "127.0.0.1");
  await once(server, "listening");
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/ready`);
  const seen = `${response.status} ${await response.text()}`;
  server.close();
  server.closeAllConnections();
  return seen;
}

test("names the plugins that are not ready, sorted, and logs them", async () => {
  const [one, two] = [neighbour("nomad"), neighbour("kubernetes")];
  const neighbours = [one, { name: "cache", instance: {} }, two, neighbour("nomad")];
  const plugin = await started("ready", { neighbours });
  assert.equal(await probe(plugin), "503 kubernetes,nomad");
  assert.deepEqual(plugin.log.lines, ['[INFO] plugin/ready: Plugins not ready: "kubernetes,nomad"']);
  two.state.ready = true;
  assert.equal(await probe(plugin), "503 nomad");
});

test("is ready where no plugin has anything to say", async () => {
  const plugin = await started("ready 127.0.0.1:9000", { neighbours: [{ name: "cache", instance: {} }] });
  assert.equal(await probe(plugin, "127.0.0.1:9000"), "200 OK");
  assert.deepEqual(plugin.log.lines, []);
});

test("does not ask again who was ready once", async () => {
  const kubernetes = neighbour("kubernetes", { ready: true, asked: 0 });
  const plugin = await started("ready", { neighbours: [kubernetes] });
  assert.equal(await probe(plugin), "200 OK");
  kubernetes.state.ready = false;
  assert.equal(await probe(plugin), "200 OK");
  assert.equal(kubernetes.state.asked, 1);
});

test("asks each time with continuously", async () => {
  const kubernetes = neighbour("kubernetes", { ready: true, asked: 0 });
  const plugin = await started("ready {\n monitor continuously\n}", { neighbours: [kubernetes] });
  assert.equal(await probe(plugin), "200 OK");
  kubernetes.state.ready = false;
  assert.equal(await probe(plugin), "503 kubernetes");
});

test("speaks for all blocks at one address, each in its own mode", async () => {
  const shared = new Map<string, unknown>();
  const [one, two] = [neighbour("kubernetes"), neighbour("kubernetes", { ready: true, asked: 0 })];
  const first = await started("ready", { shared, neighbours: [one] });
  const second = await started("ready {\n monitor continuously\n}", { shared, neighbours: [two] });
  const elsewhere = await started("ready :8182", { shared, neighbours: [neighbour("nomad")] });
  assert.deepEqual([first.http.size, second.http.size, elsewhere.http.size], [1, 0, 1]);
  assert.equal(await probe(first), "503 kubernetes");
  one.state.ready = true;
  assert.equal(await probe(first), "200 OK");
  one.state.ready = false;
  assert.equal(await probe(first), "200 OK");
  two.state.ready = false;
  assert.equal(await probe(first), "503 kubernetes");
  assert.equal(await probe(elsewhere, ":8182"), "503 nomad");
});

test("is not ready during the shutdown", async () => {
  const plugin = await started("ready", {});
  await plugin.instances[0]?.drain?.();
  assert.equal(await probe(plugin), "503 Shutting down");
  assert.deepEqual(plugin.log.lines, []);
  await plugin.stop();
  assert.equal(plugin.clock.pendingTimers, 0);
});

describe("refuses", () => {
  for (const [text, code, message] of [
    ["ready 8181", "PLUGIN_BAD_VALUE", /'8181' is not an address with a port/],
    ["ready :1 :2", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after ':2'/],
    ["ready {\n monitor always\n}", "PLUGIN_BAD_VALUE", /3:10: error: monitor type 'always' not supported/],
    ["ready {\n monitor\n}", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending after 'monitor'/],
    ["ready {\n monitors x\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'monitors'[\s\S]*'monitor'/],
    ["ready\nready", "PLUGIN_REPEATED", /can only be used once per Server Block/],
  ] as const) {
    test(JSON.stringify(text), () => {
      assert.throws(
        () => PluginTest.of(ready, text),
        (error) =>
          error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
      );
    });
  }
});
