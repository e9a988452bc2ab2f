/** External names and search paths of pods, from a live API and from a snapshot of it. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, it } from "node:test";
import { ApiSimulator } from "../../../test/support/kubernetes-api/api-simulator.ts";
import { Rcode, rcodeName } from "../../dns/numbers.ts";
import type { PlacedPlugin } from "../../plugin/index.ts";
import { PluginTest, recordText, until } from "../../plugin/testing.ts";
import autopath from "../autopath/index.ts";
import kubernetes from "../kubernetes/index.ts";
import k8sExternal from "./index.ts";

const opened: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

/** Starts the three plugins in chain order. */
async function start(options: readonly string[]) {
  const text = `kubernetes cluster.local {\n${options.join("\n")}\n}`;
  const inFront: PlacedPlugin[] = [];
  const cluster = PluginTest.of(kubernetes, text, { neighbours: inFront });
  const neighbours = cluster.instances.map((instance) => ({ name: "kubernetes", instance }));
  const external = PluginTest.of(k8sExternal, "k8s_external example.org", { neighbours });
  inFront.push(...external.instances.map((instance) => ({ name: "k8s_external", instance })));
  const searching = PluginTest.of(autopath, "autopath @kubernetes", { neighbours });
  opened.push(async () => {
    for (const plugin of [searching, external, cluster]) await plugin.stop();
  });
  await searching.start();
  await external.start();
  const starting = cluster.start();
  // A start without its API waits for the clock.
  let over = false;
  void starting.finally(() => {
    over = true;
  });
  while (!over) {
    cluster.clock.advance(10);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await starting;
  const ask = async (name: string, client?: string) => {
    const next = searching.chain(
      external.chain(cluster.chain((query) => query.reply({ rcode: Rcode.NXDOMAIN }))),
    );
    const outcome = await next(searching.query({ name, ...(client !== undefined && { client }) }));
    if (outcome.kind !== "reply") return outcome.kind;
    const data = outcome.answer.map((record) => recordText(record).split(" ").slice(4).join(" "));
    return data.length === 0 ? rcodeName(outcome.rcode) : data.join();
  };
  return { ask, cluster };
}

it("works from the API, and from a snapshot of it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "portolan-external-"));
  opened.push(() => rmSync(folder, { recursive: true }));
  const api = await ApiSimulator.start();
  opened.push(() => api.close());
  const status = { loadBalancer: { ingress: [{ ip: "192.0.2.2" }] } };
  const meta = (name: string) => ({ name, namespace: "default" });
  const spec = { clusterIP: "10.96.0.1", externalIPs: ["192.0.2.1"] };
  api.put("services", { metadata: meta("web"), spec, status });
  api.put("pods", { metadata: meta("one"), status: { phase: "Running", podIP: "10.0.0.1" } });
  const hosted = { spec: { hostNetwork: true }, status: { phase: "Running", podIP: "10.0.0.2" } };
  api.put("pods", { metadata: meta("two"), ...hosted });

  const options = [`endpoint ${api.url}`, "pods verified", `snapshot ${join(folder, "snapshot")}`];
  const { ask, cluster } = await start(options);
  assert.equal(await ask("web.default.example.org."), "192.0.2.1,192.0.2.2");
  assert.equal(await ask("new.default.example.org."), "NXDOMAIN");
  const typed = "web.default.svc.default.svc.cluster.local.";
  assert.equal(await ask(typed, "10.0.0.1"), "web.default.svc.cluster.local.,10.96.0.1");
  assert.equal(await ask(typed, "10.0.0.2"), "NXDOMAIN");
  assert.equal(await ask(typed, "10.0.0.3"), "NXDOMAIN");

  api.put("services", { metadata: meta("web"), spec: { ...spec, externalIPs: ["192.0.2.3"] } });
  let seen = "";
  const look = async () => {
    seen = await ask("web.default.example.org.");
  };
  await until(() => {
    void look();
    return seen === "192.0.2.3";
  });
  await cluster.stop();
  await api.close();

  const again = await start([...options, "startup_timeout 1s"]);
  assert.equal(await again.ask("web.default.example.org."), "192.0.2.3");
  assert.equal(await again.ask("new.default.example.org."), "SERVFAIL");
  // The address may belong to another pod now.
  assert.equal(await again.ask(typed, "10.0.0.1"), "SERVFAIL");
  assert.equal(await again.ask("web.default.svc.cluster.local.", "10.0.0.1"), "10.96.0.1");
});
