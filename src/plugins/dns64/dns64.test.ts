import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { Flag, Rcode } from "../../dns/index.ts";
import { DROPPED, type Next, type Outcome, type Query, type ReplyContent } from "../../plugin/index.ts";
import { Answer, ConfigRefused, makeTestQuery, PluginTest, records } from "../../plugin/testing.ts";
import dns64 from "./index.ts";
import { Nat64Prefix } from "./nat64-prefix.ts";

type Zone = Readonly<Record<string, ReplyContent | "failed" | "dropped">>;

const SOA = "test. 300 IN SOA ns.test. host.test. 1 2 3 4 5";
const TWO = records("v4.test. 300 IN A 192.0.2.1", "v4.test. 300 IN A 198.51.100.255");

const ZONE: Zone = {
  "v4.test. AAAA": { authority: records(SOA), recursionAvailable: true },
  "v4.test. A": { answer: TWO, authority: records("test. 800 IN NS ns.test."), recursionAvailable: true },
  "both.test. AAAA": { answer: records("both.test. 60 IN AAAA 2001:db8::3") },
  "both.test. A": { answer: records("both.test. 60 IN A 192.0.2.3") },
  "six.test. AAAA": { answer: records("six.test. 60 IN AAAA 2001:db8::4") },
  "six.test. A": { authority: records(SOA) },
  "nosoa.test. A": { answer: records("nosoa.test. 900 IN A 192.0.2.9") },
  "lowsoa.test. AAAA": { authority: records("test. 7 IN SOA ns.test. h.test. 1 2 3 4 500") },
  "lowsoa.test. A": { answer: records("lowsoa.test. 900 IN A 192.0.2.9") },
  "alias.test. A": { answer: records("alias.test. 50 IN CNAME v4.test.", "v4.test. 40 IN A 192.0.2.1") },
  "signed.test. A": {
    answer: records(
      "signed.test. 60 IN A 192.0.2.1",
      "signed.test. 60 IN RRSIG A 13 2 60 20400101000000 20200101000000 1 test. AAAA",
    ),
  },
  "refused6.test. AAAA": { rcode: Rcode.REFUSED },
  "refused6.test. A": { answer: records("refused6.test. 60 IN A 192.0.2.9") },
  "nx6.test. AAAA": { rcode: Rcode.NXDOMAIN, authority: records(SOA) },
  "nx6.test. A": { answer: records("nx6.test. 60 IN A 192.0.2.9") },
  "nx4.test. A": { rcode: Rcode.NXDOMAIN, authority: records(SOA) },
  "fail4.test. A": { rcode: Rcode.SERVFAIL },
  "gone4.test. A": "dropped",
  "broken4.test. A": "failed",
  "cut4.test. A": { truncated: true, answer: records("cut4.test. 60 IN A 192.0.2.9") },
  "1.2.0.192.in-addr.arpa. PTR": { answer: records("1.2.0.192.in-addr.arpa. 60 IN PTR v4.test.") },
};

const answerFrom = (query: Query): Outcome => {
  const content = ZONE[`${query.name.toLowerCase()} ${typeNames.get(query.type) ?? query.type}`] ?? {};
  if (content === "dropped") return DROPPED;
  return content === "failed"
    ? query.fail(Rcode.SERVFAIL, new Error("upstream is silent"))
    : query.reply(content);
};

const typeNames = new Map([
  [1, "A"],
  [12, "PTR"],
  [28, "AAAA"],
]);

interface Asked {
  readonly name: string;
  readonly type?: string;
  readonly client?: string;
  readonly edns?: { readonly dnssecOk: boolean };
  readonly flags?: number;
}

/** Queries a chain of `dns64` and the zone above as a listener does; with `late` all outcomes are promises. */
async function ask(text: string, asked: Asked, late = false): Promise<Answer | "failed"> {
  const running = PluginTest.of(dns64, text);
  const last: Next = late ? async (query) => answerFrom(query) : answerFrom;
  const chain = running.chain((query) => last(query));
  const query = makeTestQuery({ type: "AAAA", client: "2001:db8::1", ...asked }, 0, (inner: Query) =>
    chain(inner),
  );
  const outcome = await chain(query);
  assert.notEqual(outcome.kind, "dropped");
  return outcome.kind === "reply" ? new Answer(outcome) : "failed";
}

