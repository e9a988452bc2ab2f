/** An upstream that swallows everything: queries pile up to a bound, the oldest go first, and what needs no upstream is answered. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Rcode } from "../../src/dns/numbers.ts";
import { formatData } from "../../src/dns/resource-record.ts";
import {
  HONEST,
  type ScriptedQuestion,
  ScriptedServer,
  SILENT,
} from "../../src/upstream/fixtures/scripted-server.ts";
import { ask, queryOctets, UdpClient } from "../support/dns-client.ts";
import { askOverTcp } from "../support/kubernetes-rules.ts";
import { counted } from "../support/metrics.ts";
import { Portolan } from "../support/portolan.ts";
import { UdpFlood } from "../support/udp-flood.ts";

/** As many queries wait on a listener. */
const MOST_WAITING = 10_000;
/** V8's limit in a pod of 256 MiB, with the options of the image. With more live data the process ends. */
const POD_HEAP = "--max-old-space-size=128 --max-semi-space-size=4";
/** Far more than any of it takes. */
const PATIENCE = 60_000;

const CLUSTER = `apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec:
  clusterIP: 10.96.0.1
  clusterIPs: ["10.96.0.1"]
  ports: [{ name: http, port: 80 }]
---
apiVersion: v1
kind: Namespace
metadata: { name: shop }
`;

let upstream: ScriptedServer;
before(async () => {
  upstream = await ScriptedServer.start(HONEST);
});
after(() => upstream.stop());

function startServer(env: NodeJS.ProcessEnv, readTimeout: string): Promise<Portolan> {
  return Portolan.start(
    (port) => `.:${port("dns")} {
      bind 127.0.0.1
      health 127.0.0.1:${port("health")}
      prometheus 127.0.0.1:${port("metrics")}
      hosts /dev/null example.com {
        192.0.2.80 www.example.com
      }
      kubernetes cluster.local {
        manifests manifests
      }
      forward . ${upstream.text} {
        read_timeout ${readTimeout}
      }
      cache 3600
    }`,
    { env, files: { "manifests/cluster.yaml": CLUSTER } },
  );
}

const AT_HAND = [
  ["www.example.com.", "192.0.2.80"],
  ["web.shop.svc.cluster.local.", "10.96.0.1"],
  ["cached.outside.example.", "192.0.2.1"],
] as const;

/**
 * What needs no upstream is answered, and the process says that it is alive. During a flood only TCP is asked: over UDP the queue of
 * the kernel in which one's query waits is the one that overflows.
 */
async function checkWhatIsAtHand(
  server: Portolan,
  transports: readonly (typeof askOverTcp)[],
): Promise<void> {
  for (const [name, address] of AT_HAND) {
    for (const askOver of transports)
      assert.deepEqual((await askOver(server, name, "A")).answer.map(formatData), [address], name);
  }
  const denial = await askOverTcp(server, "none.shop.svc.cluster.local.", "A");
  assert.equal(denial.rcode, Rcode.NXDOMAIN);
  assert.equal((await server.page("health", "/health")).status, 200);
}

/** Once the upstream is back and the swallowed queries have timed out, new names are answered. */
async function checkRecovery(server: Portolan): Promise<void> {
  const deadline = performance.now() + PATIENCE;
  for (let attempt = 0; ; attempt++) {
    const { rcode, answer } = await ask(server, `again-${attempt}.outside.example.`);
    if (rcode === Rcode.NOERROR) {
      assert.deepEqual(answer.map(formatData), ["192.0.2.1"]);
      break;
    }
    assert.ok(performance.now() < deadline, "does not recover");
    await pause(20);
  }
  const overTcp = await askOverTcp(server, "over-tcp.outside.example.", "A");
  assert.deepEqual(overTcp.answer.map(formatData), ["192.0.2.1"]);
}

for (const [way, env] of [
  ["by the batch", {}],
  ["by the datagram", { PORTOLAN_UDP: "dgram" }],
] as const) {
  describe(`with a dead upstream the program, receiving ${way},`, () => {
    before(() => {
      upstream.script = HONEST;
    });

    test("gives up the oldest of too many that wait, and those alone", async () => {
      const tooMany = 300;
      const all = MOST_WAITING + tooMany;
      await using server = await startServer(env, "5m");
      await ask(server, "cached.outside.example.");
      upstream.script = SILENT;
      upstream.asked.length = 0;

      await using client = await UdpClient.connect(server);
      const deadline = performance.now() + PATIENCE;
      // In portions that fit into the buffer of any socket on the way: none is lost, and all keep their order.
      for (let id = 0; id < all; ) {
        for (const end = Math.min(id + 100, all); id < end; id++)
          client.send(queryOctets(`n${id}.outside.example.`, "A", id));
        while (upstream.asked.length < id) {
          assert.ok(
            performance.now() < deadline,
            `${upstream.asked.length} of ${id} queries came to the upstream`,
          );
          await new Promise(setImmediate);
        }
      }
      assert.equal(await counted(server, "portolan_dns_shed_total", /reason="waiting"/), tooMany);
      await checkWhatIsAtHand(server, [ask, askOverTcp]);

      // The upstream answers at last, the oldest first.
      const number = (asked: ScriptedQuestion): number => Number(/^n(\d+)\./.exec(asked.name)?.[1]);
      const inOrder = upstream.asked.toSorted((a, b) => number(a) - number(b));
      const answered: number[] = [];
      for (let at = 0; at < all; ) {
        for (const end = Math.min(at + 100, all); at < end; at++) HONEST(inOrder[at] as ScriptedQuestion);
        while (answered.length < at - tooMany) {
          const reply = await client.receive(PATIENCE);
          assert.ok(reply, `${answered.length} answers only`);
          answered.push(Buffer.from(reply).readUInt16BE(0));
        }
      }
      assert.deepEqual(
        answered.sort((a, b) => a - b),
        Array.from({ length: MOST_WAITING }, (_, n) => tooMany + n),
      );
      upstream.script = HONEST;
      await checkRecovery(server);
      assert.equal(await counted(server, "portolan_dns_shed_total", /reason="waiting"/), tooMany);
    });

    test("answers what is at hand during a flood of other names, within its memory, and recovers", async (t) => {
      await using server = await startServer({ ...env, NODE_OPTIONS: POD_HEAP }, "3s");
      await ask(server, "cached.outside.example.");
      upstream.script = SILENT;
      let mostMemory = 0;
      {
        await using _flood = new UdpFlood(server, ["unknown", "unknown"]);
        const deadline = performance.now() + PATIENCE;
        for (let shed = 0; shed < MOST_WAITING; ) {
          await checkWhatIsAtHand(server, [askOverTcp]);
          shed = await counted(server, "portolan_dns_shed_total", /reason="waiting"/);
          mostMemory = Math.max(mostMemory, server.residentMemory);
          assert.ok(performance.now() < deadline, `${shed} given up only`);
        }
      }
      t.diagnostic(`${Math.round(mostMemory / 2 ** 20)} MiB at most`);
      assert.ok(mostMemory < 512 * 2 ** 20, `${mostMemory} octets`);
      upstream.script = HONEST;
      upstream.asked.length = 0;
      await checkRecovery(server);
      await checkWhatIsAtHand(server, [ask, askOverTcp]);
      assert.deepEqual(await server.stop(), { code: 0, signal: null });
      assert.equal(server.program.errors, "");
    });
  });
}
