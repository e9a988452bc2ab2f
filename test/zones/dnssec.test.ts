/** Answers that are signed as they are given, judged by the validators of others. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { Peer } from "../support/peers.ts";
import { Portolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const ZONE = `$TTL 3600
@ IN SOA ns1 hostmaster 2026010101 7200 3600 1209600 300
@ IN NS ns1
ns1 IN A 192.0.2.1
www 60 A 192.0.2.3
www 60 A 192.0.2.4
long 86400 TXT "a TTL beyond that of the signature"
*.w A 192.0.2.5
b.a TXT "x"
cn CNAME www
cnx CNAME nope
nods NS ns.nods
ns.nods A 192.0.2.7
d DNAME www2
x.www2 A 192.0.2.8
`;

/** Names with types, and whether the answer says that there is something. */
const QUESTIONS: readonly (readonly [string, string, boolean])[] = [
  ["example.org", "SOA", true],
  ["example.org", "DNSKEY", true],
  ["example.org", "MX", false],
  ["www.example.org", "A", true],
  ["www.example.org", "AAAA", false],
  ["long.example.org", "TXT", true],
  ["nope.example.org", "A", false],
  ["a.b.c.nope.example.org", "TXT", false],
  ["q.w.example.org", "A", true],
  ["q.w.example.org", "AAAA", false],
  ["a.example.org", "A", false],
  ["cn.example.org", "A", true],
  ["cn.example.org", "AAAA", false],
  ["cnx.example.org", "A", false],
  ["nods.example.org", "DS", false],
  ["x.d.example.org", "A", true],
];

