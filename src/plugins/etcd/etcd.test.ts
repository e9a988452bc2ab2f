import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import etcd from "./index.ts";
import { readSkydnsConfig } from "./skydns-config.ts";

test("reads every option of the directive", () => {
  const { configs, warnings } = PluginTest.of(
    etcd,
    `etcd example.org {
      path other/deep
      endpoint http://192.0.2.1:2379 https://[2001:db8::1]:2379 etcd.example:4001
      credentials user pass
      tls cert.pem key.pem ca.pem
      min-lease-ttl 5
      max-lease-ttl 1h
      fallthrough
      stubzones
      skydns_config
    }`,
  );
  assert.deepEqual(warnings, []);
  const [config] = configs;
  assert.deepEqual(config?.endpoint?.urls, [
    "http://192.0.2.1:2379",
    "https://[2001:db8::1]:2379",
    "http://etcd.example:4001",
  ]);
  assert.deepEqual(config?.credentials?.login, { user: "user", password: "pass" });
  assert.equal(config?.["min-lease-ttl"], 5_000);
  assert.equal(config?.["max-lease-ttl"], 3_600_000);
});

test("options of old versions get a warning", () => {
  const { warnings } = PluginTest.of(
    etcd,
    "etcd {\n upstream /etc/resolv.conf\n debug\n}\netcd second.example",
  );
  assert.match(warnings.join("\n"), /'upstream' has no effect/);
  assert.match(warnings.join("\n"), /'debug' has no effect/);
  assert.match(warnings.join("\n"), /only the first 'etcd'/);
});

for (const [text, message] of [
  ["etcd {\n credentials user\n}", /credentials requires 2 arguments, username and password/],
  ["etcd {\n credentials a b c\n}", /credentials requires 2 arguments, username and password/],
  ["etcd {\n min-lease-ttl x\n}", /invalid min-lease-ttl value: 'x'/],
  ["etcd {\n max-lease-ttl x\n}", /invalid max-lease-ttl value: 'x'/],
  ["etcd {\n min-lease-ttl 2m\n max-lease-ttl 1m\n}", /min-lease-ttl is greater than max-lease-ttl/],
  ["etcd {\n endpoint ftp://x\n}", /'ftp:\/\/x' is not a URL of an etcd server/],
  ["etcd {\n endpoint\n}", /unexpected line ending after 'endpoint'/],
  ["etcd {\n tls a b c d\n}", /tls takes a certificate, its key and a CA, or a CA alone/],
  ["etcd {\n no_apex_fallback yes\n}", /Wrong argument count or unexpected line ending after 'yes'/],
  ["etcd {\n bogus\n}", /unknown property 'bogus'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(etcd, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}

test("names the fields of SkyDNS's configuration that belong elsewhere", () => {
  const read = readSkydnsConfig(
    '{"domain":"x.","ttl":60,"min_ttl":9,"priority":3,"hostmaster":"me@example.org","nameservers":["192.0.2.1:53"],"no_rec":false}',
  );
  assert.equal(read.ttl, 60);
  assert.equal(read.minTtl, 9);
  assert.equal(read.priority, 3);
  assert.equal(`${read.hostmaster}`, "me.example.org.");
  assert.deepEqual(
    read.elsewhere.map((line) => line.split(":")[0]),
    ["domain", "nameservers"],
  );
  assert.throws(() => readSkydnsConfig("[]"), /JSON object/);
});
