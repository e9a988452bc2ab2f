/** Breakages of zones and files, made for real: whether the log, `explain`, `doctor` and the console name the cause. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { CertificateAuthority } from "../support/certificates.ts";
import { ask } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import { consoleNow, Examination, explain, troublesOf } from "../support/on-call.ts";
import type { Peer } from "../support/peers.ts";
import { Portolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";
import { ZONE_PEERS, zoneFile } from "../support/zone-peers.ts";

const SERVFAIL = 2;
const zone = (apex: string): string[] => [
  `${apex} 300 IN SOA ns.${apex} admin.${apex} 1 3600 600 86400 60`,
  `${apex} 300 IN NS ns.${apex}`,
  `ns.${apex} 300 IN A 192.0.2.1`,
];

let primary: Peer;
let deadPort: number;
let server: Portolan;
let troubles: string;
let doctor: Examination;

const skip = skipWithout("named");

before(async () => {
  if (skip !== false) return;
  // A primary that gives the zone to those with the key alone.
  const key = { name: "transfer", secret: Buffer.alloc(32, 7).toString("base64") };
  primary = await ZONE_PEERS.bind.start("denied.test.", { lines: zone("denied.test."), key });
  deadPort = await freePort();
  const expired = new CertificateAuthority().issue({
    commonName: "x",
    hosts: ["example.org"],
    notBefore: new Date("2020-01-01T00:00:00Z"),
    notAfter: new Date("2021-01-01T00:00:00Z"),
  });
  server = await Portolan.start(
    (port) => `.:${port("dns")} {
    bind 127.0.0.1
    errors
    console 127.0.0.1:${port("console")}
    ready 127.0.0.1:${port("ready")}
    hosts names {
        reload 1s
        fallthrough
    }
}
refused.test:${port("dns")} {
    bind 127.0.0.1
    errors
    secondary {
        transfer from 127.0.0.1:${deadPort}
    }
}
denied.test:${port("dns")} {
    bind 127.0.0.1
    errors
    secondary {
        transfer from 127.0.0.1:${primary.port}
    }
}
broken.test:${port("dns")} {
    bind 127.0.0.1
    errors
    file db.broken.test {
        reload 1s
    }
}
keys.test:${port("dns")} {
    bind 127.0.0.1
    errors
    etcd {
        endpoint http://127.0.0.1:${deadPort}
    }
}
cluster.local:${port("dns")} {
    bind 127.0.0.1
    kubernetes cluster.local {
        manifests cluster.yaml
    }
}
tls://.:${port("tls")} {
    bind 127.0.0.1
    tls cert.pem key.pem
    whoami
}`,
    {
      files: {
        names: "192.0.2.7 www.example.org\n",
        "cluster.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\nkind: [Service\n",
        "db.broken.test": zoneFile(zone("broken.test.")),
        "cert.pem": expired.certificate,
        "key.pem": expired.key,
      },
    },
  );
  writeFileSync(
    join(server.folder, "db.broken.test"),
    zoneFile([
      ...zone("broken.test.").map((line) => line.replace(" 1 3600 ", " 2 3600 ")),
      "www 300 IN A 192.0.2.999",
    ]),
  );
  rmSync(join(server.folder, "names"));
  await untilTrue(async () => {
    troubles = await troublesOf(server);
    return [
      /^secondary refused/m,
      /^secondary denied/m,
      /^file /m,
      /^hosts /m,
      /^etcd /m,
      /^tls /m,
      /^kubernetes /m,
    ].every((each) => each.test(troubles));
  });
  for (const name of ["refused.test.", "denied.test.", "keys.test."])
    for (let round = 0; round < 3; round++) assert.equal((await ask(server, name)).rcode, SERVFAIL, name);
  doctor = await Examination.of(server);
});
after(async () => {
  await server?.[Symbol.asyncDispose]();
  await primary?.[Symbol.asyncDispose]();
});

test("what is not ready comes first, with its reasons", { skip }, async () => {
  assert.deepEqual((await consoleNow(server)).notReady, ["etcd", "tls"]);
  assert.equal(doctor.codes[0], "not-ready");
  assert.match(doctor.words("not-ready"), /^tls certificate .*expired on Fri, 01 Jan 2021/m);
});

for (const [title, pattern, options] of [
  [
    "a primary that is down",
    /secondary refused\.test\.:? .*127\.0\.0\.1:\d+.*(connection refused|nothing listens)/,
    {
      log: /Failed to transfer `refused\.test\.' from "127\.0\.0\.1:\d+": .*connection refused/,
      name: "refused.test",
    },
  ],
  [
    "a primary that denies the transfer",
    /secondary denied\.test\.:? .*bad xfr rcode: 5 \(REFUSED\)/,
    {
      log: /Failed to transfer `denied\.test\.' from "127\.0\.0\.1:\d+": .*bad xfr rcode: 5/,
      name: "denied.test",
    },
  ],
  [
    "a zone file that breaks while it is served",
    /file broken\.test\.:? .*db\.broken\.test:4:\d+: .*192\.0\.2\.999/,
    { log: /db\.broken\.test:4:\d+: .*192\.0\.2\.999/ },
  ],
  [
    "a hosts file that is gone",
    /hosts \S*names:? +File does not exist: \S*names/,
    { log: /File does not exist: \S*names/ },
  ],
  [
    "an etcd that is away",
    /etcd etcd \S*:? +away for .*127\.0\.0\.1:\d+/,
    { log: /127\.0\.0\.1:\d+/, name: "keys.test" },
  ],
  [
    "an expired certificate",
    /tls certificate:? +certificate \S*cert\.pem expired on Fri, 01 Jan 2021/,
    { log: /\[ERROR\] plugin\/tls: certificate \S*cert\.pem expired on/ },
  ],
] as const satisfies readonly (readonly [
  string,
  RegExp,
  { readonly log: RegExp; readonly name?: string },
])[]) {
  test(`${title}: log, console and doctor name the cause`, { skip }, async () => {
    assert.match(server.log, options.log);
    assert.match(troubles, pattern);
    assert.match(doctor.words("zone-data"), pattern);
    if ("name" in options) {
      const text = await explain(server, options.name);
      assert.match(text, /SERVFAIL/);
      assert.match(text, /not (transferred|loaded|listed)|no keys were listed|127\.0\.0\.1:\d+/);
    }
  });
}

test("a manifest that is not YAML: log, console and doctor name its line", { skip }, () => {
  const pattern = /cluster\.yaml:\d+:? .*not valid YAML/;
  assert.match(server.log, /\[ERROR\] plugin\/kubernetes: manifests: \S*cluster\.yaml:\d+: .*not valid YAML/);
  assert.match(troubles, pattern);
  assert.match(doctor.words("cluster-data"), pattern);
});

test("a secondary says once that it retries, and the end", { skip }, async () => {
  const said = () => server.log.match(/All 'denied\.test\.' masters failed to transfer/g)?.length;
  assert.equal(said(), 1);
});

test("a zone that does not parse at the start: the server names each line, and so does check", async () => {
  const files = {
    "db.test": zoneFile([...zone("test."), "a 300 IN A 192.0.2.999", "b 300 IN AAAA nonsense"]),
  };
  await assert.rejects(
    Portolan.start((port) => `test:${port("dns")} {\n    bind 127.0.0.1\n    file db.test\n}`, { files }),
    (error: Error) =>
      /db\.test:4:\d+: .*192\.0\.2\.999/.test(error.message) &&
      /db\.test:5:\d+: .*nonsense/.test(error.message),
  );
});
