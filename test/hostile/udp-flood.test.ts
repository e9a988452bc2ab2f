/** A flood of UDP queries starves nothing else: TCP, the HTTP endpoints and the watch of the cluster go on. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Rcode } from "../../src/dns/numbers.ts";
import { formatData } from "../../src/dns/resource-record.ts";
import { ask, queryOctets, TcpClient } from "../support/dns-client.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { askOverTcp } from "../support/kubernetes-rules.ts";
import { counted } from "../support/metrics.ts";
import { Portolan } from "../support/portolan.ts";
import { type FloodKind, UdpFlood } from "../support/udp-flood.ts";

/** Far more than any of it takes, on any machine: what starves does not come at all. */
const PATIENCE = 30_000;
const ROUNDS = 5;
const SENDERS: readonly FloodKind[] = ["answerable", "answerable", "rubbish"];

const UDP = /\bproto="udp"/;

function putService(api: ApiSimulator, name: string, clusterIP: string): void {
  api.put("services", {
    metadata: { name, namespace: "shop" },
    spec: { clusterIP, clusterIPs: [clusterIP], ports: [{ name: "http", port: 80, protocol: "TCP" }] },
  });
}

/** Asks over TCP, each time on a new connection, until the answer is this one. */
async function untilAnswered(server: Portolan, name: string, rcode: number, data: string[]): Promise<void> {
  const deadline = performance.now() + PATIENCE;
  for (;;) {
    const reply = await askOverTcp(server, name, "A");
    const found = reply.answer.map(formatData);
    if (reply.rcode === rcode && found.join() === data.join()) return;
    assert.ok(performance.now() < deadline, `${name} is still ${reply.rcode} ${found}:\n${server.log}`);
  }
}

describe("while several senders flood it with UDP, the program", () => {
  for (const [way, env] of [
    ["by the batch", {}],
    ["by the datagram", { PORTOLAN_UDP: "dgram" }],
  ] as const) {
    test(`receiving ${way}, answers over TCP and HTTP, and follows the cluster`, async (t) => {
      await using api = await ApiSimulator.start();
      api.put("namespaces", { metadata: { name: "shop" } });
      putService(api, "web", "10.96.0.1");
      await using server = await Portolan.start(
        (port) => `.:${port("dns")} {
          bind 127.0.0.1
          errors
          timeouts {
            read 10m
            idle 10m
          }
          health 127.0.0.1:${port("health")}
          ready 127.0.0.1:${port("ready")}
          prometheus 127.0.0.1:${port("metrics")}
          hosts /dev/null example.com {
            192.0.2.1 www.example.com
          }
          kubernetes cluster.local {
            endpoint ${api.url}
          }
          cache 30
        }`,
        { env },
      );
      const before = await counted(server, "coredns_dns_requests_total", UDP);
      await using flood = new UdpFlood(server, SENDERS);
      await using connection = await TcpClient.connect(server);
      const deadline = performance.now() + PATIENCE;
      for (const [name, least] of [
        ["coredns_dns_requests_total", before + 10_000],
        ["portolan_dns_rejected_messages_total", 1_000],
        ["portolan_dns_ignored_messages_total", 1_000],
      ] as const) {
        while ((await counted(server, name)) < least)
          assert.ok(performance.now() < deadline, `there was no flood: ${name}`);
      }

      for (let round = 1; round <= ROUNDS; round++) {
        putService(api, `new-${round}`, `10.96.1.${round}`);
        await untilAnswered(server, `new-${round}.shop.svc.cluster.local.`, Rcode.NOERROR, [
          `10.96.1.${round}`,
        ]);
        api.delete("services", "shop", `new-${round}`);
        await untilAnswered(server, `new-${round}.shop.svc.cluster.local.`, Rcode.NXDOMAIN, []);
        assert.deepEqual(await server.page("health", "/health"), { status: 200, body: "OK" });
        assert.deepEqual(await server.page("ready", "/ready"), { status: 200, body: "OK" });
        connection.send(queryOctets("www.example.com."));
        assert.ok(await connection.receive(PATIENCE), "no answer on a connection from before the flood");
      }

      const during = (await counted(server, "coredns_dns_requests_total", UDP)) - before;
      const sent = await flood.stop();
      t.diagnostic(`${sent.join(", ")} datagrams sent, ${during} queries answered over UDP`);
      const { answer } = await ask(server, "web.shop.svc.cluster.local.");
      assert.deepEqual(answer.map(formatData), ["10.96.0.1"]);
      assert.deepEqual(await server.stop(), { code: 0, signal: null });
      assert.doesNotMatch(server.log, /\[(ERROR|FATAL)\]/);
      assert.equal(server.program.errors, "");
    });
  }
});
