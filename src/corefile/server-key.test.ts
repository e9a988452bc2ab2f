import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type Diagnostic, DiagnosticSink } from "./diagnostic.ts";
import { memoryHost } from "./host.ts";
import { parseCorefile } from "./parser.ts";
import { formatServerKey, normaliseZone, resolveServerKeys, type ServerKey } from "./server-key.ts";

interface Resolved {
  readonly keys: ServerKey[][];
  readonly texts: string[][];
  readonly diagnostics: readonly Diagnostic[];
  readonly messages: string[];
}

function resolve(corefile: string, defaultPort?: number): Resolved {
  const parsed = parseCorefile(corefile, { file: "Corefile", host: memoryHost() });
  assert.deepEqual(parsed.diagnostics, []);
  const sink = new DiagnosticSink();
  const keys = resolveServerKeys(parsed.corefile, sink, { defaultPort });
  return {
    keys,
    texts: keys.map((list) => list.map(formatServerKey)),
    diagnostics: sink.diagnostics,
    messages: sink.diagnostics.map(({ message }) => message),
  };
}

/** One key, quoted so that it can be any text. */
function resolveKey(key: string): Resolved {
  return resolve(`"${key}" {\n}`);
}

describe("resolveServerKeys", () => {
  const good: [key: string, texts: string[]][] = [
    [".", ["dns://.:53"]],
    [".:53", ["dns://.:53"]],
    [".:5353", ["dns://.:5353"]],
    [".:0", ["dns://.:0"]],
    [".:65535", ["dns://.:65535"]],
    [".:053", ["dns://.:53"]],
    ["example.org", ["dns://example.org.:53"]],
    ["example.org.", ["dns://example.org.:53"]],
    ["EXAMPLE.Org:1053", ["dns://example.org.:1053"]],
    ["dns://example.org", ["dns://example.org.:53"]],
    ["tls://example.org", ["tls://example.org.:853"]],
    ["tls://example.org:853", ["tls://example.org.:853"]],
    ["quic://.", ["quic://.:853"]],
    ["grpc://example.org", ["grpc://example.org.:443"]],
    ["https://example.org", ["https://example.org.:443"]],
    ["https://example.org:8443", ["https://example.org.:8443"]],
    ["https3://.", ["https3://.:443"]],
    ["_tcp.example-1.org", ["dns://_tcp.example-1.org.:53"]],
    ["a\\.b.org", ["dns://a\\.b.org.:53"]],
    ["a\\065.org", ["dns://aa.org.:53"]],
    ["example.org:5300-5303", [5300, 5301, 5302, 5303].map((port) => `dns://example.org.:${port}`)],
    ["tls://.:853-853", ["tls://.:853"]],
    ["10.0.0.0/8", ["dns://10.in-addr.arpa.:53"]],
    ["10.0.0.0/8:5300", ["dns://10.in-addr.arpa.:5300"]],
    ["tls://10.0.0.0/24", ["tls://0.0.10.in-addr.arpa.:853"]],
    ["0/25.2.0.192.in-addr.arpa", ["dns://0/25.2.0.192.in-addr.arpa.:53"]],
    ["2001:db8::/32:5300", ["dns://8.b.d.0.1.0.0.2.ip6.arpa.:5300"]],
    ["10.0.0.0/15:1-2", [0, 1].flatMap((n) => [1, 2].map((port) => `dns://${n}.10.in-addr.arpa.:${port}`))],
  ];
  for (const [key, texts] of good) {
    it(`reads ${key}`, () => {
      const resolved = resolveKey(key);
      assert.deepEqual(resolved.texts, [texts]);
      assert.deepEqual(resolved.messages, []);
    });
  }

  const long = `${"a.".repeat(127)}aa`;
  const bad: [key: string, code: string, message: string][] = [
    ["apiVersion:", "COREFILE_INVALID_PORT", 'expecting data after last colon: "apiVersion:"'],
    ["example.org:", "COREFILE_INVALID_PORT", 'expecting data after last colon: "example.org:"'],
    [":", "COREFILE_INVALID_PORT", 'expecting data after last colon: ":"'],
    ["dns://", "COREFILE_INVALID_ZONE", 'expecting data after last colon: ""'],
    [":53", "COREFILE_INVALID_ZONE", "there is no zone in ':53'"],
    ["tls://:853", "COREFILE_INVALID_ZONE", "there is no zone in 'tls://:853'"],
    ["example..org", "COREFILE_INVALID_ZONE", "zone is not a valid domain name: example..org"],
    [".example.org", "COREFILE_INVALID_ZONE", "zone is not a valid domain name: .example.org"],
    [
      `${"a".repeat(64)}.org`,
      "COREFILE_INVALID_ZONE",
      `zone is not a valid domain name: ${"a".repeat(64)}.org`,
    ],
    [long, "COREFILE_INVALID_ZONE", "specified zone is too long: 256 > 255"],
    [long.slice(0, 255), "COREFILE_INVALID_ZONE", `zone is not a valid domain name: ${long.slice(0, 255)}`],
    ["a\\999.org", "COREFILE_INVALID_ZONE", "zone is not a valid domain name: a\\999.org"],
    ["::/0", "COREFILE_INVALID_ZONE", "invalid CIDR ::/0"],
    ["0::/8", "COREFILE_INVALID_ZONE", "invalid CIDR 0::/8"],
    ["0064:ff9b::/96", "COREFILE_INVALID_ZONE", "invalid CIDR 0064:ff9b::/96"],
    [
      "http://example.org",
      "COREFILE_UNKNOWN_SCHEME",
      "unknown scheme 'http://': CoreDNS takes it for a part of the zone's name",
    ],
    [
      "TLS://.",
      "COREFILE_UNKNOWN_SCHEME",
      "unknown scheme 'TLS://': CoreDNS takes it for a part of the zone's name",
    ],
    [".:65536", "COREFILE_INVALID_PORT", "port 65536 does not exist"],
    [".:-1", "COREFILE_INVALID_PORT", "port -1 does not exist"],
    [".:0-5", "COREFILE_INVALID_PORT", "port range 0-5 leaves the ports 1 to 65535"],
    [".:65535-65536", "COREFILE_INVALID_PORT", "port range 65535-65536 leaves the ports 1 to 65535"],
    [".:54-53", "COREFILE_INVALID_PORT", "port range 54-53 ends before it begins"],
    [".:1000-1100", "COREFILE_INVALID_PORT", "port range 1000-1100 has 101 ports; at most 100 are allowed"],
  ];
  for (const [key, code, message] of bad) {
    it(`refuses ${key.slice(0, 30)}: ${message.slice(0, 50)}`, () => {
      const { texts, diagnostics } = resolveKey(key);
      assert.deepEqual(texts, [[]]);
      assert.deepEqual(
        diagnostics.map((diagnostic) => [diagnostic.severity, diagnostic.code, diagnostic.message]),
        [["error", code, message]],
      );
    });
  }

  it("suggests the scheme that was probably meant", () => {
    assert.equal(resolveKey("http://.").diagnostics[0]?.suggestion, "https");
    assert.equal(resolveKey("TLS://.").diagnostics[0]?.suggestion, "tls");
  });

  it("applies the default port only to plain DNS", () => {
    assert.deepEqual(resolve("a dns://b tls://c d:53 {\n}", 1053).texts, [
      ["dns://a.:1053", "dns://b.:1053", "tls://c.:853", "dns://d.:53"],
    ]);
  });

  it("puts the first zone of an expansion in the key's place and the rest after all keys", () => {
    assert.deepEqual(resolve("a.org 10.0.0.0/15 b.org {\n}").texts, [
      ["dns://a.org.:53", "dns://0.10.in-addr.arpa.:53", "dns://b.org.:53", "dns://1.10.in-addr.arpa.:53"],
    ]);
  });

  it("records the place of each key", () => {
    const { keys } = resolve("a.org, b.org:1-2 {\n}\nc {\n}");
    assert.deepEqual(
      keys.flat().map(({ span }) => `${span.line}:${span.column}+${span.length}`),
      ["1:1+5", "1:8+9", "1:8+9", "3:1+1"],
    );
  });

  it("stops where networks and ranges of ports make too many keys", () => {
    const keys = Array.from({ length: 10 }, (_, index) => `10.0.${index}.0/25:1-100`).join(" ");
    const { keys: resolved, messages } = resolve(`${keys} {\n}`);
    assert.ok(resolved.flat().length <= 100_000);
    assert.equal(messages[0], "the keys of this Corefile expand to more than 100000");
  });

  it("ends and never throws on any key", () => {
    const part = fc.constantFrom(
      "dns",
      "tls",
      "://",
      ":",
      ".",
      "/",
      "-",
      "10",
      "0",
      "::",
      "a",
      "\\",
      "é",
      "*",
      "25",
      "32",
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(part).map((parts) => parts.join("")),
        ),
        (text) => {
          const key = text.replaceAll(/["\\\r]/g, "");
          const parsed = parseCorefile(`"${key}x" {\n}`, { file: "Corefile", host: memoryHost() });
          for (const { zone, port } of resolveServerKeys(parsed.corefile, new DiagnosticSink()).flat()) {
            assert.match(zone, /\.$/);
            assert.equal(zone, zone.toLowerCase());
            assert.ok(port >= 0 && port <= 65_535);
            // A zone that looks like a scheme with another zone loses the scheme when it is read again.
            if (!zone.includes("://")) assert.deepEqual(normaliseZone(zone), [zone]);
          }
        },
      ),
    );
  });
});

