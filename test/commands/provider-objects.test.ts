/** `portolan check` and `migrate` with the objects in which providers have their DNS configured. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { runPortolan } from "../support/portolan.ts";

const env = { NO_COLOR: "1" };

const OPENSHIFT = `apiVersion: operator.openshift.io/v1
kind: DNS
metadata:
  name: default
spec:
  logLevel: Debug
  servers:
  - name: office
    zones:
    - office.example
    - corp.example
    forwardPlugin:
      policy: RoundRobin
      upstreams:
      - 192.0.2.1
      - 192.0.2.2:5353
  - name: secret
    zones: [secret.example]
    forwardPlugin:
      transportConfig:
        transport: TLS
        tls:
          serverName: dns.secret.example
      upstreams: [192.0.2.9]
  upstreamResolvers:
    policy: Random
    upstreams:
    - type: SystemResolvConf
    - type: Network
      address: 2001:db8::3
      port: 5300
  cache:
    positiveTTL: 1h
    negativeTTL: 0s
status:
  clusterDomain: cluster.example
`;

const MIGRATED = `office.example corp.example {
    forward . 192.0.2.1 192.0.2.2:5353 {
        policy round_robin
    }
    errors
    log . {
        class denial error
    }
    bufsize 1232
    cache 3600 {
        denial 9984 30
    }
}

secret.example {
    forward . tls://192.0.2.9 {
        tls_servername dns.secret.example
        policy random
    }
    errors
    log . {
        class denial error
    }
    bufsize 1232
    cache 3600 {
        denial 9984 30
    }
}

. {
    bufsize 1232
    errors
    log . {
        class denial error
    }
    health {
        lameduck 20s
    }
    ready
    kubernetes cluster.example in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    prometheus :9153
    forward . /etc/resolv.conf [2001:db8::3]:5300 {
        policy random
    }
    cache 3600 {
        denial 9984 30
    }
    reload
}

hostname.bind {
    chaos
}
`;

test("the DNS object of OpenShift becomes a Corefile", async (t) => {
  const cwd = makeTree(t, { "dns.yaml": OPENSHIFT });
  const { code, output, errors } = await runPortolan(["migrate", "dns.yaml"], { cwd, env });
  assert.deepEqual([code, output, errors], [0, MIGRATED, ""]);
  assert.equal((await runPortolan(["check", "-no-files", "dns.yaml"], { cwd, env })).code, 0);
});

test("an empty DNS object of OpenShift has the defaults of its operator", async (t) => {
  const text = "apiVersion: operator.openshift.io/v1\nkind: DNS\nmetadata:\n  name: default\n";
  const cwd = makeTree(t, { "dns.yaml": text });
  const { code, output } = await runPortolan(["migrate", "dns.yaml"], { cwd, env });
  assert.equal(code, 0);
  assert.match(output, /^\. \{$/m);
  assert.match(output, /^ {4}forward \. \/etc\/resolv\.conf \{\n {8}policy sequential$/m);
  assert.match(output, /^ {4}cache 900 \{\n {8}denial 9984 30$/m);
  assert.match(output, /^ {8}class error$/m);
  assert.match(output, /^ {4}kubernetes cluster\.local /m);
});

test("a fault in the DNS object of OpenShift is reported at its line", async (t) => {
  const cwd = makeTree(t, { "dns.yaml": OPENSHIFT.replace("192.0.2.2:5353", "192.0.2.2:x") });
  const { code, output } = await runPortolan(["check", "-no-files", "dns.yaml"], { cwd, env });
  assert.equal(code, 1);
  assert.match(
    output,
    /^dns\.yaml:16:9: error: not an IP address, file, or valid domain: "192\.0\.2\.2:x"$/m,
  );
});

for (const [title, from, to, message] of [
  [
    "TLS without a name",
    "          serverName: dns.secret.example\n",
    "          caBundle: {name: ca}\n",
    /servers\[1\]\.forwardPlugin\.transportConfig\.tls: 'serverName' is missing/,
  ],
  [
    "an address that is missing",
    "      address: 2001:db8::3\n",
    "",
    /upstreamResolvers\.upstreams\[1\]: 'address' is missing/,
  ],
  [
    "another policy",
    "policy: Random",
    "policy: Best",
    /upstreamResolvers\.policy: one of Random, RoundRobin, Sequential/,
  ],
  [
    "a TTL that is not a duration",
    "positiveTTL: 1h",
    "positiveTTL: long",
    /cache\.positiveTTL: a duration such as '1h'/,
  ],
] as const) {
  test(`the DNS object of OpenShift is refused with ${title}`, async (t) => {
    const cwd = makeTree(t, { "dns.yaml": OPENSHIFT.replace(from, to) });
    for (const command of ["check", "migrate"]) {
      const { code, output, errors } = await runPortolan([command, "dns.yaml"], { cwd, env });
      assert.equal(code, 2);
      assert.match(`${output}${errors}`, /^dns\.yaml: /m);
      assert.match(`${output}${errors}`, message);
    }
  });
}

const COREFILE = ".:53 {\n    errors\n    forwrad . 192.0.2.53\n}\n";
const indented = (spaces: number): string => COREFILE.replaceAll(/^(?=.)/gm, " ".repeat(spaces));

for (const [title, file, text, place] of [
  [
    "the cluster of kops",
    "cluster.yaml",
    `apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nspec:\n  kubeDNS:\n    provider: CoreDNS\n    externalCoreFile: |\n${indented(6)}`,
    "cluster.yaml:9:11",
  ],
  [
    "the configuration of the add-on of EKS, in YAML",
    "values.yaml",
    `replicaCount: 3\ncorefile: |\n${indented(2)}`,
    "values.yaml:5:7",
  ],
  [
    "the configuration of the add-on of EKS, in JSON",
    "values.json",
    JSON.stringify({ replicaCount: 3, corefile: COREFILE }),
    "values.json (Corefile):3:5",
  ],
  [
    "a HelmRelease of Flux",
    "release.yaml",
    "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec:\n  values:\n    servers:\n    - zones: [{zone: .}]\n      port: 53\n      plugins:\n      - name: errors\n      - name: forwrad\n        parameters: . 192.0.2.53\n",
    "release.yaml:10:15",
  ],
  [
    "a HelmChartConfig of RKE2",
    "config.yaml",
    "apiVersion: helm.cattle.io/v1\nkind: HelmChartConfig\nmetadata:\n  name: rke2-coredns\nspec:\n  valuesContent: |-\n    servers:\n    - zones: [{zone: .}]\n      port: 53\n      plugins:\n      - name: forwrad\n        parameters: . 192.0.2.53\n",
    "config.yaml:11:15",
  ],
] as const) {
  test(`${title}: a fault is reported at its place, and the Corefile is migrated`, async (t) => {
    const good = text.replace("forwrad", "forward");
    const cwd = makeTree(t, { [file]: text, [`good-${file}`]: good });
    const checked = await runPortolan(["check", file], { cwd, env });
    assert.equal(checked.code, 1, checked.errors);
    assert.ok(checked.output.startsWith(`${place}: error: Unknown directive 'forwrad'`), checked.output);
    const migrated = await runPortolan(["migrate", "-from", "1.6.9", `good-${file}`], { cwd, env });
    assert.equal(migrated.code, 0, migrated.errors);
    assert.match(migrated.output, /^ *forward \. 192\.0\.2\.53 \{\n *max_concurrent 1000\n/m);
  });
}
