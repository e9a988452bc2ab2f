import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryHost } from "../../corefile/host.ts";
import { parseCorefile } from "../../corefile/parser.ts";
import { readKubeDnsConfig } from "../kube-dns/config-map.ts";
import { isDefaultCorefile } from "./default-corefiles.ts";
import { downgrade } from "./downgrade.ts";
import { DIRECTIVES, migrated } from "./fixtures/migrated.ts";
import { fromHelmValues } from "./from-helm-values.ts";
import { fromKubeDns } from "./from-kube-dns.ts";
import { sentenceOf } from "./notice.ts";
import { readVersion, VersionError } from "./versions.ts";

test("the Corefile of articles from 2018", () => {
  const { text, notices } = migrated(
    `# the cluster's DNS
.:53 {
    errors # to stdout
    health
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       upstream
       # not ours
       fallthrough in-addr.arpa ip6.arpa
    }
    prometheus :9153
    proxy . /etc/resolv.conf
    cache 30
    reload
}
global:53 {
    errors
    cache 30
    proxy . 10.0.0.7
}
`,
    "1.1.3",
  );
  assert.equal(
    text,
    `# the cluster's DNS
.:53 {
    errors # to stdout
    health {
        lameduck 5s
    }
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       # not ours
       fallthrough in-addr.arpa ip6.arpa
    }
    prometheus :9153
    forward . /etc/resolv.conf {
        max_concurrent 1000
    }
    cache 30
    reload
    loop
    ready
}
global:53 {
    errors
    cache 30
    forward . 10.0.0.7 {
        max_concurrent 1000
    }
    loop
}
`,
  );
  assert.deepEqual(notices.map(sentenceOf).slice(0, 3), [
    'Plugin "proxy" is removed in 1.5.0. It is replaced by "forward".',
    'Option "upstream" in plugin "kubernetes" is removed in 1.7.0.',
    'Plugin "proxy" is removed in 1.5.0. It is replaced by "forward".',
  ]);
  assert.ok(notices.map(sentenceOf).includes('Plugin "ready" is added as a default in 1.5.0.'));
});

test("every option of proxy, with its comments, and the longest zone first", () => {
  const { text, notices } = migrated(
    `. {
    proxy . 8.8.8.8
    proxy example.org {$UPSTREAM} [::1]:5353 {
        policy least_conn # evenly
        except a.example.org b.example.org
        max_fails 0
        fail_timeout 5s
        # how to ask
        health_check /health:8080 10s
        spray
        protocol dns force_tcp
    }
    proxy a.test 192.0.2.1 {
        policy first
        protocol dns
    }
}
`,
    undefined,
  );
  assert.equal(
    text,
    `. {
    forward example.org {$UPSTREAM} [::1]:5353 {
        except a.example.org b.example.org
        max_fails 0
        health_check 10s
        force_tcp
    }
    # evenly
    # how to ask
    forward a.test 192.0.2.1 {
        policy sequential
    }
    forward . 8.8.8.8
}
`,
  );
  const notes = notices.flatMap((notice) => notice.notes).join("\n");
  for (const word of ["least_conn", "fail_timeout", "health_check", "spray"])
    assert.match(notes, new RegExp(word));
});

test("a proxy over gRPC, with key and certificate in either order", () => {
  const host = memoryHost({
    files: { "key.pem": "-----BEGIN EC PRIVATE KEY-----", "cert.pem": "-----BEGIN CERTIFICATE-----" },
  });
  const lines = (options: string) =>
    migrated(
      `. {\n    proxy global 127.0.0.1:8053 {\n        protocol grpc ${options}\n    }\n}\n`,
      undefined,
      "1.15.0",
      {
        host,
      },
    ).text.split("\n");
  assert.deepEqual(lines("insecure")[1], "    grpc global 127.0.0.1:8053");
  for (const order of ["key.pem cert.pem ca.pem", "cert.pem key.pem ca.pem"])
    assert.deepEqual(lines(order)[2], "        tls cert.pem key.pem ca.pem");
});

test("the forward beside a grpc excludes its zones, and only those longer than its own", () => {
  const proxies = [
    "Test.Global. 127.0.0.1:8053",
    "global 192.0.2.1",
    ". /etc/resolv.conf",
    "global.example 192.0.2.2",
  ];
  const text = proxies.map(
    (words, at) => `    proxy ${words}${at === 0 ? " {\n        protocol grpc insecure\n    }" : ""}\n`,
  );
  const { text: today } = migrated(`. {\n${text.join("")}}\n`, undefined, "1.15.0");
  for (const [line, excepts] of [
    ["forward global 192.0.2.1", true],
    ["forward . /etc/resolv.conf", true],
    ["forward global.example 192.0.2.2", false],
  ] as const)
    assert.equal(today.includes(`${line} {\n        except Test.Global.\n    }`), excepts, today);
});

