/** `forward` over QUIC, to this server itself. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CertificateAuthority } from "../support/certificates.ts";
import { dig } from "../support/dig.ts";
import { counted } from "../support/metrics.ts";
import { Portolan } from "../support/portolan.ts";
import { skipWithoutQuic } from "../support/quic.ts";

describe("forward to quic://", { skip: skipWithoutQuic("dig") }, () => {
  const authority = new CertificateAuthority();
  let upstream: Portolan;
  let server: Portolan;
  const upstreamFile = (port: (name: string) => number, address: string): string => `
.:${port("dns")} quic://.:${port("quic")} {
    bind 127.0.0.1
    tls cert.pem key.pem
    hosts {
        ${address} www.example.org
        ${Array.from({ length: 1000 }, (_, n) => `10.0.${n >> 8}.${n & 255} large.example.org`).join("\n        ")}
        ttl 40
    }
}`;
  before(async () => {
    const { certificate, key } = authority.issue({ commonName: "x", hosts: ["dns.example.org"] });
    upstream = await Portolan.start((port) => upstreamFile(port, "192.0.2.7"), {
      files: { "cert.pem": certificate, "key.pem": key },
    });
    const to = `quic://127.0.0.1:${upstream.portOf("quic")}`;
    server = await Portolan.start(
      (port) => `
.:${port("dns")} {
    bind 127.0.0.1
    prometheus 127.0.0.1:${port("metrics")}
    forward . ${to} {
        tls ca.pem
        tls_servername dns.example.org
        max_fails 0
    }
}
other.test:${port("dns")} {
    bind 127.0.0.1
    errors
    forward . ${to} {
        tls ca.pem
        tls_servername other.example
    }
}`,
      { files: { "ca.pem": authority.certificate } },
    );
  });
  after(async () => {
    await server[Symbol.asyncDispose]();
    await upstream[Symbol.asyncDispose]();
  });

  test("brings answers, large ones as well", async () => {
    assert.deepEqual((await dig(server, "www.example.org")).answer, ["www.example.org. 40 IN A 192.0.2.7"]);
    const { answer } = await dig(server, "+tcp", "large.example.org");
    assert.equal(answer.length, 1000);
  });

  test("sends many queries over one connection", async () => {
    const misses = (): Promise<number> =>
      counted(server, "coredns_proxy_conn_cache_misses_total", /proto="quic"/);
    const before = await misses();
    const replies = await Promise.all(Array.from({ length: 30 }, () => dig(server, "www.example.org")));
    assert.ok(replies.every(({ status }) => status === "NOERROR"));
    assert.equal(await misses(), before);
  });

  test("does not take a certificate for another name", async () => {
    const start = server.log.length;
    assert.equal((await dig(server, "www.other.test")).status, "SERVFAIL");
    await server.waitForLog(/tls: failed to verify certificate: x509: hostname mismatch/, start);
  });

  test("goes on after a reload of the upstream, and after one of its own", async () => {
    await upstream.reload((port) => upstreamFile(port, "192.0.2.8"));
    assert.deepEqual((await dig(server, "www.example.org")).answer, ["www.example.org. 40 IN A 192.0.2.8"]);
    await server.reload();
    assert.equal((await dig(server, "www.example.org")).status, "NOERROR");
  });

  test("finds an upstream again that was away", async () => {
    await upstream.reload((port) => `.:${port("dns")} {\n bind 127.0.0.1\n whoami\n}`);
    assert.equal((await dig(server, "www.example.org")).status, "SERVFAIL");
    await upstream.reload((port) => upstreamFile(port, "192.0.2.9"));
    let reply = await dig(server, "www.example.org");
    // Attempts to connect have pauses between them.
    while (reply.status !== "NOERROR") reply = await dig(server, "www.example.org");
    assert.deepEqual(reply.answer, ["www.example.org. 40 IN A 192.0.2.9"]);
  });

  test("ends with its server", async () => {
    assert.equal((await server.stop()).code, 0);
    assert.equal(server.program.errors, "");
  });
});
