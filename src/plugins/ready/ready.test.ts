import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import type { PlacedPlugin } from "../../plugin/index.ts";
import { ConfigRefused, PluginTest, type PluginTestOptions } from "../../plugin/testing.ts";
import ready from "./index.ts";

/** A plugin whose readiness the test sets. */
function neighbour(
  name: string,
  state = { ready: false, asked: 0 },
  lines?: () => readonly string[],
): PlacedPlugin & { state: typeof state } {
  const instance = {
    ...(lines !== undefined && { describeState: lines }),
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

async function probe(plugin: PluginTest<unknown>, address = ":8181", query = ""): Promise<string> {
  const handler = plugin.http.get(`${address}/ready`);
  assert.ok(handler !== undefined);
  const server = createServer(handler).listen(0, "127.0.0.1");
  await once(server, "listening");
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/ready${query}`);
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

test("is ready if no plugin reports readiness", async () => {
  const plugin = await started("ready 127.0.0.1:9000", { neighbours: [{ name: "cache", instance: {} }] });
  assert.equal(await probe(plugin, "127.0.0.1:9000"), "200 OK");
  assert.deepEqual(plugin.log.lines, []);
});

test("does not poll a plugin again that was ready once", async () => {
  const kubernetes = neighbour("kubernetes", { ready: true, asked: 0 });
  const plugin = await started("ready", { neighbours: [kubernetes] });
  assert.equal(await probe(plugin), "200 OK");
  kubernetes.state.ready = false;
  assert.equal(await probe(plugin), "200 OK");
  assert.equal(kubernetes.state.asked, 1);
});

test("polls each time whether a plugin has become unfit", async () => {
  const state = { unfit: false };
  const instance = { ready: () => true, unfit: () => state.unfit };
  const plugin = await started("ready", { neighbours: [{ name: "kubernetes", instance }] });
  assert.equal(await probe(plugin), "200 OK");
  state.unfit = true;
  assert.equal(await probe(plugin), "503 kubernetes");
  state.unfit = false;
  assert.equal(await probe(plugin), "200 OK");
});

test("polls each time with continuously", async () => {
  const kubernetes = neighbour("kubernetes", { ready: true, asked: 0 });
  const plugin = await started("ready {\n monitor continuously\n}", { neighbours: [kubernetes] });
  assert.equal(await probe(plugin), "200 OK");
  kubernetes.state.ready = false;
  assert.equal(await probe(plugin), "503 kubernetes");
});

test("reports for all blocks at one address, each in its own mode", async () => {
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

test("adds the status lines of plugins on request, after the same first line", async () => {
  let age = 3;
  const says = () => [`cluster.local. services: watching, age ${age}s`, "cluster.local. pods: being listed"];
  const kubernetes = neighbour("kubernetes", { ready: false, asked: 0 }, says);
  const shared = new Map<string, unknown>();
  const plugin = await started("ready", { shared, neighbours: [kubernetes, neighbour("nomad")] });
  // A plugin that has the same lines for two blocks is listed once.
  await started("ready", { shared, neighbours: [kubernetes] });
  assert.equal(await probe(plugin), "503 kubernetes,nomad");
  const details =
    "kubernetes cluster.local. services: watching, age 3s\nkubernetes cluster.local. pods: being listed\n";
  assert.equal(await probe(plugin, ":8181", "?verbose"), `503 kubernetes,nomad\n${details}`);
  kubernetes.state.ready = true;
  age = 200;
  const ready = await started("ready :8182", { neighbours: [kubernetes] });
  assert.equal(await probe(ready, ":8182"), "200 OK");
  assert.equal(await probe(ready, ":8182", "?other=1"), "200 OK");
  assert.equal(
    await probe(ready, ":8182", "?other=1&verbose=true"),
    `200 OK\n${details.replace("3s", "200s")}`,
    "a plugin that was ready once still reports its state",
  );
  await plugin.instances[0]?.drain?.();
  assert.equal(
    await probe(plugin, ":8181", "?verbose"),
    `503 Shutting down\n${details.replace("3s", "200s")}`,
  );
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
