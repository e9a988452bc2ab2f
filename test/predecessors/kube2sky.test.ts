/** The chain of 2015: manifests -> kube2sky -> a real etcd -> SkyDNS's reader -> dig. It answers as `kubernetes` does. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { dig } from "../support/dig.ts";
import { EtcdServer } from "../support/etcd.ts";
import { freePort } from "../support/free-ports.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { CredentialsFolder, kubeconfigText } from "../support/kubernetes-api/credentials-folder.ts";
import { Portolan, portolan, runPortolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const service = (name: string, spec: object) =>
  JSON.stringify({ apiVersion: "v1", kind: "Service", metadata: { name, namespace: "shop" }, spec });

const CLUSTER = {
  "namespace.json": '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}',
  "web.json": service("web", {
    clusterIP: "10.0.0.10",
    ports: [{ name: "http", port: 80, protocol: "TCP" }],
  }),
  "gone.json": service("gone", {
    clusterIP: "10.0.0.11",
    ports: [{ name: "http", port: 80, protocol: "TCP" }],
  }),
  "db.json": service("db", {
    clusterIP: "None",
    selector: { app: "db" },
    ports: [{ name: "sql", port: 3306, protocol: "TCP" }],
  }),
  "slice.json": JSON.stringify({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: "db-1", namespace: "shop", labels: { "kubernetes.io/service-name": "db" } },
    addressType: "IPv4",
    endpoints: [
      { addresses: ["172.16.0.1"], hostname: "db-0", conditions: { ready: true } },
      { addresses: ["172.16.0.2"], conditions: { ready: true } },
      { addresses: ["172.16.0.3"], hostname: "db-2", conditions: { ready: false } },
    ],
    ports: [{ name: "sql", port: 3306, protocol: "TCP" }],
  }),
  "pod.json": JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", namespace: "shop" },
    spec: {},
    status: { phase: "Running", podIP: "172.16.0.9", podIPs: [{ ip: "172.16.0.9" }] },
  }),
};

const QUESTIONS = [
  ["web.shop.svc.cluster.local", "A"],
  ["gone.shop.svc.cluster.local", "A"],
  ["db.shop.svc.cluster.local", "A"],
  ["db-0.db.shop.svc.cluster.local", "A"],
  ["db-2.db.shop.svc.cluster.local", "A"],
  ["172-16-0-9.shop.pod.cluster.local", "A"],
  ["172-16-0-8.shop.pod.cluster.local", "A"],
  ["nope.shop.svc.cluster.local", "A"],
  ["web.shop.svc.cluster.local", "AAAA"],
] as const;

test("kube2sky writes, follows, removes and repairs", {
  skip: skipWithout("etcd", "etcdctl", "dig"),
}, async (t) => {
  await using etcd = await EtcdServer.start();
  const folder = makeTree(t, CLUSTER);
  const health = await freePort();
  await etcd.put({ "/skydns/local/cluster/svc/shop/left/over": { host: "192.0.2.99" } });
  await using kube2sky = portolan([
    "kube2sky",
    "--domain=cluster.local",
    `--etcd_server=${etcd.url}`,
    `--manifests=${folder}`,
    `--healthz-port=${health}`,
    "--v=2",
  ]);
  await using server = await Portolan.start(
    (port) => `cluster.local:${port("dns")} {
      bind 127.0.0.1
      etcd {
        endpoint ${etcd.url}
      }
    }
    cluster.local:${port("kubernetes")} {
      bind 127.0.0.1
      kubernetes {
        manifests ${folder}
        pods verified
        ttl 30
      }
    }`,
  );
  const cluster = { address: "127.0.0.1", port: server.portOf("kubernetes") };
  const same = async () => {
    const both: string[][] = [[], []];
    for (const [index, asked] of [server, cluster].entries()) {
      for (const [name, type] of QUESTIONS) {
        const { status, answer } = await dig(asked, name, type);
        both[index]?.push(`${name} ${type} ${status} ${answer.toSorted().join(", ")}`);
      }
    }
    return both;
  };
  const untilSame = async () => {
    const deadline = performance.now() + 20_000;
    for (;;) {
      const [ours, theirs] = await same();
      if (ours?.join() === theirs?.join()) return;
      if (performance.now() > deadline) assert.deepEqual(ours, theirs);
      await pause(50);
    }
  };
  await untilSame();
  assert.equal(
    await etcd.control("get", "--print-value-only", "/skydns/local/cluster/svc/shop/db/db-0"),
    '{"host":"172.16.0.1","priority":10,"weight":10,"ttl":30}',
  );
  assert.equal(await etcd.control("get", "--prefix", "/skydns/local/cluster/svc/shop/left"), "");
  const srv = await dig(server, "_sql._tcp.db.shop.svc.cluster.local", "SRV");
  assert.deepEqual(
    srv.answer.map((record) => record.split(" ").slice(4, 7).join(" ")),
    ["10 50 3306", "10 50 3306"],
  );
  assert.ok(srv.answer.some((record) => record.endsWith(" db-0.db.shop.svc.cluster.local.")));
  const port = await dig(server, "_http._tcp.web.shop.svc.cluster.local", "SRV");
  assert.match(port.answer.join(), /SRV 10 100 80 web\.shop\.svc\.cluster\.local\.$/);
  assert.deepEqual(
    port.additional.filter((record) => / A /.test(record)),
    ["web.shop.svc.cluster.local. 30 IN A 10.0.0.10"],
  );
  const ready = await fetch(`http://127.0.0.1:${health}/readiness`);
  assert.deepEqual([ready.status, await ready.text()], [200, "ok\n"]);

  // Another client of etcd removes a key, and puts another in.
  await etcd.control("del", "--prefix", "/skydns/local/cluster/svc/shop/web");
  await etcd.put({ "/skydns/local/cluster/svc/shop/db/intruder": { host: "192.0.2.66" } });
  await untilSame();
  // A service goes, another changes, and etcd is unreachable meanwhile.
  await etcd.stop();
  rmSync(join(folder, "gone.json"));
  writeFileSync(join(folder, "web.json"), service("web", { clusterIP: "10.0.0.12", ports: [] }));
  await etcd.restart();
  // The keys that both had before are the same as well.
  const deadline = performance.now() + 60_000;
  const webAddress = async () => (await dig(server, "web.shop.svc.cluster.local", "A")).answer.join();
  while (!(await webAddress()).endsWith("10.0.0.12") && performance.now() < deadline);
  await untilSame();
  assert.match(await webAddress(), /10\.0\.0\.12$/);
  assert.equal((await dig(server, "gone.shop.svc.cluster.local", "A")).status, "NXDOMAIN");
  assert.deepEqual(await kube2sky.stop(), { code: 0, signal: null }, kube2sky.errors);
});

test("kube2sky follows a live API that goes and comes", {
  skip: skipWithout("etcd", "etcdctl"),
}, async () => {
  await using etcd = await EtcdServer.start();
  await using api = await ApiSimulator.start();
  const put = (name: string, clusterIP: string) =>
    api.put("services", { metadata: { namespace: "shop", name }, spec: { clusterIP, ports: [] } });
  put("web", "10.0.0.1");
  using folder = new CredentialsFolder();
  const kubeconfig = folder.write("config", kubeconfigText({ server: api.url }, {}));
  const health = await freePort();
  await using kube2sky = portolan([
    "kube2sky",
    `--etcd-server=${etcd.url}`,
    `--kubecfg-file=${kubeconfig}`,
    `--healthz-port=${health}`,
  ]);
  const untilWritten = async (expected: RegExp) => {
    const deadline = performance.now() + 20_000;
    for (;;) {
      const values = await etcd.control(
        "get",
        "--prefix",
        "--print-value-only",
        "/skydns/local/cluster/svc/shop",
      );
      if (expected.test(values)) return;
      if (performance.now() > deadline || kube2sky.hasEnded)
        assert.match(values, expected, kube2sky.describe());
      await pause(50);
    }
  };
  await untilWritten(/^\{"host":"10\.0\.0\.1",[^\n]*$/);
  await api.close();
  await api.open();
  put("web", "10.0.0.2");
  put("new", "10.0.0.3");
  await untilWritten(/^\{"host":"10\.0\.0\.3",[^\n]*\n+\{"host":"10\.0\.0\.2",[^\n]*$/);
  api.delete("services", "shop", "web");
  await untilWritten(/^\{"host":"10\.0\.0\.3",[^\n]*$/);
});

test("kube2sky ends at once while it waits for etcd", async (t) => {
  await using kube2sky = portolan([
    "kube2sky",
    `--etcd-server=http://127.0.0.1:${await freePort()}`,
    `--manifests=${makeTree(t, CLUSTER)}`,
    `--healthz-port=${await freePort()}`,
  ]);
  await untilTrue(async () => /etcd is unreachable/.test(kube2sky.errors));
  assert.deepEqual(await kube2sky.stop(), { code: 0, signal: null });
});

for (const [words, code, message] of [
  [["--domain=a..b"], 2, /^invalid value "a\.\.b" for flag -domain/],
  [["--etcd-server=ftp:x"], 2, /^invalid value "ftp:x" for flag -etcd-server/],
  [["--kubecfg-file=/nowhere"], 255, /^kubeconfig \/nowhere: /],
] as const) {
  test(`kube2sky ${words.join(" ")} ends with ${code} and says why`, async () => {
    const ending = await runPortolan(["kube2sky", ...words]);
    assert.equal(ending.code, code);
    assert.match(ending.errors, message);
  });
}
