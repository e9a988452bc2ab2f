/** `trace` of a running server, with collectors that are small HTTP servers. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { ScriptedServer } from "../../src/upstream/fixtures/scripted-server.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { attributesOf, FakeCollector, type JsonSpan, readMessagePack } from "../support/collector.ts";
import { ask, queryOctets } from "../support/dns-client.ts";
import { Portolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";

interface Setting {
  readonly collector: FakeCollector;
  readonly server: Portolan;
}

/** A server with an upstream that answers each name but those below `broken.`, which it says SERVFAIL to. */
async function start(
  stack: AsyncDisposableStack,
  trace: (url: string) => string,
  logFormat = '"{name} trace={/trace/traceid}"',
): Promise<Setting> {
  const collector = stack.use(await FakeCollector.start());
  const upstream = await ScriptedServer.start((asked) =>
    asked.answer(
      asked.name.endsWith("broken.") ? { rcode: 2 } : { answer: [`${asked.name} 300 IN A 192.0.2.5`] },
    ),
  );
  stack.defer(() => upstream.stop());
  const server = stack.use(
    await Portolan.start(
      (portOf) => `.:${portOf("dns")} https://.:${portOf("doh")} {
    bind 127.0.0.1
    metadata
    trace ${trace(collector.url)}
    prometheus 127.0.0.1:${portOf("metrics")}
    log . ${logFormat}
    cache
    hosts {
        192.0.2.1 here.example
        fallthrough
    }
    forward . ${upstream.address.text}
}
`,
    ),
  );
  return { collector, server };
}

function spanNamed(spans: readonly JsonSpan[], name: string): JsonSpan {
  const found = spans.find((span) => span.name === name);
  assert.ok(found !== undefined, `no span ${name} among ${spans.map((span) => span.name)}`);
  return found;
}

test("a span for each plugin and each exchange with an upstream goes to a collector of OpenTelemetry", async () => {
  await using stack = new AsyncDisposableStack();
  const { collector, server } = await start(
    stack,
    (url) => `otlp ${url} {\n service lighthouse\n header X-Key k1\n }`,
  );
  await ask(server, "far.example.");
  await collector.until(() => collector.spans.some(({ name }) => name === "udp"));
  const [first] = collector.received;
  assert.equal(`${first?.method} ${first?.path}`, "POST /v1/traces");
  assert.equal(first?.headers["content-type"], "application/json");
  assert.equal(first?.headers["x-key"], "k1");
  assert.match(first?.body.toString() ?? "", /"service.name","value":\{"stringValue":"lighthouse"\}/);
  const exchange = spanNamed(collector.spans, "udp");
  const spans = collector.spans.filter(({ traceId }) => traceId === exchange.traceId);
  // Each within the one before it.
  const way = ["servedns", "prometheus", "log", "cache", "hosts", "forward", "udp"];
  for (const [at, name] of way.entries()) {
    const span = spanNamed(spans, name);
    const outer = at === 0 ? undefined : spanNamed(spans, way[at - 1] ?? "");
    assert.equal(span.parentSpanId, outer?.spanId, name);
    assert.ok(BigInt(span.startTimeUnixNano ?? 0) <= BigInt(span.endTimeUnixNano ?? 0), name);
    if (outer !== undefined)
      assert.ok(BigInt(span.startTimeUnixNano ?? 0) >= BigInt(outer.startTimeUnixNano ?? 0), name);
  }
  const tags = attributesOf(spanNamed(spans, "servedns"));
  assert.equal(tags["coredns.io/name"], "far.example.");
  assert.equal(tags["coredns.io/rcode"], "NOERROR");
  assert.equal(tags["coredns.io/proto"], "udp");
  assert.equal(tags["coredns.io/remote"], "127.0.0.1");
  assert.equal(attributesOf(exchange)["server.address"], "127.0.0.1");
  assert.equal(exchange.kind, 3);
  // The log and the latency histogram name the same trace.
  await server.waitForLog(new RegExp(`far\\.example\\. trace=${exchange.traceId}`));
  const metrics = await fetch(`http://127.0.0.1:${server.portOf("metrics")}/metrics`, {
    headers: { accept: "application/openmetrics-text;version=1.0.0" },
  });
  const body = await metrics.text();
  assert.match(
    body,
    /^coredns_dns_request_duration_seconds_bucket\{[^}]*le="[^"]+"\} \d+ # \{trace_id="[0-9a-f]{32}"\} [\d.e-]+ \d+\.\d{3}$/m,
  );
  assert.match(body, /^portolan_trace_sent_spans_total [1-9]/m);
  const plain = await server.page("metrics", "/metrics");
  assert.doesNotMatch(plain.body, /trace_id/);
  if (skipWithout("promtool") === false) await readAsPrometheus(server.folder, body);
});