for (const late of [false, true]) {
  describe(late ? "answers that come later" : "answers at hand", () => {
    const table: readonly (readonly [string, string, Asked, readonly string[]])[] = [
      [
        "a name with IPv4 addresses alone",
        "dns64",
        { name: "v4.test." },
        ["v4.test. 300 IN AAAA 64:ff9b::c000:201", "v4.test. 300 IN AAAA 64:ff9b::c633:64ff"],
      ],
      ["a name with both", "dns64", { name: "both.test." }, ["both.test. 60 IN AAAA 2001:db8::3"]],
      [
        "a name with both, all translated",
        "dns64 {\n translate_all\n}",
        { name: "both.test." },
        ["both.test. 60 IN AAAA 64:ff9b::c000:203"],
      ],
      ["a name with IPv6 alone, all translated", "dns64 {\n translate_all\n}", { name: "six.test." }, []],
      [
        "no SOA: 600 seconds",
        "dns64",
        { name: "nosoa.test." },
        ["nosoa.test. 600 IN AAAA 64:ff9b::c000:209"],
      ],
      ["the TTL of the SOA", "dns64", { name: "lowsoa.test." }, ["lowsoa.test. 7 IN AAAA 64:ff9b::c000:209"]],
      [
        "an alias",
        "dns64",
        { name: "alias.test." },
        ["alias.test. 50 IN CNAME v4.test.", "v4.test. 40 IN AAAA 64:ff9b::c000:201"],
      ],
      [
        "signatures of the IPv4 addresses",
        "dns64",
        { name: "signed.test." },
        ["signed.test. 60 IN AAAA 64:ff9b::c000:201"],
      ],
      [
        "AAAA is refused",
        "dns64",
        { name: "refused6.test." },
        ["refused6.test. 60 IN AAAA 64:ff9b::c000:209"],
      ],
      ["AAAA does not exist", "dns64", { name: "nx6.test." }, []],
      ["A does not exist", "dns64", { name: "nx4.test." }, []],
      ["a client over IPv4", "dns64", { name: "v4.test.", client: "192.0.2.1" }, []],
      [
        "a client over IPv4 that is allowed",
        "dns64 {\n allow_ipv4\n}",
        { name: "v4.test.", client: "192.0.2.1" },
        ["v4.test. 300 IN AAAA 64:ff9b::c000:201", "v4.test. 300 IN AAAA 64:ff9b::c633:64ff"],
      ],
      [
        "a block behind the prefix",
        "dns64 2001:db8:64::/96 {\n allow_ipv4\n}",
        { name: "alias.test.", client: "192.0.2.1" },
        ["alias.test. 50 IN CNAME v4.test.", "v4.test. 40 IN AAAA 2001:db8:64::c000:201"],
      ],
      [
        "a client that validates",
        "dns64",
        { name: "v4.test.", edns: { dnssecOk: true }, flags: Flag.CD },
        [],
      ],
      ["a query for A", "dns64", { name: "both.test.", type: "A" }, ["both.test. 60 IN A 192.0.2.3"]],
      ["PTR is left alone", "dns64", { name: `${ptrOf("64:ff9b::c000:201")}`, type: "PTR" }, []],
      [
        "PTR of an address that was made",
        "dns64 {\n translate_ptr\n}",
        { name: `${ptrOf("64:ff9b::c000:201")}`, type: "PTR" },
        [
          `${ptrOf("64:ff9b::c000:201")} 600 IN CNAME 1.2.0.192.in-addr.arpa.`,
          "1.2.0.192.in-addr.arpa. 60 IN PTR v4.test.",
        ],
      ],
      [
        "PTR of another address",
        "dns64 {\n translate_ptr\n}",
        { name: `${ptrOf("2001:db8::1")}`, type: "PTR" },
        [],
      ],
    ];
    for (const [title, text, asked, expected] of table) {
      test(title, async () => {
        const answer = await ask(text, asked, late);
        assert.ok(answer !== "failed");
        assert.deepEqual(answer.answer, expected);
      });
    }

    for (const name of ["fail4.test.", "gone4.test.", "broken4.test."]) {
      test(`${name}: a failed lookup of IPv4 addresses is a failure`, async () => {
        assert.equal(await ask("dns64", { name }, late), "failed");
      });
    }
  });
}

test("authority and truncation are those of the IPv4 answer, AA and RA are clear", async () => {
  const whole = await ask("dns64", { name: "v4.test." });
  assert.ok(whole !== "failed");
  assert.deepEqual(whole.authority, ["test. 800 IN NS ns.test."]);
  assert.equal(whole.reply.flags, 0);
  const cut = await ask("dns64", { name: "cut4.test." });
  assert.ok(cut !== "failed" && cut.reply.truncated);
});

