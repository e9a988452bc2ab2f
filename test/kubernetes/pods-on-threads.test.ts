/** Pods in memory that all threads read: every thread gives the same answers, while pods come and go. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { rcodeName } from "../../src/dns/index.ts";
import { ask, exchangeUdp, queryOctets } from "../support/dns-client.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { Portolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

/** A thread that is asked for it ends, if it is not the first one. */
const ENDER = `import { isMainThread } from "node:worker_threads";
import { bareDirective, definePlugin } from "portolan/plugin";
export default definePlugin({
  name: "ender",
  summary: "Ends its thread.",
  config: bareDirective(),
  create: () => ({
    handle(query, next) {
      if (query.name.labelText(0) === "end" && !isMainThread) process.exit(7);
      return next(query);
    },
  }),
});
`;

class Cluster implements AsyncDisposable {
  readonly api: ApiSimulator;
  readonly server: Portolan;

  private constructor(api: ApiSimulator, server: Portolan) {
    this.api = api;
    this.server = server;
  }

  static async start(threads: number): Promise<Cluster> {
    const api = await ApiSimulator.start();
    for (const name of ["shop", "blog"]) api.put("namespaces", { metadata: { name } });
    for (let pod = 0; pod < STEADY; pod++) put(api, "shop", `steady-${pod}`, steadyAddress(pod));
    const server = await Portolan.start(corefile(api, threads), {
      files: { "ender.ts": ENDER },
      args: ["-plugin", "ender:./ender.ts"],
    });
    return new Cluster(api, server);
  }

  async threads(count: number): Promise<void> {
    assert.match(await this.server.reload(corefile(this.api, count)), /Reloading complete/);
  }

  /** The answers to many clients, each with a socket of its own, so that every thread gets its share. */
  async answers(address: string, namespace: string, clients = 24): Promise<string> {
    const name = `${address.replaceAll(".", "-")}.${namespace}.pod.cluster.local.`;
    const replies = await Promise.all(Array.from({ length: clients }, () => ask(this.server, name)));
    return [...new Set(replies.map(({ rcode }) => rcodeName(rcode)))].sort().join();
  }

  /** Waits until all threads say the same of an address in both namespaces. */
  async until(address: string, shop: string, blog: string): Promise<void> {
    const deadline = performance.now() + 60_000;
    let seen: readonly string[] = [];
    do {
      if (performance.now() > deadline) assert.fail(`${address}: ${seen.join("; ")}\n${this.server.log}`);
      if (seen.length > 0) await sleep(20);
      seen = [await this.answers(address, "shop"), await this.answers(address, "blog")];
    } while (seen[0] !== shop || seen[1] !== blog);
  }

