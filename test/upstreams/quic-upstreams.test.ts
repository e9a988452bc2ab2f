/** `forward` over QUIC, to this server itself. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { decodeMessage, Rcode } from "../../src/dns/index.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { dig } from "../support/dig.ts";
import { exchangeUdp, queryOctets, TcpClient } from "../support/dns-client.ts";
import { counted } from "../support/metrics.ts";
import { Portolan } from "../support/portolan.ts";
import { skipWithoutQuic } from "../support/quic.ts";
import { untilTrue } from "../support/until-true.ts";

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
    template ANY ANY logged.test {
        rcode NXDOMAIN
    }
}
tls://.:${port("quic")} {
    bind 127.0.0.1
    tls cert.pem key.pem
    hosts {
        ${address} www.example.org
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
logged.test:${port("dns")} {
    bind 127.0.0.1
    errors
    forward . ${to} {
        tls ca.pem
        tls_servername dns.example.org
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

  test("answers NOTIMP to queries for zone transfers, sends nothing upstream, and goes on", async () => {
    const requests = (): Promise<number> =>
      counted(server, "coredns_proxy_request_duration_seconds_count", /./);
    const before = await requests();
    await using tcp = await TcpClient.connect(server);
    for (const type of ["AXFR", "IXFR"]) {
      const octets = queryOctets("www.logged.test", type);
      const viaTcp = (): Promise<Uint8Array | undefined> => {
        tcp.send(octets);
        return tcp.receive();
      };
      for (const exchange of [() => exchangeUdp(server, octets), viaTcp]) {
        const start = server.log.length;
        const reply = await exchange();
        assert.equal(reply && decodeMessage(reply).rcode, Rcode.NOTIMP);
        const said = `^\\[ERROR\\] plugin/errors: 4 www\\.logged\\.test\\. ${type}: proxy: unsupported request: zone transfers`;
        await server.waitForLog(new RegExp(said, "m"), start);
      }
    }
    assert.equal(await requests(), before);
    // However often: the upstream still works.
    assert.equal((await dig(server, "www.logged.test")).status, "NXDOMAIN");
  });

  test("is another upstream than tls:// at the same address and port", async () => {
    await using both = await Portolan.start(
      (port) =>
        `.:${port("dns")} {\n bind 127.0.0.1\n prometheus 127.0.0.1:${port("metrics")}\n forward . tls://127.0.0.1:${upstream.portOf("quic")} quic://127.0.0.1:${upstream.portOf("quic")} {\n  tls ca.pem\n  tls_servername dns.example.org\n  policy round_robin\n  max_fails 0\n }\n}`,
      { files: { "ca.pem": authority.certificate } },
    );
    for (let each = 0; each < 4; each++) assert.equal((await dig(both, "www.example.org")).status, "NOERROR");
    const asked = await counted(both, "coredns_proxy_request_duration_seconds_count", /./);
    assert.equal(asked, 4);
    assert.ok(!both.log.includes("counts once"));
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
    // Attempts to connect have pauses between them.
    const isBack = async () => (await dig(server, "www.example.org")).status === "NOERROR";
    await untilTrue(isBack, { what: "the upstream is back", log: () => server.log });
    assert.deepEqual((await dig(server, "www.example.org")).answer, ["www.example.org. 40 IN A 192.0.2.9"]);
  });

  test("ends with its server", async () => {
    assert.equal((await server.stop()).code, 0);
    assert.equal(server.program.errors, "");
  });
});
