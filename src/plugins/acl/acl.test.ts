import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EdnsOptionCode, ExtendedErrorCode, Rcode } from "../../dns/index.ts";
import { DROPPED } from "../../plugin/index.ts";
import { answering, ConfigRefused, PluginTest, records } from "../../plugin/testing.ts";
import acl from "./index.ts";

const ANSWER = answering({ answer: records("a.test. 60 IN A 192.0.2.1") });

type Verdict = "pass" | "block" | "filter" | "drop";

async function verdict(running: PluginTest<unknown>, question: string): Promise<Verdict> {
  const [name = "", type = "", client = ""] = question.split(" ");
  const outcome = await running.outcome({ name, type, client, next: ANSWER });
  if (outcome === DROPPED) return "drop";
  assert.ok(outcome.kind === "reply");
  if (outcome.encoded.answerCount > 0) return "pass";
  const [option] = outcome.edns?.options ?? [];
  assert.equal(option?.code, EdnsOptionCode.EXTENDED_ERROR);
  const infoCode = option?.data[1];
  assert.equal(outcome.rcode, infoCode === ExtendedErrorCode.BLOCKED ? Rcode.REFUSED : Rcode.NOERROR);
  return infoCode === ExtendedErrorCode.BLOCKED ? "block" : "filter";
}