test("a denial of the name is passed on unchanged", async () => {
  const answer = await ask("dns64", { name: "nx6.test." });
  assert.ok(answer !== "failed");
  assert.equal(answer.rcode, Rcode.NXDOMAIN);
  assert.deepEqual(answer.authority, [SOA]);
});

/** RFC 6052 section 2.4, and lengths that CoreDNS accepts besides those of section 2.2. */
for (const [prefix, address] of [
  ["2001:db8::/32", "2001:db8:c000:221::"],
  ["2001:db8:100::/40", "2001:db8:1c0:2:21::"],
  ["2001:db8:122::/48", "2001:db8:122:c000:2:2100::"],
  ["2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"],
  ["2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100:0"],
  ["2001:db8:122:344:5500::/72", "2001:db8:122:344:55c0:2:2100:0"],
  ["2001:db8:122:344:aabb::/80", "2001:db8:122:344:aabb:c000:221:0"],
  ["2001:db8:122:344:aabb:cc00::/88", "2001:db8:122:344:aabb:ccc0:2:2100"],
  ["2001:db8:122:344::/96", "2001:db8:122:344::c000:221"],
  ["64:ff9b::/96", "64:ff9b::c000:221"],
] as const) {
  test(`192.0.2.33 within ${prefix} is ${address}`, () => {
    const nat64 = Nat64Prefix.of(prefix);
    assert.equal(nat64.embed("192.0.2.33"), address);
    assert.deepEqual(nat64.extract(address), Uint8Array.of(192, 0, 2, 33));
  });
}

test("an embedded address is extracted again, for each prefix length", () => {
  const length = fc.integer({ min: 4, max: 12 }).map((octets) => octets * 8);
  fc.assert(
    fc.property(length, fc.ipV4(), (bits, address) => {
      const prefix = Nat64Prefix.of(`2001:db8:1:2:300:405:607:809/${bits}`);
      assert.equal(prefix.extract(prefix.embed(address) ?? "")?.join("."), address);
    }),
  );
});

test("counts by listener", async () => {
  const running = PluginTest.of(dns64, "dns64");
  const chain = running.chain(answerFrom);
  for (const name of ["v4.test.", "both.test.", "nx4.test."]) {
    await chain(makeTestQuery({ name, type: "AAAA", client: "::1" }, 0, (inner) => chain(inner)));
  }
  const { body } = await running.metrics.expose();
  assert.match(body, /^coredns_dns64_requests_translated_total\{server="dns:\/\/:53"\} 2$/m);
});

for (const [text, message] of [
  ["dns64 foo", /invalid CIDR address: foo/],
  ["dns64 64:ff9b::", /invalid CIDR address: 64:ff9b::/],
  ["dns64 10.0.0.0/8", /invalid netmask 32 IPv6 address: "10\.0\.0\.0\/8"/],
  ["dns64 64:ff9b::/95", /invalid prefix length "64:ff9b::\/95"/],
  ["dns64 64:ff9b::/31", /invalid prefix length "64:ff9a::\/31"/],
  ["dns64 64:ff9b::/104", /invalid prefix length "64:ff9b::\/104"/],
  ["dns64 a b", /invalid CIDR address: a/],
  ["dns64 {\n prefix 64:ff9b::/96 extra\n}", /after 'extra'/],
  ["dns64 {\n translate_all yes\n}", /after 'yes'/],
  ["dns64 {\n bogus\n}", /unknown property 'bogus'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(dns64, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}

for (const [title, text, expected] of [
  ["the last prefix counts", "dns64 64:ff9b::/96\ndns64 2001:db8::/96", "2001:db8::c000:201"],
  ["a prefix stays", "dns64 64:ff9c::/96\ndns64 {\n allow_ipv4\n}", "64:ff9c::c000:201"],
  ["an option of an earlier line stays", "dns64 {\n allow_ipv4\n}\ndns64 64:ff9c::/96", "64:ff9c::c000:201"],
] as const)
  test(`several lines add up: ${title}`, async () => {
    const answer = await ask(text, {
      name: "v4.test.",
      client: text.includes("allow_ipv4") ? "192.0.2.9" : "2001:db8::1",
    });
    assert.ok(answer !== "failed");
    assert.equal(answer.answer[0], `v4.test. 300 IN AAAA ${expected}`);
  });

function ptrOf(address: string): string {
  const [head = "", tail = ""] = address.split("::");
  const left = head.split(":");
  const right = tail.split(":");
  const middle = Array.from({ length: 8 - left.length - right.length }, () => "0");
  const digits = [...left, ...middle, ...right].map((group) => group.padStart(4, "0")).join("");
  return `${Array.from(digits).reverse().join(".")}.ip6.arpa.`;
}
