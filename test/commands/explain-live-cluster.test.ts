/** `portolan explain` for a Corefile whose cluster is a live one. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { loadManifests } from "../support/kubernetes-api/control-plane.ts";
import { CredentialsFolder, kubeconfigText } from "../support/kubernetes-api/credentials-folder.ts";
import { projectRoot, runPortolan } from "../support/portolan.ts";

function corefile(source: string): string {
  return [
    "cluster.local:53 {",
    `  kubernetes cluster.local {\n    ${source}\n  }`,
    "}",
    "example.org:53 {",
    "  whoami",
    "}",
  ].join("\n");
}

function explain(source: string, ...args: readonly string[]) {
  return runPortolan(["explain", "-conf", "stdin", ...args], { input: corefile(source) });
}

describe("portolan explain with a live cluster", { concurrency: 2 }, () => {
  let api: ApiSimulator;

  before(async () => {
    api = await ApiSimulator.start();
    loadManifests(api, join(projectRoot, "test", "fixtures", "kubernetes"));
    api.put("pods", {
      metadata: { name: "plain", namespace: "shop" },
      spec: {
        dnsPolicy: "ClusterFirst",
        dnsConfig: { searches: ["corp.example"], options: [{ name: "ndots", value: "2" }] },
      },
      status: { podIP: "10.244.7.7", podIPs: [{ ip: "10.244.7.7" }], phase: "Running" },
    });
    api.put("pods", {
      metadata: { name: "of-the-node", namespace: "shop" },
      spec: { dnsPolicy: "Default" },
      status: { podIP: "10.244.7.8", phase: "Running" },
    });
  });
  after(() => api.close());

  test("lists it, and says how fresh it is and why a name is not there", async () => {
    const { code, output, errors } = await explain(`endpoint ${api.url}`, "web.default.svc.cluster.local");
    assert.deepEqual([code, errors], [0, ""]);
    assert.match(
      output,
      /kubernetes +answers NXDOMAIN.*\n +- last message from the Kubernetes API: [\d.]+ s ago\n/,
    );
    assert.match(output, /- Service web exists in namespace shop, not in default\n/);
  });

  test("reads the one pod that asks, with its dnsConfig", async () => {
    using folder = new CredentialsFolder();
    const file = folder.write("config", kubeconfigText({ server: api.url }, {}));
    const { code, output, errors } = await explain(`kubeconfig ${file}`, "web.shop", "-from", "shop/plain");
    assert.deepEqual([code, errors], [0, ""]);
    assert.match(output, /^pod shop\/plain at 10\.244\.7\.7, glibc\n/);
    assert.match(
      output,
      /search +shop\.svc\.\S+ svc\.cluster\.local cluster\.local corp\.example\n +ndots +2\n/,
    );
    assert.match(output, / 2\. web\.shop\.svc\.cluster\.local\. {2}NOERROR, 1 record/);
    assert.doesNotMatch(output, /assumed/);
    const asked = api.requests
      .filter(({ resource }) => resource === "pods")
      .map(({ verb, path }) => [verb, path]);
    assert.deepEqual(asked, [["get", "/api/v1/namespaces/shop/pods/plain"]]);
  });

  test("says that a pod does not come here, or is not there", async () => {
    const node = await explain(`endpoint ${api.url}`, "web", "-from", "shop/of-the-node");
    assert.deepEqual([node.code, node.output], [2, ""]);
    assert.match(
      node.errors,
      /uses the resolver of its node and not the cluster's: its dnsPolicy is Default\n$/,
    );
    const none = await explain(`endpoint ${api.url}`, "web", "-from", "shop/absent");
    assert.equal(none.errors, "-from shop/absent: the cluster has no such pod\n");
    const nowhere = await explain(`endpoint ${api.url}`, "web", "-from", "nowhere/nobody");
    assert.match(nowhere.errors, /has no such pod; nor does this Corefile select a namespace nowhere\n$/);
  });
});

test("without the right to read pods, the pod is taken for one like most", async () => {
  await using api = await ApiSimulator.start();
  loadManifests(api, join(projectRoot, "test", "fixtures", "kubernetes"));
  api.permits = ({ resource }) => resource !== "pods";
  const { code, output } = await explain(`endpoint ${api.url}`, "web", "-from", "shop/web-a");
  assert.equal(code, 0);
  assert.match(output, /assumed +dnsPolicy ClusterFirst and no dnsConfig, asked from 127\.0\.0\.1\n/);
  assert.match(
    output,
    / +pod shop\/web-a: no right to read it \(403 Forbidden\): the verb get on resource "pods"/,
  );
  assert.match(output, / 1\. web\.shop\.svc\.cluster\.local\. {2}NOERROR/);
});

test("a cluster that does not answer is not waited for without end, and other zones are explained", async () => {
  const api = await ApiSimulator.start();
  await api.close();
  const source = `endpoint ${api.url}\n    startup_timeout 200ms`;
  // Long enough to hear why there is no answer, also on a machine that has much to do.
  const patient = `endpoint ${api.url}\n    startup_timeout 5s`;
  const { code, output, errors } = await explain(patient, "web.shop.svc.cluster.local");
  assert.equal(code, 0);
  assert.match(
    errors,
    /^the cluster has not been listed within \d[^:]*: namespaces \(.*nothing listens at http/,
  );
  assert.match(errors, /or give -manifests PATH, which replaces the cluster\n$/);
  assert.match(output, /kubernetes +answers SERVFAIL.*\n +- not listed yet: namespaces/);
  const other = await explain(source, "app.example.org");
  assert.match(other.output, /answer +NODATA, from whoami/);
  const pod = await explain(source, "web", "-from", "shop/web-a");
  assert.equal(pod.code, 2);
  assert.match(pod.errors, /-from shop\/web-a: pod shop\/web-a: nothing listens at http.*\n$/);
});

test("outside of a cluster it says what to do", async () => {
  const { code, errors } = await explain("ttl 5", "web.shop.svc.cluster.local");
  assert.equal(code, 2);
  assert.match(errors, /: error: in-cluster configuration: [\s\S]* -manifests PATH, .* -server ADDR\n$/);
});
