/** Zones over TLS (RFC 9103): from this server to BIND and NSD, and from them to this server. Debian's Knot knows no TLS. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import { promisify } from "node:util";
import { missingTools } from "../../scripts/lib/system-tools.mjs";
import { createServer, type EmbeddedServer } from "../../src/index.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { freePort } from "../support/free-ports.ts";
import { untilTrue } from "../support/until-true.ts";
import {
  addressOf,
  sampleOf,
  serialOf,
  untilAddress,
  untilSerial,
  withFolder,
  zoneText,
} from "../support/zone-copies.ts";
import { skipWithoutZonePeer, ZONE_PEERS, zoneFile } from "../support/zone-peers.ts";

const KEY = { name: "transfer.example", secret: "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" };
const TSIG = `tsig {\n  secret ${KEY.name} ${KEY.secret}\n }`;

const authority = new CertificateAuthority();
const HOST = "ns.example.org";
const issued = authority.issue({ commonName: HOST, hosts: [HOST, "127.0.0.1"] });

function writeCertificates(folder: string): void {
  writeFileSync(join(folder, "certificate.pem"), issued.certificate);
  writeFileSync(join(folder, "key.pem"), issued.key);
  writeFileSync(join(folder, "authority.pem"), authority.certificate);
}

/** Files are looked for in the folder. */
async function serverIn(folder: string, text: string): Promise<EmbeddedServer> {
  const corefile = text.replaceAll("bind 127.0.0.1", `bind 127.0.0.1\n root ${folder}`);
  return createServer({ corefile, file: join(folder, "Corefile") });
}

const peerTls = (port: number) => ({ port, ...issued, authority: authority.certificate, name: HOST });

const failures = (metrics: string): number =>
  sampleOf(metrics, 'portolan_transfer_in_total{zone="example.org.",result="failed"}');

const primaryCorefile = (tlsPort: number, notified: number, file: string): string => `
tls://example.org:${tlsPort} {
  bind 127.0.0.1
  tls certificate.pem key.pem
  ${TSIG}
  file ${file} {
    reload 100ms
  }
  transfer {
    to 127.0.0.1:${notified}
    key ${KEY.name}
  }
}
`;

for (const name of ["bind", "nsd"] as const) {
  const { start } = ZONE_PEERS[name];
  const skip = skipWithoutZonePeer(name);

  test(`${name} takes a zone from a tls:// listener, and its changes after NOTIFY`, { skip }, () =>
    withFolder(async (folder) => {
      const [port, tlsPort, peerPort] = [await freePort(), await freePort(), await freePort()];
      writeCertificates(folder);
      const file = join(folder, "zone");
      writeFileSync(file, zoneText(1, "192.0.2.1").join("\n"));
      const corefile = primaryCorefile(tlsPort, peerPort, file);
      await using server = await serverIn(folder, corefile);
      await server.start();
      // It asks for the zone when it starts, and waits long before it asks a primary again that was not there.
      await using peer = await start("example.org", {
        ...{ primary: port, port: peerPort, key: KEY },
        tls: peerTls(tlsPort),
      });
      await untilSerial(peer.port, 1, () => peer.program.describe());
      writeFileSync(file, zoneText(2, "192.0.2.2").join("\n"));
      await untilSerial(peer.port, 2, () => peer.program.describe());
      await untilAddress(peer.port, "192.0.2.2", () => peer.program.describe());
    }),
  );
}

test(
  "this server takes a zone from BIND over TLS, and the changes alone after NOTIFY",
  {
    skip: skipWithoutZonePeer("bind"),
  },
  () =>
    withFolder(async (folder) => {
      const [port, tlsPort] = [await freePort(), await freePort()];
      writeCertificates(folder);
      await using peer = await ZONE_PEERS.bind.start("example.org", {
        lines: zoneText(7, "192.0.2.7"),
        notify: port,
        key: KEY,
        tls: peerTls(tlsPort),
      });
      const corefile = `
example.org:${port} {
  bind 127.0.0.1
  ${TSIG}
  secondary {
    transfer from tls://127.0.0.1%${HOST}:${tlsPort}
    tls authority.pem
    key ${KEY.name}
  }
}
`;
      await using server = await serverIn(folder, corefile);
      await server.start();
      await untilSerial(port, 7, () => peer.program.describe());
      peer.replaceFile("zone", zoneFile(zoneText(8, "192.0.2.8")));
      await untilSerial(port, 8, () => peer.program.describe());
      assert.deepEqual(await addressOf(port), { address: "192.0.2.8" });
      const metrics = await server.metrics();
      assert.equal(sampleOf(metrics, 'portolan_transfer_in_total{zone="example.org.",result="ixfr"}'), 1);
    }),
);

