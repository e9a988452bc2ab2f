import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Rcode } from "../../dns/index.ts";
import { DROPPED, type Next, type Outcome, type Query, type ReplyContent } from "../../plugin/index.ts";
import { Answer, ConfigRefused, makeTestQuery, PluginTest, records } from "../../plugin/testing.ts";
import siit from "./index.ts";

const SOA = "test. 300 IN SOA ns.test. host.test. 1 2 3 4 5";
const nothing: ReplyContent = { authoritative: true, authority: records(SOA) };

const ZONE: Readonly<Record<string, ReplyContent | "failed" | "dropped">> = {
  "well.test. AAAA": { authoritative: true, answer: records("well.test. 77 IN AAAA 64:ff9b::c000:201") },
  "other.test. AAAA": { answer: records("other.test. 60 IN AAAA 2001:db8::1") },
  "mixed.test. AAAA": {
    answer: records("mixed.test. 60 IN AAAA 2001:db8::1", "mixed.test. 60 IN AAAA 64:ff9b::c000:202"),
  },
  "both.test. A": { answer: records("both.test. 60 IN A 198.51.100.1") },
  "both.test. AAAA": { answer: records("both.test. 60 IN AAAA 64:ff9b::c000:203") },
  "alias.test. A": { answer: records("alias.test. 50 IN CNAME well.test."), authority: records(SOA) },
  "alias.test. AAAA": {
    answer: records("alias.test. 50 IN CNAME well.test.", "well.test. 40 IN AAAA 64:ff9b::c000:201"),
    authority: records("test. 800 IN NS ns.test."),
    recursionAvailable: true,
  },
  "signed.test. AAAA": {
    authenticData: true,
    answer: records(
      "signed.test. 60 IN AAAA 64:ff9b::c000:204",
      "signed.test. 60 IN RRSIG AAAA 13 2 60 20400101000000 20200101000000 1 test. AAAA",
    ),
  },
  "nx.test. A": { rcode: Rcode.NXDOMAIN, authority: records(SOA) },
  // Broken: the next server says of one name that it exists, and that it does not.
  "nx.test. AAAA": { answer: records("nx.test. 60 IN AAAA 64:ff9b::c000:206") },
  "nx6.test. AAAA": { rcode: Rcode.NXDOMAIN, authority: records("test. 800 IN NS ns.test.") },
  "refused6.test. AAAA": { rcode: Rcode.REFUSED },
  "failed4.test. A": { rcode: Rcode.SERVFAIL },
  "failed4.test. AAAA": { answer: records("failed4.test. 60 IN AAAA 64:ff9b::c000:207") },
  "refused.test. A": { rcode: Rcode.REFUSED },
  "refused.test. AAAA": { rcode: Rcode.NOTIMP },
  "cut4.test. A": { truncated: true },
  "cut4.test. AAAA": { answer: records("cut4.test. 60 IN AAAA 64:ff9b::c000:208") },
  "mapped.test. AAAA": { answer: records("mapped.test. 60 IN AAAA ::ffff:192.0.2.3") },
  "long.test. AAAA": { answer: records("long.test. 4000 IN AAAA 64:ff9b::c000:209") },
  "bare.test. A": {},
  "bare.test. AAAA": { answer: records("bare.test. 4000 IN AAAA 64:ff9b::c000:20a") },
  "fail6.test. AAAA": { rcode: Rcode.SERVFAIL },
  "broken6.test. AAAA": "failed",
  "gone6.test. AAAA": "dropped",
  "broken4.test. A": "failed",
  "cut.test. AAAA": { truncated: true, answer: records("cut.test. 60 IN AAAA 64:ff9b::c000:205") },
  "server.test. AAAA": { answer: records("server.test. 60 IN AAAA 2001:db8:1::7") },
  "inside.test. AAAA": { answer: records("inside.test. 60 IN AAAA 2001:db8:2::21") },
  "wide.test. AAAA": { answer: records("wide.test. 60 IN AAAA 2001:db8:3:21::5") },
  "p32.test. AAAA": { answer: records("p32.test. 60 IN AAAA 2001:db8:c000:221::") },
  "p40.test. AAAA": { answer: records("p40.test. 60 IN AAAA 2001:db8:1c0:2:21::") },
  "p48.test. AAAA": { answer: records("p48.test. 60 IN AAAA 2001:db8:122:c000:2:2100::") },
  "p56.test. AAAA": { answer: records("p56.test. 60 IN AAAA 2001:db8:122:3c0:0:221::") },
  "p64.test. AAAA": { answer: records("p64.test. 60 IN AAAA 2001:db8:122:344:c0:2:2100:0") },
  "p96.test. AAAA": { answer: records("p96.test. 60 IN AAAA 2001:db8:122:344::c000:221") },
  "reserved.test. AAAA": { answer: records("reserved.test. 60 IN AAAA 2001:db8:122:344:1c0:2:2100:0") },
  "mail.test. TXT": { answer: records('mail.test. 60 IN TXT "x"') },
  [`${ptrOf("64:ff9b::c000:201")} PTR`]: {
    answer: records(`${ptrOf("64:ff9b::c000:201")} 60 IN PTR well.test.`),
  },
  [`${ptrOf("2001:db8:2::21")} PTR`]: {
    answer: records(`${ptrOf("2001:db8:2::21")} 60 IN PTR inside.test.`),
  },
  "9.2.0.192.in-addr.arpa. PTR": { answer: records("9.2.0.192.in-addr.arpa. 60 IN PTR own.test.") },
};

