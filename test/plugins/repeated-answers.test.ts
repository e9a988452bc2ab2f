/** The same questions over and over: what a client gets then, and what the metrics say of it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { decodeMessage } from "../../src/dns/message.ts";
import { queryOctets, UdpClient } from "../support/dns-client.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { counted } from "../support/metrics.ts";
import { Portolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const TEMPLATE = `template IN A {
      match ^one
      answer "{{ .Name }} 30 IN A 192.0.2.1"
      fallthrough
    }
    template IN A {
      answer "{{ .Name }} 30 IN A 192.0.2.1"
      answer "{{ .Name }} 30 IN A 192.0.2.2"
    }`;

for (const threads of [1, 2]) {
  test(`each query is counted once, with ${threads === 1 ? "one thread" : "two threads"}`, async () => {
    await using server = await Portolan.start(
      (port) => `.:${port("dns")} {
    multisocket ${threads}
    errors
    prometheus :${port("metrics")}
    loadbalance
    cache 30
    ${TEMPLATE}
}
`,
    );
    const names = ["one.example.", "oneself.example.", "several.example."];
    const clients = await Promise.all(Array.from({ length: 4 }, () => UdpClient.connect(server)));
    let queries = 0;
    const lowest = new Map<string, number>();
    const orders = new Set<string>();
    // Until each answer has grown older, and both orders have come.
    const hasEnough = () => orders.size === 2 && names.every((name) => (lowest.get(name) ?? 30) < 30);
    const ask = async () => {
      for (const client of clients) {
        for (const name of names) {
          queries++;
          client.send(queryOctets(name, "A", queries));
          const octets = await client.receive();
          assert.ok(octets !== undefined);
          const reply = decodeMessage(octets);
          assert.equal(reply.id, queries);
          assert.equal(reply.questions[0]?.name.toString(), name);
          assert.equal(reply.answer.length, name.startsWith("one") ? 1 : 2);
          if (name.startsWith("several")) orders.add(JSON.stringify(reply.answer.map(({ data }) => data)));
          const ttl = reply.answer[0]?.ttl ?? Number.NaN;
          assert.ok(ttl <= (lowest.get(name) ?? 30), `the TTL of ${name} grows: ${ttl}`);
          lowest.set(name, ttl);
        }
      }
    };
    await ask();
    await untilTrue(hasEnough, {
      between: ask,
      what: "TTLs below 30, and both orders of addresses",
      log: () => JSON.stringify([...lowest]),
    });
    for (const client of clients) await client[Symbol.asyncDispose]();
    // A follower reports once a second.
    for (let wait = 0; wait < 30 && (await counted(server, "coredns_dns_requests_total")) < queries; wait++)
      await pause(100);
    const hits = await counted(server, "coredns_cache_hits_total");
    const misses = await counted(server, "coredns_cache_misses_total");
    assert.equal(hits + misses, queries);
    assert.ok(misses <= names.length * threads, `${misses} misses`);
    for (const family of [
      "coredns_dns_requests_total",
      "coredns_dns_responses_total",
      "coredns_dns_request_duration_seconds_count",
      "coredns_dns_request_size_bytes_count",
      "coredns_dns_response_size_bytes_count",
      "coredns_cache_requests_total",
    ])
      assert.equal(await counted(server, family), queries, family);
    assert.equal(
      await counted(
        server,
        "coredns_dns_responses_total",
        /plugin="cache",rcode="NOERROR"|rcode="NOERROR".*plugin="cache"/,
      ),
      hits,
    );
  });
}

for (const [title, lines, record] of [
  ["mail exchangers", "loadbalance", "MX"],
  ["addresses of which some are preferred", "loadbalance round_robin {\n prefer 192.0.3.0/24\n }", "A"],
] as const) {
  test(`${title} change places each time`, async () => {
    await using server = await Portolan.start(
      (port) => `.:${port("dns")} {
    ${lines}
    cache 30
    template IN MX {
      answer "{{ .Name }} 30 IN MX 10 a.example."
      answer "{{ .Name }} 30 IN MX 10 b.example."
    }
    template IN A {
      answer "{{ .Name }} 30 IN A 192.0.2.1"
      answer "{{ .Name }} 30 IN A 192.0.2.2"
    }
}
`,
    );
    await using client = await UdpClient.connect(server);
    const orders = new Set<string>();
    for (let time = 0; time < 60; time++) {
      client.send(queryOctets("several.example.", record));
      const octets = await client.receive();
      assert.ok(octets !== undefined);
      orders.add(JSON.stringify(decodeMessage(octets).answer.map(({ data }) => data)));
    }
    assert.equal(orders.size, 2);
  });
}

describe("a Service of the cluster", () => {
  for (const cache of ["", "cache 30"]) {
    test(`that changes is answered anew at once, ${cache === "" ? "without cache" : "with cache"}`, async () => {
      const api = await ApiSimulator.start();
      const put = (last: number) =>
        api.put("services", {
          metadata: { name: "web", namespace: "default" },
          spec: { clusterIP: `10.96.0.${last}` },
        });
      put(1);
      try {
        await using server = await Portolan.start(
          (port) => `.:${port("dns")} {
    errors
    kubernetes cluster.local {
      endpoint ${api.url}
    }
    ${cache}
}
`,
        );
        await using client = await UdpClient.connect(server);
        let id = 0;
        const ask = async (): Promise<unknown> => {
          client.send(queryOctets("web.default.svc.cluster.local.", "A", ++id));
          const octets = await client.receive();
          assert.ok(octets !== undefined);
          const reply = decodeMessage(octets);
          assert.equal(reply.id, id);
          return reply.answer[0]?.data;
        };
        // Until Services are listed, there may be no answer yet.
        for (const end = performance.now() + 10_000; (await ask()) === undefined; )
          assert.ok(performance.now() < end, "the Service never comes");
        for (let last = 2; last < 20; last++) {
          put(last);
          const wanted = `10.96.0.${last}`;
          const end = performance.now() + 10_000;
          for (
            let answer = await ask();
            !isDeepStrictEqual(answer, { address: wanted });
            answer = await ask()
          ) {
            // It is changed, and never gone.
            assert.deepEqual(answer, { address: `10.96.0.${last - 1}` });
            assert.ok(performance.now() < end, `${wanted} never comes`);
          }
          // From then on the old one does not come again.
          for (let time = 0; time < 20; time++) assert.deepEqual(await ask(), { address: wanted });
        }
      } finally {
        await api.close();
      }
    });
  }
});
