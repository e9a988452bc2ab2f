/** `dnstap` sends to fstrm_capture over each kind of socket, and dnstap-ldns shows what it took. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import { ScriptedServer } from "../../src/upstream/fixtures/scripted-server.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { ask, queryOctets, UdpClient } from "../support/dns-client.ts";
import { Capture, skipWithoutCapture as skip } from "../support/dnstap-capture.ts";
import { Portolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";

async function listening(stack: AsyncDisposableStack, server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stack.defer(() => void server.close());
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function answering(stack: AsyncDisposableStack): Promise<ScriptedServer> {
  const upstream = await ScriptedServer.start((asked) =>
    asked.answer({ answer: [`${asked.name} 300 IN A 192.0.2.5`] }),
  );
  stack.defer(() => upstream.stop());
  return upstream;
}

for (const kind of ["unix", "tcp", "tls"] as const) {
  test(`a collector is sent queries, replies and exchanges over ${kind}`, { skip }, async () => {
    await using stack = new AsyncDisposableStack();
    const capture = stack.use(await Capture.start());
    const upstream = await answering(stack);
    const { certificate: cert, key } = new CertificateAuthority().issue({
      commonName: "tap",
      hosts: ["127.0.0.1"],
    });
    const port =
      kind === "unix"
        ? 0
        : await listening(
            stack,
            kind === "tcp" ? createServer(capture.bridge) : createTlsServer({ cert, key }, capture.bridge),
          );
    const target = kind === "unix" ? capture.path : `${kind}://127.0.0.1:${port}`;
    const server = stack.use(
      await Portolan.start(
        (portOf) => `.:${portOf("dns")} {
    bind 127.0.0.1
    bufsize 512
    dnstap ${target} full {
        identity lighthouse
        version 7.7
        extra "{name} {type}"
        ${kind === "tls" ? "skipverify" : ""}
    }
    forward . ${upstream.address.text}
}
`,
      ),
    );
    // More than bufsize lets pass: the query is changed before dnstap sees it.
    await using client = await UdpClient.connect(server);
    client.send(withEdns(queryOctets("edns.example.org."), 4096));
    assert.ok((await client.receive(10_000)) !== undefined);
    await ask(server, "tapped.example.org.");
    // It writes when it has got some thousand octets.
    await capture.holds("tapped.example.org. A", () => ask(server, "more.example.org."));
    await server.stop();
    const lines = await capture.lines();
    for (const name of ["edns", "tapped"])
      for (const [type, from] of [
        ["CQ", "127\\.0\\.0\\.1"],
        ["CR", "127\\.0\\.0\\.1"],
        ["FQ", "\\S+"],
        ["FR", "\\S+"],
      ])
        assert.match(
          lines.join("\n"),
          new RegExp(`^${type} ${from} UDP \\d+b "${name}\\.example\\.org\\." IN A`, "m"),
        );
    const text = capture.text;
    for (const part of ["lighthouse", "7.7", "tapped.example.org. A"]) assert.ok(text.includes(part), part);
  });
}

test("a query that an upstream does not answer is told, and a reply has the id of its query", {
  skip,
}, async () => {
  await using stack = new AsyncDisposableStack();
  const capture = stack.use(await Capture.start());
  const upstream = await ScriptedServer.start((asked) => {
    if (!asked.name.startsWith("silent.")) asked.answer({ answer: [`${asked.name} 300 IN A 192.0.2.5`] });
  });
  stack.defer(() => upstream.stop());
  const server = stack.use(
    await Portolan.start(
      (portOf) => `.:${portOf("dns")} {
    bind 127.0.0.1
    dnstap ${capture.path} full
    forward . ${upstream.address.text} {
        max_connect_attempts 1
    }
}
`,
    ),
  );
  await ask(server, "silent.example.org.");
  await capture.holds("more", () => ask(server, "more.example.org."));
  await server.stop();
  const lines = await capture.lines();
  const silent = lines.filter((line) => line.includes('"silent.example.org."'));
  assert.deepEqual(new Set(silent.map((line) => line.slice(0, 2))), new Set(["CQ", "FQ", "CR"]));
  const { output } = await run("dnstap-ldns", ["-y", "-r", capture.file]);
  const idOf = (type: string): string | undefined =>
    output
      .split("---\n")
      .find((message) => message.includes(`type: ${type}\n`) && message.includes(";more.example.org."))
      ?.match(/id: (\d+)/)?.[1];
  assert.ok(idOf("CLIENT_QUERY") !== undefined);
  assert.equal(idOf("FORWARDER_QUERY"), idOf("CLIENT_QUERY"));
  assert.equal(idOf("FORWARDER_RESPONSE"), idOf("CLIENT_QUERY"));
});

test("a certificate of an unknown authority is refused, and the log says so", { skip }, async () => {
  await using stack = new AsyncDisposableStack();
  const { certificate: cert, key } = new CertificateAuthority().issue({
    commonName: "tap",
    hosts: ["127.0.0.1"],
  });
  const port = await listening(
    stack,
    createTlsServer({ cert, key }, (socket) => socket.destroy()),
  );
  await using server = await Portolan.start(
    (portOf) => `.:${portOf("dns")} {
    bind 127.0.0.1
    dnstap tls://127.0.0.1:${port} full
    whoami
}
`,
  );
  await server.waitForLog(/plugin\/dnstap: No connection to dnstap endpoint tls:\S+: .*certificate/);
});

for (const [scheme, fault] of [
  ["tls", /dnstap endpoint tls:\S+: tls: first record does not look like a TLS handshake\n/],
  ["tcp", /dnstap endpoint tcp:\S+: it does not speak Frame Streams\n/],
] as const)
  test(`what is no collector is told of in words by ${scheme}, and answers go on`, async () => {
    await using stack = new AsyncDisposableStack();
    // A server of something else, such as a web server.
    const port = await listening(
      stack,
      createServer((socket) => socket.on("error", () => undefined).end("HTTP/1.1 400 Bad Request\r\n\r\n")),
    );
    await using server = await Portolan.start(
      (portOf) => `.:${portOf("dns")} {
    bind 127.0.0.1
    dnstap ${scheme}://127.0.0.1:${port} full
    whoami
}
`,
    );
    await server.waitForLog(new RegExp(`plugin/dnstap: No connection to ${fault.source}`));
    assert.equal((await ask(server, "still.example.")).rcode, 0);
  });

/** The query with an OPT record that advertises this size. */
function withEdns(query: Uint8Array, size: number): Uint8Array {
  const opt = Buffer.from([0, 0, 41, size >> 8, size & 255, 0, 0, 0, 0, 0, 0]);
  const message = Buffer.concat([query, opt]);
  message.writeUInt16BE(1, 10);
  return message;
}
