import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import type { CacheDirective } from "./directive.ts";
import cache from "./index.ts";
import { type CacheSettings, settingsOf } from "./settings.ts";

function read(text: string, keys = ".:53"): { settings: CacheSettings; warnings: readonly string[] } {
  const running = PluginTest.of(cache, text, { keys });
  const config: CacheDirective | undefined = running.configs[0];
  assert.ok(config !== undefined);
  return { settings: settingsOf(config), warnings: running.warnings };
}

/** Settings as plain values, zones as text. */
function plain(settings: CacheSettings): unknown {
  const { zones, success, denial, ...rest } = settings;
  return {
    ...rest,
    zones: zones.toString(),
    success: { ...success, except: success.except.toString() },
    denial: { ...denial, except: denial.except.toString() },
  };
}

const DEFAULTS = {
  zones: ".",
  success: { capacity: 9984, maxTtl: 3600, minTtl: 5, except: "" },
  denial: { capacity: 9984, maxTtl: 1800, minTtl: 5, except: "" },
  servfailTtl: 5,
  prefetch: undefined,
  stale: undefined,
  keepTtl: false,
  memory: undefined,
};

const STALE = {
  windowMs: 3_600_000,
  verify: false,
  verifyTimeoutMs: Infinity,
  responseTtl: 0,
  failureRecheckMs: 0,
  preferPositive: false,
};

const ACCEPTED: readonly (readonly [string, object])[] = [
  ["cache", {}],
  ["cache 30", { success: { ...DEFAULTS.success, maxTtl: 30 }, denial: { ...DEFAULTS.denial, maxTtl: 30 } }],
  ["cache example.org 10.0.0.0/24", { zones: "example.org.,0.0.10.in-addr.arpa." }],
  [
    "cache 7 Example.ORG",
    {
      zones: "example.org.",
      success: { ...DEFAULTS.success, maxTtl: 7 },
      denial: { ...DEFAULTS.denial, maxTtl: 7 },
    },
  ],
  [
    "cache 100 {\n success 5000\n denial 512 20 0\n}",
    {
      success: { ...DEFAULTS.success, capacity: 4864, maxTtl: 100 },
      denial: { ...DEFAULTS.denial, capacity: 1024, maxTtl: 20, minTtl: 0 },
    },
  ],
  [
    "cache {\n success 0\n denial -7\n}",
    {
      success: { ...DEFAULTS.success, capacity: 1024 },
      denial: { ...DEFAULTS.denial, capacity: 1024 },
    },
  ],
  ["cache {\n prefetch 0\n}", {}],
  ["cache {\n prefetch 10\n}", { prefetch: { amount: 10, windowMs: 60_000, percentage: 10 } }],
  ["cache {\n prefetch 1 5m 50%\n}", { prefetch: { amount: 1, windowMs: 300_000, percentage: 50 } }],
  ["cache {\n servfail 0\n}", { servfailTtl: 0 }],
  ["cache {\n servfail 5m\n}", { servfailTtl: 300 }],
  ["cache {\n servfail 1500ms\n}", { servfailTtl: 1 }],
  ["cache {\n keepttl\n}", { keepTtl: true }],
  ["cache {\n memory 64Mi\n}", { memory: 67_108_864 }],
  ["cache {\n memory 1900000\n}", { memory: 1_900_000 }],
  ["cache {\n success 99999999999\n}", { success: { ...DEFAULTS.success, capacity: 16_777_216 } }],
  [
    "cache {\n disable success\n disable denial a.example b.example\n disable denial c.example\n}",
    {
      success: { ...DEFAULTS.success, except: "." },
      denial: { ...DEFAULTS.denial, except: "a.example.,b.example.,c.example." },
    },
  ],
  ["cache {\n serve_stale\n}", { stale: STALE }],
  ["cache {\n serve_stale 0\n}", {}],
  ["cache {\n serve_stale 1m\n}", { stale: { ...STALE, windowMs: 60_000 } }],
  ["cache {\n serve_stale immediate\n}", { stale: STALE }],
  [
    "cache {\n serve_stale 1m IMMEDIATE 30s 5s\n}",
    { stale: { ...STALE, windowMs: 60_000, responseTtl: 30, failureRecheckMs: 5000 } },
  ],
  ["cache {\n serve_stale 2h Verify\n}", { stale: { ...STALE, windowMs: 7_200_000, verify: true } }],
  ["cache {\n serve_stale 1h verify 0s\n}", { stale: { ...STALE, verify: true } }],
  [
    "cache {\n serve_stale verify 1800ms 30 5m\n serve_stale_policy prefer_positive\n}",
    {
      stale: {
        ...STALE,
        verify: true,
        verifyTimeoutMs: 1800,
        responseTtl: 30,
        failureRecheckMs: 300_000,
        preferPositive: true,
      },
    },
  ],
];

for (const [text, changes] of ACCEPTED) {
  test(`${JSON.stringify(text)} is understood`, () => {
    const { settings, warnings } = read(text);
    assert.deepEqual(plain(settings), { ...DEFAULTS, ...changes });
    assert.deepEqual(warnings, []);
  });
}

test("without zones the cache serves the zones of its block", () => {
  assert.equal(
    read("cache", "example.org:53 10.1.0.0/16:53").settings.zones.toString(),
    "example.org.,1.10.in-addr.arpa.",
  );
});

test("the last of repeated lines counts, with a warning", () => {
  const { settings, warnings } = read("cache {\n success 2000\n success 3000\n}");
  assert.equal(settings.success.capacity, 2816);
  assert.match(warnings.join("\n"), /'success' is repeated on line 4: only the last counts/);
});

