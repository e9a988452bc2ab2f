/** Ten reloads while clients ask without pause: no query is lost, and none is answered wrongly. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { formatData } from "../../src/dns/resource-record.ts";
import { ask } from "../support/dns-client.ts";
import { dnsperf, type LoadReport } from "../support/dnsperf.ts";
import { Peer } from "../support/peers.ts";
import { type CorefileWriter, Portolan, projectRoot } from "../support/portolan.ts";

const SECONDS = Number(process.env.PORTOLAN_LOAD_SECONDS ?? 30);
const RELOADS = 10;

const QUESTIONS = [
  "web.shop.svc.cluster.local A",
  "_sql._tcp.db.shop.svc.cluster.local SRV",
  "5.20.96.10.in-addr.arpa PTR",
  "generation.example A",
  ...Array.from({ length: 200 }, (_, n) => `host-${n}.outside A`),
];

const skip = skipWithout("dnsperf", "unbound");

test(`no query is lost in ${SECONDS} seconds with ${RELOADS} reloads`, { skip }, async (t) => {
  await using upstream = await Peer.unbound(
    Array.from({ length: 200 }, (_, n) => `host-${n}.outside. 300 IN A 192.0.2.${n}`),
  );
  /** Each generation differs from the others by one address. */
  const generation =
    (number: number): CorefileWriter =>
    (port) =>
      `.:${port("dns")} {
      bind 127.0.0.1
      errors
      health 127.0.0.1:${port("health")}
      ready 127.0.0.1:${port("ready")}
      prometheus 127.0.0.1:${port("metrics")}
      hosts {
        203.0.113.${number} generation.example
        fallthrough
      }
      kubernetes cluster.local in-addr.arpa ip6.arpa {
        manifests ${join(projectRoot, "test/fixtures/kubernetes")}
        fallthrough in-addr.arpa ip6.arpa
      }
      forward . 127.0.0.1:${upstream.port}
      cache 30
      reload 2s 0s
      loadbalance
    }`;
  await using server = await Portolan.start(generation(0));
  const load = { questions: QUESTIONS, seconds: SECONDS };
  const loads = Promise.all([
    dnsperf(server, { ...load, queriesPerSecond: 4_000, clients: 4 }),
    dnsperf(server, { ...load, queriesPerSecond: 500, clients: 4, transport: "tcp" }),
  ]);

  const start = performance.now();
  for (let number = 1; number <= RELOADS; number++) {
    const written = server.log.length;
    // By turns told by a signal, and left to be noticed by the plugin.
    if (number % 2 === 0) await server.reload(generation(number));
    else {
      server.writeCorefile(generation(number)(server.portOf));
      await server.waitForLog(/Reloading complete/, written);
    }
    const { answer } = await ask(server, "generation.example");
    assert.deepEqual(answer.map(formatData), [`203.0.113.${number}`]);
    const due = start + (number * 1000 * SECONDS) / (RELOADS + 1);
    await pause(Math.max(0, due - performance.now()));
  }

  const [udp, tcp] = await loads;
  assert.ok((performance.now() - start) / 1000 >= SECONDS - 1);
  assert.ok((server.log.match(/Reloading complete/g) ?? []).length >= RELOADS);
  for (const report of [udp, tcp]) checkNothingLost(report);
  t.diagnostic(
    `${udp.sent} queries over UDP, ${tcp.sent} over TCP, the slowest ${Math.max(udp.maxLatency, tcp.maxLatency)} s`,
  );
  assert.ok(udp.sent > 500 * SECONDS && tcp.sent > 50 * SECONDS, "the load was less than meant");
  assert.doesNotMatch(server.log, /\[(ERROR|FATAL)\]/);
  assert.equal(server.program.errors, "");
});

function checkNothingLost({ sent, completed, lost, rcodes, text }: LoadReport): void {
  assert.equal(lost, 0, text);
  assert.equal(completed, sent, text);
  assert.deepEqual([...rcodes], [["NOERROR", sent]], text);
}