  async dataPlanes(): Promise<number> {
    const { body } = await this.server.page("metrics", "/metrics");
    return Number(/^portolan_data_planes (\d+)$/m.exec(body)?.[1]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
    await this.api.close();
  }
}

/** Pods that stay as they are. */
const STEADY = 50;
const steadyAddress = (pod: number): string => `10.1.0.${pod}`;

interface PodFacts {
  readonly spec?: { readonly hostNetwork: boolean };
  readonly phase?: string;
}

function put(api: ApiSimulator, namespace: string, name: string, podIP: string, facts: PodFacts = {}): void {
  const { spec = {}, phase = "Running" } = facts;
  api.put("pods", { metadata: { name, namespace }, spec, status: { phase, podIP, podIPs: [{ ip: podIP }] } });
}

const corefile = (api: ApiSimulator, threads: number) => (port: (name: string) => number) =>
  `.:${port("dns")} {
  multisocket ${threads}
  prometheus 127.0.0.1:${port("metrics")}
  errors
  ender
  kubernetes cluster.local {
    endpoint ${api.url}
    pods verified
  }
}
`;

test("all threads answer for the same pods, those that come later or in the place of one that ended as well", {
  timeout: 300_000,
}, async () => {
  await using cluster = await Cluster.start(2);
  const { api } = cluster;
  await cluster.until(steadyAddress(0), "NOERROR", "NXDOMAIN");
  put(api, "shop", "web-1", "10.2.0.1");
  await cluster.until("10.2.0.1", "NOERROR", "NXDOMAIN");

  // The address goes to a pod elsewhere.
  api.delete("pods", "shop", "web-1");
  put(api, "blog", "page-1", "10.2.0.1");
  await cluster.until("10.2.0.1", "NXDOMAIN", "NOERROR");

  // Pods on their node's network share its address, and one that is over has none.
  put(api, "shop", "agent-1", "10.2.0.2", { spec: { hostNetwork: true } });
  put(api, "blog", "agent-2", "10.2.0.2", { spec: { hostNetwork: true } });
  await cluster.until("10.2.0.2", "NOERROR", "NOERROR");
  put(api, "shop", "agent-1", "10.2.0.2", { spec: { hostNetwork: true }, phase: "Succeeded" });
  await cluster.until("10.2.0.2", "NXDOMAIN", "NOERROR");

  // A thread that comes later, and one in the place of another.
  await cluster.threads(3);
  await cluster.until("10.2.0.2", "NXDOMAIN", "NOERROR");
  await cluster.until(steadyAddress(1), "NOERROR", "NXDOMAIN");
  const ended = /\[ERROR\] The thread of data plane \d ended/;
  // The kernel chooses the thread. One that ends says nothing more.
  await untilTrue(() => ended.test(cluster.server.log), {
    what: "a thread has ended",
    log: () => cluster.server.log,
    between: () => exchangeUdp(cluster.server, queryOctets("end."), 200),
  });
  put(api, "shop", "web-2", "10.2.0.3");
  const deadline = performance.now() + 60_000;
  while ((await cluster.dataPlanes()) < 3) {
    assert.ok(performance.now() < deadline, cluster.server.log);
    await sleep(50);
  }
  await cluster.until("10.2.0.3", "NOERROR", "NXDOMAIN");
  await cluster.until("10.2.0.1", "NXDOMAIN", "NOERROR");

  // Everything is listed again, less what went meanwhile.
  api.cutConnections();
  api.delete("pods", "blog", "page-1");
  put(api, "shop", "web-3", "10.2.0.4");
  api.storage.compact();
  await cluster.until("10.2.0.4", "NOERROR", "NXDOMAIN");
  await cluster.until("10.2.0.1", "NXDOMAIN", "NXDOMAIN");
  await cluster.until(steadyAddress(2), "NOERROR", "NXDOMAIN");
});

test("pods that nothing happens to are there in every thread while thousands come and go", {
  timeout: 300_000,
}, async () => {
  await using cluster = await Cluster.start(2);
  const { api } = cluster;
  await cluster.until(steadyAddress(0), "NOERROR", "NXDOMAIN");
  for (let round = 0; round < 40; round++) {
    // So many that columns move, and every answer is made anew.
    for (let pod = 0; pod < 100; pod++) {
      const number = round * 100 + pod;
      const address = `10.3.${number >> 8}.${number & 0xff}`;
      put(api, number % 2 === 0 ? "shop" : "blog", `web-${number % 9}-${number}`, address);
      if (number >= 1_000)
        api.delete(
          "pods",
          number % 2 === 0 ? "shop" : "blog",
          `web-${(number - 1_000) % 9}-${number - 1_000}`,
        );
    }
    const steady = steadyAddress(round % STEADY);
    assert.equal(await cluster.answers(steady, "shop", 8), "NOERROR");
    assert.equal(await cluster.answers(steady, "blog", 8), "NXDOMAIN");
  }
  await cluster.until("10.3.15.159", "NXDOMAIN", "NOERROR");
  await cluster.until("10.3.11.0", "NXDOMAIN", "NXDOMAIN");
  assert.doesNotMatch(cluster.server.log, /\[ERROR\]/);
});
