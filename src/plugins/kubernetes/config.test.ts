import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import kubernetes from "./index.ts";

function make(options: string[], zones = "cluster.local in-addr.arpa") {
  return PluginTest.of(kubernetes, `kubernetes ${zones} {\n${options.join("\n")}\n}`);
}

describe("refuses", () => {
  const manifests = "manifests x";
  const cases: [title: string, options: string[], message: RegExp, zones?: string][] = [
    ["reverse zones alone", [manifests], /non-reverse zone name must be used/, "10.in-addr.arpa"],
    ["an endpoint that is no URL", ["endpoint ftp://api"], /"ftp:\/\/api" is not the URL of an API server/],
    ["an unknown option", [manifests, "resyncperiod 5m"], /unknown property 'resyncperiod'/],
    ["manifests without a path", ["manifests"], /unexpected line ending after 'manifests'/],
    [
      "a strange word for pods",
      [manifests, "pods all"],
      /wrong value for pods: all, {2}must be one of: disabled, verified, insecure/,
    ],
    ["a TTL too long", [manifests, "ttl 3601"], /ttl must be in range \[0, 3600\]: 3601/],
    ["a TTL below 0", [manifests, "ttl -1"], /ttl must be in range \[0, 3600\]: -1/],
    ["ignoring something else", [manifests, "ignore all"], /unable to parse ignore value: 'all'/],
    [
      "two ways to choose namespaces",
      [manifests, "namespaces a", "namespace_labels b=c"],
      /namespaces and namespace_labels cannot both be set/,
    ],
    [
      "zonal names without endpoints",
      [manifests, "zonal", "noendpoints"],
      /zonal requires the endpoint cache; remove noendpoints/,
    ],
    [
      "a bad label selector",
      [manifests, "labels app in web"],
      /unable to parse label selector value: 'app in web'/,
    ],
    [
      "a multicluster zone of another server",
      [manifests, "multicluster clusterset.local"],
      /is not authoritative for the multicluster zone clusterset\.local\. \(authoritative zones: \[cluster\.local\./,
    ],
    ["arguments to a flag", [manifests, "noendpoints yes"], /Wrong argument count/],
    ["two arguments to tls", [manifests, "tls a b"], /Wrong argument count/],
    [
      "a staleness of nothing",
      [manifests, "max_staleness 0s"],
      /max_staleness '0s' is not a duration above 0/,
    ],
    ["a strange timeout", [manifests, "startup_timeout soon"], /failed to parse startup_timeout/],
    ["a negative limit", [manifests, "apiserver_qps -1"], /apiserver_qps must be >= 0/],
    ["a limit that is no number", [manifests, "apiserver_burst x"], /invalid apiserver_burst "x"/],
  ];
  for (const [title, options, message, zones] of cases) {
    it(title, () => {
      assert.throws(
        () => make(options, zones),
        (error) => error instanceof ConfigRefused && message.test(error.message),
      );
    });
  }
});

it("accepts every option of a cluster's Corefile, and warns about those without an effect", () => {
  const { warnings } = make([
    ...["manifests x", "endpoint https://10.0.0.1:6443", "tls cert key ca"],
    ...["kubeconfig file context", "apiserver_qps 20", "apiserver_burst 40", "apiserver_max_inflight 100"],
    ...["namespaces default kube-system", "labels app in (a, b),tier", "pods verified", "endpoint_pod_names"],
    ...["ttl 30", "fallthrough in-addr.arpa", "ignore empty_service", "zonal", "startup_timeout 10s"],
    ...["multicluster Cluster.Local"],
  ]);
  assert.equal(warnings.length, 3);
  for (const option of ["endpoint", "tls", "kubeconfig"]) {
    assert.ok(warnings.some((text) => text.includes(`'${option}' has no effect beside 'manifests'`)));
  }
});

describe("says which of several clusters counts", () => {
  const endpoint = "endpoint https://10.0.0.1:6443";
  const cases: [options: string[], warnings: RegExp[]][] = [
    [[], []],
    [[endpoint, "tls a b c"], []],
    [
      [`${endpoint} https://10.0.0.2:6443`],
      [/write 'endpoint https:\/\/10\.0\.0\.1:6443', or the address of/],
    ],
    [["tls a b c"], [/'tls' has no effect without 'endpoint'/]],
    [["kubeconfig f", "snapshot s"], []],
    [["manifests m", "snapshot s"], [/'snapshot' has no effect beside 'manifests'/]],
    [
      [endpoint, "tls a b c", "kubeconfig f c"],
      [/'endpoint' has no effect beside 'kubeconfig'/, /'tls' has no effect beside 'kubeconfig'/],
    ],
  ];
  for (const [options, expected] of cases) {
    it(options.join("; ") || "nothing", () => {
      const { warnings } = make(options);
      assert.equal(warnings.length, expected.length, warnings.join());
      for (const [at, pattern] of expected.entries()) assert.match(warnings[at] ?? "", pattern);
    });
  }
});
