/** Discovery of designated resolvers (RFC 9462): clients of plain DNS learn of the encrypted listeners. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { CertificateAuthority } from "../support/certificates.ts";
import { dig, kdig } from "../support/dig.ts";
import { Portolan } from "../support/portolan.ts";

const skip = skipWithout("dig", "kdig");
const { certificate, key } = new CertificateAuthority().issue({
  commonName: "dns.example.org",
  hosts: ["dns.example.org", "127.0.0.1"],
});

let server: Portolan;
before(async () => {
  server = await Portolan.start(
    (port) => `
.:${port("dns")} {
    bind 127.0.0.1
    template ANY ANY {
        rcode NXDOMAIN
    }
}
example.org:${port("zone")} {
    bind 127.0.0.1
    whoami
}
tls://.:${port("tls")} https://.:${port("https")} tls://example.net:${port("other")} grpc://.:${port("grpc")} {
    bind 127.0.0.1
    tls cert.pem key.pem {
        discovery DNS.example.org 192.0.2.53 2001:db8::53 192.0.2.54
    }
    whoami
}
`,
    { files: { "cert.pem": certificate, "key.pem": key } },
  );
});
after(() => server[Symbol.asyncDispose]());

const at = (name: string) => ({ address: "127.0.0.1", port: server.portOf(name) });

function announced(): string[] {
  const hints = "ipv4hint=192.0.2.53,192.0.2.54 ipv6hint=2001:db8::53";
  const owner = "_dns.resolver.arpa. 300 IN SVCB";
  return [
    `${owner} 1 DNS.example.org. alpn="dot" port=${server.portOf("tls")} ${hints}`,
    `${owner} 2 DNS.example.org. alpn="h2,http/1.1" port=${server.portOf("https")} ${hints} dohpath=/dns-query{?dns}`,
  ];
}

/** Clients print keys in one of two ways. */
function plain(records: readonly string[]): string[] {
  return records.map((text) => text.replaceAll('"', "").replace(/key7=|dohpath=/, "dohpath=")).sort();
}

for (const client of [dig, kdig]) {
  for (const [name, words] of [
    ["dns", []],
    ["tls", ["+tls"]],
    ["https", ["+https"]],
  ] as const) {
    test(`${client.name} ${words.join(" ")} finds the listeners that are announced, and no others`, {
      skip,
    }, async () => {
      const reply = await client(at(name), ...words, "_dns.resolver.arpa", "SVCB");
      assert.equal(reply.status, "NOERROR");
      assert.ok(reply.flags.includes("aa"));
      assert.deepEqual(plain(reply.answer), plain(announced()));
    });
  }
}

test("nothing else of the zone leaves this server", { skip }, async () => {
  for (const [name, type] of [
    ["_dns.resolver.arpa", "A"],
    ["resolver.arpa", "SVCB"],
    ["www.resolver.arpa", "AAAA"],
  ] as const) {
    const reply = await dig(at("dns"), name, type);
    assert.equal(reply.status, "NOERROR", name);
    assert.deepEqual(reply.answer, []);
    assert.match(reply.authority.join(), /^resolver\.arpa\. 300 IN SOA /);
  }
  assert.equal((await dig(at("dns"), "xresolver.arpa", "SVCB")).status, "NXDOMAIN");
});

test("a block for other names refuses the query, as does a server without the option", {
  skip,
}, async () => {
  assert.equal((await dig(at("zone"), "_dns.resolver.arpa", "SVCB")).status, "REFUSED");
  await server.reload(
    (port) => `.:${port("dns")} tls://.:${port("tls")} {
    bind 127.0.0.1
    tls cert.pem key.pem
    template ANY ANY {
        rcode NXDOMAIN
    }
}`,
  );
  assert.equal((await dig(at("dns"), "_dns.resolver.arpa", "SVCB")).status, "NXDOMAIN");
});