test("between servers of this program; a wrong name or authority is an error, and no zone", () =>
  withFolder(async (folder) => {
    const [tlsPort, good, wrongName, stranger] = [
      await freePort(),
      await freePort(),
      await freePort(),
      await freePort(),
    ];
    writeCertificates(folder);
    const file = join(folder, "zone");
    writeFileSync(file, zoneText(1, "192.0.2.1").join("\n"));
    writeFileSync(join(folder, "other.pem"), new CertificateAuthority("other").certificate);
    const block = (port: number, ca: string, option: string): string => `
example.org:${port} {
  bind 127.0.0.1
  ${TSIG}
  secondary {
    transfer from tls://127.0.0.1:${tlsPort}
    tls ${ca}
    key ${KEY.name}
    ${option}
  }
}
`;
    const corefile = [
      primaryCorefile(tlsPort, good, file),
      block(good, "authority.pem", `tls_servername ${HOST}`),
      block(wrongName, "authority.pem", "tls_servername other.example.org"),
      block(stranger, "other.pem", ""),
    ].join("");
    await using server = await serverIn(folder, corefile);
    await server.start();
    await untilSerial(good, 1, () => "");
    await untilTrue(async () => failures(await server.metrics()) >= 2, { what: "two failed transfers" });
    assert.equal(await serialOf(wrongName), undefined);
    assert.equal(await serialOf(stranger), undefined);
    writeFileSync(file, zoneText(2, "192.0.2.2").join("\n"));
    await untilSerial(good, 2, () => "");
  }));

for (const [title, options] of [
  ["does not select the protocol dot", {}],
  ["knows no TLS 1.3", { ALPNProtocols: ["dot"], maxVersion: "TLSv1.2" }],
] as const) {
  test(`a primary that ${title} is not asked`, () =>
    withFolder(async (folder) => {
      writeCertificates(folder);
      let octets = 0;
      const primary = createTlsServer({ cert: issued.certificate, key: issued.key, ...options }, (socket) => {
        socket.on("data", (data) => {
          octets += data.length;
        });
        socket.on("error", () => undefined);
      });
      primary.on("tlsClientError", (_error, socket) => socket.destroy());
      primary.listen(0, "127.0.0.1");
      await once(primary, "listening");
      const address = primary.address();
      const tlsPort = typeof address === "object" ? address?.port : 0;
      const port = await freePort();
      const corefile = `example.org:${port} {\n bind 127.0.0.1\n secondary {\n  transfer from tls://127.0.0.1:${tlsPort}\n  tls authority.pem\n }\n}\n`;
      await using server = await serverIn(folder, corefile);
      try {
        await server.start();
        await untilTrue(async () => failures(await server.metrics()) > 0, { what: "a failed transfer" });
        assert.equal(octets, 0);
      } finally {
        primary.close();
      }
    }));
}

test("kdig takes a zone over TLS", { skip: missingTools(["kdig"]).length > 0 && "not installed: kdig" }, () =>
  withFolder(async (folder) => {
    const tlsPort = await freePort();
    writeCertificates(folder);
    writeFileSync(join(folder, "zone"), zoneText(1, "192.0.2.1").join("\n"));
    const corefile = `tls://example.org:${tlsPort} {\n bind 127.0.0.1\n tls certificate.pem key.pem\n file ${join(folder, "zone")}\n transfer {\n  to *\n }\n}\n`;
    await using server = await serverIn(folder, corefile);
    await server.start();
    const { stdout } = await promisify(execFile)("kdig", [
      "+tls",
      `+tls-ca=${join(folder, "authority.pem")}`,
      `+tls-hostname=${HOST}`,
      "@127.0.0.1",
      "-p",
      `${tlsPort}`,
      "example.org",
      "AXFR",
    ]);
    assert.match(stdout, /2006 records/);
  }),
);