test("https_google is queried over TLS", () => {
  const { text } = migrated(
    ". {\n    proxy . 1.2.3.4 {\n        protocol https_google\n    }\n}\n",
    undefined,
  );
  assert.match(text, /forward \. tls:\/\/8\.8\.8\.8 tls:\/\/8\.8\.4\.4 \{\n\s+tls_servername dns\.google\n/);
});

test("transfers become a directive of their own, hooks become 'on'", () => {
  const { text } = migrated(
    `example.org {
    kubernetes cluster.local 10.0.0.0/8 {
        resyncperiod 5m
        transfer to 192.0.2.1 192.0.2.2
    }
    file db.example.org {
        transfer to *
        no_reload
        upstream 8.8.8.8
    }
    startup sh -c "echo up"
    shutdown /bin/true
}
`,
    undefined,
  );
  assert.equal(
    text,
    `example.org {
    kubernetes cluster.local 10.0.0.0/8 {
    }
    transfer cluster.local {
        to 192.0.2.1 192.0.2.2
    }
    file db.example.org {
        reload 0
    }
    transfer example.org {
        to *
    }
    on startup sh -c "echo up"
    on shutdown /bin/true
}
`,
  );
});

test("a snippet that is imported twice is rewritten once", () => {
  const { text } = migrated(
    "(up) {\n    proxy . 8.8.8.8\n}\na {\n    import up\n}\nb {\n    import up\n}\n",
    undefined,
  );
  assert.equal(text, "(up) {\n    forward . 8.8.8.8\n}\na {\n    import up\n}\nb {\n    import up\n}\n");
});

test("deprecated words stay, unless asked for", () => {
  const text = ". {\n    kubernetes cluster.local {\n        upstream\n    }\n    proxy . 8.8.8.8\n}\n";
  assert.equal(migrated(text, "1.3.1", "1.4.0").text, text);
  assert.match(migrated(text, "1.3.1", "1.4.0", { deprecations: true }).text, /forward \. 8\.8\.8\.8/);
});

test("a current Corefile stays as it is", () => {
  const text = ". {\n  errors   # odd layout\n\n\n  forward . 8.8.8.8 { \n    policy random }\n}\n";
  assert.equal(migrated(text, undefined).text, text);
  assert.equal(migrated(text, "1.14.2").text, text);
});

test("a downgrade removes what CoreDNS does not have", () => {
  const { text, notices } = downgrade(
    "{\n    plugin x ./x.ts\n}\n. {\n    explain\n    kubernetes cluster.local {\n        manifests ./m\n    }\n    forward . 8.8.8.8 {\n        max_concurrent 1000\n    }\n    loop\n}\n",
    { file: "Corefile", host: memoryHost(), to: "1.6.9", directives: DIRECTIVES },
  );
  assert.equal(
    text,
    ". {\n    kubernetes cluster.local {\n    }\n    forward . 8.8.8.8 {\n    }\n    loop\n}\n",
  );
  assert.deepEqual(notices.map(sentenceOf), [
    'Plugin "plugin" is not known in 1.6.9.',
    'Plugin "explain" is not known in 1.6.9.',
    'Option "manifests" in plugin "kubernetes" is not known in 1.6.9.',
    'Option "max_concurrent" in plugin "forward" is not known in 1.6.9.',
  ]);
});

test("kube-dns's ConfigMap keeps every server", () => {
  const config = readKubeDnsConfig({
    stubDomains: '{"acme.local":["1.1.1.1","ns.acme.example"],"w.local":["2.2.2.2:10053"]}',
    upstreamNameservers: '["8.8.8.8","[2001:db8::1]:53"]',
    federations: " a = example.com , b=example.net",
  });
  const { text, notices } = fromKubeDns(config, { domain: "cluster.local" });
  assert.match(text, /^acme\.local:53 \{\n[^}]*forward \. 1\.1\.1\.1 ns\.acme\.example \{/m);
  assert.match(text, /^w\.local:53 \{\n[^}]*forward \. 2\.2\.2\.2:10053 \{/m);
  assert.match(text, /^ {4}forward \. 8\.8\.8\.8 \[2001:db8::1\]:53 \{/m);
  assert.match(text, /federation cluster\.local \{\n {8}a example\.com\n {8}b example\.net\n/);
  assert.ok(notices.length > 5);
  const asJson = readKubeDnsConfig({ federations: '{"a":"example.com"}' });
  assert.deepEqual([...asJson.federations], [["a", "example.com"]]);
});

for (const [key, text] of [
  ["federations", "a.b=example.com"],
  ["federations", "a"],
  ["stubDomains", '{"":["1.2.3.4"]}'],
  ["stubDomains", '{"$$$$":["1.2.3.4"]}'],
  ["stubDomains", '{"foo.com":["$$$$"]}'],
  ["stubDomains", '{"foo.com":["1.2.3.4:65564"]}'],
  ["stubDomains", '["1.2.3.4"]'],
  ["upstreamNameservers", '["1.1.1.1","2.2.2.2","3.3.3.3","4.4.4.4"]'],
  ["upstreamNameservers", '["1.1.1.1:abc"]'],
  ["upstreamNameservers", '["1.1.1.1:"]'],
  ["upstreamNameservers", '["1.1.1.1:123456789"]'],
  ["upstreamNameservers", '["ns.example"]'],
] as const) {
  test(`refuses ${key} ${text}`, () =>
    assert.throws(() => readKubeDnsConfig({ [key]: text }), new RegExp(`^KubeDnsConfigError: ${key}: `)));
}

test("accepts what kube-dns accepts", () => {
  for (const servers of [
    ["1.2.3.4"],
    ["1.2.3.4:32564"],
    ["ns.foo.com"],
    ["[2001:db8:2:2:2::2]:10053", "2001:db8:3:3:3::3"],
  ])
    assert.deepEqual(
      readKubeDnsConfig({ stubDomains: JSON.stringify({ "foo.com": servers }) }).stubDomains.get("foo.com"),
      servers,
    );
});

test("values of the Helm chart", () => {
  assert.equal(
    fromHelmValues({
      extraConfig: { import: { parameters: "/opt/*.conf" } },
      servers: [
        {
          zones: [{ zone: "example.org.", scheme: "tls://" }, { zone: "." }],
          port: 853,
          plugins: [
            { name: "cache", parameters: 30, configBlock: "success 1\n\ndenial 2\n" },
            { name: "loop" },
          ],
        },
      ],
    }),
    "import /opt/*.conf\n\ntls://example.org.:853 .:853 {\n    cache 30 {\n        success 1\n\n        denial 2\n    }\n    loop\n}\n",
  );
  assert.match(fromHelmValues({}), /^\.:53 \{\n {4}errors\n {4}health \{\n {8}lameduck 10s\n/);
  assert.throws(() => fromHelmValues({ servers: {} }), /HelmValuesError: servers: a list was expected/);
});

test("recognizes the defaults of Kubernetes, in any order", () => {
  const corefile = (text: string) => parseCorefile(text, { file: "Corefile", host: memoryHost() }).corefile;
  const old =
    ".:53 {\n health\n errors\n kubernetes cluster.local in-addr.arpa ip6.arpa {\n upstream\n pods insecure\n fallthrough in-addr.arpa ip6.arpa\n }\n prometheus :9153\n proxy . /etc/resolv.conf\n cache 30\n reload\n}\n";
  assert.ok(isDefaultCorefile(corefile(old), "1.11"));
  assert.ok(isDefaultCorefile(corefile(old)));
  assert.ok(!isDefaultCorefile(corefile(old), "v1.16.3"));
  assert.ok(!isDefaultCorefile(corefile(old.replace("cache 30", "cache 31"))));
});

test("versions", () => {
  assert.equal(readVersion("v1.8.2"), "1.8.0");
  assert.equal(readVersion("1.14.9"), "1.14.7");
  assert.throws(() => readVersion("1.0.6"), VersionError);
  assert.throws(() => readVersion("latest"), VersionError);
});

test("a downgrade removes the options and words that came with 1.15.0, and 1.15.0 keeps them", () => {
  const corefile = `. {
    metadata
    proxyproto {
        tlv_metadata
        default use
    }
    quic {
        max_connections 5
        max_streams 9
    }
    https {
        max_streams 9
        max_connections 3
    }
    rewrite name regex (.*) {1}.{a/b}. metadata answer auto
    rewrite stop {
        name regex (.*) {1}.{a/b}. metadata
        answer name a b
    }
    rewrite name regex (.*) metadata answer auto
    rewrite name metadata other
    etcd {
        no_apex_fallback
        path skydns
    }
    forward . quic://192.0.2.1
}
`;
  const to = (version: string) =>
    downgrade(corefile, { file: "Corefile", host: memoryHost(), to: version, directives: DIRECTIVES });
  assert.deepEqual(to("1.15.0"), { text: corefile, notices: [] });
  const { text, notices } = to("1.14.7");
  assert.equal(
    text,
    `. {
    metadata
    proxyproto {
        default use
    }
    quic {
        max_streams 9
    }
    https {
        max_connections 3
    }
    rewrite name regex (.*) metadata answer auto
    rewrite name metadata other
    etcd {
        path skydns
    }
}
`,
  );
  assert.equal(notices.length, 7);
});
