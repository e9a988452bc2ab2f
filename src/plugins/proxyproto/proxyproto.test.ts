import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { GreetingError } from "../../plugin/contract/greeting.ts";
import { FixedEndpoint } from "../../plugin/message/endpoint.ts";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import proxyproto from "./index.ts";
import { ProxyGreeting } from "./proxy-greeting.ts";
import { ABSENT, INCOMPLETE, readHeader } from "./proxy-header.ts";

const SIGNATURE = "0d0a0d0a000d0a515549540a";
const UDP4 = `${SIGNATURE}2112000cc0000207c633640704570035`;
const UDP6 = `${SIGNATURE}2122002420010db800000000000000000000000720010db800000000000000000000000804580035`;
const TCP4 = `${SIGNATURE}2111000cc0000207c633640704570035`;
const TCP6 = `${SIGNATURE}2121002420010db800000000000000000000000720010db800000000000000000000000804580035`;
const WITH_EXTENSION = `${SIGNATURE}21120012c0000207c633640704570035040003616263`;
const LOCAL = `${SIGNATURE}20000000`;
const V1 = hexOf("PROXY TCP4 192.0.2.9 198.51.100.9 2222 53\r\n");
const V1_6 = hexOf("PROXY TCP6 2001:db8::9 2001:db8::a 2223 53\r\n");
const V1_UNKNOWN = hexOf("PROXY UNKNOWN\r\n");
/** Octets of a query after the header. */
const QUERY = "12340100000100000000000001610474657374000001";

function hexOf(text: string): string {
  return Buffer.from(text).toString("hex");
}

function endpoint(address: string, port: number): FixedEndpoint {
  const octets = parseIpAddress(address);
  assert.ok(octets);
  return new FixedEndpoint(address, port, octets);
}

const PEER = endpoint("127.0.0.1", 4000);

function greetingOf(block: string): {
  readonly greeting: ProxyGreeting;
  readonly running: PluginTest<unknown>;
} {
  const running = PluginTest.of(proxyproto, `proxyproto {\n${block}\n}`);
  const { greeting } = running.settings;
  assert.ok(greeting instanceof ProxyGreeting);
  return { greeting, running };
}

/** "address port" of the client, with the length of the header; the refusal; or "more". */
function stream(block: string, hex: string, peer = PEER): string {
  const { greeting } = greetingOf(block);
  return told(() => greeting.readStream(Buffer.from(hex + QUERY, "hex"), peer), hex, peer);
}

function datagram(block: string, hex: string, peer = PEER): string {
  const { greeting } = greetingOf(block);
  return told(() => greeting.readDatagram(Buffer.from(hex + QUERY, "hex"), peer), hex, peer);
}

function told(read: () => ReturnType<ProxyGreeting["readStream"]>, hex: string, peer: FixedEndpoint): string {
  try {
    const reading = read();
    if (reading === undefined) return "more";
    const isWhole = reading.length === hex.length / 2;
    const client = reading.client ?? peer;
    return `${client.address} ${client.port}${isWhole ? "" : ` behind ${reading.length} octets`}`;
  } catch (error) {
    if (error instanceof GreetingError) return "refused";
    throw error;
  }
}

const REAL = "127.0.0.1 4000";

describe("streams", () => {
  for (const [title, hex, use, ignore, reject] of [
    ["version 2, TCP over IPv4", TCP4, "192.0.2.7 1111", REAL, "refused"],
    ["version 2, TCP over IPv6", TCP6, "2001:db8::7 1112", REAL, "refused"],
    ["version 2, UDP", UDP4, "192.0.2.7 1111", REAL, "refused"],
    ["version 2 with an extension", WITH_EXTENSION, "192.0.2.7 1111", REAL, "refused"],
    ["version 2, LOCAL", LOCAL, REAL, REAL, "refused"],
    ["version 2, no family", `${SIGNATURE}21000000`, REAL, REAL, "refused"],
    ["version 1, TCP over IPv4", V1, "192.0.2.9 2222", REAL, "refused"],
    ["version 1, TCP over IPv6", V1_6, "2001:db8::9 2223", REAL, "refused"],
    ["version 1, UNKNOWN", V1_UNKNOWN, REAL, REAL, "refused"],
    ["no header", "", REAL, REAL, REAL],
  ] as const) {
    test(title, () => {
      assert.equal(stream("", hex), use);
      assert.equal(stream("default IGNORE", hex), ignore);
      assert.equal(stream("default reject", hex), reject);
    });
  }

  test("skip does not look for a header", () => {
    assert.equal(stream("default skip", TCP4), `${REAL} behind 0 octets`);
  });

  for (const text of [
    "PROXY TCP4 bad 198.51.100.9 1 53\r\n",
    "PROXY TCP4 192.0.2.1 198.51.100.9 99999 53\r\n",
    "PROXY TCP4 192.0.2.1 198.51.100.9 1\r\n",
    "PROXY TCP4 192.0.2.1 198.51.100.9 1 53 7\r\n",
    "PROXY TCP9 192.0.2.1 198.51.100.9 1 53\r\n",
    "PROXY TCP4 2001:db8::1 2001:db8::2 1 53\r\n",
    `PROXY TCP4 ${" ".repeat(120)}`,
  ]) {
    test(`${JSON.stringify(text.slice(0, 60))} is refused`, () =>
      assert.equal(stream("", hexOf(text)), "refused"));
  }

  for (const hex of [`${SIGNATURE}31110000`, `${SIGNATURE}22110000`, `${SIGNATURE}21110004c0000201`]) {
    test(`${hex.slice(24)} is refused`, () => assert.equal(stream("", hex), "refused"));
  }

  test("a header that arrives in pieces is waited for, and nothing else", () => {
    const { greeting } = greetingOf("");
    for (const hex of [TCP6, V1, V1_UNKNOWN, WITH_EXTENSION]) {
      const octets = Buffer.from(hex, "hex");
      for (let length = 1; length < octets.length; length++)
        assert.equal(greeting.readStream(octets.subarray(0, length), PEER), undefined);
      assert.equal(greeting.readStream(octets, PEER)?.length, octets.length);
    }
    assert.deepEqual(greeting.readStream(Buffer.from("0d0b", "hex"), PEER), { length: 0 });
    assert.deepEqual(greeting.readStream(Buffer.from("0020", "hex"), PEER), { length: 0 });
  });

  test("the server's address is that of the header", () => {
    const reading = greetingOf("").greeting.readStream(Buffer.from(V1, "hex"), PEER);
    assert.deepEqual([reading?.local?.address, reading?.local?.port], ["198.51.100.9", 53]);
  });
});

