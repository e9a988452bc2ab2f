import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Rcode, rcodeName } from "../../dns/numbers.ts";
import type { Next } from "../../plugin/index.ts";
import { Answer, ConfigRefused, makeTestQuery, PluginTest, records } from "../../plugin/testing.ts";
import { type ExternalTestOptions, startExternal, ZONES } from "./fixtures/external.ts";
import k8sExternal from "./index.ts";

const elsewhere = records("lb.example.com. 60 IN A 203.0.113.7", "lb.example.com. 60 IN AAAA 2001:db8:7::7");

/** The rest of the server: knows one name of the Internet. */
const internet: Next = (query) => {
  const named = elsewhere.filter(({ name }) => name.equals(query.name));
  if (named.length === 0) return query.reply({ rcode: Rcode.NXDOMAIN });
  return query.reply({ answer: named.filter(({ type }) => type === query.type) });
};

interface Expected {
  readonly answer: readonly string[];
  readonly additional?: readonly string[];
}

/** NX: NXDOMAIN, ND: no data; records without the owner if it is the name in the query, and without TTL 5 and class. */
type Case = readonly [name: string, type: string, expected: "NX" | "ND" | readonly string[] | Expected];

function short(text: string, asked: string): string {
  const [owner = "", ttl = "", , ...rest] = text.split(" ");
  return [owner === asked ? "" : owner, ttl === "5" ? "" : ttl, ...rest]
    .filter((word) => word !== "")
    .join(" ");
}

function absolute(name: string): string {
  if (name.endsWith(".")) return name;
  return name === "" ? "example.org." : `${name}.example.org.`;
}

function table(title: string, options: ExternalTestOptions, cases: readonly Case[]): void {
  describe(title, () => {
    let running: Awaited<ReturnType<typeof startExternal>> | undefined;
    before(async () => {
      running = await startExternal(options);
    });
    after(() => running?.stop());

    for (const [relative, type, expected] of cases) {
      it(`${relative || "the zone"} ${type}`, async () => {
        assert.ok(running !== undefined);
        const name = absolute(relative);
        const chain = running.plugin.chain(internet);
        const outcome = await chain(makeTestQuery({ name, type }, 0, chain));
        if (outcome.kind !== "reply") assert.fail(`no reply but ${outcome.kind}`);
        const found = new Answer(outcome);
        assert.ok(outcome.authoritative, "AA is not set");
        if (expected === "NX" || expected === "ND") {
          assert.equal(rcodeName(found.rcode), expected === "NX" ? "NXDOMAIN" : "NOERROR");
          assert.deepEqual(found.answer, []);
          assert.match(found.authority.join(), / SOA ns1\.dns\.\S+ hostmaster\.dns\./);
          return;
        }
        const { answer, additional = [] } = "answer" in expected ? expected : { answer: expected };
        assert.equal(rcodeName(found.rcode), "NOERROR");
        assert.deepEqual(
          found.answer.map((text) => short(text, name)),
          answer,
        );
        assert.deepEqual(
          found.additional.map((text) => short(text, name)),
          additional,
        );
      });
    }
  });
}

const WEB = "web.shop.example.org.";
const WEB_ADDRESSES = [`${WEB} A 192.0.2.1`, `${WEB} AAAA 2001:db8::1`, `${WEB} A 192.0.2.2`];
const LB_ADDRESSES = ["lb.example.com. 60 A 203.0.113.7", "lb.example.com. 60 AAAA 2001:db8:7::7"];
const SOA = "SOA ns1.dns.example.org. hostmaster.dns.example.org. 1767225600 7200 1800 86400 5";

