import assert from "node:assert/strict";
import { test } from "node:test";
import { EncodedSections, encodeMessage, Name, Rcode, RecordType } from "../../dns/index.ts";
import { writeU16 } from "../../dns/octets.ts";
import type { Next, Query, Reply, ReplyContent } from "../../plugin/index.ts";
import {
  type Answer,
  makeTestQuery,
  PluginTest,
  type QuestionOptions,
  records,
} from "../../plugin/testing.ts";
import cache from "./index.ts";

const SOA = "example.org. 300 IN SOA ns.example.org. admin.example.org. 1 7200 900 1209600 86400";
const A = "www.example.org. 300 IN A 192.0.2.1";

interface Case {
  readonly title: string;
  readonly text?: string;
  readonly question?: Partial<QuestionOptions>;
  readonly reply: ReplyContent;
  /** TTL that the first reply shows on all records. */
  readonly ttl: number;
  /** The cache that holds the reply afterwards. */
  readonly kept: "success" | "denial" | "no";
}

const CASES: readonly Case[] = [
  { title: "an answer", reply: { answer: records(A) }, ttl: 300, kept: "success" },
  {
    title: "an answer with the smallest TTL of all sections",
    reply: {
      answer: records(A),
      authority: records("example.org. 200 IN NS ns.example.org."),
      additional: records("ns.example.org. 100 IN A 192.0.2.53"),
    },
    ttl: 100,
    kept: "success",
  },
  {
    title: "an answer of more than the maximum",
    reply: { answer: records("www.example.org. 86400 IN A 192.0.2.1") },
    ttl: 3600,
    kept: "success",
  },
  {
    title: "an answer of more than a maximum of a day",
    text: "cache 86400",
    reply: { answer: records("www.example.org. 604800 IN A 192.0.2.1") },
    ttl: 86400,
    kept: "success",
  },
  {
    title: "an answer with TTL 0, as 5",
    reply: { answer: records("www.example.org. 0 IN A 192.0.2.1") },
    ttl: 5,
    kept: "success",
  },
  {
    title: "nothing with TTL 0 where MINTTL is 0",
    text: "cache {\n success 1000 60 0\n}",
    reply: { answer: records("www.example.org. 0 IN A 192.0.2.1") },
    ttl: 0,
    kept: "no",
  },
  {
    title: "an answer for no longer than a maximum below MINTTL",
    text: "cache 3",
    reply: { answer: records(A) },
    ttl: 3,
    kept: "success",
  },
  {
    title: "NXDOMAIN with SOA, the SOA's minimum not counted",
    reply: { rcode: Rcode.NXDOMAIN, authority: records(SOA) },
    ttl: 300,
    kept: "denial",
  },
  {
    title: "NXDOMAIN for at most half an hour",
    reply: { rcode: Rcode.NXDOMAIN, authority: records(SOA.replace(" 300 ", " 7200 ")) },
    ttl: 1800,
    kept: "denial",
  },
  {
    title: "NXDOMAIN with the limits of its own",
    text: "cache {\n denial 1000 60 30\n}",
    reply: { rcode: Rcode.NXDOMAIN, authority: records(SOA.replace(" 300 ", " 2 ")) },
    ttl: 30,
    kept: "denial",
  },
  { title: "no NXDOMAIN without SOA", reply: { rcode: Rcode.NXDOMAIN }, ttl: 5, kept: "no" },
  { title: "NODATA", reply: { authority: records(SOA) }, ttl: 300, kept: "denial" },
  { title: "an empty NOERROR without SOA, for 5 s", reply: {}, ttl: 5, kept: "success" },
  {
    title: "an empty NOERROR without SOA but with other records, by their TTL",
    reply: { additional: records("ns.example.org. 100 IN A 192.0.2.53") },
    ttl: 100,
    kept: "success",
  },
  {
    title: "a delegation, for 5 s",
    reply: { authority: records("www.example.org. 300 IN NS ns.example.net.") },
    ttl: 5,
    kept: "success",
  },
  {
    title: "a delegation, for a larger MINTTL",
    text: "cache {\n success 1000 60 20\n}",
    reply: { authority: records("www.example.org. 300 IN NS ns.example.net.") },
    ttl: 20,
    kept: "success",
  },
  { title: "SERVFAIL, for 5 s", reply: { rcode: Rcode.SERVFAIL }, ttl: 5, kept: "denial" },
  { title: "NOTIMP, as SERVFAIL", reply: { rcode: Rcode.NOTIMP }, ttl: 5, kept: "denial" },
  {
    title: "SERVFAIL, for the time of servfail",
    text: "cache {\n servfail 90s\n}",
    reply: { rcode: Rcode.SERVFAIL },
    ttl: 90,
    kept: "denial",
  },
  {
    title: "no SERVFAIL with servfail 0",
    text: "cache {\n servfail 0\n}",
    reply: { rcode: Rcode.SERVFAIL },
    ttl: 0,
    kept: "no",
  },
  { title: "no REFUSED", reply: { rcode: Rcode.REFUSED, authority: records(SOA) }, ttl: 5, kept: "no" },
  { title: "no FORMERR", reply: { rcode: Rcode.FORMERR }, ttl: 5, kept: "no" },
  {
    title: "no NXDOMAIN with an answer",
    reply: { rcode: Rcode.NXDOMAIN, answer: records(A), authority: records(SOA) },
    ttl: 5,
    kept: "no",
  },
  { title: "nothing truncated", reply: { answer: records(A), truncated: true }, ttl: 300, kept: "no" },
  {
    title: "a chain of CNAMEs that reaches the type",
    reply: {
      answer: records(
        "www.example.org. 300 IN CNAME a.example.net.",
        "b.example.net. 100 IN A 192.0.2.1",
        "a.example.net. 200 IN CNAME B.example.net.",
      ),
    },
    ttl: 100,
    kept: "success",
  },
  {
    title: "a CNAME that was asked for",
    question: { type: "CNAME" },
    reply: { answer: records("www.example.org. 300 IN CNAME a.example.net.") },
    ttl: 300,
    kept: "success",
  },
  {
    title: "any records for ANY",
    question: { type: "ANY" },
    reply: { answer: records("www.example.org. 300 IN CNAME a.example.net.") },
    ttl: 300,
    kept: "success",
  },
  {
    title: "no chain that breaks off",
    reply: { answer: records("www.example.org. 300 IN CNAME a.example.net.") },
    ttl: 300,
    kept: "no",
  },
  {
    title: "as NODATA a chain that breaks off with SOA",
    reply: {
      answer: records("www.example.org. 2000 IN CNAME a.example.net."),
      authority: records(SOA.replace(" 300 ", " 3000 ")),
    },
    ttl: 1800,
    kept: "denial",
  },
  {
    title: "no chain that runs in a circle",
    reply: {
      answer: records("www.example.org. 300 IN CNAME a.", "a. 300 IN CNAME www.example.org."),
    },
    ttl: 300,
    kept: "no",
  },
  {
    title: "no chain that forks",
    reply: {
      answer: records(
        "www.example.org. 300 IN CNAME a.",
        "www.example.org. 300 IN CNAME b.",
        "a. 300 IN A 192.0.2.1",
        "b. 300 IN A 192.0.2.2",
      ),
    },
    ttl: 300,
    kept: "no",
  },
  {
    title: "no answer for another name",
    reply: { answer: records("mail.example.org. 300 IN A 192.0.2.1") },
    ttl: 300,
    kept: "no",
  },
  {
    title: "an answer with signatures that are valid",
    question: { edns: { dnssecOk: true } },
    reply: {
      answer: records(
        A,
        "www.example.org. 300 IN RRSIG A 8 3 300 20260201000000 20251201000000 1 example.org. AAAA",
      ),
    },
    ttl: 300,
    kept: "success",
  },
  {
    title: "no answer with an expired signature",
    question: { edns: { dnssecOk: true } },
    reply: {
      answer: records(
        A,
        "www.example.org. 300 IN RRSIG A 8 3 300 20251231000000 20251201000000 1 example.org. AAAA",
      ),
    },
    ttl: 5,
    kept: "no",
  },
  {
    title: "no success where that is disabled",
    text: "cache {\n disable success example.org\n}",
    reply: { answer: records(A) },
    ttl: 300,
    kept: "no",
  },
  {
    title: "a denial where only success is disabled",
    text: "cache {\n disable success\n}",
    reply: { authority: records(SOA) },
    ttl: 300,
    kept: "denial",
  },
  {
    title: "no denial where that is disabled",
    text: "cache {\n disable denial\n}",
    reply: { authority: records(SOA) },
    ttl: 300,
    kept: "no",
  },
  {
    title: "no SERVFAIL where denial is disabled",
    text: "cache {\n disable denial example.org\n}",
    reply: { rcode: Rcode.SERVFAIL },
    ttl: 5,
    kept: "no",
  },
  {
    title: "success outside of the zones where it is disabled",
    text: "cache {\n disable success example.net\n}",
    reply: { answer: records(A) },
    ttl: 300,
    kept: "success",
  },
];