describe("datagrams", () => {
  for (const [title, hex, use, ignore, reject] of [
    ["IPv4", UDP4, "192.0.2.7 1111", REAL, "refused"],
    ["IPv6", UDP6, "2001:db8::7 1112", REAL, "refused"],
    ["with an extension", WITH_EXTENSION, "192.0.2.7 1111", REAL, "refused"],
    ["for TCP", TCP4, "refused", "refused", "refused"],
    ["LOCAL", LOCAL, REAL, REAL, "refused"],
    ["LOCAL with addresses", UDP4.replace(/^(.{24})21/, "$120"), REAL, REAL, "refused"],
    ["no family", `${SIGNATURE}21000000`, "refused", "refused", "refused"],
    ["version 1", V1, "refused", "refused", "refused"],
    ["no room for addresses", `${SIGNATURE}21120004c0000201`, "refused", "refused", "refused"],
    ["a signature alone", SIGNATURE, "refused", "refused", "refused"],
    ["cut off", `${SIGNATURE}211200ff`, "refused", "refused", "refused"],
    ["none", "", REAL, REAL, REAL],
  ] as const) {
    test(title, () => {
      assert.equal(datagram("", hex), use);
      assert.equal(datagram("default ignore", hex), ignore);
      assert.equal(datagram("default reject", hex), reject);
    });
  }

  test("the family of a client is its own", () => {
    const { greeting } = greetingOf("");
    assert.equal(greeting.readDatagram(Buffer.from(UDP4, "hex"), endpoint("::1", 4000)).client?.family, 4);
    assert.equal(greeting.readDatagram(Buffer.from(UDP6, "hex"), PEER).client?.family, 6);
  });
});

describe("allow", () => {
  for (const [block, peer, expected] of [
    ["allow 127.0.0.0/8", "127.0.0.1", "192.0.2.7 1111"],
    ["allow 127.0.0.0/8", "10.0.0.1", "10.0.0.1 4000"],
    ["allow 127.0.0.0/8\n default reject", "10.0.0.1", "refused"],
    ["allow 127.0.0.0/8\n default use", "10.0.0.1", "192.0.2.7 1111"],
    ["allow 10.0.0.0/9\n allow 2001:db8::/32 ::1/128", "2001:db8::7", "192.0.2.7 1111"],
    ["allow 10.0.0.0/9", "::ffff:10.0.0.1", "192.0.2.7 1111"],
    ["allow ::/0", "10.0.0.1", "10.0.0.1 4000"],
    ["allow", "10.0.0.1", "192.0.2.7 1111"],
  ] as const) {
    test(`${block.replaceAll("\n", ";")}: ${peer}`, () => {
      assert.equal(datagram(block, UDP4, endpoint(peer, 4000)), expected);
    });
  }
});