const NAMES = new Map([
  [1, "A"],
  [12, "PTR"],
  [16, "TXT"],
  [28, "AAAA"],
]);

function answerFrom(query: Query): Outcome {
  const content = ZONE[`${query.name} ${NAMES.get(query.type)}`] ?? nothing;
  if (content === "dropped") return DROPPED;
  if (content === "failed") return query.fail(Rcode.SERVFAIL, new Error("upstream is silent"));
  return query.reply(content);
}

interface Asked {
  readonly name: string;
  readonly type?: string;
  readonly class?: number;
}

async function ask(text: string, asked: Asked, late = false): Promise<Answer | "failed"> {
  const last: Next = late ? async (query) => answerFrom(query) : answerFrom;
  const chain = PluginTest.of(siit, text).chain((query) => last(query));
  const query = makeTestQuery({ type: "A", ...asked }, 0, (inner: Query) => chain(inner));
  const outcome = await chain(query);
  return outcome.kind === "reply" ? new Answer(outcome) : "failed";
}

const EAM =
  "siit {\n eam 192.0.2.7 2001:db8:1::7\n eam 203.0.113.0/24 2001:db8:2::/120\n eam 198.51.100.0/24 2001:db8:3::/56\n}";
const PTR = "siit {\n translate_ptr\n eam 203.0.113.0/24 2001:db8:2::/120\n}";

