import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import { FrameQueue } from "./frame-queue.ts";
import dnstap from "./index.ts";
import { protocolNumber, TapType, TapWriter, withId } from "./tap-message.ts";
import { TapTarget } from "./target.ts";

for (const [words, expected] of [
  ["/run/tap.sock", { listens: false, full: false, path: "/run/tap.sock", isTls: false, queue: 10_000 }],
  ["unix:///run/tap.sock full", { full: true, path: "/run/tap.sock" }],
  ["tcp://127.0.0.1:6000 full 2 3", { host: "127.0.0.1", port: 6000, writeBuffer: 2 ** 21, queue: 30_000 }],
  ["listen tls://[::1]:6000 - 1", { listens: true, host: "::1", isTls: true, full: false }],
] as const) {
  test(`reads ${words}`, () => {
    const target = TapTarget.parse(words.split(" "));
    assert.ok(typeof target !== "string");
    for (const [key, value] of Object.entries(expected)) assert.equal(Reflect.get(target, key), value, key);
  });
}

for (const [text, code, message] of [
  ["dnstap", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending/],
  ["dnstap tcp://127.0.0.1", "PLUGIN_BAD_VALUE", /'tcp:\/\/127\.0\.0\.1' is not a path/],
  ["dnstap /a full 2000", "PLUGIN_BAD_VALUE", /'2000' is not a write buffer size/],
  ["dnstap /a full 1 0", "PLUGIN_BAD_VALUE", /'0' is not a queue multiple/],
  ["dnstap /a {\n tls a b\n}", "PLUGIN_BAD_VALUE", /'tls' is only for 'dnstap listen'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(dnstap, text),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}

test("writes fields in the protobuf format", () => {
  const writer = new TapWriter("id", "v");
  const length = writer.write(
    {
      type: TapType.CLIENT_QUERY,
      protocol: 1,
      client: undefined,
      server: undefined,
      queryTime: 1_500,
      responseTime: undefined,
      query: Uint8Array.of(0xab),
      response: undefined,
    },
    "x",
  );
  const hex = Buffer.from(writer.octets.subarray(0, length)).toString("hex");
  // identity, version, extra, then the message: type 5, protocol 1, 1 s, 500,000,000 ns, the query; at last the type of all.
  assert.equal(
    hex,
    `0a026964${"120176"}${"1a0178"}720e${"0805"}${"1801"}${"4001"}${"4d0065cd1d"}${"5201ab"}7801`,
  );
});

test("shows a reply with another id, and does not change the reply", () => {
  const reply = Buffer.from("123484000001", "hex");
  assert.deepEqual(Uint8Array.from(withId(reply, 0xabcd)), Uint8Array.of(0xab, 0xcd, 0x84, 0, 0, 1));
  assert.equal(reply.toString("hex"), "123484000001");
});

test("accepts no more than fits", () => {
  const queue = new FrameQueue(2);
  const taken = Array.from({ length: 5 }, () => queue.add(Uint8Array.of(7), 1));
  assert.deepEqual(taken, [true, true, false, false, false]);
  assert.equal(queue.frames, 2);
  assert.deepEqual([...queue.take()], [0, 0, 0, 1, 7, 0, 0, 0, 1, 7]);
  assert.equal(queue.length, 0);
});

for (const [title, files, message] of [
  [
    "files that are not there",
    "cert.pem key.pem",
    /^\[WARNING\] plugin\/dnstap: tls: error reading cert\.pem: no such file or directory: no reader can connect until this is fixed/m,
  ],
  [
    "a file that is no certificate",
    `${import.meta.filename} ${import.meta.filename}`,
    /are not a certificate and its key: the certificate file holds no certificate in PEM form: no reader can connect until this is fixed/,
  ],
] as const) {
  test(`warns about ${title}, and does not prevent the start`, async () => {
    const text = `dnstap listen tls://127.0.0.1:6000 {\n tls ${files}\n}`;
    const plugin = PluginTest.of(dnstap, text);
    await plugin.instances[0]?.examine?.();
    assert.match(plugin.log.lines.join("\n"), message);
  });
}

test("warns about a file in the way of the socket", async () => {
  const plugin = PluginTest.of(dnstap, `dnstap listen ${import.meta.filename}`);
  await plugin.instances[0]?.examine?.();
  assert.match(
    plugin.log.lines.join("\n"),
    /exists and is not a socket.*: no reader can connect until this is fixed/,
  );
});

for (const [text, message] of [
  ["dnstap listen tls://127.0.0.1:6000", /needs 'tls CERT KEY': no reader can connect/],
  ["dnstap listen tcp://127.0.0.1:6000 {\n tls a b\n}", /'tls' has no effect without tls:\/\//],
] as const) {
  test(`takes ${JSON.stringify(text)} with a warning`, () => {
    assert.match(PluginTest.of(dnstap, text).warnings.join("\n"), message);
  });
}

test("exchanges have the numbers of dnstap's SocketProtocol", () => {
  const names = ["udp", "tcp", "tcp-tls", "https", "quic"];
  assert.deepEqual(names.map(protocolNumber), [1, 2, 3, 4, 7]);
});
