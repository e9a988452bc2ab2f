/** DNS over QUIC (RFC 9250), with kdig as client. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { CertificateAuthority } from "../support/certificates.ts";
import { kdig, type PrintedReply } from "../support/dig.ts";
import { counted } from "../support/metrics.ts";
import { type CorefileWriter, Portolan } from "../support/portolan.ts";
import { skipWithoutQuic } from "../support/quic.ts";
import { untilTrue } from "../support/until-true.ts";

const skip = skipWithoutQuic("kdig");
const folder = mkdtempSync(join(tmpdir(), "portolan-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function issue(authority: CertificateAuthority): Readonly<Record<"cert.pem" | "key.pem", string>> {
  const { certificate, key } = authority.issue({ commonName: "example.org", hosts: ["example.org"] });
  return { "cert.pem": certificate, "key.pem": key };
}

function trust(authority: CertificateAuthority): readonly string[] {
  const file = join(folder, "ca.pem");
  writeFileSync(file, authority.certificate);
  return [`+tls-ca=${file}`, "+tls-hostname=example.org"];
}

const corefile =
  (address: string): CorefileWriter =>
  (port) =>
    `
.:${port("dns")} quic://.:${port("quic")} {
    bind 127.0.0.1
    prometheus 127.0.0.1:${port("metrics")}
    tls cert.pem key.pem
    hosts {
        ${address} www.example.org
        ${Array.from({ length: 200 }, (_, number) => `192.0.2.${number} many.example.org`).join("\n        ")}
        ttl 40
    }
}`;

describe("a quic:// listener", { skip }, () => {
  const authority = new CertificateAuthority();
  let server: Portolan;
  let at: { readonly address: string; readonly port: number };
  before(async () => {
    server = await Portolan.start(corefile("192.0.2.7"), { files: issue(authority) });
    at = { address: "127.0.0.1", port: server.portOf("quic") };
  });
  after(() => server[Symbol.asyncDispose]());

  // The last word says how: the ones before it have a meaning for TLS.
  const ask = (...words: readonly string[]): Promise<PrintedReply> => kdig(at, ...words, "+quic");

  test("answers, with a certificate for its name", async () => {
    const { answer, text } = await ask(...trust(authority), "www.example.org");
    assert.deepEqual(answer, ["www.example.org. 40 IN A 192.0.2.7"]);
    assert.match(text, /QUIC session \(QUICv1\)-\(TLS1\.3\)/);
    assert.match(text, /id: 0$/m);
    await assert.rejects(ask(...trust(new CertificateAuthority()), "www.example.org"));
  });

  test("sends long replies whole, however little EDNS allows", async () => {
    const { answer, flags } = await ask("+bufsize=512", "many.example.org");
    assert.equal(answer.length, 200);
    assert.ok(!flags.includes("tc"));
  });

  test("takes many clients at once", async () => {
    const replies = await Promise.all(Array.from({ length: 20 }, () => ask("www.example.org")));
    for (const { answer } of replies) assert.deepEqual(answer, ["www.example.org. 40 IN A 192.0.2.7"]);
  });

  test("counts answers", async () => {
    const of = new RegExp(`server="quic://127.0.0.1:${at.port}",status="0x0"`);
    const before = await counted(server, "coredns_dns_quic_responses_total", of);
    await ask("www.example.org");
    assert.equal(await counted(server, "coredns_dns_quic_responses_total", of), before + 1);
  });

  test("shows a new certificate without a reload", async () => {
    const other = new CertificateAuthority();
    const start = server.log.length;
    for (const [name, text] of Object.entries(issue(other))) writeFileSync(join(server.folder, name), text);
    await server.waitForLog(/certificate .*cert\.pem is in use for new connections/, start);
    // The listener's thread applies it a moment later.
    await untilTrue(async () => (await ask(...trust(other), "www.example.org")).status === "NOERROR");
    await assert.rejects(ask(...trust(authority), "www.example.org"));
  });

  test("loses no query in a reload", async () => {
    let isOver = false;
    let asked = 0;
    const asking = Array.from({ length: 4 }, async () => {
      while (!isOver) {
        const { answer } = await ask("www.example.org");
        assert.match(answer.join(), /^www\.example\.org\. 40 IN A 192\.0\.2\.[789]$/);
        asked++;
      }
    });
    for (const number of [8, 9, 8, 9, 8]) await server.reload(corefile(`192.0.2.${number}`));
    isOver = true;
    await Promise.all(asking);
    assert.ok(asked > 0);
    assert.deepEqual((await ask("www.example.org")).answer, ["www.example.org. 40 IN A 192.0.2.8"]);
  });

  test("goes with a reload, and comes with the next", async () => {
    await server.reload((port) => `.:${port("dns")} {\n bind 127.0.0.1\n whoami\n}`);
    await assert.rejects(kdig(at, "+quic", "+timeout=1", "www.example.org"));
    await server.reload(corefile("192.0.2.7"));
    assert.equal((await ask("www.example.org")).status, "NOERROR");
  });

  test("ends when it is told to", async () => {
    const { code } = await server.stop();
    assert.equal(code, 0);
    assert.equal(server.program.errors, "");
    assert.doesNotMatch(server.log, /\[ERROR\]/);
  });
});

describe("a quic:// listener with client authentication, keylog and two threads", { skip }, () => {
  const authority = new CertificateAuthority();
  const [certificateFile, keyFile] = [join(folder, "client.pem"), join(folder, "client-key.pem")];
  const showing = [`+tls-certfile=${certificateFile}`, `+tls-keyfile=${keyFile}`, "+quic"];
  let server: Portolan;
  before(async () => {
    const client = new CertificateAuthority("clients");
    const { certificate, key } = client.issue({ commonName: "client" });
    writeFileSync(certificateFile, certificate);
    writeFileSync(keyFile, key);
    server = await Portolan.start(
      (port) => `
.:${port("dns")} quic://.:${port("verified")} {
    multisocket 2
    tls cert.pem key.pem clients.pem {
        client_auth require_and_verify
        keylog keys.log
    }
    whoami
}
quic://.:${port("any")} {
    tls cert.pem key.pem other.pem {
        client_auth require
    }
    whoami
}
quic://.:${port("other")} {
    tls cert.pem key.pem other.pem {
        client_auth verify_if_given
    }
    whoami
}`,
      {
        files: {
          ...issue(authority),
          "clients.pem": client.certificate,
          "other.pem": authority.certificate,
        },
      },
    );
  });
  after(() => server[Symbol.asyncDispose]());

  const ask = (name: string, ...words: readonly string[]): Promise<PrintedReply> =>
    kdig({ address: "127.0.0.2", port: server.portOf(name) }, "www.example.org", ...words);

  for (const [name, shows, isWelcome] of [
    ["verified", true, true],
    ["verified", false, false],
    ["any", true, true],
    ["any", false, false],
    ["other", true, false],
    ["other", false, true],
  ] as const) {
    test(`${isWelcome ? "takes" : "refuses"} who shows ${shows ? "a" : "no"} certificate at '${name}'`, async () => {
      const asked = ask(name, ...(shows ? showing : ["+quic"]));
      if (isWelcome) assert.equal((await asked).status, "NOERROR");
      else await assert.rejects(asked);
    });
  }

  test("answers from the address that was asked, whichever thread has the client", async () => {
    const replies = await Promise.all(Array.from({ length: 8 }, () => ask("verified", ...showing)));
    assert.ok(replies.every(({ status }) => status === "NOERROR"));
  });

  test("writes down the secrets of its connections", () => {
    const lines = readFileSync(join(server.folder, "keys.log"), "latin1").trimEnd().split("\n");
    assert.ok(lines.length >= 5);
    for (const line of lines) assert.match(line, /^[A-Z_0-9]+ [0-9a-f]{64} [0-9a-f]{64,}$/);
  });
});
