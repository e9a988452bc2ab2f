import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, test } from "node:test";
import { SLIM_DURATION_BUCKETS } from "../../lib/metrics/metric-families.ts";
import type { HttpService } from "../../plugin/contract/site.ts";
import { ConfigRefused, PluginTest, until } from "../../plugin/testing.ts";
import health from "./index.ts";

const servers: Server[] = [];
after(() => {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
});

/** Serves the plugin's handler, or `instead`, on a real socket. */
function httpService(instead?: RequestListener): HttpService & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    async serve(address, path, handler) {
      asked.push(`${address}${path}`);
      const server = createServer(instead ?? handler).listen(0, "127.0.0.1");
      servers.push(server);
      await once(server, "listening");
      return { host: "0.0.0.0", port: (server.address() as AddressInfo).port };
    },
  };
}

function metricsOf(plugin: PluginTest<unknown>) {
  return {
    durations: plugin.metrics
      .histogram({
        name: "coredns_health_request_duration_seconds",
        help: "same",
        buckets: SLIM_DURATION_BUCKETS,
      })
      .slot(),
    failures: plugin.metrics.counter({ name: "coredns_health_request_failures_total", help: "same" }).slot(),
  };
}

test("answers OK", async () => {
  const http = httpService();
  const plugin = PluginTest.of(health, "health 127.0.0.1:18080", { site: { http } });
  await plugin.start();
  assert.deepEqual(http.asked, ["127.0.0.1:18080/health"]);
  const server = servers.at(-1);
  assert.ok(server !== undefined);
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/health`);
  assert.deepEqual([response.status, await response.text()], [200, "OK"]);
  await plugin.stop();
});

test("serves an address of several blocks once, and checks it once", async () => {
  const http = httpService();
  const shared = new Map<string, unknown>();
  const blocks = ["health", "health :8080", "health :8081"].map((text) =>
    PluginTest.of(health, text, { shared, site: { http } }),
  );
  for (const block of blocks) await block.start();
  assert.deepEqual(http.asked, [":8080/health", ":8081/health"]);
  assert.deepEqual(
    blocks.map(({ clock }) => clock.pendingTimers),
    [1, 0, 1],
  );
  for (const block of blocks) await block.stop();
});

describe("the check of itself", () => {
  test("measures every second", async () => {
    const plugin = PluginTest.of(health, "health", { site: { http: httpService() } });
    await plugin.start();
    const { durations, failures } = metricsOf(plugin);
    assert.equal(durations.count, 0);
    for (const count of [1, 2]) {
      plugin.clock.advance(1_000);
      await until(() => durations.count === count && plugin.clock.pendingTimers === 1);
    }
    assert.equal(failures.value, 0);
    assert.deepEqual(plugin.log.lines, []);
    await plugin.stop();
    assert.equal(plugin.clock.pendingTimers, 0);
  });

  test("warns about an answer that took more than a second", async () => {
    const waiting: ServerResponse[] = [];
    const http = httpService((_request, response) => void waiting.push(response));
    const plugin = PluginTest.of(health, "health", { site: { http } });
    await plugin.start();
    plugin.clock.advance(1_000);
    await until(() => waiting.length === 1);
    // The next request is not sent while this one waits.
    plugin.clock.advance(2_500);
    waiting[0]?.end("OK");
    await until(() => plugin.log.lines.length === 1);
    assert.equal(
      plugin.log.lines[0],
      '[WARNING] plugin/health: Local health request to "http://:8080/health" took more than 1s: 2.5s',
    );
    const { durations } = metricsOf(plugin);
    assert.equal(durations.sum, 2.5);
    assert.equal(waiting.length, 1);
    await plugin.stop();
  });

  test("times out after three seconds, and logs it once", async () => {
    const waiting: ServerResponse[] = [];
    const http = httpService((_request, response) => {
      waiting.push(response);
      if (waiting.length === 3) response.end("OK");
    });
    const plugin = PluginTest.of(health, "health", { site: { http } });
    await plugin.start();
    const { durations, failures } = metricsOf(plugin);
    plugin.clock.advance(1_000);
    await until(() => waiting.length === 1);
    plugin.clock.advance(3_000);
    await until(() => failures.value === 1 && plugin.clock.pendingTimers === 1);
    plugin.clock.advance(1_000);
    await until(() => waiting.length === 2);
    plugin.clock.advance(3_000);
    await until(() => failures.value === 2 && plugin.clock.pendingTimers === 1);
    plugin.clock.advance(1_000);
    await until(() => durations.count === 1);
    assert.deepEqual(plugin.log.lines, [
      '[WARNING] plugin/health: Local health request to "http://:8080/health" failed: no answer within 3s',
    ]);
    await plugin.stop();
  });

  test("ends with the plugin, even during a request", async () => {
    const waiting: ServerResponse[] = [];
    const http = httpService((_request, response) => void waiting.push(response));
    const plugin = PluginTest.of(health, "health", { site: { http } });
    await plugin.start();
    plugin.clock.advance(1_000);
    await until(() => waiting.length === 1);
    await plugin.stop();
    await until(() => plugin.clock.pendingTimers === 0);
    assert.deepEqual(plugin.log.lines, []);
    assert.equal(metricsOf(plugin).failures.value, 0);
  });
});

describe("lameduck", () => {
  test("delays the end", async () => {
    const plugin = PluginTest.of(health, "health {\n lameduck 5s\n}");
    const [instance] = plugin.instances;
    let over = false;
    const draining = instance?.drain?.().then(() => {
      over = true;
    });
    await plugin.clock.settle(4_999);
    assert.deepEqual(
      [over, plugin.log.lines],
      [false, ["[INFO] plugin/health: Going into lameduck mode for 5s"]],
    );
    await plugin.clock.settle(1);
    await draining;
    assert.equal(over, true);
  });

  test("is off by default", async () => {
    const plugin = PluginTest.of(health, "health {\n lameduck 0\n}");
    await plugin.instances[0]?.drain?.();
    assert.deepEqual(plugin.log.lines, []);
  });
});

test("of several, the last one counts", () => {
  const { configs } = PluginTest.of(health, "health :8080\nhealth :8081 {\n lameduck 1s\n}");
  assert.deepEqual(configs, [{ address: ":8081", lameduck: 1_000 }]);
});

describe("refuses", () => {
  for (const [text, code, message] of [
    ["health 8080", "PLUGIN_BAD_VALUE", /'8080' is not an address with a port/],
    ["health :8080 :8081", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after ':8081'/],
    [
      "health {\n lameduck 5\n}",
      "PLUGIN_BAD_VALUE",
      /3:11: error: unable to parse lameduck duration value: '5' : not a duration such as 5s/,
    ],
    ["health {\n lameduck -5s\n}", "PLUGIN_BAD_VALUE", /unable to parse lameduck duration value: '-5s'/],
    ["health {\n lameduck\n}", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending after 'lameduck'/],
    ["health {\n lameduk 5s\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'lameduk'/],
  ] as const) {
    test(JSON.stringify(text), () => {
      assert.throws(
        () => PluginTest.of(health, text),
        (error) =>
          error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
      );
    });
  }
});
