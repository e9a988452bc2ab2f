/** `multisocket` in the real program: several threads on one port that look like one server. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { A } from "../../src/dns/index.ts";
import { HONEST, ScriptedServer } from "../../src/upstream/fixtures/scripted-server.ts";
import { ask, exchangeUdp, queryOctets } from "../support/dns-client.ts";
import { Portolan, runPortolan } from "../support/portolan.ts";

const service = (name: string, address: string): string => `apiVersion: v1
kind: Service
metadata: { name: ${name}, namespace: shop }
spec:
  clusterIP: ${address}
  clusterIPs: ["${address}"]
  ports: [{ name: http, port: 80 }]
---
apiVersion: v1
kind: Namespace
metadata: { name: shop }
`;

const files = { "manifests/web.yaml": service("web", "10.96.0.1") };

const corefile =
  (planes: number, more = "") =>
  (port: (name: string) => number): string =>
    `.:${port("dns")} {
  multisocket ${planes}
  prometheus 127.0.0.1:${port("metrics")}
  health 127.0.0.1:${port("health")}
  ready 127.0.0.1:${port("ready")}
  errors
  kubernetes cluster.local {
    manifests manifests
  }
  ${more}
}
`;

const NAME = "web.shop.svc.cluster.local.";

/** The addresses that many clients get, each from a socket of its own: every thread has its share. */
async function answers(server: Portolan, name = NAME, times = 40): Promise<string[]> {
  const messages = await Promise.all(Array.from({ length: times }, () => ask(server, name)));
  const addresses = messages.map(({ answer: [record] }) =>
    record !== undefined && A.is(record) ? record.data.address : "none",
  );
  return [...new Set(addresses)];
}

async function untilAll(server: Portolan, name: string, address: string): Promise<void> {
  const deadline = performance.now() + 20_000;
  while ((await answers(server, name)).join() !== address) {
    if (performance.now() > deadline) throw new Error(`not everywhere ${address}:\n${server.log}`);
    await sleep(20);
  }
}

function sumOf(metrics: string, pattern: RegExp): number {
  return metrics
    .split("\n")
    .filter((line) => pattern.test(line))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

describe("multisocket 2", () => {
  test("is one server: data, metrics, readiness, reload and stop", async () => {
    await using server = await Portolan.start(corefile(2), { files });
    await untilAll(server, NAME, "10.96.0.1");
    const before = await server.page("metrics", "/metrics");
    // None is sent again where the answer is late.
    await Promise.all(Array.from({ length: 100 }, () => exchangeUdp(server, queryOctets(NAME))));
    const { body } = await server.page("metrics", "/metrics");
    const requests = /^coredns_dns_requests_total\{.*type="A"/;
    assert.equal(sumOf(body, requests) - sumOf(before.body, requests), 100);
    assert.equal(sumOf(body, /^portolan_data_planes /), 2);
    assert.equal(sumOf(body, /^coredns_build_info/), 1);
    assert.equal((await server.page("ready", "/ready")).status, 200);
    assert.equal((await server.page("health", "/health")).status, 200);

    mkdirSync(join(server.folder, "manifests"), { recursive: true });
    writeFileSync(join(server.folder, "manifests/web.yaml"), service("web", "10.96.0.2"));
    await untilAll(server, NAME, "10.96.0.2");
    writeFileSync(join(server.folder, "manifests/new.yaml"), service("new", "10.96.0.3"));
    await untilAll(server, "new.shop.svc.cluster.local.", "10.96.0.3");

    assert.match(await server.reload(corefile(3)), /Reloading complete/);
    assert.deepEqual(await answers(server), ["10.96.0.2"]);
    assert.equal(sumOf((await server.page("metrics", "/metrics")).body, /^portolan_data_planes /), 3);
    // The threads that were there and the new one follow the cluster that the reload has taken over.
    const change = async (address: string): Promise<void> => {
      writeFileSync(join(server.folder, "manifests/web.yaml"), service("web", address));
      await untilAll(server, NAME, address);
    };
    await change("10.96.0.4");
    assert.match(await server.reload(corefile(2, "rubbish")), /Restart failed/);
    await change("10.96.0.5");
    assert.match(await server.reload(corefile(2)), /Reloading complete/);
    assert.match(await server.reload(corefile(2)), /Reloading complete/);
    await change("10.96.0.2");
    assert.match(await server.reload(corefile(1)), /Reloading complete/);
    assert.deepEqual(await answers(server), ["10.96.0.2"]);
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    // Behind the first line, there is the place in the Corefile.
    assert.doesNotMatch(
      server.log,
      /\[ERROR\] (?!Restart failed|SIGUSR1: starting with listener file descriptors| )|data plane/,
    );
  });

  test("has one cache: what one thread has learnt all answer, and a change is forgotten by all", async () => {
    const upstream = await ScriptedServer.start(HONEST);
    try {
      const more = `cache\n  forward . ${upstream.text}`;
      await using server = await Portolan.start(corefile(2, more), { files });
      await untilAll(server, NAME, "10.96.0.1");
      await ask(server, "shared.example.");
      await answers(server, "shared.example.", 60);
      assert.equal(upstream.asked.filter(({ name }) => name === "shared.example.").length, 1);
      // Both names have one entry, whoever learnt them; that of the cluster lasts for five seconds.
      await ask(server, NAME);
      const { body } = await server.page("metrics", "/metrics");
      assert.equal(sumOf(body, /^coredns_cache_entries\{.*type="success"/), 2);

      writeFileSync(join(server.folder, "manifests/web.yaml"), service("web", "10.96.0.9"));
      await untilAll(server, NAME, "10.96.0.9");
      for (let round = 0; round < 5; round++) assert.deepEqual(await answers(server), ["10.96.0.9"]);
    } finally {
      await upstream.stop();
    }
  });

  test("ends all threads on SIGTERM, and on SIGINT", async () => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      await using server = await Portolan.start(corefile(2), { files });
      assert.deepEqual(await server.stop(signal), { code: 0, signal: null });
      assert.equal(server.program.errors, "");
    }
  });

  test("refuses a port that another program has", async () => {
    await using server = await Portolan.start(corefile(2), { files });
    for (const planes of [1, 2]) {
      server.writeCorefile(`.:${server.port} {\n multisocket ${planes}\n whoami\n}\n`);
      const { code, errors } = await runPortolan(["-conf", "Corefile"], { cwd: server.folder });
      assert.equal(code, 1);
      assert.match(errors, /cannot listen on tcp :\d+: the address is in use by another program/);
    }
  });

  test("finds a loop, whichever thread it goes through", async () => {
    const ends = await Portolan.start(
      (port) => `.:${port("dns")} {\n multisocket 3\n loop\n forward . 127.0.0.1:${port("dns")}\n}\n`,
    ).then(
      async (server) => {
        await using running = server;
        return (await running.program.end()).code;
      },
      // It had ended before it answered anything.
      (error: unknown) => (String(error).includes("plugin/loop: Loop") ? 1 : error),
    );
    assert.equal(ends, 1);
  });
});