/** Directives, and the outcomes of queries (name, type, address of the client). */
const TABLE: readonly (readonly [string, Readonly<Record<string, Verdict>>])[] = [
  ["acl", { "a.test. A 127.0.0.1": "pass" }],
  ["acl a.test b.test", { "a.test. A 127.0.0.1": "pass" }],
  ["acl {\n}", { "a.test. A 127.0.0.1": "pass" }],
  [
    "acl {\n block\n}",
    {
      "a.test. A 127.0.0.1": "block",
      "a.test. AAAA 127.0.0.1": "block",
      "A.Test. TXT 10.0.0.1": "block",
      ". NS 2001:db8::1": "block",
    },
  ],
  [
    "acl {\n block type A\n}",
    { "a.test. A 127.0.0.1": "block", "a.test. AAAA 127.0.0.1": "pass", "a.test. ANY 127.0.0.1": "pass" },
  ],
  [
    "acl {\n filter type AAAA MX ANY\n}",
    {
      "a.test. A 127.0.0.1": "pass",
      "a.test. AAAA 127.0.0.1": "filter",
      "a.test. MX 127.0.0.1": "filter",
      "a.test. ANY 127.0.0.1": "filter",
    },
  ],
  ["acl {\n filter type *\n}", { "a.test. A 127.0.0.1": "filter", "a.test. TYPE65280 ::1": "filter" }],
  ["acl {\n filter type * A\n}", { "a.test. TXT 127.0.0.1": "filter" }],
  [
    "acl {\n block net 127.0.0.2\n}",
    { "a.test. A 127.0.0.2": "block", "a.test. A 127.0.0.3": "pass", "a.test. A ::1": "pass" },
  ],
  [
    "acl {\n block net 127.0.0.2 127.0.0.4/31 ::1\n}",
    {
      "a.test. A 127.0.0.1": "pass",
      "a.test. A 127.0.0.2": "block",
      "a.test. A 127.0.0.3": "pass",
      "a.test. A 127.0.0.4": "block",
      "a.test. A 127.0.0.5": "block",
      "a.test. A 127.0.0.6": "pass",
      "a.test. A ::1": "block",
      "a.test. A ::2": "pass",
    },
  ],
  ["acl {\n block net *\n}", { "a.test. A 127.0.0.1": "block", "a.test. A ::1": "block" }],
  ["acl {\n block net 10.0.0.1 *\n}", { "a.test. A 127.0.0.1": "block", "a.test. A ::1": "block" }],
  ["acl {\n filter net 0.0.0.0/0\n}", { "a.test. A 127.0.0.1": "filter", "a.test. A ::1": "pass" }],
  ["acl {\n filter net ::/0\n}", { "a.test. A 127.0.0.1": "pass", "a.test. A ::1": "filter" }],
  [
    "acl {\n filter net ::ffff:127.0.0.2\n}",
    { "a.test. A 127.0.0.2": "filter", "a.test. A ::ffff:127.0.0.2": "filter", "a.test. A ::1": "pass" },
  ],
  ["acl {\n filter net 127.0.0.99/24\n}", { "a.test. A 127.0.0.2": "filter", "a.test. A 127.0.1.2": "pass" }],
  [
    "acl {\n block net 2001:db8::/32\n}",
    {
      "a.test. A 2001:db8:ffff::1": "block",
      "a.test. A 2001:db9::1": "pass",
      "a.test. A 10.0.0.1": "pass",
    },
  ],
  [
    "acl {\n block type A net 127.0.0.2\n filter type AAAA net 127.0.0.2\n}",
    {
      "a.test. A 127.0.0.2": "block",
      "a.test. AAAA 127.0.0.2": "filter",
      "a.test. TXT 127.0.0.2": "pass",
      "a.test. A 127.0.0.1": "pass",
    },
  ],
  [
    "acl {\n block net 127.0.0.2 type A\n}",
    { "a.test. A 127.0.0.2": "block", "a.test. TXT 127.0.0.2": "pass" },
  ],
  [
    "acl {\n allow net 127.0.0.2\n block\n}",
    { "a.test. A 127.0.0.2": "pass", "a.test. A 127.0.0.1": "block" },
  ],
  [
    "acl {\n block net 127.0.0.0/8\n allow net 127.0.0.2\n filter\n}",
    { "a.test. A 127.0.0.2": "block", "a.test. A ::1": "filter" },
  ],
  [
    "acl {\n allow net 10.1.0.0/16\n block net 10.0.0.0/8\n filter net 10.1.2.0/24 192.0.2.0/24\n}",
    { "a.test. A 10.1.2.3": "pass", "a.test. A 10.2.0.1": "block", "a.test. A 192.0.2.1": "filter" },
  ],
  [
    "acl {\n allow type A net 10.0.0.2\n drop type A net 10.0.0.3\n filter type A net 10.0.0.4\n block type A\n}",
    {
      "a.test. A 10.0.0.2": "pass",
      "a.test. A 10.0.0.3": "drop",
      "a.test. A 10.0.0.4": "filter",
      "a.test. A 10.0.0.5": "block",
      "a.test. AAAA 10.0.0.5": "pass",
    },
  ],
  [
    "acl {\n filter type A AAAA net 10.0.0.0/8\n block type AAAA A\n drop\n}",
    { "a.test. A 10.0.0.1": "filter", "a.test. AAAA 11.0.0.1": "block", "a.test. MX 10.0.0.1": "drop" },
  ],
  ["acl {\n BLOCK TYPE A\n Filter Type TXT\n}", { "a.test. A ::1": "block", "a.test. TXT ::1": "filter" }],
  ["acl {\n block type A type AAAA\n}", { "a.test. AAAA ::1": "block", "a.test. TXT ::1": "pass" }],
  [
    "acl {\n block net 10.0.0.1 net 10.0.0.2\n}",
    { "a.test. A 10.0.0.1": "block", "a.test. A 10.0.0.2": "block" },
  ],
  [
    "acl a.test b.test {\n block\n}",
    {
      "a.test. A ::1": "block",
      "x.a.test. A ::1": "block",
      "X.B.Test. A ::1": "block",
      "c.test. A ::1": "pass",
      "xa.test. A ::1": "pass",
    },
  ],
  [
    "acl test {\n block\n}\nacl ok.test {\n allow\n}",
    { "a.test. A ::1": "block", "x.ok.test. A ::1": "block", "y.org. A ::1": "pass" },
  ],
  [
    "acl ok.test {\n allow\n}\nacl test {\n block\n}",
    { "a.test. A ::1": "block", "x.ok.test. A ::1": "pass" },
  ],
  [
    "acl {\n block type TXT\n}\nacl {\n filter type A\n}\nacl {\n block type A AAAA\n}",
    {
      "a.test. A ::1": "filter",
      "a.test. TXT ::1": "block",
      "a.test. AAAA ::1": "block",
      "a.test. MX ::1": "pass",
    },
  ],
  [
    "acl 10.0.0.0/8 {\n block\n}",
    { "1.0.0.10.in-addr.arpa. PTR ::1": "block", "1.0.0.11.in-addr.arpa. PTR ::1": "pass" },
  ],
];

for (const [text, questions] of TABLE) {
  describe(text.replaceAll("\n", ";"), () => {
    const running = PluginTest.of(acl, text);
    for (const [question, expected] of Object.entries(questions)) {
      test(`${question}: ${expected}`, async () => {
        assert.equal(await verdict(running, question), expected);
      });
    }
  });
}

test("without zones a rule is for those of its server block", async () => {
  const running = PluginTest.of(acl, "acl {\n block\n}", { keys: "test:53 example.org:53" });
  assert.equal(await verdict(running, "a.Example.ORG. A ::1"), "block");
  assert.equal(await verdict(running, "org. A ::1"), "pass");
});

