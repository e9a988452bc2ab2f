/** Our HTTP/2, as strict as h2spec can be. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CertificateAuthority } from "../support/certificates.ts";
import { queryOctets } from "../support/dns-client.ts";
import { provideH2spec, runH2spec } from "../support/h2spec.ts";
import { Portolan } from "../support/portolan.ts";

const h2spec = await provideH2spec();
const skip = "missing" in h2spec ? h2spec.missing : false;
const ALL = "146 tests, 146 passed, 0 skipped, 0 failed";

const QUESTION = Buffer.from(queryOctets("www.example.org.")).toString("base64url");
const METHOD = "/coredns.dns.DnsService/Query";

describe("h2spec finds no fault", () => {
  let server: Portolan | undefined;
  before(async () => {
    if (skip !== false) return;
    const { certificate, key } = new CertificateAuthority().issue({
      commonName: "dns",
      hosts: ["127.0.0.1"],
    });
    server = await Portolan.start(
      (port) => `
.:${port("dns")} https://.:${port("https")} grpc://.:${port("grpc")} {
    bind 127.0.0.1
    tls cert.pem key.pem
    hosts {
        192.0.2.7 www.example.org
    }
}
grpc://.:${port("plain")} {
    bind 127.0.0.1
    whoami
}
`,
      { files: { "cert.pem": certificate, "key.pem": key } },
    );
  });
  after(() => server?.[Symbol.asyncDispose]());

  for (const [title, name, path, isSecure] of [
    ["in DNS over HTTPS", "https", `/dns-query?dns=${QUESTION}`, true],
    ["in DNS over gRPC", "grpc", METHOD, true],
    ["in DNS over gRPC without TLS", "plain", METHOD, false],
  ] as const)
    test(title, { skip }, async () => {
      assert.ok(server !== undefined && "path" in h2spec);
      const { summary, failures } = await runH2spec(h2spec.path, {
        port: server.portOf(name),
        path,
        isSecure,
      });
      assert.equal(summary, ALL, failures);
    });
});
