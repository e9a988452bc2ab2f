/** The simulated API is a fair stand-in for a real one: kubectl takes it for an API server. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { CertificateAuthority } from "../support/certificates.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { Kubectl, skipWithoutKubectl } from "../support/kubernetes-api/kubectl.ts";

function serviceManifest(clusterIP: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", namespace: "default" },
    spec: { clusterIP, ports: [{ name: "http", port: 80 }] },
  });
}

describe("kubectl takes the simulated API for a real one", { skip: skipWithoutKubectl }, () => {
  const authority = new CertificateAuthority();
  const folder = mkdtempSync(join(tmpdir(), "portolan-api-"));
  const caFile = join(folder, "ca.crt");
  let api: ApiSimulator;
  let kubectl: Kubectl;

  before(async () => {
    writeFileSync(caFile, authority.certificate);
    api = await ApiSimulator.start({
      tls: authority.issue({ commonName: "api", hosts: ["127.0.0.1"] }),
      http2: true,
    });
    api.admits = ({ authorization }) => authorization === "Bearer secret";
    kubectl = new Kubectl([`--server=${api.url}`, "--token=secret", `--certificate-authority=${caFile}`]);
  });

  after(async () => {
    kubectl[Symbol.dispose]();
    await api.close();
    rmSync(folder, { recursive: true });
  });

  it("applies, changes, shows and deletes objects", async () => {
    const apply = ["apply", "--validate=false", "-f", "-"];
    assert.match(await kubectl.run(apply, serviceManifest("10.96.0.20")), /service\/web created/);
    assert.match(
      await kubectl.run(["get", "services"]),
      /^NAME +TYPE +CLUSTER-IP +AGE\nweb +ClusterIP +10\.96\.0\.20 /,
    );
    assert.match(await kubectl.run(apply, serviceManifest("10.96.0.21")), /service\/web configured/);
    assert.match(await kubectl.run(apply, serviceManifest("10.96.0.21")), /service\/web unchanged/);
    assert.match(
      await kubectl.run(["get", "svc", "web", "-o", "jsonpath={.spec.clusterIP}"]),
      /^10\.96\.0\.21$/,
    );
    assert.match(await kubectl.run(["label", "service", "web", "tier=front"]), /labeled/);
    assert.match(
      await kubectl.run(["get", "services", "-A", "-l", "tier=front", "-o", "name"]),
      /^service\/web$/m,
    );
    assert.equal(await kubectl.run(["get", "services", "-A", "-l", "tier!=front", "-o", "name"]), "");
    assert.match(await kubectl.run(["delete", "service", "web"]), /"web" deleted/);
    await assert.rejects(kubectl.run(["get", "service", "web"]), /NotFound/);
  });

  it("knows its kinds and their short names", async () => {
    const resources = await kubectl.run(["api-resources", "-o", "name"]);
    assert.deepEqual(resources.trim().split("\n").sort(), [
      "configmaps",
      "endpoints",
      "endpointslices.discovery.k8s.io",
      "namespaces",
      "nodes",
      "pods",
      "serviceentries.networking.istio.io",
      "serviceimports.multicluster.x-k8s.io",
      "services",
    ]);
    assert.match(await kubectl.run(["get", "ns"]), /^default .*\nkube-system /m);
  });

  it("reports changes to get --watch", async () => {
    await using watch = kubectl.start(["get", "namespaces", "--watch", "--output-watch-events"]);
    await watch.waitForOutput(/ADDED +kube-system/);
    await kubectl.run(["create", "namespace", "shop"]);
    await watch.waitForOutput(/ADDED +shop/);
    await kubectl.run(["delete", "namespace", "shop"]);
    await watch.waitForOutput(/DELETED +shop/);
  });

  it("turns away whoever has no right", async () => {
    api.permits = ({ resource }) => resource !== "pods";
    await assert.rejects(kubectl.run(["get", "pods", "-A"]), /Forbidden.*cannot list resource "pods"/);
    api.permits = () => true;
    api.admits = () => false;
    await assert.rejects(kubectl.run(["get", "pods", "-A"]), /logged in|Unauthorized/);
  });
});

describe("a custom resource", () => {
  const path = "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/default/serviceimports";
  const PROTOBUF = "application/vnd.kubernetes.protobuf";

  it("is available as JSON only", async () => {
    await using api = await ApiSimulator.start();
    const get = (accept: string) => fetch(`${api.url}${path}`, { headers: { accept } });
    assert.equal((await get(PROTOBUF)).status, 406);
    for (const accept of [`${PROTOBUF},application/json`, "application/json", "*/*"]) {
      const response = await get(accept);
      assert.deepEqual(
        [response.status, response.headers.get("content-type")],
        [200, "application/json"],
        accept,
      );
    }
  });

  it("is taken as JSON alone", async () => {
    await using api = await ApiSimulator.start();
    const post = (type: string) =>
      fetch(`${api.url}${path}`, {
        method: "POST",
        headers: { "content-type": type },
        body: JSON.stringify({ metadata: { name: "a" } }),
      });
    assert.equal((await post(PROTOBUF)).status, 415);
    assert.equal((await post("application/json")).status, 201);
  });
});
