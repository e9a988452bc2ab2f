/** Answers that are signed as they are given, and those of signed zones: what validators of others make of every kind of them. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { Peer } from "../support/peers.ts";
import { Portolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const PARENT = `$TTL 3600
@ IN SOA ns1 hostmaster 2026010101 7200 3600 1209600 300
@ IN NS ns1
@ IN MX 10 www
ns1 IN A 192.0.2.1
www 60 A 192.0.2.3
www 60 A 192.0.2.4
*.w A 192.0.2.5
e.w TXT "beside the wildcard"
*.wc CNAME www
x.y.z.deep TXT "x"
*.below.wild.deep A 192.0.2.6
cn CNAME www
chain1 CNAME chain2
chain2 CNAME CHAIN3.example.org.
chain3 CNAME q.w
cn-nx CNAME nope
cn-nodata CNAME www2
cn-ent CNAME z.deep
cn-wild-nx CNAME q.e.w
d DNAME www2
d TXT "beside the DNAME"
www2 TXT "below which others are"
a.www2 A 192.0.2.8
secure NS ns.secure
ns.secure A 192.0.2.9
insecure NS ns.insecure
ns.insecure A 192.0.2.10
b.c.insecure-deep NS ns1
`;

const SECURE = "$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.9\nwww A 192.0.2.11\n";
const INSECURE = "$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.10\nwww A 192.0.2.12\n";

type Kind = "data" | "no data" | "no name" | "insecure";

/** Names below the zone. Of an alias it is what stands at its end. */
const QUESTIONS: readonly (readonly [string, string, Kind])[] = [
  ["", "SOA", "data"],
  ["", "DNSKEY", "data"],
  ["", "MX", "data"],
  ["", "AAAA", "no data"],
  ["www", "A", "data"],
  ["WwW", "A", "data"],
  ["www", "AAAA", "no data"],
  ["www", "NSEC3", "no data"],
  ["www", "CNAME", "no data"],
  ["nope", "A", "no name"],
  ["zzz.nope", "TXT", "no name"],
  ["a.b.c.nope", "TXT", "no name"],
  ["below.www", "A", "no name"],
  // Wildcards, what stands in front of them, and what they do not reach.
  ["q.w", "A", "data"],
  ["r.q.w", "A", "data"],
  ["*.w", "A", "data"],
  ["q.w", "AAAA", "no data"],
  ["e.w", "TXT", "data"],
  ["e.w", "A", "no data"],
  ["q.e.w", "A", "no name"],
  ["w", "A", "no data"],
  ["q.wc", "A", "data"],
  ["q.wc", "AAAA", "no data"],
  // Empty non-terminals.
  ["deep", "A", "no data"],
  ["z.deep", "A", "no data"],
  ["y.z.deep", "TXT", "no data"],
  ["wild.deep", "A", "no data"],
  ["q.below.wild.deep", "A", "data"],
  ["nope.z.deep", "A", "no name"],
  ["c.insecure-deep", "A", "no data"],
  // Aliases.
  ["cn", "A", "data"],
  ["cn", "CNAME", "data"],
  ["cn", "AAAA", "no data"],
  ["chain1", "A", "data"],
  ["chain1", "TXT", "no data"],
  ["cn-nx", "A", "no name"],
  ["cn-nodata", "A", "no data"],
  ["cn-ent", "A", "no data"],
  ["cn-wild-nx", "A", "no name"],
  ["a.d", "A", "data"],
  ["a.d", "AAAA", "no data"],
  ["nope.d", "A", "no name"],
  ["d", "DNAME", "data"],
  ["d", "TXT", "data"],
  ["d", "A", "no data"],
  // Delegations.
  ["secure", "DS", "data"],
  ["www.secure", "A", "data"],
  ["www.secure", "AAAA", "no data"],
  ["nope.secure", "A", "no name"],
  ["insecure", "DS", "no data"],
  ["www.insecure", "A", "insecure"],
  ["www.insecure", "AAAA", "insecure"],
  ["b.c.insecure-deep", "DS", "no data"],
];

interface Mode {
  readonly name: string;
  /** The directives that answer for the zone; the signed file comes up on its own, or is there. */
  readonly directives: (folder: string, key: string) => string;
  /** Whether names that do not exist are NXDOMAIN. */
  readonly denies: boolean;
  /** The options of the signer, where others than the default sign the zone. */
  readonly signer?: readonly string[];
  readonly waitsForFile?: boolean;
}

