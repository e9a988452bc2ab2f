import assert from "node:assert/strict";
import { test } from "node:test";
import { Rcode } from "../../dns/index.ts";
import { DROPPED, type Next, type Query } from "../../plugin/index.ts";
import { FixedEndpoint } from "../../plugin/message/endpoint.ts";
import { LATENCY_EXEMPLARS } from "../../plugin/services/latency-exemplars.ts";
import { answering, ConfigRefused, FakeClock, PluginTest } from "../../plugin/testing.ts";
import { readCollector } from "./endpoint.ts";
import trace from "./index.ts";

for (const [words, kind, url] of [
  [[], "zipkin", "http://localhost:9411/api/v2/spans"],
  [["zipkin"], "zipkin", "http://localhost:9411/api/v2/spans"],
  [["tracer:9411"], "zipkin", "http://tracer:9411/api/v2/spans"],
  [["http://tracer/zipkin/spans"], "zipkin", "http://tracer/zipkin/spans"],
  [["zipkin", "https://tracer"], "zipkin", "https://tracer/api/v2/spans"],
  [["Zipkin", "10.0.0.1:1"], "zipkin", "http://10.0.0.1:1/api/v2/spans"],
  [["zipkin", "http-collector:9411"], "zipkin", "http://http-collector:9411/api/v2/spans"],
  [["zipkin-http.monitoring:9411"], "zipkin", "http://zipkin-http.monitoring:9411/api/v2/spans"],
  [["HTTP://collector:9411/api/v2/spans"], "zipkin", "http://collector:9411/api/v2/spans"],
  [["zipkin", "HtTpS://collector/spans"], "zipkin", "https://collector/spans"],
  [["otlp", "HTTPS://collector:4318"], "otlp", "https://collector:4318/v1/traces"],
  [["otlp", "https-collector:4318"], "otlp", "http://https-collector:4318/v1/traces"],
  [["datadog"], "datadog", "http://localhost:8126/v0.4/traces"],
  [["datadog", "agent:80"], "datadog", "http://agent/v0.4/traces"],
  [["otlp", "[::1]:4318"], "otlp", "http://[::1]:4318/v1/traces"],
  [["otlp", "https://tracer/custom"], "otlp", "https://tracer/custom"],
] as const) {
  test(`trace ${words.join(" ")} sends to ${url}`, () => {
    const place = readCollector(words);
    if (typeof place === "string") assert.fail(place);
    assert.equal(place.kind, kind);
    assert.equal(place.url.href, url);
  });
}

