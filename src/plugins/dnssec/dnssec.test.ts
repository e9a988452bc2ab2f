import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { EdnsOptionCode, KeyPairError, readKeyPair } from "../../dns/index.ts";
import { SetupError } from "../../plugin/index.ts";
import { answering, ConfigRefused, FakeClock, PluginTest, records } from "../../plugin/testing.ts";
import { readSecretKey } from "./aws-secrets.ts";
import dnssec from "./index.ts";
import { SignatureStore } from "./signature-store.ts";

const DO = { edns: { dnssecOk: true } };

/** The two files of a new key for ECDSAP256SHA256. */
function newKey(owner: string, flags = 257): { readonly key: string; readonly private: string } {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { x = "", y = "", d = "" } = privateKey.export({ format: "jwk" });
  const octets = (text: string) => Buffer.from(text, "base64url");
  const published = Buffer.concat([octets(x), octets(y)]).toString("base64");
  return {
    key: `; a comment\n${owner} 3600 IN DNSKEY ${flags} 3 13 ${published}\n`,
    private: `Private-key-format: v1.3\nAlgorithm: 13 (ECDSAP256SHA256)\nPrivateKey: ${octets(d).toString("base64")}\n`,
  };
}

const folder = mkdtempSync(join(tmpdir(), "portolan-dnssec-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function keyFiles(name: string, files: { readonly key: string; readonly private: string }): string {
  const base = join(folder, name);
  writeFileSync(`${base}.key`, files.key);
  writeFileSync(`${base}.private`, files.private);
  return base;
}

const good = keyFiles("Kgood", newKey("example.org."));
const zsk = keyFiles("Kzsk", newKey("example.org.", 256));

const www = { answer: records("www.example.org. 60 IN A 192.0.2.1", "www.example.org. 60 IN A 192.0.2.2") };

function signatures(section: readonly string[]): string[] {
  return section.filter((text) => text.includes(" RRSIG ") || text.includes("\tRRSIG\t"));
}

test("signs answers for clients with DO only", async () => {
  const running = PluginTest.of(dnssec, `dnssec example.org {\n key file ${good}\n}`);
  await running.start();
  const next = answering(www);
  const plain = await running.ask({ name: "www.example.org.", next });
  assert.deepEqual(plain.answer.length, 2);
  const signed = await running.ask({ name: "www.example.org.", next, ...DO });
  assert.equal(signed.answer.length, 3);
  assert.match(signatures(signed.answer)[0] ?? "", /RRSIG A 13 3 3600 /);
  const again = await running.ask({ name: "www.example.org.", next, ...DO });
  assert.deepEqual(again.answer, signed.answer);
  const { body } = await running.metrics.expose();
  assert.match(body, /^coredns_dnssec_cache_misses_total\{server="[^"]*"\} 1$/m);
  assert.match(body, /^coredns_dnssec_cache_hits_total\{server="[^"]*"\} 1$/m);
  assert.match(body, /^coredns_dnssec_cache_entries\{server="dns:\/\/:53",type="signature"\} 1$/m);
});

test("identical concurrent questions make one signature", async () => {
  const running = PluginTest.of(dnssec, `dnssec example.org {\n key file ${good}\n}`);
  await running.start();
  const next = answering(www);
  const all = await Promise.all(
    Array.from({ length: 20 }, () => running.ask({ name: "www.example.org.", next, ...DO })),
  );
  assert.equal(new Set(all.map(({ answer }) => signatures(answer)[0])).size, 1);
});

test("excess signatures wait for the threads, and each answer gets its own", async () => {
  const running = PluginTest.of(dnssec, `dnssec example.org {\n key file ${good}\n}`);
  await running.start();
  const next = answering(www);
  const all = await Promise.all(
    Array.from({ length: 100 }, (_, index) => {
      const name = `h${index % 50}.example.org.`;
      return running.ask({ name, next: answering({ answer: records(`${name} 60 IN A 192.0.2.1`) }), ...DO });
    }),
  );
  for (const { answer } of all) assert.equal(signatures(answer).length, 1);
  assert.equal(new Set(all.map(({ answer }) => signatures(answer)[0])).size, 50);
  // Later queries find the threads idle.
  assert.equal((await running.ask({ name: "www.example.org.", next, ...DO })).answer.length, 3);
});

test("a signature is served until it expires, and renewed two days before", async () => {
  const clock = new FakeClock();
  const running = PluginTest.of(dnssec, `dnssec example.org {\n key file ${good}\n}`, { clock });
  await running.start();
  const next = answering(www);
  const ask = async () =>
    signatures((await running.ask({ name: "www.example.org.", next, ...DO })).answer)[0];
  const first = await ask();
  clock.advance(5.9 * 86_400_000);
  assert.equal(await ask(), first);
  clock.advance(0.2 * 86_400_000);
  assert.equal(await ask(), first);
  // The new signature is made after the answer.
  for (let turn = 0; turn < 500 && (await ask()) === first; turn++)
    await new Promise((resolve) => setImmediate(resolve));
  assert.notEqual(await ask(), first);
});

test("KSK and ZSK share the work", async () => {
  const running = PluginTest.of(dnssec, `dnssec example.org {\n key file ${good} ${zsk}\n}`);
  await running.start();
  const keys = await running.ask({ name: "example.org.", type: "DNSKEY", ...DO });
  const tagOf = (text: string | undefined) => text?.split(/\s+/)[10];
  assert.equal(keys.answer.length, 3);
  const data = await running.ask({ name: "www.example.org.", next: answering(www), ...DO });
  assert.equal(signatures(data.answer).length, 1);
  assert.notEqual(tagOf(signatures(keys.answer)[0]), tagOf(signatures(data.answer)[0]));
});

test("a name that does not exist is denied with one record, in compact form if configured", async () => {
  const soa = "example.org. 300 IN SOA ns. host. 1 2 3 4 300";
  for (const [option, types] of [
    ["", "HINFO TXT AAAA LOC SRV CERT SSHFP RRSIG NSEC TLSA HIP OPENPGPKEY SPF"],
    ["compact", "RRSIG NSEC TYPE128"],
  ]) {
    const running = PluginTest.of(dnssec, `dnssec example.org {\n key file ${good}\n ${option}\n}`);
    await running.start();
    const denial = await running.ask({
      name: "nope.example.org.",
      next: answering({ rcode: 3, authority: records(soa) }),
      ...DO,
    });
    assert.equal(denial.rcode, 0);
    assert.equal(denial.authority.length, 4);
    assert.equal(denial.authority[3], `nope.example.org. 300 IN NSEC \\000.nope.example.org. ${types}`);
  }
});

test("a query for NXNAME itself gets FORMERR", async () => {
  const running = PluginTest.of(dnssec, `dnssec example.org {\n key file ${good}\n compact\n}`);
  await running.start();
  for (const [question, codes] of [
    [{ name: "www.example.org.", type: "TYPE128" }, undefined],
    [{ name: "www.example.org.", type: "TYPE128", ...DO }, [EdnsOptionCode.EXTENDED_ERROR]],
  ] as const) {
    const { rcode, reply } = await running.ask({ ...question, next: answering(www) });
    assert.equal(rcode, 1);
    assert.deepEqual(
      reply.edns?.options.map(({ code }) => code),
      codes,
    );
  }
});

for (const [what, files, message] of [
  ["no record", { key: "nothing", private: "" }, /\.key: no DNSKEY record/],
  ["another record", { key: "example.org. A 192.0.2.1", private: "" }, /\.key: the record is not a DNSKEY/],
  [
    "an algorithm that cannot sign",
    { key: "example.org. DNSKEY 257 3 12 AAAA", private: "" },
    /algorithm 12 is not supported for signing: use one of/,
  ],
  ["no private key", { ...newKey("example.org."), private: "hello" }, /\.private: not in the form/],
  [
    "another private key",
    { key: newKey("example.org.").key, private: newKey("example.org.").private },
    /\.private: (it does not belong to the public key|the key is broken)/,
  ],
  [
    "a key of another zone",
    newKey("example.net."),
    /key example\.net\. \(keyid: \d+\) can not sign any of the zones/,
  ],
] as const) {
  test(`refuses ${what}`, async () => {
    const base = keyFiles("Kbad", files);
    await assert.rejects(
      PluginTest.of(dnssec, `dnssec example.org {\n key file ${base}\n}`).start(),
      (error) => error instanceof SetupError && message.test(error.message),
    );
  });
}

test("a missing file is reported", async () => {
  await assert.rejects(PluginTest.of(dnssec, "dnssec example.org {\n key file /nowhere/K\n}").start(), {
    message: "open /nowhere/K.key: no such file or directory",
  });
});

for (const text of [
  "dnssec {\n key\n}",
  "dnssec {\n key file\n}",
  "dnssec {\n cache_capacity\n}",
  "dnssec\ndnssec",
  "dnssec {\n key folder x\n}",
]) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(() => PluginTest.of(dnssec, text), ConfigRefused);
  });
}