test("counts by listener, zone and view", async () => {
  const running = PluginTest.of(
    acl,
    "acl {\n drop net 10.0.0.1\n}\nacl Test {\n block type A\n filter type TXT\n}",
  );
  for (const question of [
    "a.test. A 10.0.0.2",
    "b.test. A 10.0.0.2",
    "a.test. TXT ::1",
    "a.test. MX ::1",
    "a.org. A 10.0.0.1",
  ])
    await verdict(running, question);
  const query = running.query({ name: "a.test.", client: "192.0.2.1" });
  query.view = "inside";
  await running.chain(ANSWER)(query);
  const { body } = await running.metrics.expose();
  const server = 'server="dns://:53"';
  for (const line of [
    `coredns_acl_blocked_requests_total{${server},zone="test.",view=""} 2`,
    `coredns_acl_blocked_requests_total{${server},zone="test.",view="inside"} 1`,
    `coredns_acl_filtered_requests_total{${server},zone="test.",view=""} 1`,
    `coredns_acl_dropped_requests_total{${server},zone=".",view=""} 1`,
    `coredns_acl_allowed_requests_total{${server},view=""} 1`,
  ])
    assert.ok(body.split("\n").includes(line), `${line} in\n${body}`);
});

test("notes the line that decided, with clients and types", async () => {
  const running = PluginTest.of(acl, "acl {\n allow net 10.0.0.0/8 10.1.0.0/16\n block type A AAAA\n}");
  const notes: string[] = [];
  for (const client of ["10.1.2.3", "192.0.2.1"]) {
    const query = running.query({ name: "a.test.", client });
    query.trace = {
      leavesNoMark: true,
      note: (text) => notes.push(text),
      enter: () => undefined,
      leave: () => undefined,
    };
    await running.chain(ANSWER)(query);
  }
  assert.deepEqual(notes, [
    "line 3: 'allow' for clients in 10.1.0.0/16, 10.1.2.3 among them, and for all types",
    "line 4: 'block' for all clients, and for type A",
  ]);
  assert.doesNotMatch((await running.metrics.expose()).body, /coredns_acl_\w+\{/);
});

for (const [text, message] of [
  ["bogus", /unexpected token "bogus"; expect 'allow', 'block', 'filter' or 'drop'/],
  ["allow bogus", /unexpected token "bogus"; expect 'type \| net'/],
  ["block 10.0.0.1", /unexpected token "10\.0\.0\.1"; expect 'type \| net'/],
  ["block type", /no token specified in "type" section/],
  ["block net", /no token specified in "net" section/],
  ["block type net", /no token specified in "type" section/],
  ["block type A net", /no token specified in "net" section/],
  ["allow net 10.0.0.0/8 TYPE", /no token specified in "type" section/],
  ["block type XX", /unexpected token "XX"; expect legal QTYPE/],
  ["block type a", /unexpected token "a"; expect legal QTYPE/],
  ["block type TYPE99", /unexpected token "TYPE99"; expect legal QTYPE/],
  ["block type TYPE65280", /unexpected token "TYPE65280"; expect legal QTYPE/],
  ["block net 10.0.0.0/33", /illegal CIDR notation "10\.0\.0\.0\/33"/],
  ["block net ::1/129", /illegal CIDR notation "::1\/129"/],
  ["block net fe80::1%eth0", /illegal CIDR notation "fe80::1%eth0\/128"/],
  ["block net localhost", /illegal CIDR notation "localhost\/32"/],
] as const) {
  test(`refuses '${text}'`, () => {
    assert.throws(
      () => PluginTest.of(acl, `acl {\n ${text}\n}`),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}

test("100,000 networks: all are found, and their tree does not burden the garbage collector", async () => {
  const networks = Array.from(
    { length: 100_000 },
    (_, index) => `${10 + (index >> 14)}.${(index >> 6) & 0xff}.${(index & 63) << 2}.0/24`,
  );
  const running = PluginTest.of(acl, `acl {\n block net ${networks.join(" ")}\n}`);
  for (const index of [0, 1, 4_711, 65_535, 99_999]) {
    const [network = ""] = networks[index]?.split("/") ?? [];
    assert.equal(await verdict(running, `a.test. A ${network.replace(/0$/, "7")}`), "block");
  }
  assert.equal(await verdict(running, "a.test. A 10.0.1.1"), "pass");
  assert.equal(await verdict(running, "a.test. A 9.0.0.1"), "pass");
});
