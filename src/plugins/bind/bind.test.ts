import assert from "node:assert/strict";
import { test } from "node:test";
import type { Token } from "../../corefile/tokens.ts";
import type { Machine } from "../../plugin/contract/site.ts";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import bind from "./index.ts";
import { listenHosts } from "./listen-hosts.ts";

// The test kit's machine has the interface `lo` with 127.0.0.1 and ::1.
for (const [text, expected] of [
  ["bind 192.0.2.1", ["192.0.2.1"]],
  ["bind 192.0.2.1 2001:db8::1", ["192.0.2.1", "2001:db8::1"]],
  ["bind 192.0.2.1\nbind 2001:db8::1", ["192.0.2.1", "2001:db8::1"]],
  ["bind lo", ["127.0.0.1", "::1"]],
  ["bind lo 192.0.2.1 127.0.0.1", ["127.0.0.1", "::1", "192.0.2.1"]],
  ["bind 2001:DB8:0::1 2001:db8::1", ["2001:DB8:0::1"]],
  ["bind lo {\n except ::1\n}", ["127.0.0.1"]],
  ["bind lo {\n except 0:0:0:0:0:0:0:1\n}", ["127.0.0.1"]],
  ["bind lo 192.0.2.1 {\n except lo\n}", ["192.0.2.1"]],
  ["bind lo 192.0.2.1 {\n except ::1\n except 127.0.0.1\n}", ["192.0.2.1"]],
  ["bind lo {\n except ::1\n}\nbind ::1", ["127.0.0.1", "::1"]],
  ["bind fe80::1%eth0", ["fe80::1%eth0"]],
] as const) {
  test(`${JSON.stringify(text)} listens on ${expected.join(" and ")}`, () => {
    const { settings, warnings } = PluginTest.of(bind, text);
    assert.deepEqual(settings.listenHosts, expected);
    assert.equal(settings.listensNowhere, false);
    assert.deepEqual(warnings, []);
  });
}

test("warns when every address is excepted: the block listens nowhere", () => {
  const { settings, warnings } = PluginTest.of(bind, "bind lo {\n except lo\n}");
  assert.deepEqual(settings.listenHosts, []);
  assert.equal(settings.listensNowhere, true);
  assert.match(warnings.join("\n"), /2:1: warning: no address is left, so this server block listens nowhere/);
});

for (const [text, code, message] of [
  ["bind", "PLUGIN_ARGUMENT_MISSING", /2:1: error: at least one address or interface name is expected/],
  ["bind {\n except lo\n}", "PLUGIN_ARGUMENT_MISSING", /at least one address or interface name is expected/],
  [
    "bind lo {\n except\n}",
    "PLUGIN_ARGUMENT_MISSING",
    /3:2: error: at least one address or interface must be given to except subdirective/,
  ],
  [
    "bind 192.0.2.1 eth7",
    "PLUGIN_BAD_VALUE",
    /2:16: error: not a valid IP address or interface name: "eth7"[\s\S]*an interface of this machine/,
  ],
  ["bind lo {\n except 192.0.2\n}", "PLUGIN_BAD_VALUE", /3:9: error: not a valid IP .*: "192\.0\.2"/],
  ["bind [::1]", "PLUGIN_BAD_VALUE", /not a valid IP address or interface name: "\[::1\]"/],
  ["bind lo {\n expect ::1\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'expect'[\s\S]*mean 'except'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(bind, text),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}

test("names every wrong word of all lines at once", () => {
  assert.throws(
    () => PluginTest.of(bind, "bind one\nbind two {\n except three\n}"),
    (error) => error instanceof ConfigRefused && error.codes.length === 3,
  );
});

const machine: Machine = {
  hostname: "router",
  interfaceAddresses: (name) =>
    ({ eth0: ["192.0.2.1", "fe80::1%eth0"], eth1: ["fe80::1%eth1"], down: [], "10.0.0.1": ["192.0.2.9"] })[
      name
    ],
  addresses: () => [],
  environment: {},
  parallelism: 1,
  descriptors: 1024,
};

function words(...texts: string[]): Token[] {
  return texts.map((text) => ({
    kind: "word",
    text,
    raw: text,
    quoted: false,
    startsLine: false,
    span: { file: "Corefile", line: 1, column: 1, length: text.length },
  }));
}

for (const [title, addresses, except, expected] of [
  [
    "link-local addresses of two interfaces stay apart",
    ["eth0", "eth1"],
    [],
    ["192.0.2.1", "fe80::1%eth0", "fe80::1%eth1"],
  ],
  [
    "an exception with zone index means that interface alone",
    ["eth0", "eth1"],
    ["fe80::1%eth0"],
    ["192.0.2.1", "fe80::1%eth1"],
  ],
  ["an exception without zone index means every interface", ["eth0", "eth1"], ["fe80::1"], ["192.0.2.1"]],
  ["an interface without addresses gives none", ["down"], [], []],
  ["an interface is looked for before an address", ["10.0.0.1"], [], ["192.0.2.9"]],
] as const) {
  test(title, () => {
    const line = { addresses: words(...addresses), except: [{ addresses: words(...except) }] };
    const unexpected = (token: Token) => assert.fail(token.text);
    assert.deepEqual(listenHosts([line], machine, unexpected), expected);
  });
}
