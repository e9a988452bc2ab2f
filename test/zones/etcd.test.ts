/** The plugin `etcd` against a real etcd: what happens as keys change, and as etcd goes and comes. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { encodeMessage, makeQuery } from "../../src/dns/message.ts";
import { Name } from "../../src/dns/name.ts";
import { createServer, type EmbeddedServer } from "../../src/index.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { dig } from "../support/dig.ts";
import { exchangeUdp } from "../support/dns-client.ts";
import { EtcdServer } from "../support/etcd.ts";
import { freePort } from "../support/free-ports.ts";
import { Portolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const skip = skipWithout("etcd", "etcdctl");

/** Asks until the answer is there: changes take a moment to arrive. */
async function until(
  server: EmbeddedServer,
  name: string,
  type: string,
  expected: readonly string[],
): Promise<void> {
  const deadline = performance.now() + 15_000;
  for (;;) {
    const { answer } = await server.ask({ name, type });
    if (answer.join() === expected.join()) return;
    if (performance.now() > deadline) assert.deepEqual(answer, expected);
    await pause(10);
  }
}

async function metric(server: EmbeddedServer, name: string): Promise<number> {
  const body = await server.metrics();
  return Number(new RegExp(`^${name}(?:{[^}]*})? (\\S+)$`, "m").exec(body)?.[1]);
}

async function untilMetric(server: EmbeddedServer, name: string, value: number): Promise<void> {
  const deadline = performance.now() + 15_000;
  while ((await metric(server, name)) !== value) {
    if (performance.now() > deadline) assert.equal(await metric(server, name), value, name);
    await pause(20);
  }
}