for (const { title, text, question, reply, ttl, kept } of CASES) {
  test(`keeps ${title}`, async () => {
    const upstream = new Upstream(reply);
    const running = PluginTest.of(cache, text ?? "cache");
    const asked: QuestionOptions = { name: "www.example.org.", next: upstream.next, ...question };
    const first = await running.ask(asked);
    assert.equal(first.rcode, reply.rcode ?? Rcode.NOERROR);
    for (const record of allRecords(first)) assert.equal(record.ttl, ttl);
    const second = await running.ask(asked);
    assert.deepEqual(content(second), content(first));
    assert.equal(upstream.asked.length, kept === "no" ? 2 : 1);
    assert.equal(counter(running, "hits_total", "success"), kept === "success" ? 1 : 0);
    assert.equal(counter(running, "hits_total", "denial"), kept === "denial" ? 1 : 0);
  });
}

for (const [count, isCompressed] of [
  [10, false],
  [20, true],
] as const) {
  test(`${isCompressed ? "compresses" : "leaves unchanged"} ${count} addresses of an upstream that compresses no name`, async () => {
    const name = Name.parse("www.example.org.");
    const answer = Array.from({ length: count }, (_, n) => A.replace(/1$/, String(n)));
    const bytes = encodeMessage(
      {
        id: 1,
        opcode: 0,
        flags: 0,
        rcode: 0,
        questions: [{ name, type: RecordType.A, class: 1 }],
        answer: records(...answer),
        authority: [],
        additional: [],
        edns: undefined,
      },
      { compress: false },
    );
    const { encoded } = EncodedSections.scan(bytes, bytes.length);
    const upstream = new Upstream({ encoded });
    const running = PluginTest.of(cache, "cache");
    // A client that accepts long replies asks first, and others later.
    for (const edns of [{ udpSize: 4096 }, undefined]) {
      const asked = { name: String(name), next: upstream.next, ...(edns !== undefined && { edns }) };
      const given = await running.ask(asked);
      assert.equal(given.reply.sections.end, isCompressed ? 12 + 21 + count * 16 : encoded.end);
      assert.deepEqual(given.answer, answer);
    }
    assert.equal(upstream.asked.length, 1);
  });
}

