/** A server with an expired certificate in one of its blocks, until the file is renewed. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CertificateAuthority } from "../support/certificates.ts";
import { dig } from "../support/dig.ts";
import { Portolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

test("an expired certificate is logged and makes its block not ready, the other blocks serve, and a renewed file ends it", async () => {
  const authority = new CertificateAuthority();
  const names = { commonName: "x", hosts: ["example.org"] };
  const expired = authority.issue({
    ...names,
    notBefore: new Date("2020-01-01T00:00:00Z"),
    notAfter: new Date("2021-01-01T00:00:00Z"),
  });
  await using server = await Portolan.start(
    (port) => `
.:${port("dns")} {
    bind 127.0.0.1
    ready 127.0.0.1:${port("ready")}
    hosts {
        192.0.2.7 www.example.org
    }
}
example.net:${port("other")} tls://example.net:${port("tls")} {
    bind 127.0.0.1
    ready 127.0.0.1:${port("ready")}
    tls cert.pem key.pem
    whoami
}`,
    { files: { "cert.pem": expired.certificate, "key.pem": expired.key } },
  );
  const ready = async (query = ""): Promise<readonly [status: number, text: string]> => {
    const response = await fetch(`http://127.0.0.1:${server.portOf("ready")}/ready${query}`);
    return [response.status, await response.text()];
  };
  assert.match(server.log, /\[ERROR\] plugin\/tls: certificate \S*cert\.pem expired on Fri, 01 Jan 2021/);
  assert.deepEqual(await ready(), [503, "tls"]);
  const [status, text] = await ready("?verbose");
  assert.equal(status, 503);
  assert.match(
    text,
    /^tls dns:\/\/example\.net\.:\d+ tls:\/\/example\.net\.:\d+: .*cert\.pem expired on Fri, 01 Jan 2021/m,
  );
  const at = { address: "127.0.0.1", port: server.portOf("dns") };
  assert.deepEqual((await dig(at, "www.example.org")).answer, ["www.example.org. 3600 IN A 192.0.2.7"]);

  const renewed = authority.issue(names);
  writeFileSync(join(server.folder, "key.pem"), renewed.key);
  writeFileSync(join(server.folder, "cert.pem"), renewed.certificate);
  await untilTrue(async () => (await ready())[0] === 200);
  assert.deepEqual(await ready("?verbose"), [200, "OK\n"]);
});