test("keys of AWS Secrets Manager", async () => {
  const secrets: Record<string, string> = { good: JSON.stringify(newKey("example.org.")), bad: "[]" };
  const load = async () => ({
    SecretsManagerClient: class {
      async send(command: { id: string }) {
        return { SecretString: secrets[command.id] };
      }
    },
    GetSecretValueCommand: class {
      readonly id: string;
      constructor({ SecretId }: { SecretId: string }) {
        this.id = SecretId;
      }
    },
  });
  assert.equal((await readSecretKey("good", load)).owner.toString(), "example.org.");
  await assert.rejects(readSecretKey("bad", load), /not a JSON object with the fields 'key' and 'private'/);
  await assert.rejects(
    readSecretKey("good", () => Promise.reject(new Error("not found"))),
    /run 'npm install @aws-sdk\/client-secrets-manager'/,
  );
});

test("the signature store behaves like a map that evicts", () => {
  const store = new SignatureStore(8, 64);
  const kept = new Map<number, Uint8Array>();
  for (let number = 0; number < 2_000; number++) {
    const digest = store.digest(Uint8Array.of(number >> 8, number & 0xff), new Uint8Array(1), 7);
    assert.equal(store.find(digest), -1);
    const signature = Buffer.alloc(64, number);
    store.add(digest, signature, number);
    kept.set(number, signature);
    let found = 0;
    for (const [other, octets] of kept) {
      const place = store.find(store.digest(Uint8Array.of(other >> 8, other & 0xff), new Uint8Array(1), 7));
      if (place < 0) {
        kept.delete(other);
        continue;
      }
      found++;
      assert.equal(store.expiration(place), other);
      assert.deepEqual(Buffer.from(store.signature(place)), octets);
    }
    assert.equal(found, store.count);
  }
  assert.equal(store.count, 8);
});

