/** The answers are those of dnsmasq 2.90 with the same arguments. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Rcode } from "../../dns/numbers.ts";
import { answering, PluginTest, records } from "../../plugin/testing.ts";
import { readDnsmasqArguments } from "./dnsmasq-arguments.ts";
import { DnsmasqLocalNames, localNamesPlugin } from "./local-names.ts";

const SETTINGS = readDnsmasqArguments([
  "--local-ttl=7",
  "--local=/lan/",
  "--local=//",
  "--address=/fix.test/192.0.2.1",
  "--address=/sub.fix.test/192.0.2.2",
  "--address=/deep.sub.fix.test/2001:db8::2",
  "--address=/none.test/",
  "--address=/hash.test/#",
  "--address=/b.lan/192.0.2.44",
  "--address=/both.test/192.0.2.9",
  "--local=/both.test/",
  "--server=/srv.fix.test/192.0.2.53",
  "--server=/plain.lan/#",
  "--host-record=h1.lan,h2.lan,192.0.2.77,2001:db8::77,600",
]);
const HOSTS =
  "192.0.2.60 hosta.lan HostA\n192.0.2.61 hosta.lan\n2001:db8::60 hosta.lan\nbogus line\n192.0.2.62 b.example # c\n";

for (const [name, type, expected] of [
  ["hosta.lan.", "A", ["hosta.lan. 7 IN A 192.0.2.60", "hosta.lan. 7 IN A 192.0.2.61"]],
  ["HOSTA.lan.", "AAAA", ["HOSTA.lan. 7 IN AAAA 2001:db8::60"]],
  ["hosta.", "A", ["hosta. 7 IN A 192.0.2.60"]],
  ["hosta.", "MX", Rcode.NOERROR],
  ["hosta.lan.", "MX", Rcode.NOERROR],
  ["b.example.", "A", ["b.example. 7 IN A 192.0.2.62"]],
  ["b.example.", "MX", "asked"],
  ["nope.lan.", "A", Rcode.NXDOMAIN],
  ["x.plain.lan.", "A", "asked"],
  ["plain.", "MX", Rcode.NXDOMAIN],
  ["fix.test.", "A", ["fix.test. 7 IN A 192.0.2.1"]],
  ["x.fix.test.", "A", ["x.fix.test. 7 IN A 192.0.2.1"]],
  ["fix.test.", "AAAA", "asked"],
  ["fix.test.", "MX", "asked"],
  ["fix.test.", "ANY", ["fix.test. 7 IN A 192.0.2.1"]],
  ["y.sub.fix.test.", "A", ["y.sub.fix.test. 7 IN A 192.0.2.2"]],
  ["deep.sub.fix.test.", "A", ["deep.sub.fix.test. 7 IN A 192.0.2.2"]],
  ["deep.sub.fix.test.", "AAAA", ["deep.sub.fix.test. 7 IN AAAA 2001:db8::2"]],
  ["x.srv.fix.test.", "A", "asked"],
  ["x.none.test.", "TXT", Rcode.NXDOMAIN],
  ["hash.test.", "A", ["hash.test. 7 IN A 0.0.0.0"]],
  ["hash.test.", "AAAA", ["hash.test. 7 IN AAAA ::"]],
  ["b.lan.", "AAAA", Rcode.NXDOMAIN],
  ["x.both.test.", "AAAA", Rcode.NOERROR],
  ["h2.lan.", "A", ["h2.lan. 600 IN A 192.0.2.77"]],
  ["h1.lan.", "AAAA", ["h1.lan. 600 IN AAAA 2001:db8::77"]],
  ["60.2.0.192.in-addr.arpa.", "PTR", ["60.2.0.192.in-addr.arpa. 7 IN PTR hosta.lan."]],
  ["77.2.0.192.in-addr.arpa.", "PTR", ["77.2.0.192.in-addr.arpa. 600 IN PTR h1.lan."]],
  ["1.2.0.192.in-addr.arpa.", "PTR", "asked"],
] as const) {
  test(`${name} ${type} is ${typeof expected === "object" ? expected.join(", ") : expected}`, async () => {
    const names = new DnsmasqLocalNames(SETTINGS);
    await names.addFile(Buffer.from(HOSTS));
    const plugin = localNamesPlugin(
      () => names,
      () => undefined,
    );
    const next = answering({ answer: records("elsewhere. 5 IN A 198.51.100.1") });
    const { rcode, answer } = await PluginTest.of(plugin, "dnsmasq_local").ask({ name, type, next });
    if (expected === "asked") assert.deepEqual(answer, ["elsewhere. 5 IN A 198.51.100.1"]);
    else if (typeof expected === "number") assert.deepEqual([rcode, answer], [expected, []]);
    else assert.deepEqual(answer, expected);
  });
}

test("a local name exists, whatever servers answer", async () => {
  const names = new DnsmasqLocalNames(SETTINGS);
  await names.addFile(Buffer.from(HOSTS));
  const plugin = localNamesPlugin(
    () => names,
    () => undefined,
  );
  const next = answering({ rcode: Rcode.NXDOMAIN });
  const running = PluginTest.of(plugin, "dnsmasq_local");
  assert.equal((await running.ask({ name: "b.example.", type: "MX", next })).rcode, Rcode.NOERROR);
  assert.equal((await running.ask({ name: "x.fix.test.", type: "AAAA", next })).rcode, Rcode.NOERROR);
  assert.equal((await running.ask({ name: "c.example.", type: "MX", next })).rcode, Rcode.NXDOMAIN);
});