describe("duplicate keys", () => {
  const duplicates: [what: string, text: string, key: string, line: number, first: string][] = [
    ["in two blocks", "a.org {\n}\na.org. {\n}", "dns://a.org.:53", 3, "Corefile:1:1"],
    [
      "that differ in case and scheme",
      "a.org {\n}\nb {\n}\ndns://A.ORG:53 {\n}",
      "dns://a.org.:53",
      5,
      "Corefile:1:1",
    ],
    ["in one block", "b a.org\na.org {\n}".replace("\n", " "), "dns://a.org.:53", 1, "Corefile:1:3"],
    [
      "from a network",
      "0.10.in-addr.arpa {\n}\n10.0.0.0/16 {\n}",
      "dns://0.10.in-addr.arpa.:53",
      3,
      "Corefile:1:1",
    ],
    ["from a range of ports", "a:1-3 {\n}\na:2 {\n}", "dns://a.:2", 3, "Corefile:1:1"],
    ["with the same bind", ". {\n bind lo\n}\n. {\n bind lo\n}", "dns://.:53", 4, "Corefile:1:1"],
  ];
  for (const [what, text, key, line, first] of duplicates) {
    it(`are refused ${what}`, () => {
      const { diagnostics, messages } = resolve(text);
      assert.deepEqual(messages, [`cannot serve ${key} - it is already defined`]);
      assert.equal(diagnostics[0]?.code, "COREFILE_DUPLICATE_KEY");
      assert.equal(diagnostics[0]?.span.line, line);
      assert.deepEqual(diagnostics[0]?.notes, [`it is first defined at ${first}`]);
    });
  }

  const fine: [what: string, text: string][] = [
    ["of another scheme", "a.org {\n}\ntls://a.org:53 {\n}"],
    ["of another port", "a.org {\n}\na.org:54 {\n}"],
    [
      "on other addresses, as far as the text shows",
      ". {\n bind lo\n}\n. {\n bind eth0\n}\n. {\n bind eth1 {\n  except 10.0.0.1\n }\n}",
    ],
    ["with a view", ". {\n view a {\n  expr true\n }\n}\n. {\n view b {\n  expr true\n }\n}\n. {\n}"],
  ];
  for (const [what, text] of fine) {
    it(`are no error ${what}`, () => assert.deepEqual(resolve(text).messages, []));
  }

  it("are left out of the result", () => {
    assert.deepEqual(resolve("a {\n}\na b {\n}").texts, [["dns://a.:53"], ["dns://b.:53"]]);
  });
});

