/** HTTP/2 clients get the limit of `https { max_streams }`. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { test } from "node:test";
import { CertificateAuthority } from "../support/certificates.ts";
import { Portolan } from "../support/portolan.ts";

const authority = new CertificateAuthority();
const own = authority.issue({ commonName: "dns", hosts: ["127.0.0.1"] });

for (const [option, expected] of [
  ["max_streams 7", 7],
  ["max_streams 0", 250],
] as const) {
  test(`'${option}' allows ${expected} streams`, async () => {
    const server = await Portolan.start(
      (port) => `
.:${port("dns")} https://.:${port("https")} {
    bind 127.0.0.1
    tls cert.pem key.pem
    https {
        ${option}
    }
    whoami
}`,
      { files: { "cert.pem": own.certificate, "key.pem": own.key } },
    );
    try {
      const session = connect(`https://127.0.0.1:${server.portOf("https")}`, { ca: authority.certificate });
      session.on("error", () => undefined);
      try {
        const [settings] = await once(session, "remoteSettings");
        assert.equal(settings.maxConcurrentStreams, expected);
      } finally {
        const closed = once(session, "close");
        session.destroy();
        await closed;
      }
    } finally {
      await server[Symbol.asyncDispose]();
    }
  });
}
