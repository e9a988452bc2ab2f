import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Rcode } from "../../dns/index.ts";
import { DROPPED, type Next, type Outcome } from "../../plugin/index.ts";
import { AnswerKind } from "../../plugin/query/answer-kind.ts";
import { answering, ConfigRefused, PluginTest, type QuestionOptions, records } from "../../plugin/testing.ts";
import limit from "./index.ts";

const ANSWER = answering({ answer: records("a.test. 60 IN A 192.0.2.1") });
const SOA = records("test. 60 IN SOA test. test. 1 1 1 1 60");
const NXDOMAIN = answering({ rcode: Rcode.NXDOMAIN, authority: SOA });
const NODATA = answering({ authority: SOA });
const REFERRAL = answering({ authority: records("sub.test. 60 IN NS ns.sub.test.") });
const LARGE = answering({ answer: records(`a.test. 60 IN TXT ${`"${"x".repeat(200)}" `.repeat(4)}`) });
const FAILING: Next = (query) => query.fail();

function word(outcome: Outcome): string {
  if (outcome === DROPPED) return "drop";
  if (outcome.kind === "failed") return "fail";
  assert.ok(outcome.kind === "reply");
  if (outcome.truncated) return "tc";
  return outcome.rcode === Rcode.REFUSED ? "refused" : "pass";
}

async function asked(
  running: PluginTest<unknown>,
  times: number,
  options: Partial<QuestionOptions> = {},
): Promise<string[]> {
  const words: string[] = [];
  for (let time = 0; time < times; time++)
    words.push(word(await running.outcome({ name: "a.test.", next: ANSWER, ...options })));
  return words;
}

function times(count: number, what: string): string[] {
  return Array.from({ length: count }, () => what);
}

test("a client gets its burst at once, and then its rate", async () => {
  const running = PluginTest.of(limit, "limit {\n all 10 20\n action drop\n}");
  assert.deepEqual(await asked(running, 22), [...times(20, "pass"), "drop", "drop"]);
  running.clock.advance(1_000);
  assert.deepEqual(await asked(running, 12), [...times(10, "pass"), "drop", "drop"]);
  assert.deepEqual(await asked(running, 1, { client: "192.0.2.2" }), ["pass"]);
});

test("a query above the limit does not reach the next plugin", async () => {
  const running = PluginTest.of(limit, "limit {\n all 1\n}");
  let reached = 0;
  const next: Next = (query) => {
    reached++;
    return query.reply();
  };
  await asked(running, 10, { next });
  assert.equal(reached, 1);
});

for (const [action, udp, tcp] of [
  ["tc", ["tc", "tc", "tc", "tc"], "refused"],
  ["refused", ["refused", "refused", "refused", "refused"], "refused"],
  ["drop", ["drop", "drop", "drop", "drop"], "drop"],
  ["slip", ["drop", "tc", "drop", "tc"], "refused"],
  ["slip 1", ["tc", "tc", "tc", "tc"], "refused"],
  ["slip 4", ["drop", "drop", "drop", "tc"], "refused"],
] as const) {
  test(`action ${action}`, async () => {
    const running = PluginTest.of(limit, `limit {\n all 1\n action ${action}\n}`);
    assert.deepEqual(await asked(running, 5), ["pass", ...udp]);
    // The sender of a datagram may be invented: its bucket is not that of connections.
    assert.deepEqual(await asked(running, 2, { transport: "tcp" }), ["pass", tcp]);
    assert.deepEqual(await asked(running, 1, { transport: "quic" }), [tcp]);
  });
}