test("no key text causes another kind of error", () => {
  const { key, private: secret } = newKey("example.org.");
  for (let at = 0; at < secret.length; at += 3) {
    const broken = `${secret.slice(0, at)}!${secret.slice(at + 1)}`;
    try {
      readKeyPair(key, broken);
    } catch (error) {
      assert.ok(error instanceof KeyPairError, String(error));
    }
  }
});

test("a referral behind an alias is like one without: the alias is signed, the delegation is not, and the absence of DS is proven", async () => {
  const running = PluginTest.of(dnssec, `dnssec example.org {\n key file ${good}\n}`);
  await running.start();
  const alias = records("into.example.org. 60 IN CNAME www.sub.example.org.");
  const delegation = records("sub.example.org. 60 IN NS ns.sub.example.org.");
  const additional = records("ns.sub.example.org. 60 IN A 192.0.2.7");
  const signer = records(`sub.example.org. 60 IN DS 1 13 2 ${"01".repeat(32)}`);
  const typesOf = (section: readonly string[]): string[] =>
    section.map((text) => text.replace(/^(\S+) \d+ IN (RRSIG \S+|\S+) .*/, "$1 $2")).sort();
  for (const [authority, expected] of [
    [delegation, ["sub.example.org. NS", "sub.example.org. NSEC", "sub.example.org. RRSIG NSEC"]],
    [
      [...delegation, ...signer],
      ["sub.example.org. DS", "sub.example.org. NS", "sub.example.org. RRSIG DS"],
    ],
  ] as const) {
    const next = answering({ answer: alias, authority, additional });
    const referral = await running.ask({ name: "into.example.org.", next, ...DO });
    assert.deepEqual(typesOf(referral.answer), ["into.example.org. CNAME", "into.example.org. RRSIG CNAME"]);
    assert.deepEqual(typesOf(referral.authority), expected);
    assert.equal(signatures(referral.additional).length, 0);
  }
  // NS records of the zone itself belong to it.
  const own = records("example.org. 60 IN NS ns.example.org.");
  const elsewhere = records("into.example.org. 60 IN CNAME www.other.test.");
  const next = answering({ answer: elsewhere, authority: own });
  const answer = await running.ask({ name: "into.example.org.", next, ...DO });
  assert.deepEqual(typesOf(answer.authority), ["example.org. NS", "example.org. RRSIG NS"]);
  await running.stop();
});
