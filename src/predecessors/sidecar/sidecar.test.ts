import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeMessage, type Message } from "../../dns/message.ts";
import { parseRecord } from "../../dns/resource-record.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { ProbeError, parseProbe } from "./probe-spec.ts";
import { Sidecar } from "./sidecar.ts";

test("reads probes", () => {
  const spec = parseProbe("kubedns,127.0.0.1:10053,kubernetes.default.svc.cluster.local,7,SRV");
  assert.deepEqual(
    { ...spec, name: `${spec.name}` },
    {
      label: "kubedns",
      host: "127.0.0.1",
      port: 10053,
      name: "kubernetes.default.svc.cluster.local.",
      interval: 7_000,
      type: 33,
    },
  );
  const short = parseProbe("a,[::1]:53,x");
  assert.deepEqual([short.host, short.port, short.interval, short.type], ["::1", 53, 5_000, 255]);
  assert.equal(parseProbe("a,ns.example,x").port, 53);
});

for (const text of [
  "a,b",
  "a,b,c,1,A,x",
  "a-b,127.0.0.1,x",
  "a,127.0.0.1,x,soon",
  "a,127.0.0.1,x,0",
  "a,127.0.0.1,x,5,MX",
  "a,::1,x",
  "a,b,x..y",
])
  test(`refuses ${text}`, () => assert.throws(() => parseProbe(text), ProbeError));

/** Answers each name as the test says; other names get no answer. */
function sidecarWith(answers: Map<string, string[]>) {
  const clock = new FakeClock();
  const sidecar = new Sidecar({
    dnsmasq: { host: "127.0.0.1", port: 53 },
    pollInterval: 5_000,
    probes: [
      "ok,127.0.0.1,ok.local.,1,A",
      "nxdomain,127.0.0.1,nx.local.,1,A",
      "notpresent,127.0.0.1,gone.local.,1,A",
    ].map(parseProbe),
    host: "127.0.0.1",
    port: 0,
    path: "/metrics",
    namespace: "kubedns",
    clock,
    random: { fraction: () => 0.5, unpredictable: () => 7 },
    ask: async (_server, octets): Promise<Message> => {
      const query = decodeMessage(octets);
      const name = `${query.questions[0]?.name}`;
      const records = answers.get(name);
      if (records === undefined) throw new Error("no answer");
      return { ...query, answer: records.map((record) => parseRecord(record)) };
    },
  });
  return { clock, sidecar };
}

test("probes count, measure and report their results", async () => {
  const statistics = ["hits", "misses", "evictions", "insertions", "cachesize"].map(
    (name, index): [string, string[]] => [`${name}.bind.`, [`${name}.bind. 0 CH TXT "${100 + index}"`]],
  );
  const answers = new Map<string, string[]>([
    ["ok.local.", ["ok.local. 5 IN A 192.0.2.1"]],
    ["nx.local.", []],
    ...statistics,
  ]);
  const { clock, sidecar } = sidecarWith(answers);
  const page = async (path: string) => sidecar.page(path);
  const healthcheck = async (label: string): Promise<unknown> =>
    JSON.parse((await page(`/healthcheck/${label}`))?.body ?? "");
  assert.deepEqual(await healthcheck("ok"), {
    IsOk: false,
    LatencySeconds: 0,
    Err: "waiting for first probe",
  });
  await sidecar.start();
  try {
    await clock.settle(5_400);
    assert.equal((await page("/healthcheck/ok"))?.status, 200);
    assert.deepEqual(await healthcheck("ok"), { IsOk: true, LatencySeconds: 0, Err: "" });
    assert.equal((await page("/healthcheck/nxdomain"))?.status, 503);
    assert.deepEqual(await healthcheck("notpresent"), { IsOk: false, LatencySeconds: 0, Err: "no answer" });
    assert.equal(await page("/healthcheck/other"), undefined);
    assert.match((await page("/healthz"))?.body ?? "", /^ok \(/);
    const metric = async (name: string) =>
      Number(new RegExp(`^kubedns_${name} (\\S+)$`, "m").exec((await page("/metrics"))?.body ?? "")?.[1]);
    assert.deepEqual(
      await Promise.all(
        ["hits", "misses", "evictions", "insertions", "max_size", "errors"].map((name) =>
          metric(`dnsmasq_${name}`),
        ),
      ),
      [100, 101, 102, 103, 104, 0],
    );
    assert.equal(await metric("probe_ok_errors"), 0);
    assert.equal(await metric("probe_ok_latency_ms_count"), 5);
    assert.equal(await metric("probe_nxdomain_errors"), 5);
    assert.equal(await metric("probe_notpresent_errors"), 5);
    assert.match(
      (await page("/metrics"))?.body ?? "",
      /^kubedns_probe_ok_latency_ms_bucket\{le="8192"\} 5$/m,
    );
    assert.match((await page("/metrics"))?.body ?? "", /^# TYPE kubedns_dnsmasq_hits counter$/m);
    // dnsmasq restarted: the first value is not added.
    answers.set("hits.bind.", ['hits.bind. 0 CH TXT "3"']);
    await clock.settle(5_000);
    assert.equal(await metric("dnsmasq_hits"), 100);
    answers.set("hits.bind.", ['hits.bind. 0 CH TXT "10"']);
    await clock.settle(5_000);
    assert.equal(await metric("dnsmasq_hits"), 107);
    // A value that is not a number spoils the round.
    answers.set("misses.bind.", ['misses.bind. 0 CH TXT "1" "2"']);
    answers.set("hits.bind.", ['hits.bind. 0 CH TXT "1000"']);
    await clock.settle(5_000);
    assert.equal(await metric("dnsmasq_errors"), 1);
    assert.equal(await metric("dnsmasq_hits"), 107);
  } finally {
    await sidecar.stop();
  }
});
