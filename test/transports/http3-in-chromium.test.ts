/** DNS over HTTP/3 with a client of another implementation: Chromium, whose QUIC is Google's. */
import assert from "node:assert/strict";
import { createHash, X509Certificate } from "node:crypto";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { encodeMessage, makeQuery, Name, RecordType } from "../../src/dns/index.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { Portolan } from "../support/portolan.ts";
import { skipWithoutQuic } from "../support/quic.ts";

const STREAMS = 50;

test("Chromium asks over HTTP/3 by POST, and on many streams by GET", {
  skip: skipWithoutQuic("chromium"),
}, async () => {
  const { certificate, key } = new CertificateAuthority().issue({
    commonName: "127.0.0.1",
    hosts: ["127.0.0.1"],
  });
  await using server = await Portolan.start(
    (port) => `.:${port("dns")} https3://.:${port("https3")} {
    bind 127.0.0.1
    tls cert.pem key.pem
    hosts {
        192.0.2.7 www.example.org
    }
}`,
    { files: { "cert.pem": certificate, "key.pem": key } },
  );
  const origin = `127.0.0.1:${server.portOf("https3")}`;
  const publicKey = new X509Certificate(certificate).publicKey.export({ type: "spki", format: "der" });
  const browser = await chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--no-first-run",
      "--enable-quic",
      `--origin-to-force-quic-on=${origin}`,
      `--ignore-certificate-errors-spki-list=${createHash("sha256").update(publicKey).digest("base64")}`,
    ],
  });
  try {
    const page = await browser.newPage();
    const response = await page.goto(`https://${origin}/`);
    assert.equal(response?.status(), 404);
    const query = encodeMessage(makeQuery({ name: Name.parse("www.example.org."), type: RecordType.A }));
    const seen = await page.evaluate(
      async ({ octets, target, streams }) => {
        const posted = await fetch("/dns-query", {
          method: "POST",
          headers: { "content-type": "application/dns-message" },
          body: Uint8Array.from(octets),
        });
        const got = await Promise.all(
          Array.from({ length: streams }, async () => (await fetch(target)).status),
        );
        const resources = performance.getEntriesByType("resource");
        return {
          reply: [...new Uint8Array(await posted.arrayBuffer())],
          statuses: [...new Set([posted.status, ...got])],
          protocols: [
            ...new Set(resources.map((entry) => "nextHopProtocol" in entry && entry.nextHopProtocol)),
          ],
        };
      },
      {
        octets: [...query],
        target: `/dns-query?dns=${Buffer.from(query).toString("base64url")}`,
        streams: STREAMS,
      },
    );
    assert.deepEqual(seen.reply.slice(-4), [192, 0, 2, 7]);
    assert.deepEqual([seen.statuses, seen.protocols], [[200], ["h3"]]);
  } finally {
    await browser.close();
  }
});
