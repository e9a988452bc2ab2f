import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import { Name, Rcode } from "../../dns/index.ts";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import type { ListenerSite } from "../../plugin/contract/site.ts";
import type { HttpHandler, Next, PlacedPlugin, Site } from "../../plugin/index.ts";
import { LATENCY_EXEMPLARS } from "../../plugin/services/latency-exemplars.ts";
import { answering, ConfigRefused, PluginTest, type QuestionOptions, records } from "../../plugin/testing.ts";
import prometheus from "./index.ts";
import { acceptsGzip, preferredFormat } from "./metrics-endpoint.ts";

/** Samples in an exposition by name and labels, without buckets. */
async function samples(metrics: MetricsRegistry, prefix = "coredns_dns"): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const line of (await metrics.expose()).body.split("\n")) {
    if (!line.startsWith(prefix) || line.includes("_bucket{")) continue;
    const space = line.lastIndexOf(" ");
    found[line.slice(0, space)] = Number(line.slice(space + 1));
  }
  return found;
}

async function counted(
  plugin: PluginTest<unknown>,
  question: QuestionOptions,
): Promise<Record<string, number>> {
  await plugin.outcome(question);
  return samples(plugin.metrics);
}

const answeredBy =
  (plugin: string): Next =>
  (query) => {
    const reply = query.reply({ answer: records("a.example.org. 5 IN A 192.0.2.1") });
    reply.plugin = plugin;
    return reply;
  };

const PLACE = 'server="dns://:53",zone=".",view=""';

