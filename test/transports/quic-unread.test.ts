/** Clients of DNS over QUIC that ask much and read nothing: the memory that they hold is limited, and others are served. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { decodeMessage } from "../../src/dns/message.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { framed, queryOctets } from "../support/dns-client.ts";
import { counted } from "../support/metrics.ts";
import { Portolan } from "../support/portolan.ts";
import { Program } from "../support/program.ts";
import { skipWithoutQuic } from "../support/quic.ts";
import { QuicCaller } from "../support/quic-client.ts";
import { untilTrue } from "../support/until-true.ts";

const SHORT = "www.example.org.";
const LONG = "large.example.org.";
const RECORDS = 2_000;
/** Octets of the answer for {@link LONG}, roughly. */
const LONG_ANSWER = 32_000;
/** Octets that a listener of a process without a memory limit holds for its clients. */
const BOUND = 64 * 1024 * 1024;

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
        ${Array.from({ length: RECORDS }, (_, n) => `10.0.${n >> 8}.${n & 255} large.example.org`).join("\n        ")}
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

  const closed = (): Promise<number> =>
    counted(server, "portolan_dns_shed_total", /^server="quic:.*reason="unread"/);

  /** Lets clients ask and stop, while another client asks for the same name until connections are closed, and then on. */
  const freeze = async (name: string, connections: number, streams: number, records: number) => {
    const before = await closed();
    const query = framed(queryOctets(name, "A", 0));
    const good = await caller.dial(server.portOf("quic"), "doq", "example.org").connected();
    const served = async (): Promise<void> => {
      const octets = await good.ask(query);
      assert.equal(octets && decodeMessage(octets.subarray(2)).answer.length, records);
    };
    await using frozen = new Program(
      process.execPath,
      [
        join(import.meta.dirname, "..", "support", "frozen-quic-client.ts"),
        ...[server.portOf("quic"), connections, streams, name].map(String),
      ],
      { input: authority.certificate },
    );
    let most = 0;
    try {
      await Promise.all([
        frozen.waitForOutput(/^asked$/m),
        untilTrue(async () => {
          await served();
          most = Math.max(most, await counted(server, "portolan_memory_unread_bytes"));
          return (await closed()) > before;
        }),
      ]);
      for (let count = 0; count < 100; count++) await served();
    } finally {
      // It takes no other signal.
      frozen.kill("SIGKILL");
    }
    assert.ok(most <= BOUND, `${most}`);
    // Those that were not closed have a share of the bound.
    assert.ok((await closed()) - before < connections);
    assert.equal(good.connection.isOpen, true);
    assert.equal(server.program.errors, "");
  };

  test("closes those that hold the most, and serves the connection of another client throughout", async () => {
    // What OpenSSL keeps for so many streams is more than the bound.
    await freeze(SHORT, 100, 95, 1);
  });

  test("does the same when few streams hold long answers", async () => {
    const [connections, streams] = [160, 20];
    assert.ok(connections * streams * LONG_ANSWER > BOUND);
    await freeze(LONG, connections, streams, RECORDS);
  });
});