/** Has Prometheus' own parser read a page; it wants each sample to have a time. */
async function readAsPrometheus(folder: string, page: string): Promise<void> {
  const now = Date.now() / 1000;
  const timed = page.replaceAll(
    /^([^#\n].*? \S+?)( # .*)?$/gm,
    (_, sample, exemplar = "") => `${sample} ${now}${exemplar}`,
  );
  writeFileSync(join(folder, "page"), timed);
  const words = ["tsdb", "create-blocks-from", "openmetrics", join(folder, "page"), join(folder, "tsdb")];
  const { code, output, errors } = await run("promtool", words);
  assert.equal(code, 0, output + errors);
}

test("Zipkin gets its spans with the tags of CoreDNS, within the trace of a DoH client", async () => {
  await using stack = new AsyncDisposableStack();
  const { collector, server } = await start(
    stack,
    (url) => `zipkin ${url.replace("http://", "")} {\n client_server\n }`,
  );
  const traceId = "463ac35c9f6413ad48485a3953bb6124";
  const response = await fetch(`http://127.0.0.1:${server.portOf("doh")}/dns-query`, {
    method: "POST",
    headers: {
      "content-type": "application/dns-message",
      "x-b3-traceid": traceId,
      "x-b3-spanid": "a2fb4a1d1a96d312",
      "x-b3-sampled": "1",
    },
    body: queryOctets("here.example."),
  });
  assert.equal(response.status, 200);
  const ofClient = (span: JsonSpan) => span.traceId === traceId;
  await collector.until(() => collector.spans.some(ofClient));
  assert.equal(collector.received[0]?.path, "/api/v2/spans");
  const spans = collector.spans.filter(ofClient);
  const root = spanNamed(spans, "servedns");
  assert.equal(root.id, "a2fb4a1d1a96d312");
  assert.equal(root.shared, true);
  assert.equal(root.kind, "SERVER");
  assert.deepEqual(root.localEndpoint, { serviceName: "coredns" });
  assert.equal(root.remoteEndpoint?.ipv4, "127.0.0.1");
  assert.deepEqual(root.tags, {
    "coredns.io/name": "here.example.",
    "coredns.io/type": "A",
    "coredns.io/rcode": "NOERROR",
    "coredns.io/proto": "tcp",
    "coredns.io/remote": "127.0.0.1",
  });
  assert.ok((root.duration ?? 0) >= 1);
  assert.ok(Math.abs((root.timestamp ?? 0) / 1000 - Date.now()) < 3_600_000);
  assert.equal(spanNamed(spans, "hosts").parentId, spanNamed(spans, "cache").id);
});

test("Datadog's agent gets MessagePack, and only what went wrong where that is the rule", async () => {
  await using stack = new AsyncDisposableStack();
  const { collector, server } = await start(
    stack,
    (url) => `datadog ${url} {\n errors\n datadog_analytics_rate 0.5\n }`,
    "{json}",
  );
  await ask(server, "here.example.");
  await ask(server, "one.broken.");
  await collector.until((received) => received.length > 0);
  const [first] = collector.received;
  assert.equal(`${first?.method} ${first?.path}`, "PUT /v0.4/traces");
  assert.equal(first?.headers["content-type"], "application/msgpack");
  const traces = collector.received.flatMap(
    ({ body }) => readMessagePack(body) as Record<string, unknown>[][],
  );
  assert.equal(String(traces.length), first?.headers["x-datadog-trace-count"]);
  for (const trace of traces) {
    const [root, ...children] = trace;
    assert.equal(root?.name, "servedns");
    assert.equal(root?.error, 1n);
    assert.equal(root?.parent_id, 0n);
    const meta = root?.meta as Record<string, string>;
    assert.equal(meta["coredns.io@name"], "one.broken.");
    assert.equal(meta["coredns.io@rcode"], "SERVFAIL");
    const [line] = await server.waitForLog(/^\{.*"name":"one\.broken\.".*\}$/m);
    const half = meta["_dd.p.tid"] ?? "";
    const whole =
      half +
      BigInt(root?.trace_id as bigint)
        .toString(16)
        .padStart(16, "0");
    assert.equal(JSON.parse(line).trace_id, whole);
    const numbers = root?.metrics as Record<string, number>;
    assert.equal(numbers["_dd1.sr.eausr"], 0.5);
    for (const child of children) {
      assert.equal(child.trace_id, root?.trace_id);
      assert.ok((child.start as bigint) >= (root?.start as bigint));
    }
    assert.ok(children.some(({ name }) => name === "forward"));
  }
  const { body } = await server.page("metrics", "/metrics");
  assert.match(body, /^portolan_trace_dropped_spans_total\{reason="refused"\} 0$/m);
});

test("an upstream that does not answer has its span, with the reason", async () => {
  await using stack = new AsyncDisposableStack();
  const collector = stack.use(await FakeCollector.start());
  const upstream = await ScriptedServer.start(() => undefined);
  stack.defer(() => upstream.stop());
  const server = stack.use(
    await Portolan.start(
      (portOf) => `.:${portOf("dns")} {
    bind 127.0.0.1
    trace otlp ${collector.url} {
        errors
    }
    forward . ${upstream.address.text} {
        max_connect_attempts 1
    }
}
`,
    ),
  );
  await ask(server, "silent.example.");
  await collector.until(() => collector.spans.some(({ name }) => name === "udp"));
  const exchange = spanNamed(collector.spans, "udp");
  assert.equal(attributesOf(exchange)["server.address"], "127.0.0.1");
  assert.match(exchange.status?.message ?? "", /timeout|no answer|i\/o/);
  assert.equal(exchange.parentSpanId, spanNamed(collector.spans, "forward").spanId);
});

test("a collector at https:// is trusted by its authority, and by no other", async () => {
  await using stack = new AsyncDisposableStack();
  const authority = new CertificateAuthority();
  const { certificate, key } = authority.issue({ commonName: "collector", hosts: ["127.0.0.1"] });
  const collector = stack.use(await FakeCollector.start(undefined, { cert: certificate, key }));
  const files = {
    "ca.pem": authority.certificate,
    "other.pem": new CertificateAuthority("other").certificate,
  };
  const corefile = (ca: string) => (portOf: (name: string) => number) =>
    `.:${portOf("dns")} {
    bind 127.0.0.1
    trace otlp ${collector.url} {
        tls ${ca}
    }
    whoami
}
`;
  const server = stack.use(await Portolan.start(corefile("other.pem"), { files }));
  await ask(server, "first.example.");
  await server.waitForLog(/plugin\/trace: http\S+ cannot be reached: .*certificate/);
  assert.equal(collector.received.length, 0);
  assert.match(await server.reload(corefile("ca.pem")), /Reloading complete/);
  await ask(server, "second.example.");
  await collector.until((received) => received.length > 0);
  assert.match(await server.reload(corefile("missing.pem")), /error: tls: error reading missing\.pem/);
});

test("a server whose collector is away answers, says so once, and sends what it kept when it is back", async () => {
  await using stack = new AsyncDisposableStack();
  let isAway = true;
  const collector = stack.use(
    await FakeCollector.start(() => (isAway ? { status: 503, body: "not now" } : { status: 202 })),
  );
  const server = stack.use(
    await Portolan.start(
      (portOf) => `.:${portOf("dns")} {
    bind 127.0.0.1
    trace otlp ${collector.url}
    whoami
}
`,
    ),
  );
  await ask(server, "first.example.");
  await collector.until((received) => received.length > 0);
  isAway = false;
  await ask(server, "second.example.");
  await collector.until(() =>
    collector.spans.some((span) => attributesOf(span)["coredns.io/name"] === "second.example."),
  );
  // Nothing was lost, and what had failed came first.
  const names = collector.spans.flatMap((span) => attributesOf(span)["coredns.io/name"] ?? []);
  assert.equal(names[0], "first.example.");
  await server.waitForLog(/plugin\/trace: http\S+ answers 503 \(not now\): trying again/);
  await server.waitForLog(/plugin\/trace: http\S+ accepts spans again/);
});