describe("sessions", () => {
  test("hold for a while after the last datagram, each for its own port", () => {
    const { greeting, running } = greetingOf("udp_session_tracking 1s");
    const ask = (hex: string, port = 1) =>
      greeting.readDatagram(Buffer.from(hex + QUERY, "hex"), endpoint("127.0.0.1", port)).client?.address;
    assert.equal(ask(UDP4), "192.0.2.7");
    for (let round = 0; round < 3; round++) {
      running.clock.advance(700);
      assert.equal(ask(""), "192.0.2.7");
    }
    assert.equal(ask("", 2), undefined);
    running.clock.advance(1_000);
    assert.equal(ask(""), undefined);
  });

  test("make room for new ones", () => {
    const { greeting } = greetingOf("udp_session_tracking 10s 2");
    const ask = (hex: string, port: number) =>
      greeting.readDatagram(Buffer.from(hex + QUERY, "hex"), endpoint("127.0.0.1", port)).client?.address;
    ask(UDP4, 1);
    ask(UDP6, 2);
    assert.equal(ask("", 1), "192.0.2.7");
    ask(UDP4, 3);
    assert.deepEqual([ask("", 1), ask("", 2), ask("", 3)], ["192.0.2.7", undefined, "192.0.2.7"]);
  });

  test("are not kept for untrusted senders, or with a lifetime of 0", () => {
    for (const block of ["default ignore\n udp_session_tracking 5s", "udp_session_tracking -5s"]) {
      const { greeting } = greetingOf(block);
      greeting.readDatagram(Buffer.from(UDP4, "hex"), PEER);
      assert.equal(greeting.readDatagram(Buffer.from(QUERY, "hex"), PEER).client, undefined);
    }
  });
});

test("refusals are logged at intervals, with their number", () => {
  const { greeting, running } = greetingOf("");
  const refuse = () =>
    assert.throws(() => greeting.readDatagram(Buffer.from(TCP4, "hex"), PEER), GreetingError);
  for (let round = 0; round < 50; round++) refuse();
  running.clock.advance(10_000);
  refuse();
  const lines = running.log.lines.filter((line) => line.includes("dropping invalid Proxy Protocol packet"));
  assert.equal(lines.length, 2);
  assert.match(lines[0] ?? "", /from 127\.0\.0\.1:4000: a header that is not about UDP over IP/);
  assert.match(lines[1] ?? "", /\(and 49 more before\)/);
});

test("any octets give a header, no header, or a refusal", () => {
  const start = fc.constantFrom(
    "",
    SIGNATURE,
    `${SIGNATURE}21`,
    `${SIGNATURE}2112`,
    hexOf("PROXY "),
    hexOf("PROXY TCP4 "),
  );
  fc.assert(
    fc.property(start, fc.uint8Array({ maxLength: 200 }), (hex, rest) => {
      const octets = Buffer.concat([Buffer.from(hex, "hex"), rest]);
      try {
        const header = readHeader(octets);
        if (header !== ABSENT && header !== INCOMPLETE) assert.ok(header.length <= octets.length);
      } catch (error) {
        assert.ok(error instanceof GreetingError);
      }
    }),
    { numRuns: 2_000 },
  );
});

test("with tlv_metadata, clients have the bytes after the addresses, also in the datagrams of a session", () => {
  const header = WITH_EXTENSION.replace("2111", "2112");
  const extensionsOf = (block: string, hex: string): string | undefined => {
    const { greeting } = greetingOf(`${block}\nudp_session_tracking 5s`);
    greeting.readDatagram(Buffer.from(hex, "hex"), PEER);
    const { client } = greeting.readDatagram(Buffer.from(QUERY, "hex"), PEER);
    return client?.proxyExtensions && Buffer.from(client.proxyExtensions).toString("hex");
  };
  assert.equal(extensionsOf("tlv_metadata", header), "040003616263");
  assert.equal(extensionsOf("tlv_metadata\ntlv_metadata", header), "040003616263");
  assert.equal(extensionsOf("tlv_metadata", UDP4), undefined);
  assert.equal(extensionsOf("tlv_metadata\ndefault ignore", header), undefined);
  assert.equal(extensionsOf("", header), undefined);
});

for (const [text, message] of [
  ["proxyproto {\n tlv_metadata on\n}", /Wrong argument count or unexpected line ending after 'on'/],
  ["proxyproto x", /after 'x'/],
  ["proxyproto {\n bogus\n}", /unknown option 'bogus'/],
  ["proxyproto {\n allow 1.2.3.4\n}", /1\.2\.3\.4: invalid CIDR address: 1\.2\.3\.4/],
  ["proxyproto {\n allow foo/8\n}", /foo\/8: invalid CIDR address: foo\/8/],
  ["proxyproto {\n default\n}", /after 'default'/],
  ["proxyproto {\n default foo\n}", /after 'foo'/],
  ["proxyproto {\n default REQUIRE\n}", /after 'REQUIRE'/],
  ["proxyproto {\n udp_session_tracking\n}", /after 'udp_session_tracking'/],
  ["proxyproto {\n udp_session_tracking 5\n}", /invalid duration "5": time: missing unit in duration "5"/],
  ["proxyproto {\n udp_session_tracking x\n}", /invalid duration "x": time: invalid duration "x"/],
  ["proxyproto {\n udp_session_tracking 5s 0\n}", /invalid max sessions "0": must be a positive integer/],
  ["proxyproto {\n udp_session_tracking 5s -1\n}", /invalid max sessions "-1": must be a positive integer/],
  ["proxyproto {\n udp_session_tracking 5s 1 2\n}", /after '2'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(proxyproto, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}
