import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Rcode } from "../../dns/numbers.ts";
import { PluginTest } from "../../plugin/testing.ts";
import kubernetes from "./index.ts";

const service = (namespace: string, name: string, spec: object) =>
  JSON.stringify({ apiVersion: "v1", kind: "Service", metadata: { namespace, name }, spec });

const CLUSTER = {
  "a.json": '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}',
  "b.json": '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"b"}}',
  "web-a.json": service("a", "web", {
    clusterIP: "10.0.0.1",
    ports: [{ name: "http", port: 80, protocol: "TCP" }],
  }),
  "web-b.json": service("b", "web", {
    clusterIP: "10.0.0.2",
    ports: [{ name: "http", port: 81, protocol: "TCP" }],
  }),
  "dns-b.json": service("b", "dns", {
    clusterIP: "10.0.0.3",
    ports: [{ name: "dns", port: 53, protocol: "UDP" }],
  }),
  "db.json": service("a", "db", { clusterIP: "None", ports: [{ name: "sql", port: 3306, protocol: "TCP" }] }),
  "slice.json": JSON.stringify({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { namespace: "a", name: "db-1", labels: { "kubernetes.io/service-name": "db" } },
    addressType: "IPv4",
    endpoints: [{ addresses: ["172.16.0.1"], hostname: "db-0" }, { addresses: ["172.16.0.2"] }],
    ports: [{ name: "sql", port: 3306, protocol: "TCP" }],
  }),
};

function makeTree(t: TestContext, files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "portolan-wildcards-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

test("labels * and any stand for every label", async (t) => {
  const folder = makeTree(t, CLUSTER);
  const plugin = PluginTest.of(
    kubernetes,
    `kubernetes cluster.local {\n manifests ${folder}\n pods insecure\n wildcards\n}`,
  );
  await plugin.start();
  t.after(() => plugin.stop());
  const ask = async (name: string, type = "A") => {
    const answer = await plugin.ask({ name: `${name}.cluster.local.`, type });
    return {
      rcode: answer.rcode,
      answer: answer.answer.map((record) => record.replace(/^\S+ 5 IN /, "")).toSorted(),
      additional: answer.additional,
    };
  };
  for (const label of ["*", "any", "ANY"]) {
    assert.deepEqual((await ask(`web.${label}.svc`)).answer, ["A 10.0.0.1", "A 10.0.0.2"]);
    assert.deepEqual((await ask(`${label}.b.svc`)).answer, ["A 10.0.0.2", "A 10.0.0.3"]);
  }
  assert.deepEqual((await ask("*.*.svc")).answer, [
    "A 10.0.0.1",
    "A 10.0.0.2",
    "A 10.0.0.3",
    "A 172.16.0.1",
    "A 172.16.0.2",
  ]);
  assert.deepEqual((await ask("*.db.a.svc")).answer, ["A 172.16.0.1", "A 172.16.0.2"]);
  assert.deepEqual((await ask("db-0.*.a.svc")).answer, ["A 172.16.0.1"]);
  assert.deepEqual((await ask("1-2-3-4.*.pod")).answer, ["A 1.2.3.4"]);
  const ports = await ask("_http._tcp.web.*.svc", "SRV");
  assert.deepEqual(ports.answer, [
    "SRV 0 50 80 web.a.svc.cluster.local.",
    "SRV 0 50 81 web.b.svc.cluster.local.",
  ]);
  assert.equal(ports.additional.length, 2);
  assert.deepEqual((await ask("*._udp.*.b.svc", "SRV")).answer, ["SRV 0 100 53 dns.b.svc.cluster.local."]);
  assert.deepEqual((await ask("any.any.db.a.svc", "SRV")).answer.length, 2);
  assert.equal((await ask("web.*.svc", "AAAA")).rcode, Rcode.NOERROR);
  assert.equal((await ask("nope.*.svc")).rcode, Rcode.NXDOMAIN);
  const { answer } = await plugin.ask({ name: "web.*.svc.cluster.local." });
  assert.equal(answer[0], "web.*.svc.cluster.local. 5 IN A 10.0.0.1");
});

test("without the option they are ordinary labels", async (t) => {
  const plugin = PluginTest.of(
    kubernetes,
    `kubernetes cluster.local {\n manifests ${makeTree(t, CLUSTER)}\n}`,
  );
  await plugin.start();
  t.after(() => plugin.stop());
  for (const name of ["web.*.svc", "*.b.svc", "any.db.a.svc"])
    assert.equal((await plugin.ask({ name: `${name}.cluster.local.` })).rcode, Rcode.NXDOMAIN);
});
