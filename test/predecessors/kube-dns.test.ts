/** `portolan kube-dns` with the flags, sources and pages of kube-dns (docs/spec/kube-dns.md#kube-dns). */
import assert from "node:assert/strict";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { dig } from "../support/dig.ts";
import { queryOctets, UdpClient } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { kubeconfigText } from "../support/kubernetes-api/credentials-folder.ts";
import { Peer } from "../support/peers.ts";
import { portolan, runPortolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const web = {
  metadata: { name: "web", namespace: "default" },
  spec: { clusterIP: "10.0.0.10", ports: [{ name: "http", port: 80, protocol: "TCP" }] },
};
const KUBERNETES = "kubernetes.default.svc.cluster.local";

async function start(words: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const [port, health] = [await freePort(), await freePort()];
  const program = portolan(
    [
      "kube-dns",
      "--dns-bind-address=127.0.0.1",
      `--dns_port=${port}`,
      `--healthz-port=${health}`,
      "--v=2",
      ...words,
    ],
    { env },
  );
  const server = { address: "127.0.0.1", port };
  const page = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${health}${path}`);
    return { status: response.status, body: await response.text() };
  };
  const isReady = () =>
    page("/readiness").then(
      ({ status, body }) => status === 200 && body === "ok\n",
      () => false,
    );
  const lines = async (name: string, type = "A") => (await dig(server, name, type)).answer;
  return { program, server, page, isReady, lines };
}

test("kube-dns follows its ConfigMap, and loses no query", {
  skip: skipWithout("dig", "dnsmasq"),
}, async () => {
  await using stub = await Peer.dnsmasq(["address=/abc.acme.local/192.0.2.1"]);
  await using upstream = await Peer.dnsmasq([
    "address=/widget.local/192.0.2.2",
    "ptr-record=9.9.9.9.in-addr.arpa,nine.example",
    "address=/example.com/192.0.2.53",
  ]);
  await using api = await ApiSimulator.start();
  api.put("services", {
    metadata: { name: "kubernetes", namespace: "default" },
    spec: { clusterIP: "10.0.0.1" },
  });
  api.put("services", web);
  api.put("services", {
    metadata: { name: "out", namespace: "default" },
    spec: { type: "ExternalName", externalName: "www.example.com" },
  });
  api.put("nodes", {
    metadata: {
      name: "n",
      labels: {
        "failure-domain.beta.kubernetes.io/zone": "z",
        "failure-domain.beta.kubernetes.io/region": "r",
      },
    },
  });
  // Old clusters gave kube-dns no right to look at namespaces, pods and slices.
  api.permits = ({ resource }) => ["services", "endpoints", "nodes", "configmaps"].includes(resource);
  await api.close();
  const metrics = await freePort();
  const kube = await start(["--config-map=kube-dns", `--kube-master-url=${api.url}`], {
    PROMETHEUS_PORT: String(metrics),
  });
  await using program = kube.program;
  await untilTrue(() =>
    dig(kube.server, KUBERNETES).then(
      ({ status }) => status === "REFUSED",
      () => false,
    ),
  );
  assert.equal((await dig(kube.server, "www.example.com")).status, "REFUSED");
  await assert.rejects(kube.page("/readiness"), "a refused connection means not ready");
  await api.open();
  await untilTrue(kube.isReady);
  assert.deepEqual(await kube.lines(KUBERNETES), [`${KUBERNETES}. 30 IN A 10.0.0.1`]);
  assert.equal((await dig(kube.server, KUBERNETES, "+tcp")).answer.length, 1);

  // A client queries all the time.
  await using client = await UdpClient.connect(kube.server);
  let isOver = false;
  let asked = 0;
  const asking = (async () => {
    while (!isOver) {
      asked++;
      client.send(queryOctets(`${KUBERNETES}.`, "A", asked & 0xffff));
      assert.ok(await client.receive(10_000), "a query was lost");
      await pause(1);
    }
  })();
  const put = (data: object) =>
    api.put("configmaps", { metadata: { name: "kube-dns", namespace: "kube-system" }, data });
  put({
    stubDomains: JSON.stringify({ "acme.local": [`127.0.0.1:${stub.port}`] }),
    upstreamNameservers: JSON.stringify([`127.0.0.1:${upstream.port}`]),
  });
  // Another ConfigMap of the namespace is none of its business.
  api.put("configmaps", {
    metadata: { name: "other", namespace: "kube-system" },
    data: { stubDomains: "{}" },
  });
  await untilTrue(async () => (await kube.lines("abc.acme.local")).length === 1);
  assert.deepEqual(await kube.lines("widget.local"), ["widget.local. 0 IN A 192.0.2.2"]);
  assert.match((await kube.lines("9.9.9.9.in-addr.arpa", "PTR")).join(), /PTR nine\.example\.$/);
  assert.match(
    (await kube.lines("10.0.0.10.in-addr.arpa", "PTR")).join(),
    /PTR web\.default\.svc\.cluster\.local\.$/,
  );
  assert.deepEqual(
    (await kube.lines("out.default.svc.cluster.local")).map((record) => record.replace(/ \d+ IN/, "")),
    ["out.default.svc.cluster.local. CNAME www.example.com.", "www.example.com. A 192.0.2.53"],
  );

  // Federations: there, another, and one that is not valid leaves the last one in force.
  const federated = "nosuch.default.fed.svc.cluster.local";
  const aliasTo = (domain: string) => `${federated}. 0 IN CNAME nosuch.default.fed.svc.z.r.${domain}.`;
  const upstreamNameservers = JSON.stringify([`127.0.0.1:${upstream.port}`]);
  put({ federations: "fed=example.com", upstreamNameservers });
  await untilTrue(async () => (await kube.lines(federated))[0] === aliasTo("example.com"));
  assert.deepEqual(await kube.lines("abc.acme.local"), []);
  put({ federations: "fed=sub.example.com", upstreamNameservers });
  await untilTrue(async () => (await kube.lines(federated))[0] === aliasTo("sub.example.com"));
  put({ federations: "fed.dotted=example.com", upstreamNameservers });
  await untilTrue(async () =>
    /configuration: it is not valid, keeping the previous one: federations: 'fed\.dotted' is not a label/.test(
      program.errors,
    ),
  );
  assert.equal((await kube.lines(federated))[0], aliasTo("sub.example.com"));
  const here = "web.default.fed.svc.cluster.local";
  api.put("endpoints", {
    metadata: { name: "web", namespace: "default" },
    subsets: [{ addresses: [{ ip: "172.16.0.1" }], ports: [{ name: "http", port: 80, protocol: "TCP" }] }],
  });
  await untilTrue(
    async () => (await kube.lines(here))[0] === `${here}. 0 IN CNAME web.default.svc.cluster.local.`,
  );
  assert.equal((await kube.lines(here)).length, 2);
  api.delete("configmaps", "kube-system", "kube-dns");
  await untilTrue(async () => (await dig(kube.server, federated)).status === "NXDOMAIN");
  isOver = true;
  await asking;
  assert.ok(asked > 100);

  const cache = await kube.page("/cache");
  assert.equal(cache.status, 200);
  const tree = JSON.parse(cache.body);
  assert.deepEqual(
    tree.ChildNodes.local.ChildNodes.cluster.ChildNodes.svc.ChildNodes.default.ChildNodes.web.Entries,
    {
      "32643961613639": { host: "10.0.0.10", priority: 10, weight: 10, ttl: 30 },
    },
  );
  assert.equal((await kube.page("/healthz")).status, 404);
  const exposed = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
  assert.match(exposed, /^skydns_skydns_dns_request_count_total\{system="auth"\} [1-9]\d\d+$/m);
  assert.match(exposed, /^skydns_skydns_dns_request_count_total\{system="stub"\} [1-9]/m);
  assert.match(exposed, /^skydns_skydns_dns_error_count_total\{system="auth",cause="refused"\} [1-9]/m);
  assert.match(exposed, /^skydns_skydns_dns_response_size_bytes_count\{system="recursive"\} [1-9]/m);
  assert.deepEqual(await program.stop(), { code: 0, signal: null }, program.errors);
});

test("kube-dns follows its folder", {
  skip: skipWithout("dig", "dnsmasq"),
}, async (t) => {
  await using upstream = await Peer.dnsmasq(["ptr-record=9.9.9.9.in-addr.arpa,nine.example"]);
  const manifests = makeTree(t, {
    "web.json": JSON.stringify({ apiVersion: "v1", kind: "Service", ...web }),
  });
  const folder = makeTree(t, { upstreamNameservers: `["127.0.0.1:${await freePort()}"]`, ".hidden": "\xff" });
  const kube = await start([
    `--config-dir=${folder}`,
    "--config-period=20ms",
    `--manifests=${manifests}`,
    "--domain=my.zone.",
  ]);
  await using program = kube.program;
  await untilTrue(kube.isReady);
  assert.equal((await kube.lines("web.default.svc.my.zone")).length, 1);
  assert.equal((await dig(kube.server, "9.9.9.9.in-addr.arpa", "PTR")).status, "SERVFAIL");
  writeFileSync(join(folder, "upstreamNameservers"), `["127.0.0.1:${upstream.port}"]`);
  await untilTrue(async () => (await kube.lines("9.9.9.9.in-addr.arpa", "PTR")).length === 1);
  writeFileSync(join(folder, "stubDomains"), '{"$$$$":["1.2.3.4"]}');
  await untilTrue(async () =>
    /keeping the previous one: stubDomains: '\$\$\$\$' is not a domain/.test(program.errors),
  );
  assert.equal((await kube.lines("9.9.9.9.in-addr.arpa", "PTR")).length, 1);
  writeFileSync(join(folder, "stubDomains"), Buffer.of(0x7b, 0x7d, 0xff));
  await untilTrue(async () => /stubDomains is not UTF-8/.test(program.errors));
  // At once: a folder that is empty for a moment is a configuration without upstreams.
  renameSync(folder, `${folder}-gone`);
  t.after(() => rmSync(`${folder}-gone`, { recursive: true }));
  await untilTrue(async () => /configuration: ENOENT/.test(program.errors));
  assert.equal((await kube.lines("9.9.9.9.in-addr.arpa", "PTR")).length, 1);
  assert.equal(program.errors.match(/is not a domain/g)?.length, 1, "said once");
  assert.deepEqual(await program.stop(), { code: 0, signal: null });
});

for (const [words, code, message] of [
  [["--domain=Upper.case"], 2, /^invalid argument "Upper\.case" for "--domain" flag: each label/],
  [
    ["--nameservers=a.example"],
    2,
    /^invalid argument "a\.example" for "--nameservers" flag: 'a\.example' is not an address/,
  ],
  [
    ["--kube-master-url=here"],
    2,
    /^invalid argument "here" for "--kube-master-url" flag: a URL with scheme and host/,
  ],
  [["--config-period=soon"], 2, /^invalid argument "soon" for "--config-period" flag/],
  [
    ["--federations=a.b=c"],
    2,
    /^invalid argument "a\.b=c" for "--federations" flag: federations: 'a\.b' is not a label/,
  ],
  [["--config-map=a", "--config-dir=b"], 255, /^cannot use both ConfigMap and ConfigDir\n$/],
  [["--kubecfg-file=/nowhere", "--config-map=x"], 255, /kubeconfig \/nowhere: /],
] as const) {
  test(`kube-dns ${words.join(" ")} ends with ${code} and says why`, async () => {
    const ending = await runPortolan(["kube-dns", ...words]);
    assert.equal(ending.code, code, ending.errors);
    assert.match(ending.errors, message);
  });
}

test("kube-dns finds the API by --kube-master-url, whatever the kubeconfig says", async (t) => {
  await using api = await ApiSimulator.start();
  api.put("services", web);
  const server = `http://127.0.0.1:${await freePort()}`;
  const folder = makeTree(t, { config: kubeconfigText({ server }, {}) });
  const kube = await start([`--kubecfg-file=${folder}/config`, `--kube-master-url=${api.url}`]);
  await using program = kube.program;
  await untilTrue(kube.isReady);
  assert.equal((await kube.lines("web.default.svc.cluster.local")).length, 1, program.describe());
});

test("kube-dns gives up on a cluster that does not come", async () => {
  const [port, health] = [await freePort(), await freePort()];
  const ending = await runPortolan([
    "kube-dns",
    "--kube-master-url=http://127.0.0.1:9",
    "--initial-sync-timeout=600ms",
    "--v=2",
    "--dns-bind-address=127.0.0.1",
    `--dns-port=${port}`,
    `--healthz-port=${health}`,
  ]);
  assert.equal(ending.code, 255);
  assert.match(ending.errors, /Timeout waiting for initialization: services, endpoints not listed/);
});

test("kube-dns --version", async () => {
  const ending = await runPortolan(["kube-dns", "--version"]);
  assert.match(ending.output, /^Kube-DNS \d/);
});
