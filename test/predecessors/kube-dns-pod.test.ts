/** The pod of 2017: kube-dns, dnsmasq-nanny with a real dnsmasq or without one, and the sidecar; then a change of the ConfigMap. */
import assert from "node:assert/strict";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { missingTools, skipWithout } from "../../scripts/lib/system-tools.mjs";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { dig } from "../support/dig.ts";
import { freePort } from "../support/free-ports.ts";
import { Peer } from "../support/peers.ts";
import { portolan, runPortolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const WEB = "web.default.svc.cluster.local";
const hasDnsmasq = missingTools(["dnsmasq"]).length === 0;

for (const real of [true, false]) {
  test(`kube-dns, ${real ? "a real dnsmasq" : "our own cache"} and the sidecar`, {
    skip: skipWithout("dig", "dnsmasq"),
  }, async (t) => {
    assert.ok(hasDnsmasq);
    await using stub = await Peer.dnsmasq(["address=/abc.acme.local/192.0.2.1"]);
    await using other = await Peer.dnsmasq(["address=/widget.example/192.0.2.2"]);
    const manifests = makeTree(t, {
      "web.json": JSON.stringify({
        apiVersion: "v1",
        kind: "Service",
        metadata: { name: "web", namespace: "default" },
        spec: { clusterIP: "10.0.0.10", ports: [{ name: "http", port: 80, protocol: "TCP" }] },
      }),
    });
    const folder = makeTree(t, { upstreamNameservers: `["127.0.0.1:${other.port}"]` });
    const [dns, health, port, metrics] = [
      await freePort(),
      await freePort(),
      await freePort(),
      await freePort(),
    ];
    await using kubedns = portolan([
      "kube-dns",
      "--dns-bind-address=127.0.0.1",
      `--dns-port=${dns}`,
      `--healthz-port=${health}`,
      `--manifests=${manifests}`,
      `--config-dir=${folder}`,
      "--config-period=20ms",
    ]);
    await using nanny = portolan([
      "dnsmasq-nanny",
      "-v=2",
      "-logtostderr",
      `-configDir=${folder}`,
      "-restartDnsmasq=true",
      "-syncInterval=20ms",
      ...(real ? ["-dnsmasq=/usr/sbin/dnsmasq"] : []),
      "--",
      "-k",
      "--cache-size=1000",
      "--log-facility=-",
      "--no-hosts",
      "--pid-file",
      "--conf-file=/dev/null",
      ...(process.getuid?.() === 0 ? ["--user=root"] : []),
      `--port=${port}`,
      "--listen-address=127.0.0.1",
      "--bind-interfaces",
      "--address=/fixed.example/192.0.2.3",
      `--server=/cluster.local/127.0.0.1#${dns}`,
      `--server=/in-addr.arpa/127.0.0.1#${dns}`,
    ]);
    await using sidecar = portolan([
      "sidecar",
      `--dnsmasq-port=${port}`,
      "--dnsmasq-poll-interval-ms=50",
      "--prometheus-addr=127.0.0.1",
      `--prometheus-port=${metrics}`,
      `--probe=kubedns,127.0.0.1:${dns},${WEB},1,SRV`,
      `--probe=dnsmasq,127.0.0.1:${port},${WEB},1,SRV`,
    ]);
    const server = { address: "127.0.0.1", port };
    const lines = async (name: string, type = "A") => (await dig(server, name, type)).answer;
    // dnsmasq never answers queries that it sent to a closed upstream, or got while starting.
    const until = (name: string, answer: RegExp) =>
      untilTrue(async () => answer.test((await dig(server, name, "A", "+time=1")).answer.join()));
    await until(WEB, /10\.0\.0\.10$/);
    assert.match((await lines("widget.example")).join(), /192\.0\.2\.2$/);
    assert.match((await lines("deep.fixed.example")).join(), /192\.0\.2\.3$/);
    assert.match(
      (await lines("10.0.0.10.in-addr.arpa", "PTR")).join(),
      /web\.default\.svc\.cluster\.local\.$/,
    );
    for (const label of ["kubedns", "dnsmasq"])
      await untilTrue(
        async () => (await fetch(`http://127.0.0.1:${metrics}/healthcheck/${label}`)).status === 200,
      );

    const statistic = async (name: string) =>
      (await dig(server, `${name}.bind`, "TXT", "CH")).answer[0]?.split('"')[1] ?? "";
    for (let times = 0; times < 10; times++) await lines(WEB);
    assert.equal(await statistic("cachesize"), "1000");
    const [hits, misses, insertions, evictions] = await Promise.all(
      ["hits", "misses", "insertions", "evictions"].map(async (name) => Number(await statistic(name))),
    );
    assert.ok(Number(hits) >= 10, `${hits} hits`);
    assert.ok(Number(misses) >= 3, `${misses} misses`);
    assert.ok(Number(insertions) >= 2, `${insertions} insertions`);
    assert.equal(evictions, 0);
    await untilTrue(async () => {
      const page = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
      return /^kubedns_dnsmasq_hits [1-9]\d+$/m.test(page) && /^kubedns_dnsmasq_max_size 1000$/m.test(page);
    });
    const { text } = await dig(server, "servers.bind", "TXT", "CH");
    assert.match(text, new RegExp(`"127\\.0\\.0\\.1#${dns} [1-9]\\d* \\d+"`));

    assert.deepEqual(await lines("abc.acme.local"), []);
    // In one step: a file that is empty for a moment is a configuration without stub domains.
    const writeStubDomains = (text: string): void => {
      writeFileSync(`${folder}.new`, text);
      renameSync(`${folder}.new`, join(folder, "stubDomains"));
    };
    writeStubDomains(`{"acme.local":["127.0.0.1:${stub.port}"]}`);
    await until("abc.acme.local", /192\.0\.2\.1$/);
    assert.equal((await lines(WEB)).length, 1);
    writeStubDomains('{"acme.local":["$$$$"]}');
    await untilTrue(async () => /keeping the previous one/.test(nanny.errors));
    assert.match((await lines("abc.acme.local")).join(), /192\.0\.2\.1$/);
    assert.deepEqual(await sidecar.stop(), { code: 0, signal: null });
    assert.deepEqual(await nanny.stop(), { code: 0, signal: null }, nanny.errors);
    assert.deepEqual(await kubedns.stop(), { code: 0, signal: null });
  });
}

test("dnsmasq-nanny ends when its dnsmasq does", async (t) => {
  const folder = makeTree(t, { federations: "" });
  const ending = await runPortolan([
    "dnsmasq-nanny",
    `-configDir=${folder}`,
    "-dnsmasq=/bin/sh",
    "--",
    "-c",
    "exit 3",
  ]);
  assert.equal(ending.code, 255);
  assert.match(ending.errors, /dnsmasq exited: 3/);
});

test("dnsmasq-nanny says what it does not understand", async () => {
  const ending = await runPortolan(["dnsmasq-nanny", "-configDir=/nowhere", "--", "--bogus"]);
  assert.equal(ending.code, 1);
  assert.match(ending.errors, /dnsmasq: bad command line options: unrecognized option '--bogus'/);
});