describe("unusual zones", () => {
  const unusual: [key: string, text: string, message: RegExp, suggestion?: string][] = [
    ["127.0.0.1:53", "dns://127.0.0.1.:53", /^127\.0\.0\.1 is taken for a domain name, not for an address$/],
    ["tls://fe80::1", "tls://fe80:.:1", /^fe80::1 is taken for a domain name, not for an address$/],
    ["10.0.0.0/33", "dns://10.0.0.0/33.:53", /because it is not a network$/],
    ["10.0.0/8", "dns://10.0.0/8.:53", /because it is not a network$/],
    ["2001:db8::/129", "dns://2001:db8::/129.:53", /because it is not a network$/],
    ["example.org::53", "dns://example.org:.:53", /the character ':' is part of the zone's name/],
    ["example.org:dns", "dns://example.org:dns.:53", /the character ':' is part of the zone's name/],
    ["a.org,b.org", "dns://a.org,b.org.:53", /the character ',' is part/],
    ["a.org b.org", "dns://a.org\\032b.org.:53", /the character ' ' is part/],
    ["a.org}", "dns://a.org}.:53", /the character '}' is part/],
    ["*.example.org", "dns://*.example.org.:53", /begins with `\*`/, "example.org"],
    ["bücher.example", "dns://b\\195\\188cher.example.:53", /punycode/, "xn--bcher-kva.example"],
    ["BÜCHER.example.", "dns://b\\195\\156cher.example.:53", /punycode/, "xn--bcher-kva.example."],
  ];
  for (const [key, text, message, suggestion] of unusual) {
    it(`are served as CoreDNS serves them, with a warning: ${key}`, () => {
      const { texts, diagnostics } = resolveKey(key);
      assert.deepEqual(texts, [[text]]);
      assert.equal(diagnostics.length, 1);
      assert.equal(diagnostics[0]?.severity, "warning");
      assert.equal(diagnostics[0]?.code, "COREFILE_UNUSUAL_ZONE");
      assert.match(diagnostics[0]?.message ?? "", message);
      assert.equal(diagnostics[0]?.suggestion, suggestion);
    });
  }
});

describe("normaliseZone", () => {
  const cases: [text: string, zones: string[]][] = [
    [".", ["."]],
    ["Example.ORG", ["example.org."]],
    ["example.org.", ["example.org."]],
    ["example.org:5353", ["example.org."]],
    ["tls://example.org:853", ["example.org."]],
    ["in-addr.arpa", ["in-addr.arpa."]],
    ["cluster.local", ["cluster.local."]],
    ["0.0.0.0/0", ["in-addr.arpa."]],
    ["10.1.2.3/8", ["10.in-addr.arpa."]],
    ["10.1.0.0/16", ["1.10.in-addr.arpa."]],
    ["192.168.1.0/24", ["1.168.192.in-addr.arpa."]],
    ["192.0.2.1/32", ["1.2.0.192.in-addr.arpa."]],
    ["10.0.0.0/15", ["0.10.in-addr.arpa.", "1.10.in-addr.arpa."]],
    ["10.3.0.0/15", ["2.10.in-addr.arpa.", "3.10.in-addr.arpa."]],
    ["172.16.0.0/12", Array.from({ length: 16 }, (_, index) => `${16 + index}.172.in-addr.arpa.`)],
    ["192.168.1.200/25", Array.from({ length: 128 }, (_, index) => `${128 + index}.1.168.192.in-addr.arpa.`)],
    ["192.0.2.255/31", ["254.2.0.192.in-addr.arpa.", "255.2.0.192.in-addr.arpa."]],
    ["128.0.0.0/1", Array.from({ length: 128 }, (_, index) => `${128 + index}.in-addr.arpa.`)],
    ["2001:db8::/32", ["8.b.d.0.1.0.0.2.ip6.arpa."]],
    [
      "2001:DB8::/029",
      ["8", "9", "a", "b", "c", "d", "e", "f"].map((digit) => `${digit}.b.d.0.1.0.0.2.ip6.arpa.`),
    ],
    ["2001:db8::/31", ["8.b.d.0.1.0.0.2.ip6.arpa.", "9.b.d.0.1.0.0.2.ip6.arpa."]],
    ["fd00::/8", ["d.f.ip6.arpa."]],
    ["fe80::1/128", [`1.${"0.".repeat(28)}0.8.e.f.ip6.arpa.`.replace("0.0.8.e.f", "0.8.e.f")]],
    ["", []],
    [":53", []],
    ["a..b", []],
    ["::1/128", []],
    ["udp://example.org", []],
    ["example.org:99999", []],
  ];
  for (const [text, zones] of cases) {
    it(`reads ${text === "" ? "nothing" : text}`, () => assert.deepEqual(normaliseZone(text), zones));
  }
});
