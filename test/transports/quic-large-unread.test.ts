/** Many DNS-over-QUIC clients that ask for long answers and read none, beside one that reads. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { decodeMessage } from "../../src/dns/message.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { framed, queryOctets } from "../support/dns-client.ts";
import { counted } from "../support/metrics.ts";
import { Portolan } from "../support/portolan.ts";
import { skipWithoutQuic } from "../support/quic.ts";
import { QuicCaller } from "../support/quic-client.ts";
import type { Hoard } from "../support/quic-hoarder.ts";

const RECORDS = 2_000;
/** Of the large answer, roughly. */
const ANSWER_OCTETS = 32_000;
/** What a QUIC listener of a process without a memory limit holds for its clients. */
const BOUND = 64 * 1024 * 1024;
/** Queries of the client that reads, in each round. */
const QUERIES = 20;
/** Rounds after which a server that closes no connection fails. */
const MOST_ROUNDS = 100;

test("QUIC connections that leave the most unread are closed first, and a client that reads is served throughout", {
  skip: skipWithoutQuic("kdig"),
}, async () => {
  const authority = new CertificateAuthority();
  const { certificate, key } = authority.issue({ commonName: "x", hosts: ["example.org"] });
  await using server = await Portolan.start(
    (portOf) => `
.:${portOf("dns")} quic://.:${portOf("quic")} {
    bind 127.0.0.1
    prometheus 127.0.0.1:${portOf("metrics")}
    tls cert.pem key.pem
    hosts {
        192.0.2.7 www.example.org
        ${Array.from({ length: RECORDS }, (_, n) => `10.0.${n >> 8}.${n & 255} large.example.org`).join("\n        ")}
    }
}`,
    { files: { "cert.pem": certificate, "key.pem": key } },
  );
  const port = server.portOf("quic");
  const large = framed(queryOctets("large.example.org.", "A", 0));
  const caller = await QuicCaller.open(authority.certificate);
  const requests = 20;
  const hoard: Hoard = {
    authorities: authority.certificate,
    port,
    connections: 160,
    requests,
    query: large,
  };
  assert.ok(hoard.connections * requests * ANSWER_OCTETS > BOUND);
  const hoarder = new Worker(new URL("../support/quic-hoarder.ts", import.meta.url), { workerData: hoard });
  try {
    assert.deepEqual(await once(hoarder, "message"), ["connected"]);
    const good = await caller.dial(port, "doq", "example.org").connected();
    const closed = (): Promise<number> => counted(server, "portolan_dns_shed_total", /quic.*reason="unread"/);
    assert.equal(await closed(), 0);
    const asked = once(hoarder, "message");
    hoarder.postMessage("ask");
    await asked;
    let rounds = 0;
    do {
      for (let query = 0; query < QUERIES; query++) {
        const octets = await good.ask(large);
        assert.ok(octets !== undefined, `answered, in round ${rounds}`);
        assert.equal(decodeMessage(octets.subarray(2)).answer.length, RECORDS);
      }
    } while ((await closed()) === 0 && ++rounds < MOST_ROUNDS);
    assert.ok((await closed()) > 0, "connections were closed");
    assert.ok(good.connection.isOpen);
    assert.equal(server.program.errors, "");
  } finally {
    await hoarder.terminate();
    caller.close();
  }
});
