/** Updates by all transports: they are taken over UDP, TCP and TLS only. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { CertificateAuthority } from "../support/certificates.ts";
import { Portolan } from "../support/portolan.ts";
import { skipWithoutQuic } from "../support/quic.ts";
import { SEED } from "../support/update-messages.ts";
import { UPDATE_WAYS, updateTransports } from "../support/update-transports.ts";

suite("updates by transport", { skip: skipWithoutQuic() }, () => {
  test("UDP, TCP and TLS take them, and the others reject them as CoreDNS does", async () => {
    const authority = new CertificateAuthority();
    const { certificate, key } = authority.issue({ commonName: "x", hosts: ["dns.example", "127.0.0.1"] });
    await using server = await Portolan.start(updateTransports, {
      files: { db: SEED, "cert.pem": certificate, "key.pem": key },
    });
    const rcodes: Record<string, string> = {};
    for (const [name, way] of Object.entries(UPDATE_WAYS))
      rcodes[name] = await way(server.portOf, authority.certificate);
    assert.deepEqual(rcodes, {
      udp: "NOERROR",
      tcp: "NOERROR",
      tls: "NOERROR",
      https: "status 400",
      grpc: "dns request rejected",
      quic: "nothing",
      https3: "status 400",
      "another block": "NOTIMP",
    });
  });
});
