/** `portolan dnsmasq-nanny` beside a real dnsmasq with the same arguments: answers and statistics are the same. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { dig } from "../support/dig.ts";
import { freePort } from "../support/free-ports.ts";
import { Peer } from "../support/peers.ts";
import { portolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const QUESTIONS = [
  "hosta.lan A",
  "hosta.lan MX",
  "nope.lan A",
  "fix.test A",
  "fix.test AAAA",
  "x.sub.fix.test A",
  "x.srv.fix.test A",
  "six.test A",
  "none.test TXT",
  "h2.test A",
  "77.2.0.192.in-addr.arpa PTR",
  "one A",
  "1.0.96.10.in-addr.arpa PTR",
  "1.0.168.192.in-addr.arpa PTR",
  "www.up.test A",
  "www.up.test A",
  "denied.up.test A",
  "denied.up.test A",
  "denied.up.test A",
  "empty.up.test AAAA",
  "empty.up.test AAAA",
];

test("answers and counts as dnsmasq does", {
  skip: skipWithout("dig", "dnsmasq"),
}, async (t) => {
  await using up = await Peer.dnsmasq([
    "address=/www.up.test/192.0.2.1",
    "address=/empty.up.test/192.0.2.2",
    "local=/up.test/",
    "local=/six.test/",
    "local=/fix.test/",
  ]);
  await using other = await Peer.dnsmasq(["address=/test/192.0.2.99"]);
  const folder = makeTree(t, { hosts: "192.0.2.60 hosta.lan\n" });
  const lines = [
    "cache-size=1000",
    "neg-ttl=600",
    "local-ttl=9",
    `addn-hosts=${folder}/hosts`,
    "local=/lan/",
    "address=/fix.test/192.0.2.3",
    "address=/sub.fix.test/192.0.2.4",
    "address=/six.test/2001:db8::6",
    "address=/none.test/",
    "host-record=h1.test,h2.test,192.0.2.77,600",
    `server=/srv.fix.test/127.0.0.1#${other.port}`,
    `server=127.0.0.1#${up.port}`,
    "domain-needed",
    "bogus-priv",
    `server=/10.in-addr.arpa/127.0.0.1#${other.port}`,
    `server=/one/127.0.0.1#${other.port}`,
  ];
  await using real = await Peer.dnsmasq(lines);
  const port = await freePort();
  await using ours = portolan([
    "dnsmasq-nanny",
    `-configDir=${makeTree(t, {})}`,
    "--",
    "--no-resolv",
    "--no-hosts",
    "--listen-address=127.0.0.1",
    `--port=${port}`,
    ...lines.map((line) => `--${line}`),
  ]);
  const own = { address: "127.0.0.1", port };
  const servers = [real, own];
  await untilTrue(async () => (await dig(own, "auth.bind", "TXT", "CH")).answer.length === 1);
  const statistics = async () =>
    Promise.all(
      servers.map(async (server) => {
        const texts = [];
        for (const name of ["misses", "hits", "auth", "cachesize"])
          texts.push((await dig(server, `${name}.bind`, "TXT", "CH")).answer[0]?.split('"')[1] ?? "");
        return texts.map(Number);
      }),
    );
  const [realBefore = [], oursBefore = []] = await statistics();
  for (const question of QUESTIONS) {
    const [name = "", type = ""] = question.split(" ");
    const [expected, got] = await Promise.all(servers.map((server) => dig(server, name, type)));
    assert.deepEqual([question, got?.status, got?.answer], [question, expected?.status, expected?.answer]);
  }
  const [realAfter = [], oursAfter = []] = await statistics();
  const grown = (before: readonly number[], after: readonly number[]) =>
    after.map((value, index) => value - (before[index] ?? 0));
  assert.deepEqual(
    grown(oursBefore, oursAfter),
    grown(realBefore, realAfter),
    "misses, hits, auth, cachesize",
  );
  for (const name of ["unknown.bind", "hostname.bind"]) {
    const [expected, got] = await Promise.all(servers.map((server) => dig(server, name, "TXT", "CH")));
    assert.equal(got?.status, expected?.status);
  }
  assert.deepEqual(await ours.stop(), { code: 0, signal: null });
});
