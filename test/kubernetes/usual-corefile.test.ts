/** The Corefile that most clusters run, unchanged but for the source of the cluster and the ports of this machine. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { parseRecord } from "../../src/dns/resource-record.ts";
import { dig, kdig } from "../support/dig.ts";
import { ask, waitForServer } from "../support/dns-client.ts";
import { dnsperf } from "../support/dnsperf.ts";
import { freePort } from "../support/free-ports.ts";
import { Peer } from "../support/peers.ts";
import { Portolan, portolan, projectRoot } from "../support/portolan.ts";

const cluster = join(projectRoot, "test/fixtures/kubernetes");

const OUTSIDE = [
  "example. 300 IN SOA ns.example. root.example. 1 3600 600 86400 60",
  "www.example. 300 IN A 192.0.2.1",
  "www.example. 300 IN AAAA 2001:db8::1",
  "many.example. 300 IN A 192.0.2.11",
  "many.example. 300 IN A 192.0.2.12",
  "fresh.example. 300 IN A 192.0.2.2",
  "brief.example. 3 IN A 192.0.2.3",
  "1.2.0.192.in-addr.arpa. 300 IN PTR www.example.",
];

function usualCorefile([dns, health, ready, metrics, upstream]: readonly [
  string,
  string,
  string,
  string,
  string,
]): string {
  return `.${dns} {
    errors
    health ${health} {
       lameduck 5s
    }
    ready ${ready}
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       manifests ${cluster}
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus ${metrics}
    forward . ${upstream} {
       max_concurrent 1000
    }
    cache 30
    loop
    reload
    loadbalance
}
`;
}

describe("the usual Corefile", {
  skip: skipWithout("dig", "kdig", "dnsperf", "unbound"),
}, () => {
  let upstream: Peer;
  let server: Portolan;
  before(async () => {
    upstream = await Peer.unbound(OUTSIDE, ["local-zone: example. static"]);
    server = await Portolan.start((port) =>
      usualCorefile([
        `:${port("dns")}`,
        `:${port("health")}`,
        `:${port("ready")}`,
        `:${port("metrics")}`,
        `127.0.0.1:${upstream.port}`,
      ]),
    );
  });
  after(async () => {
    await server?.[Symbol.asyncDispose]();
    await upstream?.[Symbol.asyncDispose]();
  });

  const questions: readonly {
    title: string;
    words: string;
    status: string;
    flags: string;
    answer: readonly string[];
  }[] = [
    {
      title: "a service",
      words: "web.shop.svc.cluster.local A",
      status: "NOERROR",
      flags: "qr aa rd",
      answer: ["web.shop.svc.cluster.local. IN A 10.96.20.5"],
    },
    {
      title: "a port",
      words: "_http._tcp.web.shop.svc.cluster.local SRV",
      status: "NOERROR",
      flags: "qr aa rd",
      answer: ["_http._tcp.web.shop.svc.cluster.local. IN SRV 0 100 80 web.shop.svc.cluster.local."],
    },
    {
      title: "a pod",
      words: "10-244-3-40.shop.pod.cluster.local A",
      status: "NOERROR",
      flags: "qr aa rd",
      answer: ["10-244-3-40.shop.pod.cluster.local. IN A 10.244.3.40"],
    },
    {
      title: "no such service",
      words: "nosuch.shop.svc.cluster.local A",
      status: "NXDOMAIN",
      flags: "qr aa rd",
      answer: [],
    },
    {
      title: "a service's address",
      words: "-x 10.96.20.5",
      status: "NOERROR",
      flags: "qr aa rd",
      answer: ["5.20.96.10.in-addr.arpa. IN PTR web.shop.svc.cluster.local."],
    },
    {
      title: "an address outside",
      words: "-x 192.0.2.1",
      status: "NOERROR",
      flags: "qr aa rd ra",
      answer: ["1.2.0.192.in-addr.arpa. IN PTR www.example."],
    },
    {
      title: "a name outside",
      words: "www.example A",
      status: "NOERROR",
      flags: "qr aa rd ra",
      answer: ["www.example. IN A 192.0.2.1"],
    },
    {
      title: "its other address",
      words: "www.example AAAA",
      status: "NOERROR",
      flags: "qr aa rd ra",
      answer: ["www.example. IN AAAA 2001:db8::1"],
    },
    {
      title: "no such name outside",
      words: "nosuch.example A",
      status: "NXDOMAIN",
      flags: "qr aa rd ra",
      answer: [],
    },
    {
      title: "no such type outside",
      words: "www.example TXT",
      status: "NOERROR",
      flags: "qr aa rd ra",
      answer: [],
    },
    {
      title: "a name outside by an alias inside",
      words: "alias.shop.svc.cluster.local A",
      status: "NOERROR",
      flags: "qr aa rd",
      answer: [
        "alias.shop.svc.cluster.local. IN CNAME web.shop.svc.cluster.local.",
        "web.shop.svc.cluster.local. IN A 10.96.20.5",
      ],
    },
  ];
  for (const { title, words, status, flags, answer } of questions) {
    test(`${title}: ${words}`, async () => {
      for (const client of [dig, kdig]) {
        for (const options of [[], ["+tcp"], ["+bufsize=512", "+dnssec"]]) {
          const reply = await client(server, ...words.split(" "), ...options);
          assert.equal(reply.status, status);
          // A cached reply is not authoritative any more, as with every resolver.
          const seen = reply.flags.filter((flag) => flag !== "aa" || !flags.includes("ra"));
          assert.deepEqual(
            seen,
            flags.split(" ").filter((flag) => flag !== "aa" || !flags.includes("ra")),
          );
          assert.deepEqual(reply.answer.map(withoutTtl), answer);
          assert.equal(reply.authority.length, answer.length === 0 ? 1 : 0);
        }
      }
    });
  }

  function ownAddresses(): string[] {
    const addresses = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
    // Link-local ones would need the interface as well.
    return addresses.map(({ address }) => address).filter((address) => !address.startsWith("fe80:"));
  }

  /** A record as dig prints it, whose TTL says how long it has been in the cache. */
  function withoutTtl(record: string): string {
    const [owner, ttl, ...rest] = record.split(" ");
    assert.ok(Number(ttl) >= 0 && Number(ttl) <= 30, record);
    return [owner, ...rest].join(" ");
  }

  const ttlOf = async (name: string): Promise<number> => (await ask(server, name)).answer[0]?.ttl ?? -1;

  /**
   * Asks for a name that is not kept yet, and again while `goOn`: each TTL has to be what is left of the first by then, whatever the
   * machine's haste. A server may count from any moment of the first query to any moment of the last.
   * @returns the TTLs
   */
  async function watchTtl(
    name: string,
    first: number,
    goOn: (ttl: number) => Promise<boolean>,
  ): Promise<number[]> {
    const seconds = (): number => performance.now() / 1000;
    const asked = seconds();
    const ttls = [await ttlOf(name)];
    const kept = seconds();
    assert.equal(ttls[0], first);
    while (await goOn(ttls.at(-1) ?? 0)) {
      await pause(100);
      const before = seconds();
      const ttl = await ttlOf(name);
      // A TTL that is over was asked for anew.
      if (seconds() - asked >= first) break;
      ttls.push(ttl);
      const [most, least] = [first - Math.floor(before - kept), first - Math.ceil(seconds() - asked)];
      assert.ok(ttl <= most && ttl >= least, `TTL ${ttl} where it should be from ${least} to ${most}`);
    }
    return ttls;
  }

  test("a name outside is kept, and its TTL counts down from the 30 of the cache", async () => {
    assert.equal(await ttlOf("idle.shop.svc.cluster.local"), 30);
    let before = 0;
    await watchTtl("fresh.example", 30, async (ttl) => {
      before ||= await exchanges();
      return ttl > 28;
    });
    assert.equal(await exchanges(), before, "the upstream was asked again");
  });

  test("a name whose TTL is over is asked for again, and not before", async () => {
    let before = 0;
    const ttls = await watchTtl("brief.example", 5, async () => {
      before ||= await exchanges();
      // Until its TTL runs out the upstream gets no query.
      return true;
    });
    assert.ok(ttls.length > 1);
    const deadline = performance.now() + 30_000;
    for (; (await exchanges()) === before; await pause(100)) {
      assert.ok(performance.now() < deadline, "is not asked for again");
      await ttlOf("brief.example");
    }
  });

  /** How often the upstream was asked and answered. */
  async function exchanges(): Promise<number> {
    const { body } = await server.page("metrics", "/metrics");
    const counts = body.matchAll(/^coredns_proxy_request_duration_seconds_count\{[^}]*\} (\d+)$/gm);
    return Array.from(counts, ([, count]) => Number(count)).reduce((sum, count) => sum + count, 0);
  }

  test("addresses come in every order", async () => {
    for (const name of ["many.example", "db.shop.svc.cluster.local"]) {
      const orders = new Set<string>();
      for (let n = 0; n < 200 && orders.size < 2; n++) {
        const { answer } = await ask(server, name);
        assert.equal(answer.length, 2);
        orders.add(answer.map(({ data }) => JSON.stringify(data)).join());
      }
      assert.equal(orders.size, 2, `${name} comes in one order only`);
    }
  });

  test("health and readiness", async () => {
    assert.deepEqual(await server.page("health", "/health"), { status: 200, body: "OK" });
    assert.deepEqual(await server.page("ready", "/ready"), { status: 200, body: "OK" });
    assert.equal((await server.page("ready", "/")).status, 404);
  });

  test("it answers at every address of the machine, IPv4 and IPv6", async () => {
    for (const address of ownAddresses()) {
      for (const client of [dig, kdig]) {
        for (const options of [[], ["+tcp"]]) {
          const { answer } = await client(
            { address, port: server.port },
            "web.shop.svc.cluster.local",
            ...options,
          );
          assert.deepEqual(answer.map(withoutTtl), ["web.shop.svc.cluster.local. IN A 10.96.20.5"]);
        }
      }
    }
  });

  test("under load it answers everything, with less memory than a small pod has", async (t) => {
    const questions = [
      "web.shop.svc.cluster.local A",
      "www.example A",
      "nosuch.example A",
      "db.shop.svc.cluster.local A",
    ];
    const report = await dnsperf(server, { questions, seconds: 4, queriesPerSecond: 10_000, clients: 4 });
    assert.equal(report.lost, 0, report.text);
    assert.ok(report.completed > 2_000, report.text);
    t.diagnostic(`resident memory ${server.residentMemory}`);
    assert.ok(server.residentMemory < 256 * 1024 * 1024, `${server.residentMemory} octets`);
  });

  /** Name, type and labels as dashboards and alerts expect them; `le` and buckets left out. */
  const METRICS: readonly (readonly [name: string, type: string, labels: string])[] = [
    ["coredns_build_info", "gauge", "goversion,revision,version"],
    ["coredns_panics_total", "counter", ""],
    ["coredns_plugin_enabled", "gauge", "name,server,view,zone"],
    ["coredns_dns_requests_total", "counter", "family,proto,server,type,view,zone"],
    ["coredns_dns_request_duration_seconds", "histogram", "server,view,zone"],
    ["coredns_dns_request_size_bytes", "histogram", "proto,server,view,zone"],
    ["coredns_dns_do_requests_total", "counter", "server,view,zone"],
    ["coredns_dns_response_size_bytes", "histogram", "proto,server,view,zone"],
    ["coredns_dns_responses_total", "counter", "plugin,rcode,server,view,zone"],
    ["coredns_cache_entries", "gauge", "server,type,view,zones"],
    ["coredns_cache_requests_total", "counter", "server,view,zones"],
    ["coredns_cache_hits_total", "counter", "server,type,view,zones"],
    ["coredns_cache_misses_total", "counter", "server,view,zones"],
    ["coredns_forward_max_concurrent_rejects_total", "counter", ""],
    ["coredns_forward_healthcheck_broken_total", "counter", ""],
    ["coredns_proxy_request_duration_seconds", "histogram", "proxy_name,rcode,to"],
    ["coredns_proxy_conn_cache_hits_total", "counter", "proto,proxy_name,to"],
    ["coredns_proxy_conn_cache_misses_total", "counter", "proto,proxy_name,to"],
    ["coredns_health_request_duration_seconds", "histogram", ""],
    ["coredns_health_request_failures_total", "counter", ""],
    ["coredns_reload_failed_total", "counter", ""],
    ["process_resident_memory_bytes", "gauge", ""],
    ["process_cpu_seconds_total", "counter", ""],
    ["process_start_time_seconds", "gauge", ""],
  ];
  test("the metrics page has the names, types and labels of dashboards", async () => {
    await dig(server, "www.example", "+dnssec");
    const { body } = await server.page("metrics", "/metrics");
    const found = METRICS.map(([name, type]) => {
      const series = type === "histogram" ? `${name}_sum` : name;
      const sample = new RegExp(`^${series}(?:\\{(.*)\\})? [0-9.e+-]+$`, "m").exec(body);
      const declared = new RegExp(`^# TYPE ${name} (\\w+)$`, "m").exec(body)?.[1];
      const labels = Array.from((sample?.[1] ?? "").matchAll(/(\w+)="/g), ([, label = ""]) => label);
      return [name, declared, sample === null ? "no sample" : labels.sort((a, b) => (a < b ? -1 : 1)).join()];
    });
    assert.deepEqual(found, METRICS);
  });

  test("what happened is in the metrics", async () => {
    const { body } = await server.page("metrics", "/metrics");
    const label = `server="dns://:${server.port}"`;
    for (const sample of [
      `coredns_dns_requests_total\\{${label},zone="\\.",view="",proto="udp",family="1",type="A"\\} [1-9]`,
      `coredns_dns_requests_total\\{${label},zone="\\.",view="",proto="tcp",family="1",type="PTR"\\} [1-9]`,
      `coredns_dns_responses_total\\{${label},zone="\\.",view="",rcode="NXDOMAIN",plugin="\\w+"\\} [1-9]`,
      `coredns_dns_do_requests_total\\{${label},zone="\\.",view=""\\} [1-9]`,
      `coredns_cache_hits_total\\{${label},type="success",zones="\\.",view=""\\} [1-9]`,
      `coredns_cache_hits_total\\{${label},type="denial",zones="\\.",view=""\\} [1-9]`,
      `coredns_plugin_enabled\\{${label},zone="\\.",view="",name="kubernetes"\\} 1`,
      "coredns_panics_total 0",
    ]) {
      assert.match(body, new RegExp(`^${sample}`, "m"));
    }
  });

  test("the log has its lines at start, nothing about a loop, and no error", async () => {
    const expected = [
      `.:${server.port}`,
      "\\[INFO\\] plugin/reload: Running configuration SHA512 = [0-9a-f]{128}",
      "Portolan-[\\d.]+",
      "linux/\\w+, node[\\d.]+, [\\w-]+",
    ];
    for (const line of expected) assert.match(server.log, new RegExp(`^${line}$`, "m"));
    assert.doesNotMatch(server.log, /\[(ERROR|FATAL)\]|Loop/);
  });

  test("an upstream that is gone: SERVFAIL, a line in the log, and the cluster's names as before", async () => {
    assert.equal((await dig(server, "www.example")).status, "NOERROR");
    await upstream[Symbol.asyncDispose]();
    const reply = await dig(server, "other.example");
    assert.equal(reply.status, "SERVFAIL");
    await server.waitForLog(/^\[ERROR\] plugin\/errors: 2 other\.example\. A: read udp .*: .+$/m);
    assert.equal((await dig(server, "web.shop.svc.cluster.local")).status, "NOERROR");
    // Cached answers are still served.
    assert.equal((await dig(server, "www.example")).status, "NOERROR");
  });

  test("SIGTERM makes it a lame duck of five seconds", async () => {
    server.program.kill("SIGTERM");
    await server.waitForLog(/^\[INFO\] plugin\/health: Going into lameduck mode for 5s$/m);
    assert.equal((await dig(server, "web.shop.svc.cluster.local")).status, "NOERROR");
  });
});

