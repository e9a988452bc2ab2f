/** `portolan doctor` against servers that run: a fleet of pods that misbehaves in every way, and one that does not. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { QueryRow } from "../../src/console/api-types.ts";
import type { Diagnosis } from "../../src/console/doctor/diagnose.ts";
import type { Finding } from "../../src/console/doctor/finding.ts";
import { type ScriptedQuestion, ScriptedServer } from "../../src/upstream/fixtures/scripted-server.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { Pod } from "../support/pod-fleet.ts";
import { Portolan, projectRoot, runPortolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const MANIFEST = join(projectRoot, "deploy", "kubernetes", "deployment.yaml");
const NXDOMAIN = 3;

function startCluster(api: ApiSimulator): void {
  for (const [namespace, name, address] of [
    ["shop", "web", "10.96.0.1"],
    ["data", "redis", "10.96.0.2"],
  ]) {
    api.put("namespaces", { metadata: { name: namespace } });
    api.put("services", {
      metadata: { name, namespace },
      spec: { clusterIP: address, clusterIPs: [address], ports: [{ port: 80, protocol: "TCP" }] },
    });
  }
}

async function runDoctor(
  server: Portolan,
  ...args: readonly string[]
): Promise<Diagnosis & { code: number | null }> {
  const flags = ["-server", `127.0.0.1:${server.portOf("console")}`, "-for", "0s", "-format", "json"];
  const { code, output, errors } = await runPortolan(["doctor", ...flags, ...args]);
  assert.equal(errors, "");
  return { code, ...JSON.parse(output) };
}

describe("a healthy fleet", () => {
  let api: ApiSimulator;
  let upstream: ScriptedServer;
  let server: Portolan;

  before(async () => {
    api = await ApiSimulator.start();
    startCluster(api);
    upstream = await ScriptedServer.start(tellTruth);
    server = await Portolan.start(
      (port) => `.:${port("dns")} {
    bind 127.0.0.1
    console 127.0.0.1:${port("console")}
    health 127.0.0.1:${port("health")} {
        lameduck 10s
    }
    ready 127.0.0.1:${port("ready")}
    kubernetes cluster.local {
        endpoint ${api.url}
        pods verified
    }
    cache 30
    forward . ${upstream.text}
}`,
    );
    await using pod = await Pod.start(api, server, {
      namespace: "shop",
      name: "web-6d4cf56db6-x2x5c",
      address: "127.1.0.1",
    });
    await untilKnown(pod, server);
    for (let round = 0; round < 40; round++) {
      for (const name of ["web.shop.svc.cluster.local.", "redis.data.svc.cluster.local.", "api.example.com."])
        await pod.ask(name);
      // Each now and then: no fleet is without any of it.
      if (round % 20 === 0) await pod.resolve("redis.data");
      if (round % 10 === 0) await pod.ask("api.example.com.", "AAAA");
    }
  });
  after(async () => {
    await server?.[Symbol.asyncDispose]();
    await upstream?.stop();
    await api?.close();
  });

  test("has nothing that is wrong, and the manifests of deploy/ fit it", async () => {
    const { findings, notExamined, observed } = await runDoctor(server, "-manifest", MANIFEST);
    // Whether the server stands still depends on the machine.
    const others = findings.filter(({ code }) => code !== "stalls");
    assert.deepEqual(others, [], others.map(({ title }) => title).join("\n"));
    // Whether the kernel reports it depends on the machine.
    const reasons = notExamined.filter(({ code }) => code !== "udp-drops" && code !== "conntrack");
    assert.deepEqual(reasons, []);
    assert.ok(observed.queries >= 120, `${observed.queries}`);
  });

  test("is told in words, and what was not looked at as well", async () => {
    const { code, output, errors } = await runPortolan([
      ...["doctor", "-server", `127.0.0.1:${server.portOf("console")}`, "-for", "0s"],
    ]);
    // Whether the server stands still depends on the machine.
    const isStalled = output.includes("the server stood still");
    assert.deepEqual([code, errors], [isStalled ? 1 : 0, ""]);
    assert.match(output, /^\d+ queries of .*, Portolan-\d.* in [\d.]+ s\n/);
    assert.match(
      output,
      /\n {2}probes: the pod of the server is not known: give the manifest of its Deployment, DaemonSet or pod, with portolan doctor -server \S+ -for 0s -manifest FILE\n/,
    );
    if (isStalled) assert.doesNotMatch(output, /^2\./m);
    else assert.match(output, /\nnothing is wrong with what was examined\n$/);
  });

  test("a capture says the same as the server", async () => {
    const file = join(server.folder, "capture");
    await runDoctor(server, "-record", file, "-manifest", MANIFEST);
    const { code, output } = await runPortolan(["doctor", "-format", "json", file]);
    const { findings, observed }: Diagnosis = JSON.parse(output);
    assert.equal(code, findings.length > 0 ? 1 : 0);
    assert.deepEqual(
      findings.filter(({ code }) => code !== "stalls"),
      [],
    );
    assert.ok(observed.queries >= 120);
  });
});

/** Waits until the cluster is listed, and until the server says that it knows the pod, and those before it. */
async function untilKnown(pod: Pod, server: Portolan): Promise<void> {
  // To ask until there is an answer would be what doctor finds: a client that repeats what failed.
  await untilTrue(async () => (await server.page("ready", "/ready")).status === 200);
  const [answer] = await pod.ask("web.shop.svc.cluster.local.");
  assert.equal(answer?.rcode, 0);
  await untilTrue(async () => {
    const { body } = await server.page("console", "/api/v1/queries");
    const { queries }: { queries: readonly QueryRow[] } = JSON.parse(body);
    return queries.some(({ workload }) => workload?.startsWith(`${pod.namespace}/`));
  });
}

