/** External names of Services, and the search path of a pod, from the running program: this machine is the pod. */
import assert from "node:assert/strict";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { dig } from "../support/dig.ts";
import { counted } from "../support/metrics.ts";
import { Peer } from "../support/peers.ts";
import { Portolan } from "../support/portolan.ts";

const NAMESPACES = ["shop", "blog"].map(
  (name) => `apiVersion: v1\nkind: Namespace\nmetadata: { name: ${name} }\n---\n`,
);

const services = (external: string) => `${NAMESPACES.join("")}
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec:
  clusterIP: 10.96.0.1
  externalIPs: [${external}]
  ports: [{ name: http, port: 80 }]
---
apiVersion: v1
kind: Service
metadata: { name: api, namespace: blog }
spec: { type: LoadBalancer, clusterIP: 10.96.0.2, ports: [{ name: http, port: 80 }] }
status: { loadBalancer: { ingress: [{ hostname: lb.example.com }] } }
`;

/** The pod that this machine is. */
const pod = (namespace: string, spec = "{}") => `apiVersion: v1
kind: Pod
metadata: { name: client, namespace: ${namespace} }
spec: ${spec}
status: { phase: Running, podIP: 127.0.0.1 }
`;

const OUTSIDE = ["www.example.com. 60 IN A 203.0.113.1", "lb.example.com. 60 IN A 203.0.113.7"];
const TYPED = "www.example.com.shop.svc.cluster.local";
const FOUND = [`${TYPED}. TTL IN CNAME www.example.com.`, "www.example.com. TTL IN A 203.0.113.1"];

/** TTLs count down in a cache. */
const withoutTtl = (text: string) => text.replace(/ \d+ IN /, " TTL IN ");

async function answersTo(server: Portolan, ...words: readonly string[]): Promise<readonly string[]> {
  const { status, answer } = await dig(server, ...words);
  return answer.length === 0 ? [status] : answer.map(withoutTtl);
}

/** Asks until the answer is this one. */
async function untilAnswer(
  server: Portolan,
  words: readonly string[],
  expected: readonly string[],
): Promise<void> {
  const end = performance.now() + 30_000;
  let seen = await answersTo(server, ...words);
  while (seen.join() !== expected.join() && performance.now() < end) {
    await pause(50);
    seen = await answersTo(server, ...words);
  }
  assert.deepEqual(seen, expected, server.log);
}

function rewrite(server: Portolan, file: string, text: string): void {
  const path = join(server.folder, file);
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}

for (const threads of [1, 2]) {
  describe(`on ${threads} thread(s)`, { skip: skipWithout("unbound", "dig") }, () => {
    let outside: Peer;
    let server: Portolan;

    before(async () => {
      outside = await Peer.unbound(OUTSIDE);
      const files = { "manifests/services.yaml": services("192.0.2.1"), "manifests/pod.yaml": pod("shop") };
      server = await Portolan.start(
        (port) => `.:${port("dns")} {
          bind 127.0.0.1
          multisocket ${threads}
          errors
          prometheus 127.0.0.1:${port("metrics")}
          autopath @kubernetes
          cache 3600
          k8s_external example.org 192.0.2.0/24 {
            ttl 3600
          }
          kubernetes cluster.local {
            ttl 3600
            pods verified
            manifests manifests
          }
          forward . 127.0.0.1:${outside.port}
        }`,
        { files },
      );
    });

    after(async () => {
      await server?.[Symbol.asyncDispose]();
      await outside?.[Symbol.asyncDispose]();
    });

    test("one query finds a name of the Internet, a service in another namespace, and nothing", async () => {
      for (let round = 0; round < 4; round++) assert.deepEqual(await answersTo(server, TYPED, "A"), FOUND);
      assert.deepEqual(await answersTo(server, "web.shop.svc.cluster.local", "A"), [
        "web.shop.svc.cluster.local. TTL IN A 10.96.0.1",
      ]);
      assert.deepEqual(await answersTo(server, "web.shop.shop.svc.cluster.local", "A"), [
        "web.shop.shop.svc.cluster.local. TTL IN CNAME web.shop.svc.cluster.local.",
        "web.shop.svc.cluster.local. TTL IN A 10.96.0.1",
      ]);
      const { status, authority } = await dig(server, "no.such.name.shop.svc.cluster.local", "A");
      assert.equal(status, "NXDOMAIN");
      assert.match(authority.join(), /^cluster\.local\. \d+ IN SOA /);
      assert.deepEqual(await answersTo(server, "www.example.com.blog.svc.cluster.local", "A"), ["NXDOMAIN"]);
      assert.equal(await counted(server, "coredns_autopath_success_total"), 6);
    });

    test("services have their external addresses in the zone outside", async () => {
      assert.deepEqual(await answersTo(server, "web.shop.example.org", "A"), [
        "web.shop.example.org. TTL IN A 192.0.2.1",
      ]);
      const { answer, additional } = await dig(server, "_http._tcp.web.shop.example.org", "SRV");
      assert.deepEqual(answer, [
        "_http._tcp.web.shop.example.org. 3600 IN SRV 0 100 80 web.shop.example.org.",
      ]);
      assert.ok(additional.includes("web.shop.example.org. 3600 IN A 192.0.2.1"));
      assert.deepEqual(await answersTo(server, "-x", "192.0.2.1"), [
        "1.2.0.192.in-addr.arpa. TTL IN PTR web.shop.example.org.",
      ]);
      assert.deepEqual(await answersTo(server, "api.blog.example.org", "A"), [
        "api.blog.example.org. TTL IN CNAME lb.example.com.",
        "lb.example.com. TTL IN A 203.0.113.7",
      ]);
      assert.deepEqual(await answersTo(server, "example.org", "NS"), [
        "example.org. TTL IN NS ns1.dns.example.org.",
      ]);
      assert.deepEqual(await answersTo(server, "api.shop.example.org", "A"), ["NXDOMAIN"]);
      assert.deepEqual(await answersTo(server, "-x", "192.0.2.2"), ["NXDOMAIN"]);
    });

    test("a new external address is told at once, whatever the cache had", async () => {
      rewrite(server, "manifests/services.yaml", services("192.0.2.2"));
      const named = ["web.shop.example.org. TTL IN A 192.0.2.2"];
      await untilAnswer(server, ["web.shop.example.org", "A"], named);
      await untilAnswer(
        server,
        ["-x", "192.0.2.2"],
        ["2.2.0.192.in-addr.arpa. TTL IN PTR web.shop.example.org."],
      );
      await untilAnswer(server, ["-x", "192.0.2.1"], ["NXDOMAIN"]);
    });

    test("a client on its node's network, or of another namespace, is left alone", async () => {
      rewrite(server, "manifests/pod.yaml", pod("shop", "{ hostNetwork: true }"));
      await untilAnswer(server, [TYPED, "A"], ["NXDOMAIN"]);
      rewrite(server, "manifests/pod.yaml", pod("shop"));
      await untilAnswer(server, [TYPED, "A"], FOUND);
      rewrite(server, "manifests/pod.yaml", pod("blog"));
      await untilAnswer(server, [TYPED, "A"], ["NXDOMAIN"]);
      await untilAnswer(
        server,
        ["web.shop.blog.svc.cluster.local", "A"],
        [
          "web.shop.blog.svc.cluster.local. TTL IN CNAME web.shop.svc.cluster.local.",
          "web.shop.svc.cluster.local. TTL IN A 10.96.0.1",
        ],
      );
    });
  });
}