table("names of services", {}, [
  // External IPs first, then those of the load balancer, each once.
  ["web.shop", "A", ["A 192.0.2.1", "A 192.0.2.2"]],
  ["web.shop", "AAAA", ["AAAA 2001:db8::1"]],
  ["WEB.Shop", "AAAA", ["AAAA 2001:db8::1"]],
  ["twin.shop", "AAAA", "ND"],
  ["web.shop", "TXT", "ND"],
  ["web.shop", "PTR", "ND"],
  ["web.shop", "CNAME", "ND"],
  ["web.shop", "SOA", "ND"],
  ["inner.shop", "A", "NX"],
  ["inner.shop", "TXT", "NX"],
  ["missing.shop", "A", "NX"],
  ["odd.shop", "A", "NX"],
  ["shop", "A", "ND"],
  ["bare", "A", "ND"],
  ["elsewhere", "A", "NX"],
  ["web.elsewhere", "A", "NX"],
  ["db.shop", "A", "NX"],
  ["db-0.db.shop", "A", "NX"],
  ["edge.shop", "A", ["A 192.0.2.7"]],
  // A label before a service that has external addresses is skipped.
  ["any.web.shop", "AAAA", ["AAAA 2001:db8::1"]],
  ["_http._tcp.web.shop", "AAAA", ["AAAA 2001:db8::1"]],
  ["http.tcp.web.shop", "AAAA", ["AAAA 2001:db8::1"]],
  ["_http._udp.web.shop", "AAAA", "NX"],
  ["_none._tcp.web.shop", "SRV", "NX"],
  ["a._http._tcp.web.shop", "A", "NX"],
]);

table("SRV", {}, [
  // Three addresses and two ports are six items: floor(100 / 6).
  [
    "web.shop",
    "SRV",
    {
      answer: [`SRV 0 16 80 ${WEB}`, `SRV 0 16 443 ${WEB}`],
      additional: ["A 192.0.2.1", "AAAA 2001:db8::1", "A 192.0.2.2"],
    },
  ],
  ["_HTTPS._tcp.web.shop", "SRV", { answer: [`SRV 0 33 443 ${WEB}`], additional: WEB_ADDRESSES }],
  ["portless.shop", "SRV", "ND"],
  ["portless.shop", "A", ["A 192.0.2.8"]],
  ["named.shop", "SRV", { answer: ["SRV 0 100 80 lb.example.com."], additional: LB_ADDRESSES }],
  [
    "both.shop",
    "SRV",
    {
      answer: ["SRV 0 50 80 both.shop.example.org.", "SRV 0 50 80 lb.example.com."],
      additional: ["A 192.0.2.4", ...LB_ADDRESSES],
    },
  ],
]);

table("load balancers with a host name", {}, [
  ["named.shop", "A", ["30 CNAME lb.example.com.", "lb.example.com. 60 A 203.0.113.7"]],
  ["named.shop", "AAAA", ["30 CNAME lb.example.com.", "lb.example.com. 60 AAAA 2001:db8:7::7"]],
  ["named.shop", "CNAME", ["30 CNAME lb.example.com."]],
  ["named.shop", "TXT", "ND"],
  ["_http._tcp.named.shop", "A", ["30 CNAME lb.example.com.", "lb.example.com. 60 A 203.0.113.7"]],
  // A name with addresses is no alias.
  ["both.shop", "A", ["A 192.0.2.4"]],
  ["both.shop", "AAAA", "ND"],
  ["both.shop", "CNAME", "ND"],
]);

table("headless", { external: `${ZONES} {\n headless\n}` }, [
  ["db.shop", "A", ["A 10.244.1.1", "A 10.244.1.2"]],
  ["db.shop", "AAAA", "ND"],
  ["db.shop", "TXT", "ND"],
  ["db-0.db.shop", "A", ["A 10.244.1.1"]],
  ["10-244-1-2.db.shop", "A", ["A 10.244.1.2"]],
  ["db-2.db.shop", "A", "NX"],
  ["_sql._tcp.db.shop", "A", ["A 10.244.1.1", "A 10.244.1.2"]],
  ["_web._tcp.db.shop", "A", "NX"],
  ["_tcp.db.shop", "A", "ND"],
  ["_TCP.db.shop", "SRV", "ND"],
  ["_udp.db.shop", "A", "NX"],
  [
    "_sql._tcp.db.shop",
    "SRV",
    {
      answer: ["SRV 0 50 3306 db-0.db.shop.example.org.", "SRV 0 50 3306 10-244-1-2.db.shop.example.org."],
      additional: ["db-0.db.shop.example.org. A 10.244.1.1", "10-244-1-2.db.shop.example.org. A 10.244.1.2"],
    },
  ],
  ["none.shop", "A", "NX"],
  ["edge.shop", "A", ["A 192.0.2.7"]],
  ["inner.shop", "A", "NX"],
  ["inner-0.inner.shop", "A", ["A 10.244.1.9"]],
]);