function tellTruth(asked: ScriptedQuestion): void {
  const type = asked.message.questions[0]?.type;
  const exists = asked.name.toLowerCase() === "api.example.com.";
  if (!exists) asked.answer({ rcode: NXDOMAIN });
  else asked.answer({ answer: type === 1 ? [`${asked.name} 300 IN A 192.0.2.1`] : [] });
}

describe("a fleet that is ill all over", () => {
  let api: ApiSimulator;
  const upstreams: ScriptedServer[] = [];
  let server: Portolan;
  let diagnosis: Diagnosis & { code: number | null };
  let manifest: string;

  const upstream = async (script: (asked: ScriptedQuestion) => void): Promise<string> => {
    const started = await ScriptedServer.start(script);
    upstreams.push(started);
    return started.text;
  };

  before(async () => {
    api = await ApiSimulator.start();
    startCluster(api);
    const truth = await upstream((asked) =>
      // It has an address for everything that does not exist.
      /\.invalid\.$|\.cluster\.local\.corp\.example\.$/i.test(asked.name)
        ? asked.answer({ answer: [`${asked.name} 60 IN A 198.51.100.66`] })
        : tellTruth(asked),
    );
    const slow = await upstream((asked) => {
      // Longer than the server itself is late, which is stopped for a while below.
      setTimeout(() => asked.answer({ answer: [`${asked.name} 60 IN A 192.0.2.2`] }), 500);
    });
    const dead = await upstream((asked) => asked.answer({ rcode: 2 }));
    const forger = await upstream((asked) => {
      asked.send(asked.encode({ message: { id: (asked.message.id + 1) & 0xffff } }));
      asked.answer({ answer: [`${asked.name} 60 IN A 192.0.2.3`] });
    });
    const fleeting = await upstream((asked) => asked.answer({ answer: [`${asked.name} 1 IN A 192.0.2.4`] }));
    server = await Portolan.start((port) => {
      const block = (zone: string, to: string): string =>
        `${zone}:${port("dns")} {\n    bind 127.0.0.1\n    forward . ${to}\n}\n`;
      return `.:${port("dns")} {
    bind 127.0.0.1
    console 127.0.0.1:${port("console")}
    health 127.0.0.1:${port("health")} {
        lameduck 5s
    }
    ready 127.0.0.1:${port("ready")}
    kubernetes cluster.local {
        endpoint ${api.url}
        pods verified
    }
    cache 30
    forward . ${truth}
}
${block("slow.example", slow)}${block("dead.example", dead)}${block("forged.example", forger)}${block("fleeting.example", fleeting)}`;
    });
    manifest = join(server.folder, "deployment.json");
    writeFileSync(manifest, JSON.stringify(ILL_DEPLOYMENT));
    await misbehave();
    server.program.kill("SIGSTOP");
    await flood(server.port);
    server.program.kill("SIGCONT");
    diagnosis = await runDoctor(server, "-manifest", manifest);
  });
  after(async () => {
    await server?.[Symbol.asyncDispose]();
    for (const each of upstreams) await each.stop();
    await api?.close();
  });

  async function misbehave(): Promise<void> {
    const start = (namespace: string, name: string, address: string): Promise<Pod> =>
      Pod.start(api, server, { namespace, name, address });
    await using web = await start("shop", "web-6d4cf56db6-x2x5c", "127.1.0.1");
    await using player = await start("media", "player-7lkzv", "127.1.0.2");
    await using batch = await start("batch", "nightly-0", "127.1.0.3");
    await using pay = await start("pay", "till-5b5d8c7c9f-q4w2z", "127.1.0.4");
    await using misc = await start("misc", "toolbox", "127.1.0.5");
    await untilKnown(misc, server);
    const times = async (count: number, each: (round: number) => Promise<unknown>): Promise<void> => {
      for (let round = 0; round < count; round++) await each(round);
    };
    await times(20, () => web.resolve("api.example.com"));
    await times(90, async () => {
      await player.ask("web.shop.svc.cluster.local.", "A");
      await player.ask("web.shop.svc.cluster.local.", "AAAA");
    });
    await times(30, () => batch.ask("redsi.data.svc.cluster.local."));
    await times(15, () => pay.ask("redis.data.svc.cluster.local.", "A", 2));
    await Promise.all(Array.from({ length: 30 }, (_, n) => misc.ask(`n${n}.slow.example.`)));
    await times(12, (n) => misc.ask(`n${n}.dead.example.`));
    await times(12, (n) => misc.ask(`n${n}.forged.example.`));
    await times(25, () => misc.ask("price.fleeting.example."));
    await times(3, () => misc.ask("web.shop.svc.cluster.local.corp.example."));
  }

  function finding(code: string, pattern = /./): Finding {
    const found = diagnosis.findings.find((each) => each.code === code && pattern.test(each.title));
    assert.ok(found, `${code} ${pattern}: ${diagnosis.findings.map(({ title }) => title).join("\n")}`);
    return found;
  }

  for (const [code, title, cause, remedy] of [
    [
      "search-path",
      /the search path wastes 60 of \d+ queries .*% of all NXDOMAIN$/,
      /^shop 60 of 8\d queries \(7\d %\) of the namespace/,
      /^kubectl -n shop patch deployment web -p '\{.*"dnsConfig":\{"options":\[\{"name":"ndots","value":"1"\}\]\}/,
    ],
    [
      "aaaa",
      /the cluster has no IPv6, and 90 of \d+ queries/,
      /^media\/daemonset\/player 90 of 90/,
      /^template IN AAAA \. \{\n {4}rcode NOERROR\n\}$|kubectl -n media patch daemonset player .*no-aaaa/,
    ],
    [
      "absent-names",
      /are for a name that exists nowhere$/,
      /^redsi\.data\.svc\.cluster\.local\. 30 queries, by batch\/statefulset\/nightly$/,
      /explain redsi\.data\.svc/,
    ],
    [
      "retries",
      /are repeats: the first reply failed, came late or was lost/,
      /^pay\/deployment\/till 15 of 30 queries \(50 %\)$/,
      /single-request-reopen/,
    ],
    [
      "slow-upstream",
      /an upstream takes [5-9]\d\d ms/,
      /^forward to 127\.0\.0\.1:\d+ [5-9]\d\d ms over 30/,
      /prefetch/,
    ],
    [
      "failing-upstream",
      /an upstream fails: 127/,
      /12 of 12 answers \(100 %\) had SERVFAIL, REFUSED or the like/,
      /serve_stale 1h/,
    ],
    [
      "lying-upstream",
      /messages from upstreams match no pending query/,
      /^forward to 127.* messages beside/,
      /tls:\/\//,
    ],
    [
      "lying-upstream",
      /an upstream has an address for portolan-doctor-\w+\.invalid\., which cannot exist/,
      /198\.51\.100\.66/,
      /^template IN ANY corp\.example\. \{\n {4}rcode NXDOMAIN/,
    ],
    [
      "short-ttls",
      /TTLs of 10 s and less send 25 of/,
      /^price\.fleeting\.example\. A TTL 1 s, 25 times/,
      /^success 9984 300 30$/,
    ],
    [
      "memory",
      /may need \d+ MiB of memory, \d+ % of its limit of 64 MiB/,
      /^the caches \d+ MiB more/,
      /kubectl -n kube-system patch deployment coredns .*"limits":\{"memory":"\d+Mi"\}/,
    ],
    [
      "probes",
      /do not fit lameduck 5 s/,
      /^readinessProbe notices an end after 30 s .* lameduck is over after 5 s$/,
      /"terminationGracePeriodSeconds":15/,
    ],
  ] as const) {
    test(`finds ${code}: who causes it and what mends it`, () => {
      const found = finding(code, title);
      const causes = found.causes.map(({ who, figure }) => `${who} ${figure}`);
      assert.ok(
        causes.some((each) => cause.test(each)),
        causes.join("\n"),
      );
      const patches = found.remedies.flatMap(({ patch }) => patch ?? []);
      assert.ok(
        patches.some((patch) => remedy.test(patch)),
        patches.join("\n"),
      );
    });
  }

  test("finds udp-drops", { skip: process.platform === "linux" ? false : "reads /proc/net" }, () => {
    const { figures, causes } = finding(
      "udp-drops",
      /datagrams were lost in full UDP buffers since the start/,
    );
    assert.ok((figures.socketDrops ?? 0) > 100, JSON.stringify(figures));
    assert.match(causes[0]?.figure ?? "", /^\d+ datagrams since they were opened/);
  });

  test("suggests the name that was meant", () => {
    const [remedy] = finding("absent-names").remedies;
    assert.match(remedy?.text ?? "", /: is redis\.data\.svc\.cluster\.local\. meant\?$/);
  });

  test("ends with 1", () => {
    assert.equal(diagnosis.code, 1);
  });

  test("every patch for the Corefile is one that the server takes", async () => {
    const patches = diagnosis.findings
      .flatMap(({ remedies }) => remedies.flatMap(({ patch }) => patch ?? []))
      .filter((patch) =>
        /^(template|cache|forward|health|multisocket|serve_stale|prefetch|failover|success)\b/.test(patch),
      )
      .map((patch) =>
        patch
          .replace(/tls:\/\/ADDRESS/, "tls://192.0.2.1")
          .replace(/\bNAME\b/, "dns.example")
          // Options are for a directive that the Corefile has.
          .replace(/^(serve_stale|prefetch|success) .*$/, "cache 30 {\n$&\n}")
          .replace(/^failover .*$/, "forward . 192.0.2.1 {\n$&\n}"),
      );
    assert.ok(patches.length >= 7, patches.join("\n"));
    for (const patch of patches) {
      // Some hold two directives.
      const { code, output } = await runPortolan(["check", "-"], { input: `.:10053 {\n${patch}\n}\n` });
      assert.equal(code, 0, `${patch}\n${output}`);
    }
  });

  test("tells it in words", async () => {
    const { code, output } = await runPortolan(
      [
        ...["doctor", "-server", `127.0.0.1:${server.portOf("console")}`, "-for", "0s", "-probe=false"],
        ...["-manifest", "-"],
      ],
      { input: readFileSync(manifest, "utf8") },
    );
    assert.equal(code, 1);
    assert.match(output, /\n\d+\. the search path wastes .* \[search-path\]\n/);
    assert.match(output, /\n {3}who\n {5}shop +60 of/);
    assert.match(
      output,
      /\n {3}do\n {5}- make the pods of shop .*\n {9}kubectl -n shop patch deployment web/,
    );
    assert.match(output, /\n\d+ findings\n$/);
  });
});

const ILL_DEPLOYMENT = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "coredns", namespace: "kube-system" },
  spec: {
    template: {
      spec: {
        terminationGracePeriodSeconds: 8,
        containers: [
          {
            name: "coredns",
            ports: [{ containerPort: 53, protocol: "UDP" }],
            resources: { limits: { memory: "64Mi" } },
            readinessProbe: { httpGet: { path: "/ready", port: 8181 } },
            livenessProbe: {
              httpGet: { path: "/health", port: 8080 },
              periodSeconds: 10,
              failureThreshold: 5,
            },
          },
        ],
      },
    },
  },
};