describe("classes of answers", () => {
  for (const [name, next] of [
    ["nxdomain", NXDOMAIN],
    ["nodata", NODATA],
    ["error", FAILING],
    ["error", answering({ rcode: Rcode.NOTIMP })],
    ["referral", REFERRAL],
    ["large", LARGE],
  ] as const) {
    test(`${name} limits its own answers alone`, async () => {
      const running = PluginTest.of(limit, `limit {\n ${name} 2\n action refused\n}`);
      const expected = next === FAILING ? "fail" : "pass";
      assert.deepEqual(await asked(running, 3, { next, type: "TXT" }), [expected, expected, "refused"]);
      assert.deepEqual(await asked(running, 5), times(5, "pass"));
      for (const other of [NXDOMAIN, NODATA, REFERRAL].filter((one) => one !== next))
        assert.deepEqual(await asked(running, 3, { next: other }), times(3, "pass"));
    });
  }

  test("large_size is the largest answer that counts for nothing", async () => {
    const running = PluginTest.of(limit, "limit {\n large 1\n large_size 5000\n}");
    assert.deepEqual(await asked(running, 3, { next: LARGE, type: "TXT" }), times(3, "pass"));
  });

  test("an answer that comes later is limited, too", async () => {
    const running = PluginTest.of(limit, "limit {\n nxdomain 1\n action tc\n}");
    const later: Next = async (query) => NXDOMAIN(query);
    assert.deepEqual(await asked(running, 2, { next: later }), ["pass", "tc"]);
  });
});

test("clients are addresses, networks of any length, and mapped addresses are IPv4", async () => {
  const byAddress = PluginTest.of(limit, "limit {\n all 1\n action drop\n}");
  for (const client of ["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"])
    assert.deepEqual(await asked(byAddress, 2, { client }), ["pass", "drop"], client);
  assert.deepEqual(await asked(byAddress, 1, { client: "::ffff:192.0.2.2" }), ["drop"]);

  const byPrefix = PluginTest.of(limit, "limit {\n all 1\n action drop\n by prefix\n}");
  for (const [client, verdict] of [
    ["192.0.2.1", "pass"],
    ["192.0.2.255", "drop"],
    ["192.0.3.1", "pass"],
    ["2001:db8:0:100::1", "pass"],
    ["2001:db8:0:1ff::1", "drop"],
    ["2001:db8:0:200::1", "pass"],
  ] as const)
    assert.deepEqual(await asked(byPrefix, 1, { client }), [verdict], client);

  const other = PluginTest.of(limit, "limit {\n all 1\n action drop\n by prefix 31 127\n}");
  for (const [client, verdict] of [
    ["192.0.2.2", "pass"],
    ["192.0.2.3", "drop"],
    ["192.0.2.4", "pass"],
    ["2001:db8::2", "pass"],
    ["2001:db8::3", "drop"],
  ] as const)
    assert.deepEqual(await asked(other, 1, { client }), [verdict], client);
});

async function askedFromPod(
  running: PluginTest<unknown>,
  client: string,
  namespace: string,
  pod: string,
): Promise<string> {
  const query = running.query({ name: "a.test.", client });
  query.metadata = new Map();
  query.setMetadata("kubernetes/client-namespace", namespace);
  query.setMetadata("kubernetes/client-pod-name", pod);
  return word(await running.chain(ANSWER)(query));
}

test("by namespace and by workload, pods share a bucket", async () => {
  const text = (by: string): string =>
    `limit {\n all 1\n action drop\n by ${by}\n exempt_namespace kube-system\n}`;
  const byNamespace = PluginTest.of(limit, text("namespace"));
  assert.equal(await askedFromPod(byNamespace, "10.0.0.1", "shop", "web-0"), "pass");
  assert.equal(await askedFromPod(byNamespace, "10.0.0.2", "shop", "db-0"), "drop");
  assert.equal(await askedFromPod(byNamespace, "10.0.0.3", "other", "web-0"), "pass");
  for (let time = 0; time < 3; time++)
    assert.equal(await askedFromPod(byNamespace, "10.0.0.4", "kube-system", "x"), "pass");
  // A client that is no pod has a bucket for its address.
  assert.deepEqual(await asked(byNamespace, 2, { client: "10.0.0.9" }), ["pass", "drop"]);

  const byWorkload = PluginTest.of(limit, text("workload"));
  assert.equal(await askedFromPod(byWorkload, "10.0.0.1", "shop", "web-7c9f8d5b6-x2x4q"), "pass");
  assert.equal(await askedFromPod(byWorkload, "10.0.0.2", "shop", "web-7c9f8d5b6-bbbbb"), "drop");
  assert.equal(await askedFromPod(byWorkload, "10.0.0.3", "shop", "db-0"), "pass");
  assert.equal(await askedFromPod(byWorkload, "10.0.0.4", "shop", "db-1"), "drop");
});

