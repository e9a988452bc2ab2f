/** DNS over TLS, HTTPS and gRPC, with the clients that people use, and with some that mean no good. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type ClientHttp2Session, connect as connectHttp2, constants } from "node:http2";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { decodeMessage } from "../../src/dns/message.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { dig, kdig } from "../support/dig.ts";
import { framed, queryOctets } from "../support/dns-client.ts";
import { Portolan, projectRoot } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const folder = mkdtempSync(join(tmpdir(), "portolan-"));
const authority = new CertificateAuthority();
const caFile = join(folder, "ca.pem");
writeFileSync(caFile, authority.certificate);

function issue(): { readonly "cert.pem": string; readonly "key.pem": string } {
  const { certificate, key } = authority.issue({
    commonName: "example.org",
    hosts: ["example.org", "127.0.0.1"],
  });
  return { "cert.pem": certificate, "key.pem": key };
}

let server: Portolan;
before(async () => {
  // Files that do not change: each block that has those that do says for itself when the new ones are in force.
  const lasting = issue();
  server = await Portolan.start(
    (port) => `
.:${port("dns")} tls://.:${port("tls")} https://.:${port("https")} grpc://.:${port("grpc")} {
    bind 127.0.0.1
    prometheus 127.0.0.1:${port("metrics")}
    timeouts {
        read 2s
        write 2s
        idle 2s
    }
    tls cert.pem key.pem
    hosts {
        192.0.2.7 www.example.org
        ttl 40
    }
    erratic {
        drop 1
    }
}
tls://other.example:${port("tls")} {
    bind 127.0.0.1
    timeouts {
        read 2s
        write 2s
        idle 2s
    }
    whoami
}
https://.:${port("patient")} {
    bind 127.0.0.1
    tls lasting.pem lasting-key.pem
    whoami
}
https://.:${port("plain")} {
    bind 127.0.0.1
    whoami
}
`,
    { files: { ...issue(), "lasting.pem": lasting["cert.pem"], "lasting-key.pem": lasting["key.pem"] } },
  );
});
after(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const at = (name: string): { readonly address: string; readonly port: number } => ({
  address: "127.0.0.1",
  port: server.portOf(name),
});

const QUERY = queryOctets("www.example.org.");
const ANSWER = ["www.example.org. 40 IN A 192.0.2.7"];

async function tls(name: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connectTls({
    host: "127.0.0.1",
    port: server.portOf(name),
    ca: authority.certificate,
    ...options,
  });
  socket.on("error", () => undefined);
  await once(socket, "secureConnect");
  return socket;
}

async function http2(name: string): Promise<ClientHttp2Session> {
  const session = connectHttp2(`https://127.0.0.1:${server.portOf(name)}`, { ca: authority.certificate });
  await once(session, "connect");
  return session.on("error", () => undefined);
}

describe("clients of others", () => {
  for (const [client, name, words] of [
    [kdig, "tls", ["+tls"]],
    [kdig, "tls", [`+tls-ca=${caFile}`, "+tls-hostname=example.org"]],
    [dig, "tls", ["+tls"]],
    [kdig, "https", ["+https"]],
    [kdig, "https", ["+https-get"]],
    [dig, "https", ["+https"]],
    [dig, "https", ["+https-get"]],
  ] as const) {
    const skip = skipWithout(client.name);
    test(`${client.name} ${words.join(" ").replace(folder, "")} at ${name}`, { skip }, async () => {
      const reply = await client(at(name), ...words, "www.example.org");
      assert.equal(reply.status, "NOERROR");
      assert.deepEqual(reply.answer, ANSWER);
    });
  }

  test("openssl s_client at tls", { skip: skipWithout("openssl") }, async () => {
    const { code, output, errors } = await run(
      "openssl",
      [
        ...["s_client", "-connect", `127.0.0.1:${server.portOf("tls")}`, "-alpn", "dot", "-quiet"],
        ...["-CAfile", caFile, "-verify_return_error", "-verify_ip", "127.0.0.1"],
      ],
      { input: Buffer.from(framed(QUERY)).toString("latin1") },
    );
    assert.equal(code, 0, errors);
    assert.ok(output.includes("\u0003www\u0007example\u0003org"), output);
  });

  for (const [version, scheme, name] of [
    ["--http2", "https", "https"],
    ["--http1.1", "https", "https"],
    ["--http1.1", "http", "plain"],
  ] as const) {
    test(`curl ${version} at ${name}`, { skip: skipWithout("curl") }, async () => {
      const body = join(folder, "query");
      writeFileSync(body, QUERY);
      const url = `${scheme}://127.0.0.1:${server.portOf(name)}/dns-query`;
      const post = ["--data-binary", `@${body}`, "-H", "content-type: application/dns-message", url];
      const get = [`${url}?dns=${Buffer.from(QUERY).toString("base64url")}`];
      for (const words of [post, get]) {
        const { code, output } = await run("curl", [
          "-s",
          "-D-",
          "-o",
          "/dev/null",
          "--cacert",
          caFile,
          version,
          ...words,
        ]);
        assert.equal(code, 0, output);
        assert.match(output, version === "--http2" ? /^HTTP\/2 200/ : /^HTTP\/1\.1 200/);
        if (name === "https") assert.match(output, /^cache-control: max-age=40\r$/m);
      }
    });
  }
});

describe("EDNS", () => {
  for (const [name, words, isPadded] of [
    ["tls", ["+tls"], true],
    ["https", ["+https"], true],
    ["dns", ["+tcp"], false],
    ["dns", ["+notcp"], false],
  ] as const) {
    test(`padded queries ${isPadded ? "have padded replies" : "gain nothing"}: kdig ${words.join(" ")}`, {
      skip: skipWithout("kdig"),
    }, async () => {
      const { text } = await kdig(at(name), ...words, "+padding=100", "www.example.org");
      // Over UDP and TCP an observer reads the message anyway (RFC 7830 section 6).
      assert.equal(/PADDING/.test(text), isPadded, text);
      const size = Number(/Received (\d+) B/.exec(text)?.[1]);
      // A multiple of 468 octets (RFC 8467 section 4.1).
      assert.equal(size % 468 === 0, isPadded, text);
      const unpadded = await kdig(at(name), ...words, "+nopadding", "www.example.org");
      assert.doesNotMatch(unpadded.text, /PADDING/);
    });
  }

  for (const [name, words, told] of [
    ["tls", ["+tls"], true],
    ["dns", ["+tcp"], true],
    ["dns", ["+notcp"], false],
    ["https", ["+https"], false],
  ] as const) {
    test(`dig +keepalive ${words.join(" ")} is ${told ? "told the idle time" : "told nothing"}`, {
      skip: skipWithout("dig"),
    }, async () => {
      const { text } = await dig(at(name), ...words, "+keepalive", "www.example.org");
      if (told) assert.match(text, /^; TCP.KEEPALIVE: 2\.0 secs/im);
      else assert.doesNotMatch(text, /^; TCP.KEEPALIVE/im);
    });
  }
});

describe("DNS over TLS", () => {
  test("takes many queries at once, and answers what is known past what is not", async () => {
    const socket = await tls("tls", { ALPNProtocols: ["dot"] });
    assert.equal(socket.alpnProtocol, "dot");
    const queries = Array.from({ length: 200 }, (_, id) => framed(queryOctets("www.example.org.", "A", id)));
    socket.write(Buffer.concat([framed(queryOctets("dropped.example.")), ...queries]));
    const ids = new Set<number>();
    let pending = Buffer.alloc(0);
    for await (const chunk of socket) {
      pending = Buffer.concat([pending, chunk as Buffer]);
      while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
        ids.add(pending.readUInt16BE(2));
        pending = pending.subarray(2 + pending.readUInt16BE(0));
      }
      if (ids.size === 200) break;
    }
    socket.destroy();
  });

  test("wants no application protocol, and refuses one that is not its own", async () => {
    const socket = await tls("tls");
    assert.equal(socket.alpnProtocol, false);
    socket.destroy();
    await assert.rejects(tls("tls", { ALPNProtocols: ["h2"] }), /no application protocol/);
    await assert.rejects(tls("tls", { maxVersion: "TLSv1.1", minVersion: "TLSv1" }));
    assert.equal((await kdig(at("tls"), "+tls", "www.example.org")).status, "NOERROR");
  });

  test("closes connections that are silent in the handshake, behind it, and between queries", async () => {
    const raw = connect(server.portOf("tls"), "127.0.0.1");
    await once(raw.resume(), "close");
    const silent = await tls("tls");
    await once(silent.resume(), "close");
    const idle = await tls("tls");
    idle.write(framed(QUERY));
    await once(idle, "data");
    await once(idle.resume(), "close");
  });

  test("a block without a certificate of its own shares that of its listener", async () => {
    assert.equal((await kdig(at("tls"), "+tls", "other.example")).status, "NOERROR");
  });

  test("a session is resumed", async () => {
    const first = await tls("tls");
    first.write(framed(QUERY));
    const [[session]] = await Promise.all([once(first, "session"), once(first, "data")]);
    first.destroy();
    const second = await tls("tls", { session: session as Buffer });
    assert.equal(second.isSessionReused(), true);
    second.destroy();
  });
});

describe("DNS over HTTPS", () => {
  test("many streams of one connection are answered, each for itself", async () => {
    const session = await http2("https");
    const replies = await Promise.all(
      Array.from({ length: 100 }, async (_, id) => {
        const octets = queryOctets("www.example.org.", "A", id);
        const reply = await post(session, "/dns-query", octets);
        return decodeMessage(reply.body).id;
      }),
    );
    assert.deepEqual(
      replies,
      Array.from({ length: 100 }, (_, id) => id),
    );
    session.destroy();
  });

  test("a request that does not come to its end is given up, and so is a silent connection", async () => {
    const session = await http2("https");
    const stream = session.request({ ":method": "POST", ":path": "/dns-query" });
    stream.on("error", () => undefined);
    stream.write("x");
    await once(stream, "close");
    assert.notEqual(stream.rstCode, constants.NGHTTP2_NO_ERROR);
    await once(session, "close");
  });

  test("a storm of resets ends the connection that it comes from, and no other", async () => {
    // Where a connection is closed after two idle seconds, a slow machine would have the other one closed.
    const other = await http2("patient");
    const session = await http2("patient");
    const closed = new Promise((resolve) => session.once("close", resolve));
    const deadline = performance.now() + 60_000;
    while (!session.destroyed && !session.closed && performance.now() < deadline) {
      const streams = Array.from({ length: 50 }, () => {
        const stream = session.request({ ":method": "POST", ":path": "/dns-query" });
        return stream.on("error", () => undefined);
      });
      await new Promise((resolve) => setImmediate(resolve));
      for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL);
      assert.equal((await post(other, "/dns-query", QUERY)).status, 200);
    }
    assert.ok(session.destroyed || session.closed);
    await closed;
    assert.equal((await post(other, "/dns-query", QUERY)).status, 200);
    other.destroy();
  });

  test("HTTP/1.1 takes whole URLs, as for a proxy", async () => {
    for (const origin of ["https://dns.example", "HTTP://dns.example:8443"]) {
      const socket = await tls("https", { ALPNProtocols: ["http/1.1"] });
      const query = Buffer.from(QUERY).toString("base64url");
      socket.write(`GET ${origin}/dns-query?dns=${query} HTTP/1.1\r\nhost: x\r\n\r\n`);
      assert.match(String(await once(socket, "data")), /^HTTP\/1\.1 200 /);
      socket.destroy();
    }
  });

  test("headers beyond measure and rubbish cost their connection alone", async () => {
    const socket = await tls("https", { ALPNProtocols: ["http/1.1"] });
    socket.write(`GET /dns-query HTTP/1.1\r\nhost: x\r\nx: ${"y".repeat(64 * 1024)}\r\n\r\n`);
    assert.match(String(await once(socket, "data")), /^HTTP\/1\.1 431/);
    const rubbish = await tls("https", { ALPNProtocols: ["h2"] });
    rubbish.write(Buffer.alloc(4096, 0xee));
    await once(rubbish.resume(), "close");
    assert.equal((await kdig(at("https"), "+https", "www.example.org")).status, "NOERROR");
  });

  test("responses are counted by status", async () => {
    const session = await http2("https");
    assert.equal((await post(session, "/elsewhere", QUERY)).status, 404);
    session.destroy();
    const { body } = await server.page("metrics", "/metrics");
    assert.match(
      body,
      /^coredns_dns_https_responses_total\{server="https:\/\/127\.0\.0\.1:\d+",status="200"\} [1-9]/m,
    );
    assert.match(
      body,
      /^coredns_dns_https_responses_total\{server="https:\/\/127\.0\.0\.1:\d+",status="404"\} 1$/m,
    );
  });
});

test("nothing of TLS and HTTP/2 is loaded for listeners without encryption", async () => {
  const script = `
    const { createServer } = await import("./src/index.ts");
    const { MemoryLog } = await import("./src/lib/logging/log.ts");
    const corefile = ".:0 {\\n bind 127.0.0.1\\n prometheus 127.0.0.1:0\\n cache\\n forward . 127.0.0.1:9\\n}";
    const server = await createServer({ corefile, file: "Corefile", log: new MemoryLog() });
    await server.start();
    console.log(process.moduleLoadList.filter((name) => /http2|_tls|NativeModule (tls|https|quic)/.test(name)).join());
    await server.stop();`;
  const { output, errors } = await run(process.execPath, ["--input-type=module", "--eval", script], {
    cwd: projectRoot,
  });
  assert.equal(errors, "");
  assert.equal(output.trim(), "");
});

test("a certificate that changes is shown to new connections, and those that are open go on", async () => {
  const open = await tls("tls");
  const before = open.getPeerX509Certificate()?.serialNumber;
  for (const [name, text] of Object.entries(issue())) writeFileSync(join(server.folder, name), text);
  await server.waitForLog(/certificate .*cert\.pem is in use for new connections/);
  const fresh = await tls("tls");
  assert.notEqual(fresh.getPeerX509Certificate()?.serialNumber, before);
  fresh.destroy();
  open.destroy();
});

test("a reload keeps connections", async () => {
  const socket = await tls("tls");
  const session = await http2("https");
  assert.equal((await post(session, "/dns-query", QUERY)).status, 200);
  const text = readFileSync(join(server.folder, "Corefile"), "utf8");
  const log = await server.reload(() => text.replace("ttl 40", "ttl 41"));
  assert.match(log, /Reloading complete/);
  socket.write(framed(QUERY));
  const [data] = (await once(socket, "data")) as [Buffer];
  assert.equal(decodeMessage(data.subarray(2)).answer[0]?.ttl, 41);
  assert.equal(decodeMessage((await post(session, "/dns-query", QUERY)).body).answer[0]?.ttl, 41);
  socket.destroy();
  session.destroy();
});

async function post(
  session: ClientHttp2Session,
  path: string,
  octets: Uint8Array,
): Promise<{ readonly status: number; readonly body: Uint8Array }> {
  const stream = session.request({ ":method": "POST", ":path": path });
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  // An iterator fails where the answer is here before Node knows that the query has left.
  const ended = once(stream, "end");
  stream.end(octets);
  const [headers] = (await once(stream, "response")) as [{ readonly ":status": number }];
  await ended;
  return { status: headers[":status"], body: Buffer.concat(chunks) };
}