/** Sends more than fits into the buffer of a socket without a reader. */
async function flood(port: number): Promise<void> {
  const socket = createSocket("udp4");
  // A reply, which the server takes no notice of when it comes round to it.
  const octets = Buffer.alloc(1_200);
  octets[2] = 0x80;
  for (let sent = 0; sent < 12_000; sent += 500) {
    const sends = Array.from(
      { length: 500 },
      () => new Promise<void>((resolve) => socket.send(octets, port, "127.0.0.1", () => resolve())),
    );
    await Promise.all(sends);
  }
  socket.close();
}

const QUERY = {
  ...{ time: 1_000, name: "www.example.com.", type: "A", rcode: "NOERROR", client: "10.1.0.1" },
  ...{ duration: 0.1, plugin: "kubernetes", transport: "udp", port: 4_000, id: 1, listener: "dns://:53" },
  ...{ answers: 1, size: 50, weight: 1 },
};

describe("captures and command lines", () => {
  for (const [title, args, input, code, errors] of [
    ["no server", ["-server", "127.0.0.1:1"], "", 2, /^-server 127\.0\.0\.1:1: nothing listens there/],
    ["an unknown format", ["-format", "xml"], "", 2, /^unknown format "xml": human, json\nUsage/],
    ["an empty capture", ["-"], "\n", 2, /^-: has no queries/],
    ["something else", ["-"], '{"a":1}\n', 2, /^-:1: neither a query nor facts about a server/],
    [
      "a manifest of something else",
      ["-manifest", "-"],
      "kind: Service\n",
      2,
      /^-manifest -: holds no Deployment/,
    ],
    ["standard input twice", ["-manifest", "-", "-"], "", 2, /^standard input can be only one of both/],
    ["a query of no client's", ["-"], `${JSON.stringify({ ...QUERY, workload: 5 })}\n`, 2, /^-:1: neither/],
    [
      "a query that stands for none",
      ["-"],
      `${JSON.stringify({ ...QUERY, weight: -1 })}\n`,
      2,
      /^-:1: neither/,
    ],
    ["a query of no time", ["-"], `${JSON.stringify({ ...QUERY, time: 1e300 })}\n`, 2, /^-:1: neither/],
  ] as const) {
    test(`${title}: exit code ${code}`, async () => {
      const ended = await runPortolan(["doctor", ...args], { input });
      assert.equal(ended.code, code);
      assert.equal(ended.output, "");
      assert.match(ended.errors, errors);
    });
  }

  test("what 'portolan tail -json' writes is a capture", async () => {
    const row = (n: number, name: string, rcode: string) => ({
      ...{
        time: 1_000 + n,
        name,
        type: "A",
        rcode,
        client: "10.1.0.1",
        workload: "shop/web-6d4cf56db6-x2x5c",
      },
      ...{ duration: 0.1, plugin: "kubernetes", transport: "udp", port: 4_000, id: n, listener: "dns://:53" },
      ...{ answers: rcode === "NOERROR" ? 1 : 0, size: 50, weight: 1 },
    });
    const rows = Array.from({ length: 120 }, (_, n) =>
      n % 3 === 2
        ? row(n, "api.example.com.", "NOERROR")
        : row(n, `api.example.com.${n % 3 === 0 ? "shop." : ""}svc.cluster.local.`, "NXDOMAIN"),
    );
    // The writer was stopped in the middle of a line.
    const input = `${rows.map((each) => JSON.stringify(each)).join("\n")}\n{"time":1`;
    const { code, output } = await runPortolan(["doctor", "-format", "json", "-"], { input });
    const { findings, notExamined }: Diagnosis = JSON.parse(output);
    assert.deepEqual([code, findings.map(({ code }) => code)], [1, ["search-path"]]);
    assert.deepEqual(findings[0]?.figures, { wasted: 80, queries: 120, nxdomain: 80 });
    assert.ok(notExamined.some(({ code }) => code === "memory"));
  });
});