test("exempt networks have no limit", async () => {
  const running = PluginTest.of(
    limit,
    "limit {\n all 1\n nxdomain 1\n exempt 10.0.0.0/8 2001:db8::/32\n exempt 192.0.2.7\n}",
  );
  for (const client of ["10.1.2.3", "2001:db8::9", "192.0.2.7"])
    assert.deepEqual(await asked(running, 4, { client, next: NXDOMAIN }), times(4, "pass"), client);
  assert.equal((await asked(running, 2, { client: "192.0.2.8" }))[1], "drop");
});

test("dry_run counts, and lets everything pass", async () => {
  const running = PluginTest.of(limit, "limit {\n all 1\n dry_run\n}");
  assert.deepEqual(await asked(running, 4), times(4, "pass"));
  const { body } = await running.metrics.expose();
  assert.match(body, /^portolan_limit_exceeded_total\{class="all",result="passed"\} 3$/m);
});

test("counts by class and result, and shows the size of the table", async () => {
  const running = PluginTest.of(limit, "limit {\n all 4\n nxdomain 1\n table_size 1000\n}");
  await asked(running, 3, { next: NXDOMAIN });
  await asked(running, 4);
  const { body } = await running.metrics.expose();
  for (const line of [
    'portolan_limit_exceeded_total{class="nxdomain",result="dropped"} 1',
    'portolan_limit_exceeded_total{class="nxdomain",result="truncated"} 1',
    'portolan_limit_exceeded_total{class="all",result="dropped"} 2',
    'portolan_limit_exceeded_total{class="all",result="truncated"} 1',
    'portolan_limit_buckets{zones="."} 2',
    'portolan_limit_table_bytes{zones="."} 20064',
  ])
    assert.ok(body.split("\n").includes(line), `${line} in\n${body}`);
});

test("names the clients above their limits in the log and in the console, at most once a minute", async () => {
  const running = PluginTest.of(limit, "limit {\n all 1\n}");
  await asked(running, 4);
  await asked(running, 10, { client: "2001:db8::7" });
  const [instance] = running.instances;
  assert.deepEqual(instance?.faults?.(), [
    { subject: "2001:db8::7", reason: "exceeds the limit 'all': 9 queries in a minute" },
    { subject: "192.0.2.1", reason: "exceeds the limit 'all': 3 queries in a minute" },
  ]);
  assert.deepEqual(running.log.lines, ["[WARNING] plugin/limit: 192.0.2.1 exceeds its limit 'all'"]);
  running.clock.advance(60_000);
  assert.equal(
    running.log.lines.at(-1),
    "[WARNING] plugin/limit: 12 queries above the limits in the last minute, most from 2001:db8::7 (all: 9), 192.0.2.1 (all: 3)",
  );
  running.clock.advance(60_000);
  assert.deepEqual(instance?.faults?.(), []);
  assert.equal(running.log.lines.length, 2);
  await running.stop();
});

test("explain says how many tokens are left, and takes none", async () => {
  const running = PluginTest.of(limit, "limit {\n all 2\n action tc\n}");
  const notes: string[] = [];
  const explained = async (): Promise<string> => {
    const query = running.query({ name: "a.test.", client: "10.1.2.3" });
    query.trace = {
      leavesNoMark: true,
      note: (text) => notes.push(text),
      enter: () => undefined,
      leave: () => undefined,
    };
    return word(await running.chain(ANSWER)(query));
  };
  for (let time = 0; time < 5; time++) assert.equal(await explained(), "pass");
  await asked(running, 2, { client: "10.1.2.3" });
  assert.equal(await explained(), "tc");
  assert.deepEqual(notes.slice(4), [
    "2 of 2 tokens of 'all' left for 10.1.2.3",
    "0 of 2 tokens of 'all' left for 10.1.2.3; above the limit: truncated",
  ]);
  const { body } = await running.metrics.expose();
  assert.match(body, /^portolan_limit_exceeded_total\{class="all",result="truncated"\} 0$/m);
});