test("a reply to another question is passed on and counted, but not cached", async () => {
  const running = PluginTest.of(cache, "cache");
  const other = makeTestQuery({ name: "mail.example.org." });
  const next: Next = () => other.reply({ answer: records("mail.example.org. 300 IN A 192.0.2.1") });
  for (const drops of [1, 2]) {
    const { answer } = await running.ask({ name: "www.example.org.", next });
    assert.deepEqual(answer, ["mail.example.org. 300 IN A 192.0.2.1"]);
    assert.equal(counter(running, "drops_total"), drops);
  }
});

test("a reply with a signature that cannot be decoded is passed on but not cached", async () => {
  const asked: Query[] = [];
  const next: Next = (query) => {
    asked.push(query);
    const { encoded } = query.reply({ answer: records("www.example.org. 300 IN TYPE65280 \\# 3 000108") });
    const bytes = encoded.bytes.slice();
    writeU16(bytes, 4, 1);
    writeU16(bytes, 6, 1);
    writeU16(bytes, encoded.typeOffsets[0] ?? 0, RecordType.RRSIG);
    return query.reply({ encoded: EncodedSections.scan(bytes, bytes.length).encoded });
  };
  const running = PluginTest.of(cache, "cache");
  for (const count of [1, 2]) {
    const outcome = await running.outcome({ name: "www.example.org.", edns: { dnssecOk: true }, next });
    assert.equal(outcome.kind === "reply" && outcome.uniformTtl, 5);
    assert.equal(asked.length, count);
  }
});

test("a reply that cannot be encoded is a failure for all its clients", async () => {
  const running = PluginTest.of(cache, "cache {\n serve_stale 1h\n}");
  const [record] = records(A);
  assert.ok(record !== undefined);
  const broken = { ...record, data: { address: "not an address" } };
  const answers: ((reply: Reply) => void)[] = [];
  const next: Next = () => new Promise((resolve) => answers.push(resolve));
  const asking = [1, 2].map((id) => Promise.resolve(running.outcome({ name: "www.example.org.", id, next })));
  answers[0]?.(makeTestQuery({ name: "www.example.org." }).reply({ answer: [broken] }));
  for (const outcome of await Promise.all(asking)) {
    assert.ok(outcome.kind === "failed");
    assert.match(outcome.error?.message ?? "", /^the reply for www.example.org. cannot be used: /);
  }
  await running.ask({ name: "www.example.org.", next: (query) => query.reply({ answer: records(A) }) });
  running.clock.advance(301_000);
  await running.ask({ name: "www.example.org.", next: (query) => query.reply({ answer: [broken] }) });
  assert.match(
    running.log.lines.join("\n"),
    /plugin\/cache: the reply for www.example.org. cannot be used: /,
  );
});

/** The rest of the chain: returns the same reply to every query, and records the queries. */
class Upstream {
  readonly asked: Query[] = [];
  readonly next: Next;

  constructor(content: ReplyContent) {
    this.next = (query) => {
      this.asked.push(query);
      return query.reply(content);
    };
  }
}

function allRecords({ reply }: Answer): readonly { readonly ttl: number }[] {
  return [...reply.answer, ...reply.authority, ...reply.additional];
}

function content({ rcode, answer, authority, additional }: Answer): unknown {
  return { rcode, answer, authority, additional };
}

function counter(running: PluginTest<unknown>, name: string, type?: string, zones = "."): number {
  const labels = type === undefined ? ["server", "zones", "view"] : ["server", "type", "zones", "view"];
  const values = type === undefined ? ["dns://:53", zones, ""] : ["dns://:53", type, zones, ""];
  return running.metrics.counter({ name: `coredns_cache_${name}`, help: "-", labels }).slot(...values).value;
}