const online = (option: string) => (folder: string, key: string) =>
  `dnssec {
        key file ${folder}/${key}
        ${option}
    }
    file ${folder}/parent`;
const offline = (option: string) => (folder: string, key: string) =>
  `sign ${folder}/parent {
        key file ${folder}/${key}
        directory ${folder}
        ${option}
    }
    file ${folder}/db.example.org.signed {
        reload 1s
    }`;
const byOthers = (folder: string) => `file ${folder}/parent.signed`;

const MODES: readonly Mode[] = [
  { name: "black lies", directives: online(""), denies: false },
  { name: "compact denial", directives: online("compact"), denies: false },
  { name: "sign with NSEC", directives: offline(""), denies: true, waitsForFile: true },
  { name: "sign with NSEC3", directives: offline("nsec3"), denies: true, waitsForFile: true },
  {
    name: "a file with NSEC3 and opt-out",
    directives: byOthers,
    denies: true,
    signer: ["-z", "-3", "-", "-A", "-H", "0"],
  },
];

/** The zones of one mode, served, and a validating resolver in front of them. */
class Served implements AsyncDisposable {
  readonly server: Portolan;
  readonly resolver: Peer;
  readonly anchors: string;

  private constructor(server: Portolan, resolver: Peer, anchors: string) {
    this.server = server;
    this.resolver = resolver;
    this.anchors = anchors;
  }

  static async start(mode: Mode, folder: string): Promise<Served> {
    const key = await newKey(folder, "example.org");
    const child = await newKey(folder, "secure.example.org");
    const { output: ds } = await run("dnssec-dsfromkey", ["-2", join(folder, `${child}.key`)]);
    writeFileSync(join(folder, "parent"), `${PARENT}${ds}`);
    writeFileSync(join(folder, "secure"), SECURE);
    writeFileSync(join(folder, "insecure"), INSECURE);
    if (mode.signer !== undefined) {
      const words = ["-K", folder, "-S", "-d", folder, "-o", "example.org", ...mode.signer];
      const signed = await run("dnssec-signzone", [
        ...words,
        "-f",
        join(folder, "parent.signed"),
        join(folder, "parent"),
      ]);
      assert.match(signed.output + signed.errors, /Zone fully signed/);
    }
    const server = await Portolan.start(
      (port) => `example.org:${port("dns")} {
    bind 127.0.0.1
    errors
    ${mode.directives(folder, key)}
}
secure.example.org:${port("dns")} {
    bind 127.0.0.1
    dnssec {
        key file ${folder}/${child}
    }
    file ${folder}/secure
}
insecure.example.org:${port("dns")} {
    bind 127.0.0.1
    file ${folder}/insecure
}
`,
    );
    if (mode.waitsForFile === true) await server.waitForLog(/Successfully reloaded zone "example\.org\."/);
    const publicKey = readFileSync(join(folder, `${key}.key`), "utf8");
    const [, flags, protocol, number, text = ""] = /DNSKEY (\d+) (\d+) (\d+) (.*)/.exec(publicKey) ?? [];
    const anchors = join(folder, "anchors");
    const material = `${flags} ${protocol} ${number} "${text.replaceAll(" ", "")}"`;
    writeFileSync(anchors, `trust-anchors { "example.org" static-key ${material}; };\n`);
    const stubs = ["example.org", "secure.example.org", "insecure.example.org"].flatMap((name) => [
      "stub-zone:",
      `  name: ${name}`,
      `  stub-addr: 127.0.0.1@${server.port}`,
    ]);
    const resolver = await Peer.unbound(
      [],
      [
        "local-zone: example.org transparent",
        'module-config: "validator iterator"',
        `trust-anchor: "example.org. DNSKEY ${flags} ${protocol} ${number} ${text}"`,
        "val-log-level: 2",
        ...stubs,
      ],
    );
    return new Served(server, resolver, anchors);
  }

  async delv(name: string, type: string): Promise<string> {
    const words = ["@127.0.0.1", "-p", String(this.server.port), "-a", this.anchors, "+root=example.org"];
    const { output, errors } = await run("delv", [...words, name, type]);
    return output + errors;
  }

  /** What the resolver says to all questions, one answer a question. */
  async digAll(): Promise<readonly string[]> {
    const words = ["@127.0.0.1", "-p", String(this.resolver.port), "+tries=1", "+timeout=8"];
    const questions = QUESTIONS.flatMap(([label, type]) => [nameOf(label), type, "+dnssec"]);
    const { output } = await run("dig", [...words, ...questions]);
    return output.split("->>HEADER<<-").slice(1);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.resolver[Symbol.asyncDispose]();
    await this.server[Symbol.asyncDispose]();
  }
}