test("a repeated answer costs what it costs in the chain", async () => {
  const running = PluginTest.of(
    limit,
    "limit {\n all 10\n nxdomain 3\n large 5\n action drop\n exempt 10.9.0.0/16\n}",
  );
  const [instance] = running.instances;
  const names = new Int32Array(8);
  const setClient = (...octets: number[]): void => new Uint8Array(names.buffer).set(octets, 4);
  const admits = (kind: number, size = 100): boolean =>
    instance?.witness?.admits?.(names, 1, 4, kind, size, running.clock.now()) ?? assert.fail();
  setClient(192, 0, 2, 1);
  assert.deepEqual(
    [1, 2, 3, 4].map(() => admits(AnswerKind.NXDOMAIN)),
    [true, true, true, false],
  );
  assert.equal(word(await running.outcome({ name: "a.test.", next: NXDOMAIN })), "drop");
  // Three were repeated, and one went through the chain.
  assert.deepEqual(
    times(7, "").map(() => admits(AnswerKind.RESPONSE)),
    [...Array(6).fill(true), false],
  );
  assert.deepEqual(await asked(running, 1), ["drop"]);
  assert.deepEqual(await asked(running, 1, { client: "192.0.2.2" }), ["pass"]);
  setClient(192, 0, 2, 3);
  assert.deepEqual(
    times(7, "").map(() => admits(AnswerKind.RESPONSE, 600)),
    [...Array(5).fill(true), false, false],
  );
  setClient(10, 9, 8, 7);
  assert.ok(times(50, "").every(() => admits(AnswerKind.RESPONSE)));
});

test("a lookup of the server for a client costs nothing", async () => {
  const running = PluginTest.of(limit, "limit {\n all 1\n action drop\n}");
  const query = running.query({ name: "a.test." });
  const inner = query.derive({ name: query.name, type: 28, class: 1 });
  assert.equal(inner.depth, 0);
  assert.equal(word(await running.chain((outer) => outer.lookup(outer.name, 28))(query)), "fail");
  assert.deepEqual(await asked(running, 1), ["drop"]);
});

for (const [text, code, message] of [
  ["limit", "LIMIT_WITHOUT_RATE", /limit has no rate/],
  ["limit 10", "PLUGIN_ARGUMENT_UNEXPECTED", /after '10'/],
  ["limit {\n all\n}", "PLUGIN_ARGUMENT_MISSING", /after 'all'/],
  ["limit {\n all 0\n}", "PLUGIN_BAD_VALUE", /'0' is not a whole number from 1 to 1000000/],
  ["limit {\n all ten\n}", "PLUGIN_BAD_VALUE", /'ten' is not a whole number/],
  ["limit {\n all 1\n action refuse\n}", "PLUGIN_BAD_VALUE", /unknown value 'refuse'/],
  ["limit {\n all 1\n action drop 2\n}", "LIMIT_SLIP", /'drop' takes no number/],
  ["limit {\n all 1\n action slip 11\n}", "PLUGIN_BAD_VALUE", /'11' is not a whole number from 1 to 10/],
  ["limit {\n all 1\n by address 24\n}", "LIMIT_PREFIX", /'by address' takes no prefix lengths/],
  ["limit {\n all 1\n by prefix 33\n}", "PLUGIN_BAD_VALUE", /'33' is not a whole number from 1 to 32/],
  ["limit {\n all 1\n exempt here\n}", "PLUGIN_BAD_VALUE", /'here' is not an IP address or a network/],
  ["limit {\n all 1\n table_size 2000000\n}", "PLUGIN_BAD_VALUE", /from 1 to 1600000/],
  ["limit {\n all 1\n dryrun\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'dryrun'/],
  ["limit {\n all 1\n}\nlimit {\n all 1\n}", "PLUGIN_REPEATED", /only be used once/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(limit, text),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}