suite("etcd", { skip }, () => {
  let etcd: EtcdServer;
  before(async () => {
    etcd = await EtcdServer.start();
  });
  after(() => etcd[Symbol.asyncDispose]());

  const start = async (options = "", around = "", zones = "example.org") => {
    const server = await createServer({
      corefile: `.:0 {
        bind 127.0.0.1
        ${around}
        etcd ${zones} {
          endpoint ${etcd.url}
          ${options}
        }
      }`,
    });
    await server.start();
    return server;
  };

  test("a query costs no round trip, and changes arrive at once, in the cache as well", async () => {
    await etcd.put({ "/skydns/org/example/a/x1": { host: "192.0.2.1" } });
    await using server = await start("", "cache");
    await untilMetric(server, "portolan_etcd_watching", 1);
    const reads = await metric(server, "portolan_etcd_reads_total");
    await until(server, "a.example.org", "A", ["a.example.org. 300 IN A 192.0.2.1"]);
    await etcd.put({ "/skydns/org/example/a/x2": { host: "192.0.2.2" } });
    await until(server, "a.example.org", "A", [
      "a.example.org. 300 IN A 192.0.2.1",
      "a.example.org. 300 IN A 192.0.2.2",
    ]);
    await etcd.put({ "/skydns/org/example/a/x1": null });
    await until(server, "a.example.org", "A", ["a.example.org. 300 IN A 192.0.2.2"]);
    assert.equal(await metric(server, "portolan_etcd_reads_total"), reads);
  });

  test("a cached answer goes with a key far below its name, and with the addresses beside it", async () => {
    await etcd.put({
      "/skydns/org/example/far/y/x": { host: "192.0.2.1" },
      "/skydns/org/example/target": { host: "192.0.2.1" },
      "/skydns/org/example/mail/1": { host: "target.example.org", mail: true },
    });
    await using server = await start("", "cache");
    await untilMetric(server, "portolan_etcd_watching", 1);
    const beside = async (expected: string): Promise<void> => {
      await untilTrue(async () => {
        const { additional } = await server.ask({ name: "mail.example.org", type: "MX" });
        return additional.join() === `target.example.org. 300 IN A ${expected}`;
      });
    };
    await until(server, "far.example.org", "A", ["far.example.org. 300 IN A 192.0.2.1"]);
    await beside("192.0.2.1");
    await etcd.put({
      "/skydns/org/example/far/y/x": { host: "192.0.2.2" },
      "/skydns/org/example/target": { host: "192.0.2.2" },
    });
    await until(server, "far.example.org", "A", ["far.example.org. 300 IN A 192.0.2.2"]);
    await beside("192.0.2.2");
  });

  test("read_through asks etcd each time", async () => {
    await etcd.put({ "/skydns/org/example/r": { host: "192.0.2.1" } });
    await using server = await start("read_through");
    const reads = await metric(server, "portolan_etcd_reads_total");
    for (let count = 0; count < 3; count++) await server.ask({ name: "r.example.org" });
    assert.equal(await metric(server, "portolan_etcd_reads_total"), reads + 3);
    await etcd.put({ "/skydns/org/example/r": { host: "192.0.2.2" } });
    const { answer } = await server.ask({ name: "r.example.org" });
    assert.deepEqual(answer, ["r.example.org. 300 IN A 192.0.2.2"]);
  });

  test("no_apex_fallback asks for the apex alone; an error there is never followed by the whole zone", async () => {
    await etcd.put({
      "/skydns/test/none/www": { host: "192.0.2.1" },
      "/skydns/test/has/www": { host: "192.0.2.2" },
      "/skydns/test/has/dns/apex/x": { host: "192.0.2.9" },
      "/skydns/test/bad/www": { host: "192.0.2.3" },
      "/skydns/test/bad/dns/apex/x": "no JSON",
    });
    const zones = "none.test has.test bad.test";
    for (const [options, wanted] of [
      ["", ["0 none.test. 300 IN A 192.0.2.1", "0 has.test. 300 IN A 192.0.2.9", "2 "]],
      ["no_apex_fallback", ["3 ", "0 has.test. 300 IN A 192.0.2.9", "2 "]],
    ] as const) {
      for (const read of ["", "read_through"]) {
        await using server = await start(`${options}\n${read}`, "", zones);
        await until(server, "www.bad.test", "A", ["www.bad.test. 300 IN A 192.0.2.3"]);
        const replies = await Promise.all(zones.split(" ").map((name) => server.ask({ name, type: "A" })));
        const told = replies.map(({ rcode, answer }) => `${rcode} ${answer.join()}`);
        assert.deepEqual(told, wanted, `${options} ${read}`);
      }
    }
  });

  test("the vectors of SkyDNS", async () => {
    const at = "/skydns/test/skydns";
    await etcd.put({
      "/skydns/config": { ttl: 3600, min_ttl: 60, domain: "skydns.test." },
      [`${at}/region1/development/server1/100`]: { host: "server1", port: 8080 },
      [`${at}/region1/development/server1/104`]: { host: "10.0.0.1" },
      [`${at}/region1/production/server2/105`]: { host: "server2", port: 80 },
      [`${at}/bar/x`]: { host: "192.168.0.1", port: 80, targetstrip: 1 },
      [`${at}/bar/y`]: { host: "bar.skydns.local", port: 443 },
      [`${at}/cname/3`]: { host: "4.cname.skydns.test" },
      [`${at}/cname/4`]: { host: "3.cname.skydns.test" },
      [`${at}/dom1/a`]: { host: "127.0.0.1", group: "g1" },
      [`${at}/dom1/sub/b`]: { host: "127.0.0.2", group: "g2" },
      [`${at}/dom2/a`]: { host: "127.0.0.1", group: "g1" },
      [`${at}/dom2/sub/b`]: { host: "127.0.0.2" },
      [`${at}/http/multiport/http`]: { host: "192.168.0.2", port: 80 },
      [`${at}/http/multiport/https`]: { host: "192.168.0.2", port: 443 },
      [`${at}/dns/ns/a`]: { host: "172.16.0.1" },
      [`${at}/dns/ns/b`]: { host: "172.16.0.2" },
    });
    await using server = await start("skydns_config", "", "skydns.test");
    await untilMetric(server, "portolan_etcd_watching", 1);
    const ask = (name: string, type: string) => server.ask({ name: `${name}skydns.test.`, type });
    const answers = async (name: string, type: string) =>
      (await ask(name, type)).answer.map((record) => record.replace(/^\S+ /, ""));
    assert.deepEqual(await answers("100.server1.development.region1.", "SRV"), [
      "3600 IN SRV 10 100 8080 server1.",
    ]);
    const named = await ask("104.server1.development.region1.", "SRV");
    assert.match(named.answer[0] ?? "", /SRV 10 100 0 104\.server1\.development\.region1\.skydns\.test\.$/);
    assert.deepEqual(named.additional, ["104.server1.development.region1.skydns.test. 3600 IN A 10.0.0.1"]);
    for (const name of ["region1.", "*.region1."]) {
      const weights = (await answers(name, "SRV")).map((record) => record.split(" ")[4]);
      assert.deepEqual(weights, ["33", "33", "33"], name);
    }
    for (const name of ["server1.*.region1.", "server1.any.region1."]) {
      const weights = (await answers(name, "SRV")).map((record) => record.split(" ")[4]);
      assert.deepEqual(weights, ["50", "50"], name);
    }
    assert.deepEqual(await answers("bar.", "SRV"), [
      "3600 IN SRV 10 50 80 bar.skydns.test.",
      "3600 IN SRV 10 50 443 bar.skydns.local.",
    ]);
    const circle = await ask("3.cname.", "A");
    assert.deepEqual(circle.answer, []);
    assert.match(circle.authority[0] ?? "", /^skydns\.test\. 60 IN SOA .* 60$/);
    assert.deepEqual(await answers("dom1.", "A"), ["3600 IN A 127.0.0.1"]);
    assert.deepEqual(await answers("dom2.", "A"), ["3600 IN A 127.0.0.1", "3600 IN A 127.0.0.2"]);
    assert.deepEqual(await answers("multiport.http.", "A"), ["3600 IN A 192.168.0.2"]);
    const servers = await ask("", "NS");
    assert.deepEqual([servers.answer.length, servers.additional.length], [2, 2]);
    const missing = await ask("doesnotexist.", "A");
    assert.equal(missing.rcode, 3);
    assert.match(missing.authority[0] ?? "", /^skydns\.test\. 60 IN SOA/);
  });

  test("stub zones go to their servers, also for names in the own zone, and never in a circle", async () => {
    await using stub = await createServer({
      corefile: ".:0 {\n bind 127.0.0.1\n erratic {\n drop 0\n }\n}",
    });
    await stub.start();
    const port = stub.addresses[0]?.port ?? 0;
    const key = "/skydns/org/example/dns/stub";
    await etcd.put({
      [`${key}/org/example/inner/1`]: { host: "127.0.0.1", port },
      [`${key}/test/outer/1`]: { host: "127.0.0.1", port },
      [`${key}/test/named/1`]: { host: "no-address" },
    });
    await using server = await start("stubzones");
    await until(server, "www.inner.example.org", "A", ["www.inner.example.org. 0 IN A 192.0.2.53"]);
    await until(server, "www.outer.test", "A", ["www.outer.test. 0 IN A 192.0.2.53"]);
    assert.equal((await server.ask({ name: "www.named.test" })).rcode, 2);
    // A query that was passed on already is not passed on again: it gets no answer.
    const guarded = encodeMessage(
      makeQuery(
        { name: Name.parse("www.outer.test."), type: 1, class: 1 },
        {
          edns: {
            udpSize: 1232,
            version: 0,
            dnssecOk: false,
            options: [{ code: 65011, data: Buffer.of(1) }],
          },
        },
      ),
    );
    const address = { address: "127.0.0.1", port: server.addresses[0]?.port ?? 0 };
    assert.equal(await exchangeUdp(address, guarded, 200), undefined);
    await etcd.put({ [`${key}/test/outer/1`]: null });
    const deadline = performance.now() + 5_000;
    while ((await server.ask({ name: "www.outer.test" })).rcode !== 2 && performance.now() < deadline)
      await pause(10);
    assert.equal((await server.ask({ name: "www.outer.test" })).rcode, 2);
  });

  test("names outside are looked up through the server, and fallthrough leads on", async () => {
    await etcd.put({ "/skydns/org/example/ext": { host: "www.elsewhere.test" } });
    await using server = await start(
      "fallthrough",
      "hosts {\n 192.0.2.77 www.elsewhere.test other.example.org\n fallthrough\n}",
    );
    await until(server, "ext.example.org", "A", [
      "ext.example.org. 300 IN CNAME www.elsewhere.test.",
      "www.elsewhere.test. 3600 IN A 192.0.2.77",
    ]);
  });

  test("a value that is no JSON is named in the log and in a metric, and spoils its key alone", async () => {
    await etcd.put({
      "/skydns/org/example/m/good": { host: "192.0.2.1" },
      "/skydns/org/example/m/bad": "{",
    });
    await using server = await Portolan.start(
      (port) => `.:${port("dns")} {
        bind 127.0.0.1
        prometheus 127.0.0.1:${port("metrics")}
        etcd example.org {
          endpoint ${etcd.url}
        }
      }`,
    );
    await server.waitForLog(/\[WARNING\] plugin\/etcd: key is skipped: \/skydns\/org\/example\/m\/bad: /);
    assert.deepEqual((await dig(server, "m.example.org", "A")).answer, ["m.example.org. 300 IN A 192.0.2.1"]);
    assert.equal((await dig(server, "bad.m.example.org", "A")).status, "SERVFAIL");
    const { body } = await server.page("metrics", "/metrics");
    assert.match(body, /^portolan_etcd_malformed_values_total\{zone="example\.org\."\} [1-9]/m);
  });
});

