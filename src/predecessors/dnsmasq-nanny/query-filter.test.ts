import assert from "node:assert/strict";
import { test } from "node:test";
import { Rcode } from "../../dns/numbers.ts";
import { answering, PluginTest, records } from "../../plugin/testing.ts";
import { QUERY_FILTER } from "./query-filter.ts";

const elsewhere = answering({ answer: records("answer. 5 IN A 198.51.100.1") });

for (const [lines, name, type, expected] of [
  ["domain_needed", "host.", "A", Rcode.NXDOMAIN],
  ["domain_needed", "host.", "AAAA", Rcode.NXDOMAIN],
  ["domain_needed", "host.", "MX", "asked"],
  ["domain_needed", "host.example.", "A", "asked"],
  ["domain_needed\nrouted host", "host.", "A", Rcode.NXDOMAIN],
  ["bogus_priv", "1.0.168.192.in-addr.arpa.", "PTR", Rcode.NXDOMAIN],
  ["bogus_priv", "1.0.31.172.in-addr.arpa.", "PTR", Rcode.NXDOMAIN],
  ["bogus_priv", "1.0.32.172.in-addr.arpa.", "PTR", "asked"],
  ["bogus_priv", "8.8.8.8.in-addr.arpa.", "PTR", "asked"],
  ["bogus_priv", `1.${"0.".repeat(30)}0.ip6.arpa.`, "PTR", Rcode.NXDOMAIN],
  ["bogus_priv", `${"0.".repeat(30)}d.f.ip6.arpa.`, "PTR", Rcode.NXDOMAIN],
  ["bogus_priv\nrouted in-addr.arpa", "1.0.96.10.in-addr.arpa.", "PTR", "asked"],
  ["bogus_priv\nrouted ip6.arpa", "1.0.96.10.in-addr.arpa.", "PTR", Rcode.NXDOMAIN],
  ["bogus_priv\nrouted 96.10.in-addr.arpa in-addr.arpa", "1.0.96.10.in-addr.arpa.", "PTR", "asked"],
  ["filterwin2k", "_ldap._tcp.example.", "SRV", Rcode.NOERROR],
  ["filterwin2k", "example.", "SOA", Rcode.NOERROR],
  ["filterwin2k", "_ldap.example.", "ANY", Rcode.NOERROR],
  ["filterwin2k", "example.", "ANY", "asked"],
] as const) {
  test(`${lines.replace("\n", ", ")}: ${name} ${type} is ${expected === "asked" ? "forwarded" : "not forwarded"}`, async () => {
    const running = PluginTest.of(QUERY_FILTER, `dnsmasq_filter {\n${lines}\n}`);
    const { rcode, answer } = await running.ask({ name, type, next: elsewhere });
    if (expected === "asked") assert.deepEqual(answer, ["answer. 5 IN A 198.51.100.1"]);
    else assert.deepEqual([rcode, answer], [expected, []]);
  });
}

for (const [lines, address, isKept] of [
  ["", "192.168.0.1", false],
  ["", "10.1.2.3", false],
  ["", "172.31.0.1", false],
  ["", "172.32.0.1", true],
  ["", "169.254.1.1", false],
  ["", "127.0.0.1", false],
  ["rebind_localhost_ok", "127.0.0.1", true],
  ["rebind_localhost_ok", "10.0.0.1", false],
  ["rebind_domain_ok example", "10.0.0.1", true],
  ["rebind_domain_ok other", "10.0.0.1", false],
  ["", "8.8.8.8", true],
  ["", "198.51.100.1", false],
  ["", "0.0.0.0", false],
  ["rebind_localhost_ok", "0.0.0.0", true],
  ["", "fd00::1", false],
  ["", "fe80::1", false],
  ["", "::1", false],
  ["rebind_localhost_ok", "::1", true],
  ["", "::ffff:10.0.0.1", false],
  ["", "2001:db8::1", false],
  ["", "2606:4700::1", true],
] as const) {
  test(`stop_dns_rebind${lines && `, ${lines}`}: ${address} is ${isKept ? "answered" : "removed"}`, async () => {
    const running = PluginTest.of(QUERY_FILTER, `dnsmasq_filter {\nstop_dns_rebind\n${lines}\n}`);
    const type = address.includes(":") ? "AAAA" : "A";
    const next = answering({ answer: records(`www.example. 5 IN ${type} ${address}`) });
    const { rcode, answer } = await running.ask({ name: "www.example.", type, next });
    assert.equal(rcode, Rcode.NOERROR);
    assert.equal(answer.length, isKept ? 1 : 0);
    const said = running.log.lines.filter((line) =>
      line.includes("possible DNS-rebind attack detected: www.example."),
    );
    assert.equal(said.length, isKept ? 0 : 1);
  });
}
