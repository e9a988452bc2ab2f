/** The example cluster, served by the program and asked with `dig` and `kdig`: what the quickstart promises a newcomer. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { dig, kdig } from "../support/dig.ts";
import { Peer } from "../support/peers.ts";
import { Portolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const quickstart = fileURLToPath(new URL("../../examples/quickstart", import.meta.url));

interface Try {
  readonly command: string;
  readonly answer: string;
}

interface Tour {
  readonly console: string;
  readonly queries: readonly Try[];
}

const OUTSIDE = ["www.example.com. 300 IN A 192.0.2.53", "www.example.com. 300 IN AAAA 2001:db8::53"];

/** Question, expected status, expected answers in any order without TTL and class. */
const KINDS: readonly (readonly [
  what: string,
  question: string,
  status: string,
  answer: readonly string[],
])[] = [
  ["a cluster address", "storefront.shop.svc A", "NOERROR", ["storefront.shop.svc A 10.96.10.20"]],
  [
    "a named port",
    "_https._tcp.storefront.shop.svc SRV",
    "NOERROR",
    ["_https._tcp.storefront.shop.svc SRV 0 100 443 storefront.shop.svc"],
  ],
  ["two families", "checkout.shop.svc AAAA", "NOERROR", ["checkout.shop.svc AAAA fd00:10:96::23"]],
  ["two families, the other one", "checkout.shop.svc A", "NOERROR", ["checkout.shop.svc A 10.96.10.23"]],
  ["IPv6 alone, asked for IPv4", "search.shop.svc A", "NOERROR", []],
  ["a load balancer", "gateway.shop.svc A", "NOERROR", ["gateway.shop.svc A 10.96.10.21"]],
  ["no endpoints", "returns.shop.svc A", "NOERROR", ["returns.shop.svc A 10.96.10.25"]],
  [
    "a pod of a Service",
    "10-244-1-20.storefront.shop.svc A",
    "NOERROR",
    ["10-244-1-20.storefront.shop.svc A 10.244.1.20"],
  ],
  [
    "headless",
    "orders-db.shop.svc A",
    "NOERROR",
    ["orders-db.shop.svc A 10.244.1.30", "orders-db.shop.svc A 10.244.2.30"],
  ],
  [
    "a pod of a StatefulSet",
    "orders-db-0.orders-db.shop.svc A",
    "NOERROR",
    ["orders-db-0.orders-db.shop.svc A 10.244.1.30"],
  ],
  ["a pod that is not ready", "orders-db-2.orders-db.shop.svc A", "NXDOMAIN", []],
  [
    "not ready, but published",
    "gossip-0.gossip.shop.svc A",
    "NOERROR",
    ["gossip-0.gossip.shop.svc A 10.244.1.32"],
  ],
  ["headless without ports", "workers.shop.svc SRV", "NOERROR", []],
  [
    "a name outside",
    "payments.shop.svc A",
    "NOERROR",
    ["payments.shop.svc CNAME www.example.com.", "www.example.com. A 192.0.2.53"],
  ],
  [
    "another name inside",
    "website.shop.svc A",
    "NOERROR",
    ["website.shop.svc CNAME storefront.shop.svc", "storefront.shop.svc A 10.96.10.20"],
  ],
  [
    "endpoints written by hand",
    "rack-1.warehouse.shop.svc A",
    "NOERROR",
    ["rack-1.warehouse.shop.svc A 192.0.2.40"],
  ],
  ["an address in a name", "10-244-1-20.shop.pod A", "NOERROR", ["10-244-1-20.shop.pod A 10.244.1.20"]],
  ["the version of the rules", "dns-version TXT", "NOERROR", ['dns-version TXT "1.1.0"']],
  [
    "a reverse name",
    "20.10.96.10.in-addr.arpa. PTR",
    "NOERROR",
    ["20.10.96.10.in-addr.arpa. PTR storefront.shop.svc"],
  ],
  ["a name that is not there", "nosuch.shop.svc A", "NXDOMAIN", []],
];

describe("the quickstart", { skip: skipWithout("dig", "kdig", "unbound") }, () => {
  let outside: Peer;
  let server: Portolan;

  before(async () => {
    outside = await Peer.unbound(OUTSIDE);
    const corefile = readFileSync(`${quickstart}/Corefile`, "utf8");
    server = await Portolan.start((port) =>
      corefile
        .replace(".:1053 {", `.:${port("dns")} {`)
        .replace("127.0.0.1:18080", `127.0.0.1:${port("health")}`)
        .replace("127.0.0.1:18181", `127.0.0.1:${port("ready")}`)
        .replace("127.0.0.1:19153", `127.0.0.1:${port("metrics")}`)
        .replace("127.0.0.1:8184", `127.0.0.1:${port("console")}`)
        .replace("manifests manifests", `manifests ${quickstart}/manifests`)
        .replace("/etc/resolv.conf", `127.0.0.1:${outside.port}`),
    );
  });

  after(async () => {
    await server?.[Symbol.asyncDispose]();
    await outside?.[Symbol.asyncDispose]();
  });

  const tour: Tour = JSON.parse(readFileSync(`${quickstart}/try.json`, "utf8"));

  test("has the console where it says", async () => {
    const { port } = new URL(tour.console);
    assert.ok(readFileSync(`${quickstart}/Corefile`, "utf8").includes(`console 127.0.0.1:${port}\n`));
    const { status, body } = await server.page("console", "/");
    assert.equal(status, 200);
    assert.match(body, /<title>.*Portolan/);
  });

  for (const { command, answer } of tour.queries) {
    test(`gives what it says: ${command}`, async () => {
      const [program = "", ...words] = command.replace("-p 1053", `-p ${server.port}`).split(" ");
      const { output } = await run(program, words);
      const lines = (text: string): string[] =>
        text
          .trim()
          .replaceAll(/[\t ]+/g, " ")
          .split("\n")
          .sort();
      assert.deepEqual(lines(output), lines(answer));
    });
  }

  for (const [what, question, status, answer] of KINDS) {
    test(`${what}: ${question}`, async () => {
      const [name = "", type = ""] = question.split(" ");
      const asked = name.endsWith(".") ? name : `${name}.cluster.local.`;
      for (const [client, ...options] of [[dig], [dig, "+tcp"], [kdig], [kdig, "+tcp"]] as const) {
        const reply = await client(server, asked, type, ...options);
        assert.equal(reply.status, status);
        assert.deepEqual(reply.answer.map(shorten).sort(), [...answer].sort());
        assert.ok(reply.flags.includes("aa"));
      }
    });
  }

  test("health, readiness and metrics answer", async () => {
    assert.deepEqual(await server.page("health", "/health"), { status: 200, body: "OK" });
    assert.deepEqual(await server.page("ready", "/ready"), { status: 200, body: "OK" });
    const { body } = await server.page("metrics", "/metrics");
    assert.match(
      body,
      /^coredns_dns_requests_total\{server="dns:\/\/127\.0\.0\.1:\d+",zone="\.",view="",proto="udp",family="1",type="A"\} [1-9]/m,
    );
    assert.match(body, /^coredns_cache_hits_total\{[^}]*type="success"[^}]*\} [1-9]/m);
  });

  test("no error was logged", () => {
    assert.doesNotMatch(server.log, /\[(ERROR|FATAL)\]/);
  });
});

/** Without TTL and class, and without the zone that goes without saying. */
function shorten(record: string): string {
  const [owner, , , ...rest] = record.split(" ");
  return [owner, ...rest].map((word) => (word ?? "").replace(/\.cluster\.local\.$/, "")).join(" ");
}
