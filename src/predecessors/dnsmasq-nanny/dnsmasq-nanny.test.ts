import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY_KUBE_DNS_CONFIG, readKubeDnsConfig } from "../kube-dns/config-map.ts";
import { DnsmasqArgumentError, readDnsmasqArguments } from "./dnsmasq-arguments.ts";
import { nannyArguments } from "./nanny-arguments.ts";

const nobody = () => Promise.reject(new Error("no such host"));

for (const [data, words] of [
  [{}, []],
  [
    { stubDomains: '{"acme.local":["1.1.1.1"],"widget.local":["2.2.2.2:10053","3.3.3.3"]}' },
    [
      "--server",
      "/acme.local/1.1.1.1",
      "--server",
      "/widget.local/2.2.2.2#10053",
      "--server",
      "/widget.local/3.3.3.3",
    ],
  ],
  [
    { upstreamNameservers: '["2.2.2.2:10053","3.3.3.3"]' },
    ["--server", "2.2.2.2#10053", "--server", "3.3.3.3", "--no-resolv"],
  ],
  [
    { upstreamNameservers: '["2001:db8:1::1","[2001:db8:2::2]","[2001:db8:3::3]:53"]' },
    [
      "--server",
      "2001:db8:1::1",
      "--server",
      "[2001:db8:2::2]",
      "--server",
      "[2001:db8:3::3]#53",
      "--no-resolv",
    ],
  ],
  [{ stubDomains: '{"acme.local":["ns.acme.example"]}' }, ["--server", "/acme.local/ns.acme.example"]],
] as const) {
  test(`${JSON.stringify(data)} becomes ${words.join(" ") || "nothing"}`, async () => {
    assert.deepEqual(await nannyArguments(readKubeDnsConfig(data), nobody), words);
  });
}

test("a server given by name is looked up", async () => {
  const config = { ...EMPTY_KUBE_DNS_CONFIG, stubDomains: new Map([["acme.local", ["ns.acme.example"]]]) };
  assert.deepEqual(await nannyArguments(config, async () => ["192.0.2.1", "192.0.2.2"]), [
    "--server",
    "/acme.local/192.0.2.1",
  ]);
});

test("the arguments of the addon are accepted", () => {
  const settings = readDnsmasqArguments([
    "-k",
    "--cache-size=1000",
    "--no-negcache",
    "--dns-loop-detect",
    "--log-facility=-",
    "--server=/cluster.local/127.0.0.1#10053",
    "--server=/in-addr.arpa/127.0.0.1#10053",
    "--server=/a.example/b.example/1.2.3.4",
    "--server",
    "2001:db8::1#5353",
    "--address=/ok.local/192.0.2.1",
    "--address=/gone.local/",
    "-h",
    "--host-record=h.local,192.0.2.7,2001:db8::7,60",
    "--local=/mine.local/",
    "-p",
    "5300",
    "--addn-hosts=/etc/more",
    "--domain-needed",
  ]);
  assert.equal(settings.cacheSize, 1000);
  assert.equal(settings.keepsDenials, false);
  assert.equal(settings.readsHosts, false);
  assert.equal(settings.port, 5300);
  assert.deepEqual(settings.servers, ["[2001:db8::1]:5353"]);
  assert.deepEqual(
    [...settings.domains],
    [
      ["cluster.local", ["127.0.0.1:10053"]],
      ["in-addr.arpa", ["127.0.0.1:10053"]],
      ["a.example", ["1.2.3.4"]],
      ["b.example", ["1.2.3.4"]],
      ["mine.local", []],
    ],
  );
  assert.deepEqual(
    [...settings.addresses],
    [
      ["ok.local", ["192.0.2.1"]],
      ["gone.local", []],
    ],
  );
  assert.deepEqual(settings.hostRecords, [
    { names: ["h.local"], addresses: ["192.0.2.7", "2001:db8::7"], ttl: 60 },
  ]);
  assert.deepEqual(settings.hostsFiles, ["/etc/more"]);
  assert.equal(settings.filter.domainNeeded, true);
});

for (const [words, message] of [
  [["--bogus"], /unrecognized option '--bogus'/],
  [["--cache-size=many"], /bad option: --cache-size=many/],
  [["--server=/a/nowhere"], /bad address in --server=\/a\/nowhere/],
  [["--address=a"], /bad option: --address=a/],
  [["-c"], /'-c' needs a value/],
  [["--port=99999"], /bad port: --port=99999/],
  [["--server=192.0.2.1#99999"], /bad address in --server=192\.0\.2\.1#99999/],
  [["--server=/*.a/192.0.2.1"], /bad domain '\*\.a'/],
  [["--server=//192.0.2.1"], /bad domain ''/],
  [["--address=/a{/192.0.2.1"], /bad domain 'a\{'/],
  [["--rebind-domain-ok=/a{/"], /bad domain 'a\{'/],
  [["--listen-address=here"], /bad option: --listen-address=here/],
  [["--interface=a{"], /bad option: --interface=a\{/],
  [["--host-record=192.0.2.1"], /bad host-record/],
  [["--host-record=only.name"], /bad host-record/],
] as const) {
  test(`refuses ${words.join(" ")}`, () => {
    assert.throws(
      () => readDnsmasqArguments(words),
      (error) => error instanceof DnsmasqArgumentError && message.test(error.message),
    );
  });
}

test("one-letter switches may be joined", () => {
  const settings = readDnsmasqArguments(["-kNRp", "5353", "-hqc77"]);
  assert.deepEqual(
    [settings.keepsDenials, settings.readsResolvConf, settings.port, settings.readsHosts, settings.cacheSize],
    [false, false, 5353, false, 77],
  );
});