test("a trace is an exemplar of its query's bucket, at once or later", async () => {
  const plugin = PluginTest.of(prometheus, "prometheus");
  const [exemplars] = LATENCY_EXEMPLARS.among(
    plugin.instances.map((instance) => ({ name: "prometheus", instance })),
  );
  assert.ok(exemplars !== undefined);
  const atOnce = plugin.query({ name: "a.example.org." });
  void plugin.chain(answeredBy("cache"))(atOnce);
  exemplars.keep(atOnce, 0.1, "aa");
  // The reply leaves with others, which takes until now.
  plugin.clock.advance(3);
  await plugin.metrics.expose();
  const late = plugin.query({ name: "b.example.org." });
  await plugin.chain(async (query) => {
    plugin.clock.advance(40);
    return answeredBy("forward")(query);
  })(late);
  exemplars.keep(late, 40, "bb");
  const { body } = await plugin.metrics.expose("openmetrics");
  const shown = [...body.matchAll(/_duration_seconds_bucket\{.*le="(.*)"\} (\d+) # \{(.*)\} (\S+) /g)];
  assert.deepEqual(
    shown.map(([, ...parts]) => parts),
    [
      ["0.004", "1", 'trace_id="aa"', "0.003"],
      ["0.064", "2", 'trace_id="bb"', "0.04"],
    ],
  );
});

describe("counts", () => {
  test("a query with its reply", async () => {
    const plugin = PluginTest.of(prometheus, "prometheus");
    const next = answeredBy("cache");
    const outcome = plugin.outcome({ name: "a.example.org.", next });
    assert.ok(!(outcome instanceof Promise));
    assert.deepEqual(await samples(plugin.metrics), {
      [`coredns_dns_requests_total{${PLACE},proto="udp",family="1",type="A"}`]: 1,
      [`coredns_dns_request_duration_seconds_sum{${PLACE}}`]: 0,
      [`coredns_dns_request_duration_seconds_count{${PLACE}}`]: 1,
      [`coredns_dns_request_size_bytes_sum{${PLACE},proto="udp"}`]: 31,
      [`coredns_dns_request_size_bytes_count{${PLACE},proto="udp"}`]: 1,
      [`coredns_dns_response_size_bytes_sum{${PLACE},proto="udp"}`]: 47,
      [`coredns_dns_response_size_bytes_count{${PLACE},proto="udp"}`]: 1,
      [`coredns_dns_responses_total{${PLACE},rcode="NOERROR",plugin="cache"}`]: 1,
    });
  });

  test("IPv6, TCP and DO separately", async () => {
    const plugin = PluginTest.of(prometheus, "prometheus");
    const found = await counted(plugin, {
      name: "a.example.org.",
      client: "2001:db8::1",
      transport: "tls",
      edns: { dnssecOk: true },
      next: answeredBy("file"),
    });
    assert.equal(found[`coredns_dns_requests_total{${PLACE},proto="tcp",family="2",type="A"}`], 1);
    assert.equal(found[`coredns_dns_do_requests_total{${PLACE}}`], 1);
    assert.equal(found[`coredns_dns_response_size_bytes_sum{${PLACE},proto="tcp"}`], 47 + 11);
  });

  for (const [type, label] of [
    ["A", "A"],
    ["HTTPS", "HTTPS"],
    ["ANY", "ANY"],
    ["AXFR", "AXFR"],
    ["NAPTR", "other"],
    ["CAA", "other"],
    ["TYPE65535", "other"],
  ] as const) {
    test(`the type of ${type} queries as ${label}`, async () => {
      const plugin = PluginTest.of(prometheus, "prometheus");
      const found = await counted(plugin, { name: "a.", type, next: answering({}) });
      assert.equal(found[`coredns_dns_requests_total{${PLACE},proto="udp",family="1",type="${label}"}`], 1);
    });
  }

  test("rcodes and plugins separately", async () => {
    const plugin = PluginTest.of(prometheus, "prometheus");
    for (const [name, rcode, times] of [
      ["cache", Rcode.NXDOMAIN, 2],
      ["forward", Rcode.NXDOMAIN, 1],
      ["cache", Rcode.NOERROR, 3],
      ["cache", 4095, 1],
      ["cache", 77, 2],
    ] as const) {
      for (let time = 0; time < times; time++) {
        await plugin.outcome({
          name: "a.",
          next: (query) => Object.assign(query.reply({ rcode }), { plugin: name }),
        });
      }
    }
    const found = await samples(plugin.metrics, "coredns_dns_responses_total");
    assert.deepEqual(found, {
      [`coredns_dns_responses_total{${PLACE},rcode="NXDOMAIN",plugin="cache"}`]: 2,
      [`coredns_dns_responses_total{${PLACE},rcode="NXDOMAIN",plugin="forward"}`]: 1,
      [`coredns_dns_responses_total{${PLACE},rcode="NOERROR",plugin="cache"}`]: 3,
      [`coredns_dns_responses_total{${PLACE},rcode="4095",plugin="cache"}`]: 1,
      [`coredns_dns_responses_total{${PLACE},rcode="77",plugin="cache"}`]: 2,
    });
  });

  test("a failure as the reply that the server makes of it", async () => {
    const plugin = PluginTest.of(prometheus, "prometheus");
    const found = await counted(plugin, {
      name: "a.",
      next: (query) => Object.assign(query.fail(Rcode.REFUSED), { plugin: "acl" }),
    });
    assert.equal(found[`coredns_dns_responses_total{${PLACE},rcode="REFUSED",plugin="acl"}`], 1);
    assert.equal(found[`coredns_dns_response_size_bytes_sum{${PLACE},proto="udp"}`], 0);
  });

  test("a dropped query without a reply", async () => {
    const plugin = PluginTest.of(prometheus, "prometheus");
    const found = await counted(plugin, { name: "a.", next: () => ({ kind: "dropped" }) });
    assert.equal(found[`coredns_dns_request_duration_seconds_count{${PLACE}}`], 1);
    assert.deepEqual(
      Object.keys(found).filter((name) => name.includes("response")),
      [],
    );
  });

  test("the time until the answer", async () => {
    const plugin = PluginTest.of(prometheus, "prometheus");
    const { promise, resolve } = Promise.withResolvers<void>();
    const outcome = plugin.outcome({
      name: "a.",
      next: async (query) => {
        await promise;
        return query.reply();
      },
    });
    plugin.clock.advance(250);
    resolve();
    await outcome;
    assert.equal((await samples(plugin.metrics))[`coredns_dns_request_duration_seconds_sum{${PLACE}}`], 0.25);
  });

  test("zones of the block, longest first, and views", async () => {
    const plugin = PluginTest.of(prometheus, "prometheus", {
      keys: "Example.org sub.example.org example.net",
    });
    for (const [name, zone] of [
      ["a.EXAMPLE.org.", "example.org."],
      ["example.org.", "example.org."],
      ["x.y.sub.example.org.", "sub.example.org."],
      ["myexample.net.", "."],
      [".", "."],
    ] as const) {
      const query = plugin.query({ name });
      query.view = "inside";
      const place = `server="dns://:53",zone="${zone}",view="inside"`;
      const metric = `coredns_dns_requests_total{${place},proto="udp",family="1",type="A"}`;
      const before = (await samples(plugin.metrics))[metric] ?? 0;
      await plugin.chain(answering({}))(query);
      assert.equal((await samples(plugin.metrics))[metric], before + 1);
    }
  });

  test("queries without a server block", async () => {
    const plugin = PluginTest.of(prometheus, "prometheus");
    const [instance] = plugin.instances;
    const query = plugin.query({ name: "a.", edns: {} });
    instance?.unrouted?.(query, query.fail(Rcode.REFUSED));
    instance?.unrouted?.(query, query.reply({ rcode: Rcode.SERVFAIL }));
    const place = 'server="dns://:53",zone="dropped",view=""';
    const found = await samples(plugin.metrics);
    assert.equal(found[`coredns_dns_requests_total{${place},proto="udp",family="1",type="A"}`], 2);
    assert.equal(found[`coredns_dns_responses_total{${place},rcode="REFUSED",plugin=""}`], 1);
    assert.equal(found[`coredns_dns_responses_total{${place},rcode="SERVFAIL",plugin=""}`], 1);
    assert.equal(found[`coredns_dns_response_size_bytes_sum{${place},proto="udp"}`], 60);
  });

  test("in the buckets that dashboards expect", async () => {
    const plugin = PluginTest.of(prometheus, "prometheus");
    await plugin.outcome({ name: "a.", next: answering({}) });
    const { body } = await plugin.metrics.expose();
    const bounds = (metric: string): string[] =>
      [...body.matchAll(new RegExp(`^${metric}_bucket\\{.*?le="([^"]+)"`, "gm"))].map(
        (match) => match[1] ?? "",
      );
    assert.deepEqual(bounds("coredns_dns_request_duration_seconds").slice(0, 3), [
      "0.00025",
      "0.0005",
      "0.001",
    ]);
    assert.equal(bounds("coredns_dns_request_duration_seconds").length, 17);
    const sizes = "0 100 200 300 400 511 1023 2047 4095 8291 16000 32000 48000 64000 +Inf".split(" ");
    assert.deepEqual(bounds("coredns_dns_request_size_bytes"), sizes);
    assert.deepEqual(bounds("coredns_dns_response_size_bytes"), sizes);
  });
});

describe("what runs", () => {
  const neighbours: readonly PlacedPlugin[] = [
    { name: "whoami", instance: { handle: (query) => query.reply() } },
    { name: "health", instance: {} },
  ];
  const listeners: readonly ListenerSite[] = [
    { label: "dns://127.0.0.1:53", zone: Name.parse("a."), address: () => undefined },
    { label: "dns://[::1]:53", zone: Name.parse("a."), address: () => undefined },
    { label: "dns://[::1]:53", zone: Name.parse("b."), address: () => undefined },
  ];

  test("build_info and plugin_enabled", async () => {
    const metrics = new MetricsRegistry();
    const left = { name: "coredns_plugin_enabled", help: "same", labels: ["server", "zone", "view", "name"] };
    metrics.gauge(left).slot("dns://:53", ".", "", "gone").set(1);
    const shared = new Map<string, unknown>();
    const block = (zone: string, own: readonly ListenerSite[]): Site["block"] => ({
      keys: [],
      zones: [Name.parse(zone)],
      settings: PluginTest.of(prometheus, "prometheus").settings,
      plugins: () => neighbours,
      listeners: () => own,
    });
    const first = PluginTest.of(prometheus, "prometheus", {
      shared,
      site: { metrics, block: block("a.", listeners) },
    });
    const second = PluginTest.of(prometheus, "prometheus", {
      shared,
      site: {
        metrics,
        block: block("c.", [{ label: "dns://:54", zone: Name.parse("C."), address: () => undefined }]),
      },
    });
    await first.start();
    await second.start();
    assert.deepEqual(await samples(metrics, "coredns_plugin_enabled"), {
      'coredns_plugin_enabled{server="dns://127.0.0.1:53",zone="a.",view="",name="whoami"}': 1,
      'coredns_plugin_enabled{server="dns://[::1]:53",zone="a.",view="",name="whoami"}': 1,
      'coredns_plugin_enabled{server="dns://:54",zone="c.",view="",name="whoami"}': 1,
    });
    assert.deepEqual(await samples(metrics, "coredns_build_info"), {
      [`coredns_build_info{version="0.0.0-test",revision="unknown",goversion="node${process.versions.node}"}`]: 1,
    });
  });

  test("each address serves once, whatever the number of blocks", async () => {
    const shared = new Map<string, unknown>();
    const served: string[] = [];
    const http: Site["http"] = {
      serve: async (address, path) => {
        served.push(address + path);
        return { host: "127.0.0.1", port: 1 };
      },
    };
    for (const text of ["prometheus", "prometheus localhost:9153", "prometheus :9154"])
      await PluginTest.of(prometheus, text, { shared, site: { http } }).start();
    assert.deepEqual(served, ["localhost:9153/metrics", ":9154/metrics"]);
  });

  test("an unavailable address prevents the start", async () => {
    const http: Site["http"] = { serve: () => Promise.reject(new Error("address in use")) };
    await assert.rejects(
      PluginTest.of(prometheus, "prometheus", { site: { http } }).start(),
      /address in use/,
    );
  });
});

describe("/metrics", () => {
  async function scrape(
    handler: HttpHandler | undefined,
    accept?: string,
  ): Promise<{ type: string; body: string }> {
    assert.ok(handler !== undefined);
    const server = createServer(handler).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const asked = request({
      port,
      host: "127.0.0.1",
      path: "/metrics",
      agent: false,
      ...(accept && { headers: { accept } }),
    });
    asked.end();
    const [response] = await once(asked, "response");
    let body = "";
    for await (const chunk of response) body += String(chunk);
    server.close();
    assert.equal(response.statusCode, 200);
    assert.equal(Number(response.headers["content-length"]), Buffer.byteLength(body));
    return { type: response.headers["content-type"], body };
  }

  test("speaks both formats", async () => {
    const plugin = PluginTest.of(prometheus, "prometheus");
    await plugin.start();
    await plugin.outcome({ name: "a.", next: answering({}) });
    const handler = plugin.http.get("localhost:9153/metrics");
    const text = await scrape(handler);
    assert.match(text.type, /^text\/plain; version=0\.0\.4/);
    assert.match(text.body, /^coredns_dns_requests_total\{server="dns:\/\/:53",.*\} 1$/m);
    assert.match(text.body, /^process_cpu_seconds_total /m);
    const openMetrics = await scrape(
      handler,
      "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.3",
    );
    assert.match(openMetrics.type, /^application\/openmetrics-text; version=1\.0\.0/);
    assert.match(openMetrics.body, /# EOF\n$/);
    assert.match(openMetrics.body, /^coredns_dns_requests_total\{/m);
  });

  test("leaves out metrics that cannot be read, and logs it once", async () => {
    const plugin = PluginTest.of(prometheus, "prometheus");
    plugin.metrics.onCollect(() => {
      throw new Error("no data");
    });
    await plugin.start();
    const handler = plugin.http.get("localhost:9153/metrics");
    assert.match((await scrape(handler)).body, /coredns_build_info/);
    await scrape(handler);
    assert.deepEqual(plugin.log.lines, ["[ERROR] plugin/prometheus: metrics are incomplete: no data"]);
  });

  for (const [accept, format] of [
    [undefined, "prometheus"],
    ["*/*", "prometheus"],
    ["text/plain;version=0.0.4", "prometheus"],
    ["application/openmetrics-text", "openmetrics"],
    ["application/openmetrics-text; version=0.0.1", "prometheus"],
    ["application/openmetrics-text;q=0.2, text/plain;q=0.8", "prometheus"],
    ["application/openmetrics-text;q=0", "prometheus"],
    ["application/openmetrics-text;q=x", "prometheus"],
    [
      "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
      "openmetrics",
    ],
    [";;,,q=", "prometheus"],
  ] as const) {
    test(`Accept: ${accept}`, () => assert.equal(preferredFormat(accept), format));
  }
});

test("runtime_metrics is accepted", () => {
  assert.equal(PluginTest.of(prometheus, "prometheus :9000 {\n runtime_metrics\n}").configs.length, 1);
});

describe("refuses", () => {
  for (const [text, code, message] of [
    ["prometheus 9153", "PLUGIN_BAD_VALUE", /2:12: error: '9153' is not an address with a port/],
    ["prometheus :9153 :9154", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after ':9154'/],
    ["prometheus {\n tls\n}", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending after 'tls'/],
    ["prometheus {\n tls a b\n}", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after 'b'/],
    ["prometheus {\n tls a\n tls b\n}", "PLUGIN_REPEATED", /'tls' can only be used once/],
    ["prometheus {\n runtime\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'runtime'/],
    ["prometheus\nprometheus", "PLUGIN_REPEATED", /can only be used once per Server Block/],
  ] as const) {
    test(JSON.stringify(text), () => {
      assert.throws(
        () => PluginTest.of(prometheus, text),
        (error) =>
          error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
      );
    });
  }
});

for (const [header, isAccepted] of [
  ["gzip", true],
  ["deflate, GZIP;q=0.5", true],
  ["gzip;q=0", false],
  ["identity", false],
  [undefined, false],
] as const)
  test(`Accept-Encoding ${header}`, () => assert.equal(acceptsGzip(header), isAccepted));