const resolvers = readFileSync("/etc/resolv.conf", { encoding: "latin1" }).match(/^nameserver /m);
const skip = resolvers === null && "/etc/resolv.conf names no server";

test("the usual Corefile to the letter, but for the manifests", { skip }, async (t) => {
  // Checked now and not before the other tests, during which another process may take one.
  if ((await Promise.all(["8080", "8181", "9153"].map(isTaken))).some(Boolean)) {
    t.skip("port 8080, 8181 or 9153 is taken here");
    return;
  }
  const corefile = usualCorefile(["", "", "", ":9153", "/etc/resolv.conf"]).replace(/ +$/gm, "");
  const cwd = makeTree(t, { Corefile: corefile });
  const server = { address: "127.0.0.1", port: await freePort() };
  await using program = portolan(["-p", String(server.port)], { cwd });
  assert.ok(await waitForServer(server, () => program.hasEnded), program.describe());
  const { answer } = await ask(server, "web.shop.svc.cluster.local");
  assert.deepEqual(
    answer.map(({ data }) => data),
    [parseRecord("x. 30 IN A 10.96.20.5").data],
  );
  for (const place of ["8080/health", "8181/ready", "9153/metrics"])
    assert.equal((await fetch(`http://127.0.0.1:${place}`)).status, 200, place);
  assert.deepEqual(await program.stop("SIGQUIT"), { code: 0, signal: null });
});

async function isTaken(port: string): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(Number(port), "::");
    await once(server, "listening");
    return false;
  } catch {
    return true;
  } finally {
    server.close();
  }
}