async function withKeys(
  algorithms: readonly (readonly string[])[],
  use: (folder: string, names: readonly string[]) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-keys-"));
  try {
    const names: string[] = [];
    for (const words of algorithms) {
      const { output } = await run("dnssec-keygen", ["-q", "-K", folder, ...words, "example.org"]);
      names.push(output.trim());
    }
    await use(folder, names);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function corefile(folder: string, names: readonly string[], option: string) {
  return (port: (name: string) => number) => `example.org:${port("dns")} {
    bind 127.0.0.1
    errors
    dnssec {
        key file ${names.map((name) => join(folder, name)).join(" ")}
        ${option}
    }
    file db
}
`;
}

/** The fields of a public key behind its type. */
function publicKey(folder: string, name: string): string[] {
  const text = readFileSync(join(folder, `${name}.key`), "utf8");
  return /DNSKEY (\d+) (\d+) (\d+) (.*)/.exec(text)?.slice(1) ?? [];
}

suite("validators believe", {
  skip: skipWithout("delv", "dnssec-keygen", "unbound", "dig"),
  concurrency: 2,
}, () => {
  for (const [what, algorithms, option] of [
    ["RSASHA256 for everything", [["-a", "RSASHA256", "-b", "2048", "-f", "KSK"]], ""],
    ["RSASHA512 for everything", [["-a", "RSASHA512", "-b", "2048", "-f", "KSK"]], ""],
    [
      "a KSK and a ZSK of ECDSAP256SHA256",
      [
        ["-a", "ECDSAP256SHA256", "-f", "KSK"],
        ["-a", "ECDSAP256SHA256"],
      ],
      "",
    ],
    ["ECDSAP384SHA384, compactly", [["-a", "ECDSAP384SHA384", "-f", "KSK"]], "compact"],
    ["ED25519", [["-a", "ED25519", "-f", "KSK"]], ""],
  ] as const) {
    test(what, async () => {
      await withKeys(algorithms, async (folder, names) => {
        await using server = await Portolan.start(corefile(folder, names, option), { files: { db: ZONE } });
        const [flags, protocol, number, key = ""] = publicKey(folder, names[0] ?? "");
        const anchors = join(folder, "anchors");
        writeFileSync(
          anchors,
          `trust-anchors { "example.org" static-key ${flags} ${protocol} ${number} "${key.replaceAll(" ", "")}"; };\n`,
        );
        for (const [name, type, exists] of QUESTIONS) {
          const words = [
            "@127.0.0.1",
            "-p",
            String(server.port),
            "-a",
            anchors,
            "+root=example.org",
            name,
            type,
          ];
          const { output } = await run("delv", words);
          // Of an alias without an end delv speaks well, and unbound below looks at the end.
          const expected =
            exists || name.startsWith("cn")
              ? /^; fully validated/m
              : /^; negative response, fully validated/m;
          assert.match(output, expected, `${name} ${type}: ${output}`);
        }
      });
    });
  }

  for (const option of ["", "compact"]) {
    test(`unbound, which looks for the way itself ${option}`, async () => {
      await withKeys([["-a", "ECDSAP256SHA256", "-f", "KSK"]], async (folder, names) => {
        await using server = await Portolan.start(corefile(folder, names, option), { files: { db: ZONE } });
        const anchor = `example.org. DNSKEY ${publicKey(folder, names[0] ?? "").join(" ")}`;
        await using resolver = await Peer.unbound(
          [],
          [
            "local-zone: example.org transparent",
            'module-config: "validator iterator"',
            `trust-anchor: "${anchor}"`,
            "stub-zone:",
            "  name: example.org",
            `  stub-addr: 127.0.0.1@${server.port}`,
          ],
        );
        for (const [name, type] of QUESTIONS) {
          const words = [
            "@127.0.0.1",
            "-p",
            String(resolver.port),
            "+dnssec",
            "+tries=1",
            "+timeout=8",
            name,
            type,
          ];
          const { output } = await run("dig", words);
          assert.match(output, /status: NOERROR|status: NXDOMAIN/, `${name} ${type}: ${output}`);
          assert.match(output, /flags:[^;]* ad/, `${name} ${type}: ${output}`);
        }
      });
    });
  }
});

suite("compact denial", { skip: skipWithout("dig", "dnssec-keygen") }, () => {
  test("who sets CO gets NXDOMAIN, all others NOERROR, out of the cache as well", async () => {
    await withKeys([["-a", "ED25519", "-f", "KSK"]], async (folder, names) => {
      const text = corefile(folder, names, "compact");
      await using server = await Portolan.start(
        (port) => text(port).replace("dnssec {", "cache 30\n    dnssec {"),
        {
          files: { db: ZONE },
        },
      );
      await using resolver = await Portolan.start(
        (port) => `.:${port("dns")} {\n  cache 30\n  forward . 127.0.0.1:${server.port}\n}\n`,
      );
      const askAt = async (port: number, words: readonly string[]) => {
        const { output } = await run("dig", ["@127.0.0.1", "-p", String(port), "+nocookie", ...words]);
        const [, rcode] = /status: (\w+)/.exec(output) ?? [];
        const [, flags] = /EDNS: version: 0, flags:([ a-z]*);/.exec(output) ?? [];
        return { said: `${rcode}${flags}`, output };
      };
      const ask = (...words: string[]) => askAt(server.port, words);
      // Twice, as the second answer comes out of the cache.
      for (const round of ["asked", "cached"]) {
        for (const [words, expected] of [
          ["nope.example.org +dnssec", "NOERROR do"],
          ["nope.example.org +dnssec +coflag", "NXDOMAIN do co"],
          ["nope.example.org +coflag", "NXDOMAIN"],
          ["nope.example.org", "NXDOMAIN"],
          ["cnx.example.org +dnssec", "NOERROR do"],
          ["cnx.example.org +dnssec +coflag", "NXDOMAIN do co"],
          ["www.example.org +dnssec +coflag", "NOERROR do co"],
          ["www.example.org AAAA +dnssec +coflag", "NOERROR do co"],
          ["a.example.org +dnssec +coflag", "NOERROR do co"],
        ] as const) {
          const { said, output } = await ask(...words.split(" "));
          assert.equal(said, expected, `${words}, ${round}`);
          if (words.startsWith("nope") && words.includes("dnssec"))
            assert.match(
              output,
              /nope\.example\.org\.\s+\d+\s+IN\s+NSEC\s+\\000\.nope\.example\.org\. RRSIG NSEC (NXNAME|TYPE128)/,
            );
        }
      }
      assert.match((await ask("www.example.org", "TYPE128")).said, /^FORMERR/);
      // The forwarder knows the CO bit from the upstream's answer, and a cached answer has the same bit.
      for (const round of ["forwarded", "cached"]) {
        for (const [words, expected] of [
          ["nope.example.org +dnssec +coflag", "NXDOMAIN do co"],
          ["nope.example.org +dnssec", "NOERROR do"],
          ["www.example.org +dnssec +coflag", "NOERROR do co"],
          ["www.example.org", "NOERROR"],
        ] as const)
          assert.equal((await askAt(resolver.port, words.split(" "))).said, expected, `${words}, ${round}`);
      }
    });
  });
});