test("a bound above the largest TTL is no bound", () => {
  assert.equal(read("cache 3000000000").settings.success.maxTtl, 0x7fff_ffff);
});

test("words after MINTTL get a warning", () => {
  const plugin = PluginTest.of(cache, "cache {\n denial 100 10 1 1\n}");
  assert.match(plugin.warnings.join("\n"), /3:18: warning: '1' has no effect here/);
});

const REFUSED: readonly (readonly [string, string, RegExp])[] = [
  ["cache 0", "PLUGIN_BAD_VALUE", /cache TTL can not be zero or negative: 0/],
  ["cache -5", "PLUGIN_BAD_VALUE", /cache TTL can not be zero or negative: -5/],
  ["cache\ncache", "PLUGIN_REPEATED", /this plugin can only be used once per Server Block/],
  [
    "cache {\n sucess 100\n}",
    "PLUGIN_UNKNOWN_PROPERTY",
    /unknown property 'sucess'[\s\S]*did you mean 'success'/,
  ],
  ["cache {\n success\n}", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending after 'success'/],
  ["cache {\n success ten\n}", "PLUGIN_BAD_VALUE", /'ten' is not a whole number/],
  ["cache {\n success 100 0\n}", "PLUGIN_BAD_VALUE", /cache TTL can not be zero or negative: 0/],
  ["cache {\n denial 100 10 -1\n}", "PLUGIN_BAD_VALUE", /cache min TTL can not be negative: -1/],
  ["cache {\n prefetch\n}", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending after 'prefetch'/],
  ["cache {\n prefetch -1\n}", "PLUGIN_BAD_VALUE", /'-1' is not a whole number of 0 or more/],
  ["cache {\n prefetch 1 60\n}", "PLUGIN_BAD_VALUE", /duration '60' has no unit/],
  ["cache {\n prefetch 1 1m 50\n}", "PLUGIN_BAD_VALUE", /'50' is not a percentage from 10% to 90%/],
  ["cache {\n prefetch 1 1m 91%\n}", "PLUGIN_BAD_VALUE", /'91%' is not a percentage from 10% to 90%/],
  ["cache {\n servfail\n}", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending after 'servfail'/],
  ["cache {\n servfail -1s\n}", "PLUGIN_BAD_VALUE", /'-1s' is not a duration/],
  [
    "cache {\n servfail 301s\n}",
    "PLUGIN_BAD_VALUE",
    /caching SERVFAIL responses over 5 minutes is not permitted/,
  ],
  ["cache {\n disable\n}", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending after 'disable'/],
  ["cache {\n disable sucess\n}", "PLUGIN_BAD_VALUE", /unknown value 'sucess'[\s\S]*did you mean 'success'/],
  ["cache {\n memory\n}", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending after 'memory'/],
  ["cache {\n memory lots\n}", "PLUGIN_BAD_VALUE", /'lots' is not an amount of memory such as 64Mi/],
  [
    "cache {\n memory 1Mi\n}",
    "CACHE_MEMORY_TOO_SMALL",
    /Corefile:3:2: error: memory 1Mi is too little for tables of these capacities and an answer of 64 KiB[\s\S]*\d+Ki or more/,
  ],
  ["cache {\n success 1000000\n memory 32Mi\n}", "CACHE_MEMORY_TOO_SMALL", /\d+Ki or more/],
  ["cache {\n keepttl on\n}", "PLUGIN_ARGUMENT_UNEXPECTED", /expected no arguments after 'keepttl'/],
  [
    "cache {\n serve_stale verfy\n}",
    "PLUGIN_BAD_VALUE",
    /'verfy' is not a duration[\s\S]*did you mean 'verify'/,
  ],
  ["cache {\n serve_stale -1h\n}", "PLUGIN_BAD_VALUE", /'-1h' is not a duration/],
  ["cache {\n serve_stale 1h later\n}", "PLUGIN_BAD_VALUE", /unknown value 'later'/],
  [
    "cache {\n serve_stale 1h immediate 1500ms\n}",
    "PLUGIN_BAD_VALUE",
    /'1500ms' is not a whole number of seconds/,
  ],
  [
    "cache {\n serve_stale 1h immediate 1s 6m\n}",
    "PLUGIN_BAD_VALUE",
    /'6m' is not a duration .* from 0s to 5m0s/,
  ],
  ["cache {\n serve_stale 1h verify 5\n}", "PLUGIN_BAD_VALUE", /duration '5' has no unit/],
  ["cache {\n serve_stale 1h immediate 1s 1s 1s\n}", "PLUGIN_ARGUMENT_UNEXPECTED", /line ending after '1s'/],
  [
    "cache {\n serve_stale_policy prefer_positive\n}",
    "CACHE_POLICY_WITHOUT_STALE",
    /Corefile:3:2: error: serve_stale_policy requires serve_stale/,
  ],
  [
    "cache {\n serve_stale\n serve_stale_policy prefer_positive\n serve_stale_policy prefer_positive\n}",
    "CACHE_POLICY_REPEATED",
    /Corefile:5:2: error: 'serve_stale_policy' may appear only once/,
  ],
  ["cache {\n serve_stale\n serve_stale_policy newest\n}", "PLUGIN_BAD_VALUE", /unknown value 'newest'/],
];

for (const [text, code, message] of REFUSED) {
  test(`${JSON.stringify(text)} is refused`, () => {
    assert.throws(
      () => PluginTest.of(cache, text),
      (error) => {
        assert.ok(error instanceof ConfigRefused);
        assert.deepEqual(error.codes, [code]);
        assert.match(error.message, message);
        return true;
      },
    );
  });
}
