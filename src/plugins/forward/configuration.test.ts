import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ConfigRefused, PluginTest, type PluginTestOptions } from "../../plugin/testing.ts";
import type { ForwardConfig } from "./configuration.ts";
import forward from "./index.ts";

function configOf(text: string): ForwardConfig {
  const [config] = PluginTest.of(forward, text).configs;
  assert.ok(config !== undefined);
  return config;
}

function refusal(text: string, options?: PluginTestOptions): ConfigRefused {
  try {
    PluginTest.of(forward, text, options);
  } catch (error) {
    assert.ok(error instanceof ConfigRefused);
    return error;
  }
  throw new Error(`accepted: ${text}`);
}

function targetTexts({ to }: ForwardConfig): string[] {
  return to.map((target) => (target.kind === "address" ? target.address.text : `? ${target.text}`));
}

describe("the configuration of forward", () => {
  it("has the defaults of CoreDNS", () => {
    const config = configOf("forward . 192.0.2.1");
    assert.equal(config.from.toString(), ".");
    assert.equal(config.force_tcp, false);
    assert.equal(config.prefer_udp, false);
    assert.equal(config.expire, 10_000);
    assert.equal(config.max_age, 0);
    assert.equal(config.max_idle_conns, 0);
    assert.equal(config.read_timeout, 2_000);
    assert.equal(config.max_fails, 2);
    assert.equal(config.max_connect_attempts, undefined);
    assert.equal(config.policy, "random");
    assert.equal(config.health_check, undefined);
    assert.equal(config.max_concurrent, 0);
    assert.equal(config.next_on_nodata, false);
    assert.equal(config.failfast_all_unhealthy_upstreams, false);
    assert.equal(config.source_address, undefined);
    for (const list of [config.except, config.next, config.failover, config.resolver])
      assert.deepEqual(list, []);
  });

  it("reads every option", () => {
    const config = configOf(`forward Example.ORG 192.0.2.1 192.0.2.2 {
      except internal.example.org 10.0.0.0/8
      except other.example.org
      force_tcp
      prefer_udp
      expire 20s
      max_age 1m
      max_idle_conns 4
      read_timeout 750ms
      max_fails 3
      max_connect_attempts 7
      policy round_robin
      health_check 5s no_rec domain probe.example.org
      max_concurrent 1000
      next NXDOMAIN refused
      next SERVFAIL
      next_on_nodata
      failfast_all_unhealthy_upstreams
      failover SERVFAIL REFUSED
      source_address 192.0.2.99
      resolver 192.0.2.53 [2001:db8::1]:5353
    }`);
    assert.equal(config.from.toString(), "example.org.");
    assert.deepEqual(
      config.except.map((line) => line.ignored_names.zones.map(String)),
      [["internal.example.org.", "10.in-addr.arpa."], ["other.example.org."]],
    );
    assert.equal(config.force_tcp, true);
    assert.equal(config.prefer_udp, true);
    assert.equal(config.expire, 20_000);
    assert.equal(config.max_age, 60_000);
    assert.equal(config.max_idle_conns, 4);
    assert.equal(config.read_timeout, 750);
    assert.equal(config.max_fails, 3);
    assert.equal(config.max_connect_attempts, 7);
    assert.equal(config.policy, "round_robin");
    assert.equal(config.health_check?.duration, 5_000);
    assert.equal(config.health_check.form.recursionDesired, false);
    assert.equal(config.health_check.form.domain.toString(), "probe.example.org.");
    assert.equal(config.max_concurrent, 1_000);
    assert.deepEqual(config.next, [{ rcode: [3, 5] }, { rcode: [2] }]);
    assert.equal(config.next_on_nodata, true);
    assert.equal(config.failfast_all_unhealthy_upstreams, true);
    assert.deepEqual(config.failover, [{ rcode: [2, 5] }]);
    assert.equal(config.source_address, "192.0.2.99");
    assert.deepEqual(config.resolver, [
      {
        address: [
          { host: "192.0.2.53", port: 53 },
          { host: "2001:db8::1", port: 5_353 },
        ],
      },
    ]);
  });

  it("distinguishes addresses from names", () => {
    const config = configOf(
      "forward . 192.0.2.1 192.0.2.1:5353 2001:db8::1 [2001:db8::1]:5353 fe80::1%eth0 [fe80::1%eth0]:5353 dns://192.0.2.2 dns://192.0.2.2:54 /etc/resolv.conf resolv.conf dns.example.org dns://dns.example.org:5353",
    );
    assert.deepEqual(targetTexts(config), [
      "192.0.2.1:53",
      "192.0.2.1:5353",
      "[2001:db8::1]:53",
      "[2001:db8::1]:5353",
      "[fe80::1%eth0]:53",
      "[fe80::1%eth0]:5353",
      "192.0.2.2:53",
      "192.0.2.2:54",
      "? /etc/resolv.conf",
      "? resolv.conf",
      "? dns.example.org",
      "? dns.example.org:5353",
    ]);
  });

  it("recognizes encrypted upstreams by their scheme, with default ports", () => {
    const { to } = configOf(
      "forward . tls://9.9.9.9%dns.quad9.net tls://[2620:fe::fe]%dns.quad9.net:8853 tls://2620:fe::9 https://1.1.1.1 https://[::1]:8443/q TLS://dns.quad9.net https://dns.google/dns-query tls:///etc/resolv.conf",
    );
    assert.deepEqual(
      to.map((word) => [
        word.scheme,
        word.kind === "address" ? word.address.text : `? ${word.text}`,
        word.serverName,
        word.path,
      ]),
      [
        ["tls", "9.9.9.9:853", "dns.quad9.net", "/dns-query"],
        ["tls", "[2620:fe::fe]:8853", "dns.quad9.net", "/dns-query"],
        ["tls", "[2620:fe::9]:853", undefined, "/dns-query"],
        ["https", "1.1.1.1:443", undefined, "/dns-query"],
        ["https", "[::1]:8443", undefined, "/q"],
        ["tls", "? dns.quad9.net", undefined, "/dns-query"],
        ["https", "? dns.google", undefined, "/dns-query"],
        ["tls", "? /etc/resolv.conf", undefined, "/dns-query"],
      ],
    );
  });

  it("makes one handler of each directive", () => {
    const test = PluginTest.of(forward, "forward a.example 192.0.2.1\nforward . 192.0.2.2");
    assert.equal(test.instances.length, 2);
  });

  it("takes the first of the zones of a network that is not on a zone boundary, with a warning", () => {
    const test = PluginTest.of(forward, "forward 10.0.0.0/9 192.0.2.1");
    assert.equal(test.configs[0]?.from.toString(), "0.10.in-addr.arpa.");
    assert.match(
      test.warnings.join("\n"),
      /'10\.0\.0\.0\/9' stands for 128 zones, of which only '0\.10\.in-addr\.arpa\.' is forwarded/,
    );
  });

  it("accepts at most 15 targets", () => {
    const words = (count: number): string =>
      Array.from({ length: count }, (_, index) => `192.0.2.${index}`).join(" ");
    assert.equal(configOf(`forward . ${words(15)}`).to.length, 15);
    assert.match(refusal(`forward . ${words(16)}`).message, /more than 15 TOs configured: 16/);
  });

  const refused: readonly (readonly [text: string, message: RegExp, code?: string])[] = [
    ["forward", /Wrong argument count or unexpected line ending after 'forward'/, "PLUGIN_ARGUMENT_MISSING"],
    ["forward .", /Wrong argument count or unexpected line ending after '\.'/, "PLUGIN_ARGUMENT_MISSING"],
    ["forward a..b 192.0.2.1", /unable to normalize 'a\.\.b'/],
    ["forward . 192.0.2.256", /not an IP address, file, or valid domain: "192\.0\.2\.256"/],
    ["forward . 192.0.2.1:0", /port 0 cannot be queried: '192\.0\.2\.1:0'/],
    ["forward . 192.0.2.1:70000", /not an IP address, file, or valid domain: "192\.0\.2\.1:70000"/],
    ["forward . dns://", /not an IP address, file, or valid domain: "dns:\/\/"/],
    [
      "forward . sdns://192.0.2.1",
      /'sdns' is not supported as a destination protocol in forward: 192\.0\.2\.1/,
    ],
    ["forward . tls://192.0.2.1:0", /port 0 cannot be queried: 'tls:\/\/192\.0\.2\.1:0'/],
    ["forward . tls://", /not an IP address, file, or valid domain: "tls:\/\/"/],
    ["forward . https://192.0.2.256/dns-query", /not an IP address, file, or valid domain: "https:/],
    ["forward . https://192.0.2.1/ä", /'\/ä' is not a path of an HTTPS upstream/],
    [
      "forward . tls://192.0.2.1 { tls a b c d }",
      /maximum of three arguments allowed for TLS config, found 4/,
    ],
    [
      "forward . tls://192.0.2.1 { tls_servername }",
      /unexpected line ending after 'tls_servername'/,
      "PLUGIN_ARGUMENT_MISSING",
    ],
    [
      "forward . tls://192.0.2.1%a.example { tls_servername b.example }",
      /both forward \('b\.example'\) and proxy level \('a\.example'\) TLS servernames are set for upstream proxy 'tls:\/\/192\.0\.2\.1:853'/,
    ],
    ["forward . https://192.0.2.1 { doh_method PUT }", /doh_method must be either POST or GET/],
    [
      "forward . https://a.example { bootstrap a.example b.example }",
      /bootstrap: 'b\.example' is not an IP address/,
    ],
    [
      "forward . https://a.example { bootstrap a.example }",
      /unexpected line ending after 'a\.example'/,
      "PLUGIN_ARGUMENT_MISSING",
    ],
    ["forward . 192.0.2.1 { except }", /unexpected line ending after 'except'/, "PLUGIN_ARGUMENT_MISSING"],
    [
      "forward . 192.0.2.1 { force_tcp yes }",
      /unexpected line ending after 'yes'/,
      "PLUGIN_ARGUMENT_UNEXPECTED",
    ],
    ["forward . 192.0.2.1 { expire -1s }", /expire can't be negative: -1s/],
    ["forward . 192.0.2.1 { expire 10 }", /expire: '10' is not a duration such as 500ms or 30s/],
    ["forward . 192.0.2.1 { max_age -1s }", /max_age can't be negative: -1s/],
    ["forward . 192.0.2.1 { max_age 5s }", /max_age \(5s\) must not be less than expire \(10s\)/],
    [
      "forward . 192.0.2.1 {\nexpire 1m\nmax_age 59s\n}",
      /Corefile:4:1: error: max_age \(59s\) must not be less than expire \(1m0s\)/,
    ],
    ["forward . 192.0.2.1 { max_idle_conns -1 }", /max_idle_conns can't be negative: -1/],
    ["forward . 192.0.2.1 { max_idle_conns few }", /max_idle_conns: 'few' is not a whole number/],
    ["forward . 192.0.2.1 { read_timeout 0s }", /read_timeout must be positive: 0s/],
    ["forward . 192.0.2.1 { read_timeout -2s }", /read_timeout must be positive: -2s/],
    ["forward . 192.0.2.1 { max_fails -1 }", /max_fails can't be negative: -1/],
    ["forward . 192.0.2.1 { max_connect_attempts x }", /max_connect_attempts: 'x' is not a whole number/],
    ["forward . 192.0.2.1 { policy least_conn }", /unknown policy 'least_conn'/],
    [
      "forward . 192.0.2.1 { health_check }",
      /unexpected line ending after 'health_check'/,
      "PLUGIN_ARGUMENT_MISSING",
    ],
    ["forward . 192.0.2.1 { health_check -1s }", /health_check can't be negative: -1s/],
    ["forward . 192.0.2.1 { health_check 1s rec }", /health_check: unknown option 'rec'/],
    ["forward . 192.0.2.1 { health_check 1s domain }", /after 'domain'/, "PLUGIN_ARGUMENT_MISSING"],
    ["forward . 192.0.2.1 { health_check 1s domain a..b }", /a\.\.b/],
    ["forward . 192.0.2.1 { max_concurrent -1 }", /max_concurrent can't be negative: -1/],
    ["forward . 192.0.2.1 { next }", /unexpected line ending after 'next'/, "PLUGIN_ARGUMENT_MISSING"],
    ["forward . 192.0.2.1 { next NXDOMAN }", /'NXDOMAN' is not an rcode/],
    ["forward . 192.0.2.1 { failover NOERROR }", /NoError cannot be used in failover/],
    [
      "forward . 192.0.2.1 { failover }",
      /unexpected line ending after 'failover'/,
      "PLUGIN_ARGUMENT_MISSING",
    ],
    ["forward . 192.0.2.1 { source_address eth0 }", /source_address: 'eth0' is not an IP address/],
    ["forward . 192.0.2.1 { resolver dns.example.org }", /must specify an IP address: 'dns\.example\.org'/],
    [
      "forward . 192.0.2.1 { resolver }",
      /unexpected line ending after 'resolver'/,
      "PLUGIN_ARGUMENT_MISSING",
    ],
    [
      "forward . 192.0.2.1 { maxfails 1 }",
      /unknown property 'maxfails'[\s\S]*max_fails/,
      "PLUGIN_UNKNOWN_PROPERTY",
    ],
  ];
  for (const [text, message, code = "PLUGIN_BAD_VALUE"] of refused) {
    it(`refuses ${text.replaceAll("\n", "; ")}`, () => {
      const error = refusal(text.replace("{ ", "{\n").replace(/ }$/, "\n}"));
      assert.match(`${error.message}\n`, message);
      assert.deepEqual(error.codes, [code]);
    });
  }
});
