/** Clients of DNS over QUIC that ask much and read nothing: the memory that they hold is limited, and others are served. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { CertificateAuthority } from "../support/certificates.ts";
import { framed, queryOctets } from "../support/dns-client.ts";
import { counted } from "../support/metrics.ts";
import { Portolan } from "../support/portolan.ts";
import { Program } from "../support/program.ts";
import { skipWithoutQuic } from "../support/quic.ts";
import { QuicCaller } from "../support/quic-client.ts";
import { untilTrue } from "../support/until-true.ts";

const QUERY = framed(queryOctets("www.example.org.", "A", 0));
/** What a listener of a process without a memory limit holds for its clients. */
const BOUND = 64 * 1024 * 1024;
/** Together, their streams take more than the bound. */
const CONNECTIONS = 100;
const STREAMS = 95;

describe("a quic:// listener with clients that read nothing", { skip: skipWithoutQuic() }, () => {
  const authority = new CertificateAuthority();
  let server: Portolan;
  let caller: QuicCaller;
  before(async () => {
    const { certificate, key } = authority.issue({ commonName: "x", hosts: ["example.org"] });
    server = await Portolan.start(
      (port) => `
.:${port("dns")} quic://.:${port("quic")} {
    bind 127.0.0.1
    prometheus 127.0.0.1:${port("metrics")}
    tls cert.pem key.pem
    hosts {
        192.0.2.7 www.example.org
    }
}`,
      { files: { "cert.pem": certificate, "key.pem": key } },
    );
    caller = await QuicCaller.open(authority.certificate);
  });
  after(async () => {
    caller.close();
    await server[Symbol.asyncDispose]();
  });

  test("closes those that hold the most, and serves the connection of another client throughout", async () => {
    const good = await caller.dial(server.portOf("quic"), "doq", "example.org").connected();
    await using frozen = new Program(
      process.execPath,
      [
        join(import.meta.dirname, "..", "support", "frozen-quic-client.ts"),
        String(server.portOf("quic")),
        String(CONNECTIONS),
        String(STREAMS),
      ],
      { input: authority.certificate },
    );
    const closed = (): Promise<number> =>
      counted(server, "portolan_dns_shed_total", /^server="quic:.*reason="unread"/);
    let most = 0;
    try {
      await Promise.all([
        frozen.waitForOutput(/^asked$/m),
        untilTrue(async () => {
          assert.notEqual(await good.ask(QUERY), undefined);
          most = Math.max(most, await counted(server, "portolan_memory_unread_bytes"));
          return (await closed()) > 0;
        }),
      ]);
      for (let count = 0; count < 100; count++) assert.notEqual(await good.ask(QUERY), undefined);
    } finally {
      // It takes no other signal.
      frozen.kill("SIGKILL");
    }
    assert.ok(most <= BOUND, `${most}`);
    // Those that were not closed have a share of the bound.
    assert.ok((await closed()) < CONNECTIONS);
    assert.equal(good.connection.isOpen, true);
  });
});