for (const late of [false, true]) {
  describe(late ? "answers that come later" : "answers at hand", () => {
    const table: readonly (readonly [string, string, Asked, readonly string[]])[] = [
      [
        "an address within the well-known prefix",
        "siit",
        { name: "well.test." },
        ["well.test. 77 IN A 192.0.2.1"],
      ],
      ["an address outside of the prefix", "siit", { name: "other.test." }, []],
      ["one inside, one outside", "siit", { name: "mixed.test." }, ["mixed.test. 60 IN A 192.0.2.2"]],
      ["a name that has an A record", "siit", { name: "both.test." }, ["both.test. 60 IN A 198.51.100.1"]],
      [
        "an alias",
        "siit",
        { name: "alias.test." },
        ["alias.test. 50 IN CNAME well.test.", "well.test. 40 IN A 192.0.2.1"],
      ],
      [
        "signatures of the AAAA records go",
        "siit",
        { name: "signed.test." },
        ["signed.test. 60 IN A 192.0.2.4"],
      ],
      ["a name without addresses", "siit", { name: "none.test." }, []],
      [
        "a query for AAAA",
        "siit",
        { name: "well.test.", type: "AAAA" },
        ["well.test. 77 IN AAAA 64:ff9b::c000:201"],
      ],
      [
        "a query for AAAA of a name with an A record that is mapped",
        EAM,
        { name: "a.test.", type: "AAAA" },
        [],
      ],
      ["a query for TXT", "siit", { name: "mail.test.", type: "TXT" }, ['mail.test. 60 IN TXT "x"']],
      ["another class", "siit", { name: "well.test.", class: 3 }, []],
      [
        "a prefix of one's own: the well-known one counts no more",
        "siit {\n ipv6_prefix 2001:db8:122:344::/96\n}",
        { name: "well.test." },
        [],
      ],
      [
        "the last prefix counts",
        "siit {\n ipv6_prefix 2001:db8:122:344::/96\n ipv6_prefix 64:ff9b::/96\n}",
        { name: "well.test." },
        ["well.test. 77 IN A 192.0.2.1"],
      ],
      ["a mapping of addresses", EAM, { name: "server.test." }, ["server.test. 60 IN A 192.0.2.7"]],
      ["a mapping of prefixes", EAM, { name: "inside.test." }, ["inside.test. 60 IN A 203.0.113.33"]],
      [
        "a mapping whose IPv6 side has more bits: those behind are left out",
        EAM,
        { name: "wide.test." },
        ["wide.test. 60 IN A 198.51.100.33"],
      ],
      [
        "the prefix still counts beside mappings",
        EAM,
        { name: "well.test." },
        ["well.test. 77 IN A 192.0.2.1"],
      ],
      [
        "the longest mapping counts",
        "siit {\n eam 203.0.113.9 2001:db8:2::21\n eam 203.0.113.0/24 2001:db8:2::/120\n}",
        { name: "inside.test." },
        ["inside.test. 60 IN A 203.0.113.9"],
      ],
      [
        "a mapping comes before the prefix",
        "siit {\n eam 203.0.113.9 64:ff9b::c000:201\n}",
        { name: "well.test." },
        ["well.test. 77 IN A 203.0.113.9"],
      ],
      [
        "of two mappings of one IPv6 address the last counts",
        "siit {\n eam 203.0.113.1 2001:db8:1::7\n eam 203.0.113.2 2001:db8:1::7\n}",
        { name: "server.test." },
        ["server.test. 60 IN A 203.0.113.2"],
      ],
      [
        "mappings of several lines, and the prefix of an earlier one",
        "siit {\n ipv6_prefix 2001:db8:122:344::/96\n eam 192.0.2.7 2001:db8:1::7\n}\nsiit {\n eam 192.0.2.8 2001:db8:2::21\n}\nsiit",
        { name: "server.test." },
        ["server.test. 60 IN A 192.0.2.7"],
      ],
      [
        "the last prefix of several lines",
        "siit {\n ipv6_prefix 2001:db8:122:344::/96\n}\nsiit {\n ipv6_prefix 64:ff9b::/96\n}\nsiit",
        { name: "well.test." },
        ["well.test. 77 IN A 192.0.2.1"],
      ],
      [
        "an IPv4-mapped address stands for no IPv4 address",
        "siit {\n ipv6_prefix ::ffff:0:0/96\n}",
        { name: "mapped.test." },
        [],
      ],
      [
        "a TTL beyond that of the SOA record",
        "siit",
        { name: "long.test." },
        ["long.test. 300 IN A 192.0.2.9"],
      ],
      [
        "a TTL beyond 10 minutes without an SOA record",
        "siit",
        { name: "bare.test." },
        ["bare.test. 600 IN A 192.0.2.10"],
      ],
      [
        "a failure for A is no answer about AAAA",
        "siit",
        { name: "failed4.test." },
        ["failed4.test. 60 IN A 192.0.2.7"],
      ],
      [
        "the name of an address, without the option",
        "siit",
        { name: "1.2.0.192.in-addr.arpa.", type: "PTR" },
        [],
      ],
      [
        "the name of an address",
        PTR,
        { name: "1.2.0.192.in-addr.arpa.", type: "PTR" },
        [
          `1.2.0.192.in-addr.arpa. 600 IN CNAME ${ptrOf("64:ff9b::c000:201")}`,
          `${ptrOf("64:ff9b::c000:201")} 60 IN PTR well.test.`,
        ],
      ],
      [
        "the name of an address that is mapped",
        PTR,
        { name: "33.113.0.203.in-addr.arpa.", type: "PTR" },
        [
          `33.113.0.203.in-addr.arpa. 600 IN CNAME ${ptrOf("2001:db8:2::21")}`,
          `${ptrOf("2001:db8:2::21")} 60 IN PTR inside.test.`,
        ],
      ],
      [
        "the name of an address that has one of its own",
        PTR,
        { name: "9.2.0.192.in-addr.arpa.", type: "PTR" },
        ["9.2.0.192.in-addr.arpa. 60 IN PTR own.test."],
      ],
      ["the name of an IPv6 address is left alone", PTR, { name: ptrOf("2001:db8:9::9"), type: "PTR" }, []],
    ];
    for (const [title, text, asked, expected] of table) {
      test(title, async () => {
        const answer = await ask(text, asked, late);
        assert.ok(answer !== "failed");
        assert.deepEqual(answer.answer, expected);
      });
    }

    for (const name of ["fail6.test.", "broken6.test.", "gone6.test.", "broken4.test."]) {
      test(`${name}: a failed lookup of the addresses is a failure`, async () => {
        assert.equal(await ask("siit", { name }, late), "failed");
      });
    }
  });
}