for (const [text, message] of [
  ["trace jaeger tracer:1", /2:1: error: tracing endpoint type 'jaeger' is not supported/],
  ["trace otlp tracer:99999", /'tracer:99999' is not an endpoint/],
  ["trace otlp ftp://tracer", /is not an endpoint/],
  ["trace zipkin a b", /'b' is one argument too many/],
  ["trace {\n every -1\n}", /'-1' is not a whole number/],
  ["trace {\n every two\n}", /'two' is not a whole number/],
  ["trace {\n slower 5\n}", /duration '5' has no unit/],
  ["trace {\n client 10.0.0.0/33\n}", /'10\.0\.0\.0\/33' is not an address or network/],
  ["trace {\n client\n}", /unexpected line ending after 'client'/],
  ["trace {\n datadog_analytics_rate 1.5\n}", /datadog analytics rate must be between 0 and 1, '1\.5'/],
  ["trace {\n client_server maybe\n}", /'maybe' is neither true nor false/],
  ["trace {\n header a:b c\n}", /'a:b' is not a header name/],
  ["trace {\n queue 1Ki\n}", /'1Ki' is not an amount of memory/],
  ["trace {\n zipkin_max_batch_size 0\n}", /'0' is not a whole number/],
  ["trace {\n evry 1\n}", /unknown property 'evry'[\s\S]*mean 'every'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(trace, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}

test("warns of 'tls' without an encrypted endpoint", () => {
  const running = PluginTest.of(trace, "trace otlp http://tracer:4318 {\n tls ca.pem\n}");
  assert.match(running.warnings.join(), /3:2: warning: 'tls' has no effect: the endpoint is not https/);
});

/** A plugin under test whose traces are observed where they become exemplars. */
function tracing(text: string, clock: FakeClock = new FakeClock()) {
  const traced: string[] = [];
  const exemplars = {
    keep: (query: Query, duration: number) => void traced.push(`${query.name} ${duration}`),
  };
  const running = PluginTest.of(trace, text, {
    clock,
    neighbours: [{ name: "prometheus", instance: { services: [LATENCY_EXEMPLARS.offer(exemplars)] } }],
  });
  return { running, traced, clock };
}

const FINE: Next = answering({});

for (const [options, expected] of [
  ["", [1, 2, 3, 4, 5, 6]],
  ["every 1", [1, 2, 3, 4, 5, 6]],
  ["every 3", [3, 6]],
  ["every 0", []],
  ["errors", []],
] as const) {
  test(`'${options}' traces ${expected.length} of 6`, async () => {
    const { running, traced } = tracing(`trace {\n ${options}\n}`);
    await running.start();
    for (let number = 1; number <= 6; number++)
      await running.outcome({ name: `q${number}.example.`, next: FINE });
    assert.deepEqual(
      traced,
      expected.map((number) => `q${number}.example. 0`),
    );
  });
}

test("errors of all kinds are traced, and denials are not errors", async () => {
  const { running, traced } = tracing("trace {\n errors\n}");
  await running.start();
  await running.outcome({ name: "a.", next: answering({ rcode: Rcode.NXDOMAIN }) });
  await running.outcome({ name: "b.", next: answering({ rcode: Rcode.SERVFAIL }) });
  await running.outcome({ name: "c.", next: answering({ rcode: Rcode.REFUSED }) });
  await running.outcome({ name: "d.", next: (query) => query.fail() });
  await running.outcome({ name: "e.", next: async () => DROPPED });
  assert.deepEqual(traced, ["b. 0", "c. 0", "d. 0", "e. 0"]);
});

test("slow queries are traced after the fact", async () => {
  const { running, traced, clock } = tracing("trace {\n slower 100ms\n}");
  await running.start();
  for (const wait of [0, 100, 101])
    await running.outcome({
      name: `after${wait}.`,
      next: async (query) => {
        clock.advance(wait);
        return query.reply();
      },
    });
  assert.deepEqual(traced, ["after101. 101"]);
});

test("clients are traced by address and network", async () => {
  const { running, traced } = tracing("trace {\n client 10.1.0.0/16 2001:db8::7\n client 192.0.2.9\n}");
  await running.start();
  for (const client of ["10.1.2.3", "10.2.2.3", "2001:db8::7", "2001:db8::8", "192.0.2.9"])
    await running.outcome({ name: `${client.replaceAll(/[.:]/g, "-")}.`, client, next: FINE });
  assert.deepEqual(traced, ["10-1-2-3. 0", "2001-db8--7. 0", "192-0-2-9. 0"]);
});

/** A query whose client sends a trace id. */
function queryOfTrace(running: PluginTest<unknown>, flags: string): Query {
  const query = running.query({ name: "a.example." });
  const traceparent = `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-${flags}`;
  const client = new FixedEndpoint("192.0.2.1", 1, new Uint8Array(4));
  const { listener, transport, local, receivedAt } = query;
  query.detach({
    listener,
    transport,
    local,
    receivedAt,
    client: Object.assign(client, { traceHeaders: { traceparent } }),
  });
  return query;
}

test("a client's trace is continued, and with 'parent' is a reason to trace", async () => {
  for (const [text, flags, count] of [
    ["trace {\n parent\n}", "01", 1],
    ["trace {\n parent\n}", "00", 0],
    ["trace {\n every 0\n}", "01", 0],
    ["trace", "00", 1],
  ] as const) {
    const { running, traced } = tracing(text);
    await running.start();
    const query = queryOfTrace(running, flags);
    query.metadata = new Map();
    await running.chain(FINE)(query);
    assert.equal(traced.length, count, `${text} ${flags}`);
    assert.equal(
      query.metadataValue("trace/traceid"),
      count === 0 ? undefined : "4bf92f3577b34da6a3ce929d0e0e4736",
    );
  }
});

test("internal lookups and queries of explain have no trace of their own", async () => {
  const { running, traced } = tracing("trace");
  await running.start();
  const query = running.query({ name: "a.example." });
  query.trace = { leavesNoMark: true, note: () => undefined, enter: () => undefined, leave: () => undefined };
  await running.chain(FINE)(query);
  assert.equal(query.spans, undefined);
  await running.outcome({ name: "b.example.", next: (asked) => asked.lookup(asked.name, 28) });
  assert.deepEqual(traced, ["b.example. 0"]);
});

test("a query that is not traced gets no spans", () => {
  const { running } = tracing("trace {\n every 2\n}");
  const query = running.query({ name: "a.example." });
  void running.chain(FINE)(query);
  assert.equal(query.spans, undefined);
});