function nameOf(label: string): string {
  return label === "" ? "example.org" : `${label}.example.org`;
}

function recordsIn(output: string): readonly string[] {
  return output.split("\n").filter((line) => line !== "" && !line.startsWith(";"));
}

async function newKey(folder: string, zone: string): Promise<string> {
  const words = ["-q", "-K", folder, "-a", "ECDSAP256SHA256", "-f", "KSK", zone];
  const { output } = await run("dnssec-keygen", words);
  return output.trim();
}

/** What delv has to say of an answer. Of an alias it speaks by its first record, and unbound by its last. */
function verdict(kind: Kind, output: string): RegExp {
  if (kind === "insecure") return /^; (?:negative response, )?unsigned answer/m;
  if (kind === "data" || /^\S+\s+\d+\s+IN\s+(?:CNAME|DNAME)\s/m.test(output)) return /^; fully validated/m;
  return /^; negative response, fully validated/m;
}

const TOOLS = [
  "delv",
  "dig",
  "dnssec-dsfromkey",
  "dnssec-keygen",
  "dnssec-signzone",
  "dnssec-verify",
  "ldns-verify-zone",
  "unbound",
];

for (const mode of MODES) {
  suite(`validators believe ${mode.name}`, {
    skip: skipWithout(...TOOLS),
    concurrency: 2,
  }, () => {
    const folder = mkdtempSync(join(tmpdir(), "portolan-validated-"));
    let served: Served;
    let answers: readonly string[] = [];
    before(async () => {
      served = await Served.start(mode, folder);
      answers = await served.digAll();
      assert.equal(answers.length, QUESTIONS.length);
    });

    if (mode.waitsForFile === true) {
      test("the file is whole", async () => {
        const file = join(folder, "db.example.org.signed");
        const verified = await run("dnssec-verify", ["-z", "-o", "example.org", file]);
        assert.match(verified.output + verified.errors, /Zone fully signed/);
        const seen = await run("ldns-verify-zone", [file]);
        assert.match(seen.output + seen.errors, /Zone is verified and complete/);
      });
    }

    if (mode.name === "compact denial") {
      test("who sets CO gets the same proofs beside NXDOMAIN", async () => {
        for (const [label, type, kind] of QUESTIONS) {
          if (label.endsWith("secure")) continue;
          const words = [
            "@127.0.0.1",
            "-p",
            String(served.server.port),
            "+dnssec",
            "+norecurse",
            nameOf(label),
          ];
          const [plain, compact] = await Promise.all([
            run("dig", [...words, type]),
            run("dig", [...words, type, "+coflag"]),
          ]);
          assert.deepEqual(recordsIn(compact.output), recordsIn(plain.output));
          assert.match(plain.output, /status: NOERROR,/);
          assert.match(compact.output, kind === "no name" ? /status: NXDOMAIN,/ : /status: NOERROR,/, label);
        }
      });
    }
    after(async () => {
      await served[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    });

    for (const [index, [label, type, kind]] of QUESTIONS.entries()) {
      test(`${nameOf(label)} ${type}: ${kind}`, async () => {
        const output = await served.delv(nameOf(label), type);
        // A wildcard may stand for what a range with opt-out hides, so delv speaks of the answer as BIND's own (RFC 5155 section 9.2).
        const isHidden = mode.signer !== undefined && /^[qr]\./.test(label);
        assert.match(
          output,
          isHidden
            ? /^; (?:negative response, )?(?:fully validated|unsigned answer)/m
            : verdict(kind, output),
          output,
        );
        const answer = answers[index] ?? "";
        // The child is signed as answers are given, whatever its parent is.
        const isDenied = kind === "no name" && mode.denies && !label.endsWith(".secure");
        assert.match(answer, isDenied ? /status: NXDOMAIN,/ : /status: NOERROR,/, answer);
        if (kind === "insecure") assert.doesNotMatch(answer, /flags:[^;]* ad/, answer);
        // What rests on a range that may hold insecure delegations is believed, and not said to be authentic (RFC 5155 section 9.2).
        else if (!/ IN\s+NSEC3 1 1 /.test(answer)) assert.match(answer, /flags:[^;]* ad/, answer);
      });
    }
  });
}