/** RFC 6052 section 2.4. */
for (const [prefix, name] of [
  ["2001:db8::/32", "p32.test."],
  ["2001:db8:100::/40", "p40.test."],
  ["2001:db8:122::/48", "p48.test."],
  ["2001:db8:122:300::/56", "p56.test."],
  ["2001:db8:122:344::/64", "p64.test."],
  ["2001:db8:122:344::/96", "p96.test."],
] as const) {
  test(`finds 192.0.2.33 within ${prefix}`, async () => {
    const answer = await ask(`siit {\n ipv6_prefix ${prefix}\n}`, { name });
    assert.ok(answer !== "failed");
    assert.deepEqual(answer.answer, [`${name} 60 IN A 192.0.2.33`]);
  });
}

test("an address whose reserved octet is not zero embeds no IPv4 address", async () => {
  const answer = await ask("siit {\n ipv6_prefix 2001:db8:122:344::/64\n}", { name: "reserved.test." });
  assert.ok(answer !== "failed");
  assert.deepEqual(answer.answer, []);
});

test("authority and flags are those of the AAAA answer, without AD: the A records are not signed", async () => {
  const alias = await ask("siit", { name: "alias.test." });
  assert.ok(alias !== "failed");
  assert.deepEqual(alias.authority, ["test. 800 IN NS ns.test."]);
  assert.equal(alias.reply.flags, 0x0080);
  const own = await ask("siit", { name: "well.test." });
  assert.ok(own !== "failed");
  assert.equal(own.reply.flags, 0x0400);
  const signed = await ask("siit", { name: "signed.test." });
  assert.ok(signed !== "failed");
  assert.equal(signed.reply.flags, 0);
  const cut = await ask("siit", { name: "cut.test." });
  assert.ok(cut !== "failed" && cut.reply.truncated);
});

