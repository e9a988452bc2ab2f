/**
 * Answers recorded from CoreDNS 1.14.7 for `forward` over TLS, asked of this server. The upstream of the recordings is a block of the same
 * Corefile behind `tls://`; here it listens without encryption, behind a program of the test that speaks TLS.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { suite, test } from "node:test";
import { createServer } from "node:tls";
import { CertificateAuthority } from "../support/certificates.ts";
import { freePort } from "../support/free-ports.ts";
import { replay } from "../support/vectors/replay.ts";
import { readVectorSets, type VectorSet } from "../support/vectors/vector-set.ts";

const authority = new CertificateAuthority();
const { certificate, key } = authority.issue({ commonName: "dns", hosts: ["example.org", "127.0.0.1"] });

/** Takes TLS off, and hands everything on to a port of this machine. */
async function withoutTls(port: number): Promise<{ readonly port: number } & AsyncDisposable> {
  const sockets = new Set<{ destroy(): void }>();
  const server = createServer({ cert: certificate, key, noDelay: true }, (outer) => {
    const inner = connect(port, "127.0.0.1");
    for (const [socket, other] of [
      [outer, inner],
      [inner, outer],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => other.destroy());
      socket.pipe(other);
    }
  });
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** `file` differs on purpose: its denials have the TTL of RFC 2308, as its README says. */
function isDenialTtl(expected: unknown, actual: unknown): boolean {
  return (
    JSON.stringify(expected).replace("example.org. 60 IN SOA", "example.org. 1 IN SOA") ===
    JSON.stringify(actual)
  );
}

async function replayed(set: VectorSet): Promise<void> {
  const plain = await freePort();
  await using encrypted = await withoutTls(plain);
  const corefile = set.corefile
    .replace("tls://.:{{port2}}", `.:${plain}`)
    .replace(/^ *tls .*cert\.pem .*key\.pem\n/m, "")
    .replaceAll("{{port2}}", String(encrypted.port));
  const { "key.pem": _, ...files } = set.files ?? {};
  const deviations = (
    await replay({
      ...set,
      corefile,
      files: { ...files, "cert.pem": authority.certificate },
    })
  ).filter(({ expected, actual }) => !isDenialTtl(expected, actual));
  assert.deepEqual(
    deviations.map(({ case: id, question, actual }) => ({ case: id, question, reply: actual })),
    deviations.map(({ case: id, question, expected }) => ({ case: id, question, reply: expected })),
  );
}

suite("forward over TLS", () => {
  for (const set of readVectorSets("zones/forward.jsonl")) test(set.id, () => replayed(set));
});