table("addresses", {}, [
  ["1.2.0.192.in-addr.arpa.", "PTR", [`PTR ${WEB}`]],
  ["2.2.0.192.in-addr.arpa.", "PTR", [`PTR ${WEB}`, "PTR twin.shop.example.org."]],
  ["1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.", "PTR", [`PTR ${WEB}`]],
  ["1.2.0.192.in-addr.arpa.", "A", "ND"],
  ["9.2.0.192.in-addr.arpa.", "PTR", "NX"],
  ["1.0.96.10.in-addr.arpa.", "PTR", "NX"],
  ["2.0.192.in-addr.arpa.", "PTR", "ND"],
  ["2.0.192.in-addr.arpa.", "NS", "ND"],
  ["192.in-addr.arpa.", "A", "ND"],
  ["8.b.d.0.1.0.0.2.ip6.arpa.", "PTR", "ND"],
  ["96.10.in-addr.arpa.", "PTR", "NX"],
  ["dns.in-addr.arpa.", "A", "ND"],
  ["in-addr.arpa.", "PTR", "ND"],
]);

table("the zone itself", {}, [
  ["", "SOA", [SOA]],
  ["", "NS", { answer: ["NS ns1.dns.example.org."], additional: ["ns1.dns.example.org. A 198.51.100.9"] }],
  ["", "A", "ND"],
  ["", "PTR", "ND"],
  ["ns1.dns", "A", ["A 198.51.100.9"]],
  ["ns1.dns", "AAAA", "ND"],
  ["dns", "A", "ND"],
  ["ns2.dns", "A", "NX"],
  ["a.ns1.dns", "A", "NX"],
  // A namespace with the name of the apex is hidden by it.
  ["hidden.dns", "A", "NX"],
  ["ns1.dns.in-addr.arpa.", "A", ["A 198.51.100.9"]],
]);

table("an apex and a ttl of their own", { external: "example.org {\n apex Edge.ns\n ttl 60\n}" }, [
  ["web.shop", "AAAA", ["60 AAAA 2001:db8::1"]],
  ["ns1.edge.ns", "A", ["60 A 198.51.100.9"]],
  [
    "",
    "NS",
    {
      answer: ["60 NS ns1.edge.ns.example.org."],
      additional: ["ns1.edge.ns.example.org. 60 A 198.51.100.9"],
    },
  ],
  ["", "SOA", [`60 ${SOA.replaceAll(".dns.", ".edge.ns.").replace(/5$/, "60")}`]],
  ["hidden.dns", "A", ["60 A 192.0.2.6"]],
]);

table("a server that is an endpoint of services", { own: ["10.244.1.9", "10.244.1.1"] }, [
  // `inner` has no external address, and `db` is headless.
  ["", "NS", { answer: ["NS ns1.dns.example.org."] }],
  ["ns1.dns", "A", "ND"],
]);

table(
  "a server that is an endpoint of headless services",
  { own: ["10.244.1.9", "10.244.1.1"], external: "example.org {\n headless\n}" },
  [["ns1.dns", "A", ["A 10.244.1.1", "A 10.244.1.2"]]],
);

table("namespaces that are not shown", { kubernetes: ["namespaces bare"] }, [
  ["web.shop", "A", "NX"],
  ["shop", "A", "NX"],
  ["bare", "A", "ND"],
  ["1.2.0.192.in-addr.arpa.", "PTR", "NX"],
]);

