/** The options for access to the API: its address, credentials, and rate limits. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { afterEach, it } from "node:test";
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { ApiSimulator } from "../../../test/support/kubernetes-api/api-simulator.ts";
import { CredentialsFolder } from "../../../test/support/kubernetes-api/credentials-folder.ts";
import { PluginTest, until } from "../../plugin/testing.ts";
import kubernetes from "./index.ts";

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
});

async function startApi(options: Parameters<typeof ApiSimulator.start>[0] = {}): Promise<ApiSimulator> {
  const api = await ApiSimulator.start(options);
  opened.push(api);
  return api;
}

function make(options: readonly string[]) {
  const lines = ["startup_timeout 1h", ...options].join("\n");
  const plugin = PluginTest.of(kubernetes, `kubernetes cluster.local {\n${lines}\n}`);
  opened.push({ close: () => plugin.stop() });
  return plugin;
}

/** Long enough for an undelayed request over loopback. */
async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 200; turn++) await nextTurn();
}

/** Advances the plugin's clock slowly enough for answers to arrive in time. */
async function untilReady(plugin: ReturnType<typeof make>): Promise<void> {
  while (!plugin.instances[0]?.ready?.()) {
    plugin.clock.advance(10);
    await delay(1);
  }
}

it("endpoint: if a URL fails the next is used", async () => {
  const api = await startApi();
  const plugin = make([`endpoint http://127.0.0.1:1 ${api.url}`]);
  const starting = plugin.start();
  await untilReady(plugin);
  await starting;
  assert.match(
    plugin.log.lines.join("\n"),
    /nothing listens at http:\/\/127\.0\.0\.1:1 \(connection refused\)/,
  );
});

it("tls: shows the client certificate, and trusts only the given CA", async () => {
  using folder = new CredentialsFolder();
  const { certificate, key } = folder.authority.issue({ commonName: "portolan" });
  folder.write("client.crt", certificate);
  folder.write("client.key", key);
  const tls = { ...folder.serverTls, clientAuthority: folder.authority.certificate };
  const api = await startApi({ tls });
  const names = new Set<string | undefined>();
  api.admits = ({ commonName }) => names.add(commonName).has("portolan");
  const files = ["client.crt", "client.key", "ca.crt"].map((file) => join(folder.path, file));
  const plugin = make([`endpoint ${api.url}`, `tls ${files.join(" ")}`]);
  await plugin.start();
  assert.ok(plugin.instances[0]?.ready?.());
  assert.deepEqual([...names], ["portolan"]);
});

it("sends the user agent", async () => {
  const api = await startApi();
  const agents = new Set<string | undefined>();
  api.admits = ({ headers }) => agents.add(String(headers["user-agent"])).size > 0;
  await make([`endpoint ${api.url}`]).start();
  assert.deepEqual([...agents], [`Portolan/0.0.0-test (${process.platform}/${process.arch})`]);
});

it("apiserver_qps and apiserver_burst: limit the requests", async () => {
  const api = await startApi();
  const plugin = make([`endpoint ${api.url}`, "apiserver_qps 1", "apiserver_burst 2"]);
  const starting = plugin.start();
  await until(() => api.requests.length === 2);
  await someTurns();
  assert.equal(api.requests.length, 2);
  plugin.clock.advance(999);
  await someTurns();
  assert.equal(api.requests.length, 2);
  plugin.clock.advance(1);
  await until(() => api.requests.length === 3);
  await starting;
});

it("apiserver_qps and apiserver_burst: 0 selects the default", async () => {
  const api = await startApi();
  const options = ["apiserver_qps 0", "apiserver_burst 0", "apiserver_max_inflight 0"];
  await make([`endpoint ${api.url}`, ...options]).start();
  assert.equal(api.requests.length, 3);
});

it("apiserver_max_inflight: bounds the requests that wait for a response", async () => {
  const api = await startApi();
  api.faults.add({ fault: { kind: "hang" }, times: 2 });
  const plugin = make([`endpoint ${api.url}`, "apiserver_max_inflight 2"]);
  const starting = plugin.start();
  await until(() => api.requests.length === 2);
  await someTurns();
  assert.equal(api.requests.length, 2);
  // Both requests time out, and their watches fall back; then the third one is sent.
  plugin.clock.advance(30_000);
  await untilReady(plugin);
  await starting;
  assert.equal(new Set(api.requests.map(({ resource }) => resource)).size, 3);
});
