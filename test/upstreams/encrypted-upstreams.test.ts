/** Forwarding to unbound over TLS and HTTPS, and what a server without encrypted upstreams does not load. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { CertificateAuthority } from "../support/certificates.ts";
import { dig, kdig } from "../support/dig.ts";
import { freePort } from "../support/free-ports.ts";
import { counted } from "../support/metrics.ts";
import { Peer } from "../support/peers.ts";
import { Portolan, projectRoot } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const authority = new CertificateAuthority();
const TEXTS = Array.from({ length: 40 }, (_, n) => `${n}-${"x".repeat(100)}`);

let folder = "";
before(() => {
  folder = mkdtempSync(join(tmpdir(), "portolan-encrypted-"));
  const { certificate, key } = authority.issue({ commonName: "dns", hosts: ["dns.example"] });
  writeFileSync(join(folder, "cert.pem"), certificate);
  writeFileSync(join(folder, "key.pem"), key);
  writeFileSync(join(folder, "ca.pem"), authority.certificate);
});
after(() => rmSync(folder, { recursive: true, force: true }));

for (const scheme of ["tls", "https"] as const) {
  describe(`forwarding to unbound over ${scheme}`, {
    skip: skipWithout("dig", "kdig", "unbound"),
  }, () => {
    let upstream: Peer;
    let server: Portolan;
    before(async () => {
      const port = await freePort();
      upstream = await Peer.unbound(
        ["www.example. 300 A 192.0.2.1", ...TEXTS.map((text) => `large.example. 300 TXT "${text}"`)],
        [
          "local-zone: example. static",
          `interface: 127.0.0.1@${port}`,
          `${scheme}-port: ${port}`,
          `tls-service-key: "${join(folder, "key.pem")}"`,
          `tls-service-pem: "${join(folder, "cert.pem")}"`,
          "pad-responses: yes",
        ],
      );
      server = await Portolan.start(
        (portOf) => `.:${portOf("dns")} {
          bind 127.0.0.1
          errors
          prometheus 127.0.0.1:${portOf("metrics")}
          forward . ${scheme}://127.0.0.1:${port} {
            tls ${join(folder, "ca.pem")}
            tls_servername dns.example
          }
        }
        .:${portOf("stranger")} {
          bind 127.0.0.1
          errors
          forward . ${scheme}://127.0.0.1:${port} {
            tls ${join(folder, "ca.pem")}
            tls_servername other.example
            max_fails 0
          }
        }
        .:${portOf("named")} {
          bind 127.0.0.1
          errors
          forward . ${scheme}://dns.example:${port} {
            tls ${join(folder, "ca.pem")}
            bootstrap dns.example 127.0.0.1
          }
        }`,
      );
    });
    after(async () => {
      await server?.[Symbol.asyncDispose]();
      await upstream?.[Symbol.asyncDispose]();
    });

    test("answers come to every client, without the padding between servers", async () => {
      for (const options of [[], ["+tcp"], ["+noedns"], ["+dnssec", "+bufsize=4096"]]) {
        for (const client of [dig, kdig]) {
          const reply = await client(server, "www.example", "A", ...options);
          assert.equal(reply.status, "NOERROR");
          assert.deepEqual(reply.answer, ["www.example. 300 IN A 192.0.2.1"]);
          assert.doesNotMatch(JSON.stringify(reply), /PADDING|PAD:/i);
        }
      }
      assert.equal((await dig(server, "nosuch.example", "A")).status, "NXDOMAIN");
      const large = await dig(server, "large.example", "TXT", "+tcp");
      assert.equal(large.answer.length, TEXTS.length);
    });

    test("few connections carry all queries", async () => {
      const protocol = scheme === "tls" ? "tcp-tls" : "https";
      const label = new RegExp(`proto="${protocol}"`);
      await Promise.all(Array.from({ length: 30 }, () => dig(server, "www.example", "A")));
      assert.ok((await counted(server, "coredns_proxy_conn_cache_misses_total", label)) <= 24);
      assert.ok((await counted(server, "coredns_proxy_conn_cache_hits_total", label)) >= 10);
    });

    test("an upstream may be named, with its address at hand", async () => {
      const named = { address: server.address, port: server.portOf("named") };
      assert.deepEqual((await dig(named, "www.example", "A")).answer, ["www.example. 300 IN A 192.0.2.1"]);
    });

    test("an upstream that proves another name is not asked, and the log says why", async () => {
      const stranger = { address: server.address, port: server.portOf("stranger") };
      assert.equal((await dig(stranger, "www.example", "A")).status, "SERVFAIL");
      await server.program.waitForOutput(
        /plugin\/errors: 2 www\.example\. A: .*tls: failed to verify certificate: x509: certificate is valid for dns\.example, not other\.example/,
      );
    });
  });
}

test("nothing of TLS and HTTP/2 is loaded for upstreams without encryption", async () => {
  const script = `
    const { PluginTest } = await import("./src/plugin/testing.ts");
    const { default: forward } = await import("./src/plugins/forward/index.ts");
    const test = PluginTest.of(forward, "forward . 127.0.0.1");
    await test.start();
    console.log(process.moduleLoadList.filter((name) => /http2|encrypted/.test(name)).join());
    await test.stop();`;
  const { output, errors } = await run(process.execPath, ["--input-type=module", "--eval", script], {
    cwd: projectRoot,
  });
  assert.equal(errors, "");
  assert.equal(output.trim(), "");
});