for (const [name, rcode] of [
  ["nx.test.", Rcode.NXDOMAIN],
  ["nx6.test.", Rcode.NOERROR],
  ["other.test.", Rcode.NOERROR],
] as const) {
  test(`${name}: with nothing to translate the answer for A records stays`, async () => {
    const answer = await ask("siit", { name });
    assert.ok(answer !== "failed");
    assert.equal(answer.rcode, rcode);
    assert.deepEqual(answer.authority, [SOA]);
  });
}

for (const [name, rcode] of [
  ["refused6.test.", Rcode.REFUSED],
  ["refused.test.", Rcode.REFUSED],
] as const) {
  test(`${name}: a query that is refused in part is refused`, async () => {
    const answer = await ask("siit", { name });
    assert.ok(answer !== "failed");
    assert.deepEqual([answer.rcode, answer.answer], [rcode, []]);
  });
}

test("a response about A records that was cut stays cut: the client asks again over TCP", async () => {
  const answer = await ask("siit", { name: "cut4.test." });
  assert.ok(answer !== "failed");
  assert.deepEqual([answer.reply.truncated, answer.answer], [true, []]);
});

test("counts translated queries by listener", async () => {
  const running = PluginTest.of(siit, "siit");
  const chain = running.chain(answerFrom);
  for (const name of ["well.test.", "both.test.", "other.test.", "alias.test."])
    await chain(makeTestQuery({ name, type: "A" }, 0, (inner) => chain(inner)));
  const { body } = await running.metrics.expose();
  assert.match(body, /^coredns_siit_requests_translated_total\{server="dns:\/\/:53"\} 2$/m);
});

for (const [text, message] of [
  ["siit 64:ff9b::/96", /Wrong argument count or unexpected line ending after '64:ff9b::\/96'/],
  ["siit {\n ipv6_prefix 64:ff9b::\n}", /invalid CIDR address: 64:ff9b::/],
  ["siit {\n ipv6_prefix 10.0.0.0/8\n}", /invalid netmask 32 IPv6 address: "10\.0\.0\.0\/8"/],
  [
    "siit {\n ipv6_prefix 2001:db8::/104\n}",
    /invalid prefix length "2001:db8::\/104": must be one of \/32, \/40/,
  ],
  [
    "siit {\n ipv6_prefix 2001:db8:0:0:100::/96\n}",
    /invalid prefix "2001:db8:0:0:100::\/96": reserved octet \(byte 8\) must be zero/,
  ],
  ["siit {\n ipv6_prefix\n}", /Wrong argument count or unexpected line ending after 'ipv6_prefix'/],
  ["siit {\n eam 1.2.3.4\n}", /Wrong argument count or unexpected line ending after '1\.2\.3\.4'/],
  ["siit {\n eam 1.2.3.4 2001:db8::1 x\n}", /Wrong argument count or unexpected line ending after 'x'/],
  ["siit {\n eam 2001:db8::1 1.2.3.4\n}", /invalid IPv4 address: "2001:db8::1"/],
  ["siit {\n eam 1.2.3.4 5.6.7.8\n}", /invalid IPv6 address: "5\.6\.7\.8"/],
  ["siit {\n eam foo 2001:db8::1\n}", /invalid IP address: "foo"/],
  [
    "siit {\n eam 203.0.113.0/24 2001:db8::/121\n}",
    /has too few bits left: \/24 of IPv4 needs \/120 or shorter, not \/121/,
  ],
  ["siit {\n foo\n}", /unknown property 'foo'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(siit, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}

function ptrOf(address: string): string {
  const [head = "", tail = ""] = address.split("::");
  const left = head.split(":");
  const right = tail.split(":");
  const middle = Array.from({ length: 8 - left.length - right.length }, () => "0");
  const digits = [...left, ...middle, ...right].map((group) => group.padStart(4, "0")).join("");
  return `${Array.from(digits).reverse().join(".")}.ip6.arpa.`;
}