suite("etcd that goes and comes", { skip }, () => {
  test("answers from what is known, marks what is stale, and goes on after a compaction", async () => {
    await using etcd = await EtcdServer.start();
    await etcd.put({
      "/skydns/org/example/old": { host: "192.0.2.1" },
      "/skydns/org/example/gone": { host: "192.0.2.2" },
    });
    await using server = await Portolan.start(
      (port) => `.:${port("dns")} {
        bind 127.0.0.1
        ready 127.0.0.1:${port("ready")}
        prometheus 127.0.0.1:${port("metrics")}
        etcd example.org {
          endpoint http://127.0.0.1:1 ${etcd.url}
          min-lease-ttl 1s
        }
      }`,
    );
    const address = async (name: string) => (await dig(server, `${name}.example.org`, "A")).answer.join();
    const untilAddress = async (name: string, expected: RegExp) => {
      const deadline = performance.now() + 20_000;
      for (;;) {
        const answer = await address(name);
        if (expected.test(answer)) return;
        if (performance.now() > deadline) assert.match(answer, expected);
        await pause(20);
      }
    };
    await untilAddress("old", /192\.0\.2\.1$/);
    await etcd.putWithLease("/skydns/org/example/leased", { host: "192.0.2.3" }, 2);
    await untilAddress("leased", /192\.0\.2\.3$/);
    assert.match((await dig(server, "missing.example.org", "A")).text, /status: NXDOMAIN/);
    const start = server.log.length;
    await etcd.stop();
    await server.waitForLog(/\[WARNING\] plugin\/etcd: etcd is unreachable: http/, start);
    assert.match(await address("old"), /192\.0\.2\.1$/);
    // etcd may have such a name by now: the answer that was remembered is forgotten.
    for (const name of ["missing.example.org", "new.example.org"])
      assert.match((await dig(server, name, "A")).text, /status: SERVFAIL/);
    const state = await server.page("ready", "/ready?verbose");
    assert.equal(state.status, 200);
    assert.match(state.body, /etcd: away for \d+s \(.*\); answering from the last known 3 keys/);
    // A reload does not lose what is known.
    await server.reload();
    assert.match(await address("old"), /192\.0\.2\.1$/);
    const deadline = performance.now() + 10_000;
    let stale = await dig(server, "leased.example.org", "A");
    while (!/EDE: 3/.test(stale.text) && performance.now() < deadline) {
      await pause(50);
      stale = await dig(server, "leased.example.org", "A");
    }
    assert.match(stale.text, /EDE: 3 \(Stale Answer\)/);
    assert.deepEqual(stale.answer, ["leased.example.org. 1 IN A 192.0.2.3"]);
    await etcd.restart();
    await etcd.put({ "/skydns/org/example/gone": null, "/skydns/org/example/new": { host: "192.0.2.4" } });
    // etcd 3.4 loses deletions of the very revision that is compacted for a watch that begins there (seen with 3.4.23): not of one before.
    await etcd.put({ "/skydns/org/example/later": { host: "192.0.2.5" } });
    const revision =
      /"revision":(\d+)/.exec(await etcd.control("endpoint", "status", "-w", "json"))?.[1] ?? "";
    await etcd.control("compact", revision);
    await untilAddress("new", /192\.0\.2\.4$/);
    await untilAddress("gone", /^$/);
    await server.waitForLog(/\[INFO\] plugin\/etcd: etcd is reachable again/, start);
    assert.match(await address("old"), /192\.0\.2\.1$/);
  });

  test("TLS with certificates, and a user with a password", async () => {
    const authority = new CertificateAuthority();
    await using etcd = await EtcdServer.start({ authority });
    await etcd.control("put", "/skydns/org/example/tls", '{"host":"192.0.2.5"}');
    await using server = await createServer({
      corefile: `.:0 {
        bind 127.0.0.1
        root ${etcd.folder}
        etcd example.org {
          endpoint ${etcd.url}
          tls client.pem client.key ca.pem
        }
      }`,
    });
    await server.start();
    await until(server, "tls.example.org", "A", ["tls.example.org. 300 IN A 192.0.2.5"]);
  });

  test("a user with a password, who may read one path", async () => {
    await using etcd = await EtcdServer.start();
    await etcd.put({ "/skydns/org/example/user": { host: "192.0.2.6" } });
    await etcd.control("user", "add", "root:secret");
    await etcd.control("role", "add", "dns");
    await etcd.control("role", "grant-permission", "dns", "read", "--prefix=true", "/skydns/org/example");
    await etcd.control("user", "add", "dns:word");
    await etcd.control("user", "grant-role", "dns", "dns");
    await etcd.control("user", "grant-role", "root", "root");
    await etcd.control("auth", "enable");
    const portWithoutServer = await freePort();
    const start = async (password: string) => {
      const server = await createServer({
        corefile: `.:0 {
          bind 127.0.0.1
          etcd example.org {
            endpoint http://127.0.0.1:${portWithoutServer} ${etcd.url}
            credentials dns ${password}
          }
        }`,
      });
      await server.start();
      return server;
    };
    await using server = await start("word");
    await until(server, "user.example.org", "A", ["user.example.org. 300 IN A 192.0.2.6"]);
    await using refused = await start("wrong");
    assert.equal((await refused.ask({ name: "user.example.org" })).rcode, 2);
  });
});