describe("k8s_external", () => {
  for (const [text, code, message] of [
    ["k8s_external {\n ttl 3601\n}", "PLUGIN_BAD_VALUE", /ttl must be in range \[0, 3600\]: 3601/],
    ["k8s_external {\n ttl\n}", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending after 'ttl'/],
    ["k8s_external {\n apex\n}", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending after 'apex'/],
    ["k8s_external {\n apex .\n}", "K8S_EXTERNAL_BAD_APEX", /'\.' cannot be prepended to every zone/],
    [`k8s_external {\n apex ${"a.".repeat(123)}\n}`, "K8S_EXTERNAL_BAD_APEX", /cannot be prepended/],
    ["k8s_external {\n headless yes\n}", "PLUGIN_ARGUMENT_UNEXPECTED", /'headless'/],
    ["k8s_external {\n upstream\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'upstream'/],
    ["k8s_external\nk8s_external", "PLUGIN_REPEATED", /only be used once per Server Block/],
  ] as const) {
    it(`refuses ${JSON.stringify(text.slice(0, 40))}`, () => {
      assert.throws(
        () => PluginTest.of(k8sExternal, text, { keys: "example.org:53" }),
        (error) =>
          error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
      );
    });
  }

  it("warns about zones with odd names of services", () => {
    assert.match(
      PluginTest.of(k8sExternal, "k8s_external 192.0.2.0/24").warnings.join(),
      /all zones are reverse/,
    );
    assert.deepEqual(PluginTest.of(k8sExternal, "k8s_external example.org 192.0.2.0/24").warnings, []);
  });

  it("takes the zones of the server block if it has no zones of its own", () => {
    const { configs } = PluginTest.of(k8sExternal, "k8s_external", { keys: "example.org:53 example.com:53" });
    assert.equal(configs[0]?.zones.toString(), "example.org.,example.com.");
  });

  const next: Next = (query) => query.reply({ answer: records("next. 5 IN A 192.0.2.99") });

  it("passes on unknown names, and no others", async () => {
    const { plugin, stop } = await startExternal({
      external: "example.org {\n fallthrough shop.example.org\n}",
    });
    const ask = async (name: string, type = "A") =>
      (await plugin.ask({ name, type, next })).answer.length > 0;
    assert.equal(await ask("missing.shop.example.org."), true);
    assert.equal(await ask("web.shop.example.org.", "TXT"), false);
    assert.equal(await ask("web.elsewhere.example.org."), false);
    assert.equal(await ask("web.shop.example.com."), true);
    await stop();
  });

  it("waits for lookups through the server, and continues without their results", async () => {
    const { plugin, stop } = await startExternal();
    const ask = (type: string, elsewhere: Next) => {
      const chain = plugin.chain(elsewhere);
      return chain(makeTestQuery({ name: "named.shop.example.org.", type }, 0, chain));
    };
    const srv = await ask("SRV", async (query) => internet(query));
    assert.ok(srv.kind === "reply");
    assert.deepEqual(new Answer(srv).additional.length, 2);
    const alone = await ask("SRV", async (query) => query.fail());
    assert.ok(alone.kind === "reply");
    assert.deepEqual([alone.answer.length, alone.additional.length], [1, 0]);
    const later = await ask("A", async (query) => internet(query));
    assert.ok(later.kind === "reply");
    assert.equal(later.answer.length, 2);
    const failed = await ask("A", (query) => query.fail());
    assert.ok(failed.kind === "failed");
    assert.equal(rcodeName(failed.rcode), "SERVFAIL");
    await stop();
  });

  it("refuses transfers without the transfer plugin", async () => {
    const { plugin, stop } = await startExternal();
    const outcome = await plugin.outcome({ name: "example.org.", type: "AXFR", next });
    assert.equal(outcome.kind === "failed" && rcodeName(outcome.rcode), "REFUSED");
    await stop();
  });

  it("does not start without the cluster", async () => {
    const plugin = PluginTest.of(k8sExternal, "k8s_external example.org");
    await assert.rejects(plugin.start(), /^SetupError: kubernetes plugin not loaded/);
  });

  it("passes queries on before it has started", async () => {
    const plugin = PluginTest.of(k8sExternal, "k8s_external example.org");
    const { answer } = await plugin.ask({ name: "web.shop.example.org.", next });
    assert.deepEqual(answer, ["next. 5 IN A 192.0.2.99"]);
  });
});
