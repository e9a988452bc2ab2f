/** Certificates by ACME, from Debian's pebble, which queries this server for its challenges. */
import assert from "node:assert/strict";
import type { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "node:tls";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { kdig } from "../support/dig.ts";
import { freePort } from "../support/free-ports.ts";
import { Pebble } from "../support/pebble.ts";
import { Portolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";
import { untilTrue } from "../support/until-true.ts";

const skip = skipWithout("pebble", "kdig", "openssl");

interface Setting {
  /** Where the authority asks. */
  readonly challengePort: number;
  readonly ca: string;
  readonly root: string;
  readonly storage?: string;
  readonly domains?: string;
  readonly options?: string;
  readonly block?: string;
}

function start(setting: Setting): Promise<Portolan> {
  const { challengePort, ca, root, storage = "kept", domains = "dns.example.org", options = "" } = setting;
  return Portolan.start(
    (port) => `
.:${challengePort} {
    bind 127.0.0.1
    cache
    prometheus 127.0.0.1:${port("metrics")}
    whoami
}
.:${port("dns")} tls://.:${port("tls")} {
    bind 127.0.0.1
    ${setting.block ?? ""}
    tls {
        acme ${domains}
        email hostmaster@example.org
        ca ${ca}
        ca_root root.pem
        storage ${storage}
        ${options}
    }
    hosts {
        192.0.2.7 www.example.org
        ttl 40
    }
}
`,
    { files: { "root.pem": root } },
  );
}

/** The certificate that a client gets that wants this name; none where its connection ends. */
async function shown(server: Portolan, servername: string): Promise<X509Certificate | undefined> {
  const socket = connect({
    host: "127.0.0.1",
    port: server.portOf("tls"),
    servername,
    rejectUnauthorized: false,
  });
  try {
    await once(socket, "secureConnect");
    return socket.getPeerX509Certificate();
  } catch {
    return undefined;
  } finally {
    socket.destroy();
  }
}

function filesBelow(folder: string): { readonly path: string; readonly mode: number }[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => {
    const path = join(folder, name);
    return { path, mode: statSync(path).mode & 0o777 };
  });
}

const IN_FORCE = /certificate for (\S+) from \S+ is in use for new connections; it expires on 20/;

test("certificates are obtained, kept on the disk, and outlive reloads, restarts and their authority", {
  skip,
}, async () => {
  const challengePort = await freePort();
  const pebble = await Pebble.start({ dnsPort: challengePort });
  await using _ = pebble;
  const setting = {
    challengePort,
    ca: pebble.url,
    root: pebble.root,
    domains: "DNS.Example.org. *.wild.example",
  };
  await using server = await start(setting);
  // A cached answer for the name must not hide the challenge.
  await kdig({ address: "127.0.0.1", port: challengePort }, "_acme-challenge.dns.example.org", "TXT");
  await untilTrue(async () => server.log.split("is in use for new connections").length === 3);
  const first = await shown(server, "dns.example.org");
  assert.equal(first?.subjectAltName, "DNS:dns.example.org");
  assert.equal((await shown(server, "a.wild.example"))?.subjectAltName, "DNS:*.wild.example");
  assert.equal(await shown(server, "b.a.wild.example"), undefined);
  assert.equal(await shown(server, "elsewhere.example"), undefined);
  const reply = await kdig({ address: "127.0.0.1", port: server.portOf("tls") }, "+tls", "www.example.org");
  assert.deepEqual(reply.answer, ["www.example.org. 40 IN A 192.0.2.7"]);

  const kept = filesBelow(join(server.folder, "kept"));
  assert.equal(kept.filter(({ path }) => path.endsWith(".pem")).length, 3);
  for (const { path, mode } of kept) assert.equal(mode, path.endsWith(".pem") ? 0o600 : 0o700, path);
  const { body } = await server.page("metrics", "/metrics");
  assert.match(
    body,
    /^portolan_tls_acme_orders_total\{certificate="dns\.example\.org",result="issued"\} 1$/m,
  );
  assert.match(
    body,
    /^portolan_tls_certificate_expiry_timestamp_seconds\{certificate="\*\.wild\.example"\} \d{10}$/m,
  );

  const challenge = await kdig(
    { address: "127.0.0.1", port: challengePort },
    "_acme-challenge.dns.example.org",
    "TXT",
  );
  assert.deepEqual(challenge.answer, []);

  const text = readFileSync(join(server.folder, "Corefile"), "utf8");
  assert.match(await server.reload(() => text.replace("ttl 40", "ttl 41")), /Reloading complete/);
  assert.equal((await shown(server, "dns.example.org"))?.serialNumber, first?.serialNumber);
  assert.equal(server.log.split("is in use for new connections").length, 3);

  await pebble[Symbol.asyncDispose]();
  await server.stop();
  await using again = await start({
    ...setting,
    challengePort: await freePort(),
    storage: join(server.folder, "kept"),
  });
  assert.equal((await shown(again, "dns.example.org"))?.serialNumber, first?.serialNumber);
});

test("all threads show the certificate", { skip }, async () => {
  const challengePort = await freePort();
  await using pebble = await Pebble.start({ dnsPort: challengePort });
  await using server = await start({
    challengePort,
    ca: pebble.url,
    root: pebble.root,
    block: "multisocket 3",
  });
  await server.waitForLog(IN_FORCE);
  // The kernel chooses a thread for each connection.
  await untilTrue(async () => {
    const certificates = await Promise.all(
      Array.from({ length: 24 }, () => shown(server, "dns.example.org")),
    );
    return certificates.every((certificate) => certificate !== undefined);
  });
});

test("an authority that says no is asked again later, and connections end meanwhile", { skip }, async () => {
  const challengePort = await freePort();
  await using pebble = await Pebble.start({ dnsPort: await freePort() });
  await using server = await start({ challengePort, ca: pebble.url, root: pebble.root });
  const [, reason] = await server.waitForLog(
    /no certificate for dns\.example\.org from 127\.0\.0\.1:\d+: (.*); next attempt in [2-5]m/,
  );
  assert.match(reason ?? "", /^authorization of dns\.example\.org: /);
  assert.equal(await shown(server, "dns.example.org"), undefined);
  const { body } = await server.page("metrics", "/metrics");
  assert.match(
    body,
    /^portolan_tls_acme_orders_total\{certificate="dns\.example\.org",result="failed"\} 1$/m,
  );
  assert.match(body, /^portolan_tls_failed_handshakes_total\{server="tls:[^}]*\} 1$/m);
});

test("a certificate is renewed when its authority wants it, and stays in force while that fails", {
  skip,
}, async () => {
  const challengePort = await freePort();
  const pebble = await Pebble.start({ dnsPort: challengePort, validity: 60 });
  await using _ = pebble;
  await using advice = await RenewalAdvice.before(pebble);
  await using server = await start({ challengePort, ca: advice.url, root: pebble.root });
  await server.waitForLog(IN_FORCE);
  const first = await shown(server, "dns.example.org");
  // At least three seconds old, as it is good for a minute.
  await untilTrue(async () => server.log.split("is in use for new connections").length >= 3);
  const second = await shown(server, "dns.example.org");
  assert.notEqual(second?.serialNumber, first?.serialNumber);
  assert.equal(advice.asked[0], await renewalName(first));
  await pebble[Symbol.asyncDispose]();
  await server.waitForLog(
    /no certificate for dns\.example\.org .*; next attempt in \d+s; the previous certificate stays in use/,
  );
  assert.ok(await shown(server, "dns.example.org"));
});

/** Says, in front of an authority that has nothing to say about renewals, that each certificate should have been renewed by now. */
class RenewalAdvice implements AsyncDisposable {
  readonly asked: string[] = [];
  readonly #pebble: Pebble;
  readonly #server = createServer((request, response) => void this.#answer(request, response));

  private constructor(pebble: Pebble) {
    this.#pebble = pebble;
  }

  static async before(pebble: Pebble): Promise<RenewalAdvice> {
    const advice = new RenewalAdvice(pebble);
    await once(advice.#server.listen(0, "127.0.0.1"), "listening");
    return advice;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/dir`;
  }

  async #answer({ url = "" }: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader("content-type", "application/json");
    if (url === "/dir") {
      const origin = new URL(this.#pebble.url).origin;
      const directory = {
        newNonce: `${origin}/nonce-plz`,
        newAccount: `${origin}/sign-me-up`,
        newOrder: `${origin}/order-plz`,
        renewalInfo: new URL("/advice", this.url).href,
      };
      response.end(JSON.stringify(directory));
      return;
    }
    this.asked.push(url.replace("/advice/", ""));
    const suggestedWindow = { start: "2020-01-01T00:00:00Z", end: "2020-01-02T00:00:00Z" };
    response.end(JSON.stringify({ suggestedWindow }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** As OpenSSL reads the certificate (RFC 9773 section 4.1). */
async function renewalName(certificate: X509Certificate | undefined): Promise<string> {
  const { output } = await run("openssl", ["x509", "-noout", "-serial", "-ext", "authorityKeyIdentifier"], {
    input: certificate?.toString() ?? "",
  });
  const serial = /^serial=([0-9A-F]+)$/m.exec(output)?.[1] ?? "";
  const key = /^\s+(?:keyid:)?((?:[0-9A-F]{2}:?)+)$/m.exec(output)?.[1] ?? "";
  const text = (hex: string): string => Buffer.from(hex, "hex").toString("base64url");
  // A number whose first bit is set has an octet of zeros in front.
  return `${text(key.replaceAll(":", ""))}.${text(/^[89A-F]/.test(serial) ? `00${serial}` : serial)}`;
}
