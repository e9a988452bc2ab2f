import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Name } from "../../dns/index.ts";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import hosts from "./index.ts";

test("defaults", () => {
  const [config] = PluginTest.of(hosts, "hosts", { keys: "example.org:53" }).configs;
  assert.deepEqual(
    { ...config, zones: String(config?.zones), fallthrough: config?.fallthrough.zones.zones.length },
    {
      file: "/etc/hosts",
      zones: "example.org.",
      ttl: 3600,
      no_reverse: false,
      reload: 5_000,
      fallthrough: 0,
      fallthrough_unsupported: false,
      inline: [],
    },
  );
});

test("all options", () => {
  const text = `hosts /etc/names example.org 10.0.0.0/24 {
    10.0.0.1 example.org www.example.org
    ttl 60
    no_reverse
    reload 1m
    fallthrough example.org
    fe80::1%eth0 v6.example.org
    fallthrough_unsupported
  }`;
  const [config] = PluginTest.of(hosts, text).configs;
  assert.ok(config !== undefined);
  assert.equal(String(config.zones), "example.org.,0.0.10.in-addr.arpa.");
  assert.deepEqual(
    [config.file, config.ttl, config.no_reverse, config.reload, config.fallthrough_unsupported],
    ["/etc/names", 60, true, 60_000, true],
  );
  assert.ok(!config.fallthrough.permits(Name.parse("example.net.")));
  assert.deepEqual(config.inline, ["10.0.0.1 example.org www.example.org", "fe80::1%eth0 v6.example.org"]);
});

test("a line that is neither an option nor an address is ignored with a warning, as long as CoreDNS ignores it", () => {
  const plugin = PluginTest.of(hosts, "hosts {\n fallthruogh\n 999.0.0.1 a\n}");
  assert.match(
    plugin.warnings.join("\n"),
    /3:2: warning: 'fallthruogh' is neither an option nor an IP address: the line is ignored[\s\S]*did you mean 'fallthrough'[\s\S]*4:2: warning: '999.0.0.1' is neither/,
  );
});

describe("refuses", () => {
  for (const [text, code, message] of [
    ["hosts {\n ttl\n}", "PLUGIN_ARGUMENT_MISSING", /3:2: error: Wrong argument count.*after 'ttl'/],
    ["hosts {\n ttl 1m\n}", "PLUGIN_BAD_VALUE", /3:6: error: ttl needs a number of second/],
    ["hosts {\n ttl 0\n}", "PLUGIN_BAD_VALUE", /ttl provided is invalid/],
    ["hosts {\n ttl 65536\n}", "PLUGIN_BAD_VALUE", /ttl provided is invalid/],
    ["hosts {\n reload soon\n}", "PLUGIN_BAD_VALUE", /invalid duration for reload 'soon'/],
    ["hosts {\n reload 5\n}", "PLUGIN_BAD_VALUE", /invalid duration for reload '5'/],
    ["hosts {\n reload -5s\n}", "PLUGIN_BAD_VALUE", /invalid negative duration for reload '-5s'/],
    ["hosts {\n fallthrough\n no_revers\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'no_revers'/],
    [
      "hosts {\n fallthrough_unsupported\n}",
      "HOSTS_FALLTHROUGH_MISSING",
      /3:2: error: fallthrough_unsupported requires fallthrough/,
    ],
    ["hosts\nhosts", "PLUGIN_REPEATED", /can only be used once per Server Block/],
  ] as const) {
    test(JSON.stringify(text), () => {
      assert.throws(
        () => PluginTest.of(hosts, text),
        (error) =>
          error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
      );
    });
  }
});
