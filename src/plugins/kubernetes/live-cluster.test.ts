import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, it } from "node:test";
import { ApiSimulator } from "../../../test/support/kubernetes-api/api-simulator.ts";
import { kubeconfigText } from "../../../test/support/kubernetes-api/credentials-folder.ts";
import { untilTrue } from "../../../test/support/until-true.ts";
import { Rcode } from "../../dns/numbers.ts";
import { PluginTest, type PluginTestOptions } from "../../plugin/testing.ts";
import kubernetes from "./index.ts";

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
});

async function startApi(): Promise<ApiSimulator> {
  const api = await ApiSimulator.start();
  opened.push(api);
  api.put("services", { metadata: { name: "web", namespace: "default" }, spec: { clusterIP: "10.96.0.1" } });
  return api;
}

function make(options: readonly string[], more: PluginTestOptions = {}) {
  const plugin = PluginTest.of(
    kubernetes,
    `kubernetes cluster.local in-addr.arpa {\n${options.join("\n")}\n}`,
    more,
  );
  opened.push({ close: () => plugin.stop() });
  return plugin;
}

/** Starts with a stopped clock, and advances it until the start is complete. */
async function startAndWait(plugin: ReturnType<typeof make>): Promise<void> {
  let over = false;
  const starting = plugin.start().finally(() => {
    over = true;
  });
  while (!over) {
    plugin.clock.advance(10);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await starting;
}

const WEB = { name: "web.default.svc.cluster.local." };

describe("a live cluster", () => {
  it("is listed before the start completes", async () => {
    const api = await startApi();
    const plugin = make([`endpoint ${api.url}`]);
    await plugin.start();
    assert.deepEqual((await plugin.ask(WEB)).answer, ["web.default.svc.cluster.local. 5 IN A 10.96.0.1"]);
    assert.ok(plugin.instances.every((instance) => instance.ready?.()));
    assert.deepEqual(plugin.instances[0]?.describeState?.(), [
      "cluster.local. namespaces: watching, age 0s",
      "cluster.local. services: watching, age 0s",
      "cluster.local. endpointslices: watching, age 0s",
    ]);
    assert.deepEqual(plugin.log.lines, []);
    assert.match(
      (await plugin.metrics.expose()).body,
      /portolan_kubernetes_data_age_seconds{zone="cluster.local.",resource="services"}/,
    );
  });

  it("is watched, so that answers follow it, which continue without the API", async () => {
    const api = await startApi();
    const plugin = make([`endpoint ${api.url}`]);
    await plugin.start();
    api.put("services", {
      metadata: { name: "web", namespace: "default" },
      spec: { clusterIP: "10.96.0.2" },
    });
    const changed = async () => (await plugin.ask(WEB)).answer.join().endsWith("10.96.0.2");
    await untilTrue(changed);
    await api.close();
    assert.ok(await changed());
    assert.equal((await plugin.ask({ name: "no.default.svc.cluster.local." })).rcode, Rcode.NXDOMAIN);
  });

  it("is found through a kubeconfig", async () => {
    const api = await startApi();
    const folder = mkdtempSync(join(tmpdir(), "portolan-live-"));
    opened.push({ close: async () => rmSync(folder, { recursive: true }) });
    const file = join(folder, "config");
    writeFileSync(file, kubeconfigText({ server: api.url }, {}));
    const plugin = make([`kubeconfig ${file} here`]);
    await plugin.start();
    assert.equal((await plugin.ask(WEB)).answer.length, 1);
    await assert.rejects(
      make([`kubeconfig ${file} there`]).start(),
      /^SetupError: kubeconfig .*: no context "there"/,
    );
    await assert.rejects(
      make([`kubeconfig ${folder}/none`]).start(),
      /^SetupError: kubeconfig .*: no such file or directory/,
    );
  });

  it("is the pod's own by default", async () => {
    await assert.rejects(
      make([]).start(),
      /^SetupError: in-cluster configuration: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set/,
    );
  });

  it("is asked only for the objects that the options select", async () => {
    const api = await startApi();
    const plugin = make([
      `endpoint ${api.url}`,
      "labels tier in (a, b)",
      "namespace_labels team",
      "noendpoints",
    ]);
    await plugin.start();
    const asked = api.requests.map(
      ({ resource, parameters }) => `${resource} ${parameters.get("labelSelector")}`,
    );
    assert.deepEqual(asked.sort(), ["namespaces team", "services tier in (a, b)"]);
  });
});

describe("max_staleness", () => {
  it("reports not ready with the age of the data, and ready again", async () => {
    const api = await startApi();
    const plugin = make([`endpoint ${api.url}`, "max_staleness 5m", "noendpoints"]);
    await plugin.start();
    const [instance] = plugin.instances;
    await api.close();
    plugin.clock.advance(300_000);
    assert.equal(instance?.unfit?.(), false);
    plugin.clock.advance(12_000);
    assert.equal(instance?.unfit?.(), true);
    assert.equal((await plugin.ask(WEB)).answer.length, 1, "what is known is answered");
    const warning = "the state of namespaces is 5m12s old, and max_staleness is 5m0s";
    assert.ok(plugin.log.lines.includes(`[WARNING] plugin/kubernetes: not ready: ${warning}`));
    assert.equal(instance?.describeState?.().at(-1), `cluster.local. stale: ${warning}`);
    assert.match(
      (await plugin.metrics.expose()).body,
      /portolan_kubernetes_data_age_seconds{zone="cluster.local.",resource="services"} 312/,
    );
    await api.open();
    while (instance?.unfit?.()) {
      plugin.clock.advance(100);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    assert.match(plugin.log.lines.join("\n"), /plugin\/kubernetes: ready again: /);
  });

  it("is off by default", async () => {
    const api = await startApi();
    const plugin = make([`endpoint ${api.url}`]);
    await plugin.start();
    await api.close();
    plugin.clock.advance(86_400_000);
    assert.equal(plugin.instances[0]?.unfit?.(), false);
    assert.equal(plugin.instances[0]?.ready?.(), true);
  });
});

describe("without its cluster", () => {
  it("answers from the snapshot of an earlier run, though not that a name does not exist", async () => {
    const folder = mkdtempSync(join(tmpdir(), "portolan-live-"));
    opened.push({ close: async () => rmSync(folder, { recursive: true }) });
    const file = join(folder, "cluster.snapshot");
    const api = await startApi();
    api.put("services", {
      metadata: { name: "gone", namespace: "default" },
      spec: { clusterIP: "10.96.0.9" },
    });
    const options = [`endpoint ${api.url}`, `snapshot ${file}`, "startup_timeout 0s"];
    const first = make([`endpoint ${api.url}`, `snapshot ${file}`]);
    await first.start();
    assert.deepEqual(first.log.lines, []);
    await first.stop();

    await api.close();
    api.delete("services", "default", "gone");
    const second = make(options);
    await startAndWait(second);
    assert.match(
      second.log.lines.join("\n"),
      /answering from the snapshot of .* until the API is listed: 4 objects/,
    );
    assert.deepEqual((await second.ask(WEB)).answer, ["web.default.svc.cluster.local. 5 IN A 10.96.0.1"]);
    assert.equal((await second.ask({ name: "no.default.svc.cluster.local." })).rcode, Rcode.SERVFAIL);
    assert.equal(second.instances[0]?.ready?.(), false);
    const state = second.instances[0]?.describeState?.().join("\n") ?? "";
    assert.match(state, /^cluster\.local\. services: not listed, failing since .*: nothing listens at/m);
    assert.match(state, /^cluster\.local\. answers: from the snapshot of \d{4}-/m);
    assert.doesNotMatch((await second.metrics.expose()).body, /data_age_seconds{.*services/);

    await api.open();
    while (!second.instances[0]?.ready?.()) {
      second.clock.advance(100);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    assert.equal((await second.ask({ name: "gone.default.svc.cluster.local." })).rcode, Rcode.NXDOMAIN);
    assert.equal((await second.ask(WEB)).answer.length, 1);
  });

  it("starts after the time-out, logs the missing lists, and fails queries that need them", async () => {
    const api = await startApi();
    api.permits = ({ resource }) => !resource.startsWith("endpoint");
    const plugin = make([`endpoint ${api.url}`, "startup_timeout 2s"]);
    await startAndWait(plugin);
    const { lines } = plugin.log;
    const waiting = lines.filter((line) =>
      line.endsWith("waiting for Kubernetes API before starting server"),
    );
    assert.ok(waiting.length >= 3, lines.join("\n"));
    assert.equal(waiting[0], "[INFO] plugin/kubernetes: waiting for Kubernetes API before starting server");
    assert.ok(lines.includes("[WARNING] plugin/kubernetes: starting server with unsynced Kubernetes API"));
    assert.match(
      lines.at(-1) ?? "",
      /not listed yet: endpoints \(no right to list endpointslices \(403 Forbidden\)/,
    );
    assert.equal(plugin.instances[0]?.ready?.(), false);
    assert.equal((await plugin.ask(WEB)).answer.length, 1, "what is known is answered");
    const unknown = await plugin.ask({ name: "no.default.svc.cluster.local." });
    assert.equal(unknown.rcode, Rcode.SERVFAIL);
    assert.equal(unknown.authority.length, 1);

    api.permits = () => true;
    while (!plugin.instances[0]?.ready?.()) {
      plugin.clock.advance(100);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    assert.equal((await plugin.ask({ name: "no.default.svc.cluster.local." })).rcode, Rcode.NXDOMAIN);
  });

  it("does not wait with a timeout of 0, and stops all timers", async () => {
    const plugin = make(["endpoint http://127.0.0.1:1", "startup_timeout 0s"]);
    await startAndWait(plugin);
    await plugin.stop();
    assert.equal(plugin.clock.pendingTimers, 0);
  });
});
